"""The rules of security groups, whether inline or resources of their own, read alike."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any, Literal

from fabric.rows import Row, dependencies, inputs, mappings, number, text, texts, true
from policy.launches import efa_interfaces
from policy.program import Program
from policy.tokens import (
    DEFAULT_SECURITY_GROUP,
    LAUNCH_TEMPLATE,
    NETWORK_INTERFACE,
    SECURITY_GROUP,
    SECURITY_GROUP_EGRESS_RULE,
    SECURITY_GROUP_INGRESS_RULE,
    SECURITY_GROUP_RULE,
    SUBNET,
)
from policy.values import UNKNOWN, is_unknown

Direction = Literal["ingress", "egress"]

GROUPS = frozenset({DEFAULT_SECURITY_GROUP, SECURITY_GROUP})
"""The types of resources that are security groups."""

SEPARATE_RULES = frozenset(
    {SECURITY_GROUP_EGRESS_RULE, SECURITY_GROUP_INGRESS_RULE, SECURITY_GROUP_RULE}
)
"""The types of resources that are one rule of a security group each."""

ALL = "-1"
"""The protocol of a rule for all traffic."""

_BLOCKS = ("cidrBlocks", "ipv6CidrBlocks", "cidrIpv4", "cidrIpv6")
_PEERS = (
    "prefixListId",
    "prefixListIds",
    "referencedSecurityGroupId",
    "securityGroups",
    "sourceSecurityGroupId",
)
_GROUPS_KEY = {LAUNCH_TEMPLATE: "networkInterfaces", NETWORK_INTERFACE: "securityGroups"}


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupRule:
    """One rule of a security group; `path` is empty for a resource of its own.

    `protocol` is `-1` for all traffic and None where unknown. `blocks` are CIDR blocks by their
    paths, `peers` everything that it names, with `self` for its own group.
    """

    protocol: str | None
    from_port: int | None
    to_port: int | None
    path: str
    blocks: Mapping[str, str]
    peers: frozenset[str]

    @property
    def allows_group(self) -> bool:
        """Whether it allows all traffic with its own group, or may do so."""
        return self.protocol in (ALL, None) and "self" in self.peers

    def at(self, key: str) -> str:
        """The path of one of its settings."""
        return f"{self.path}.{key}" if self.path else key

    def covers(self, port: int) -> bool:
        """Whether it is about this TCP or UDP port."""
        if self.protocol not in ("tcp", "udp", "6", "17"):
            return self.protocol == ALL
        return (
            self.from_port is not None
            and self.to_port is not None
            and self.from_port <= port <= self.to_port
        )


def inline_rules(group: Row, direction: Direction) -> list[GroupRule]:
    """The rules that a security group resource holds itself."""
    listed = inputs(group).get(direction)
    return [
        _rule(settings, f"{direction}[{position}]", is_self=settings.get("self"))
        for position, settings in enumerate(mappings(listed))
    ]


def separate_rule(row: Row) -> GroupRule:
    """The rule that a resource of its own is."""
    return _rule(inputs(row), "", is_self=_names_its_group(row))


def rules_of(row: Row, direction: Direction) -> list[GroupRule]:
    """The rules that one resource holds, be it a group or a rule."""
    if row.get("type") in GROUPS:
        return inline_rules(row, direction)
    return [separate_rule(row)] if _direction(row) == direction else []


def separate_rules(group: Row, direction: Direction, program: Program) -> list[GroupRule]:
    """The rules of a security group that are resources of their own."""
    return [
        separate_rule(row)
        for row in program.users(group, *sorted(SEPARATE_RULES))
        if group.get("urn") in dependencies(row, "securityGroupId") and _direction(row) == direction
    ]


def all_rules(group: Row, direction: Direction, program: Program) -> list[GroupRule]:
    """The rules of a security group, wherever they stand."""
    return [*inline_rules(group, direction), *separate_rules(group, direction, program)]


def allows_itself(group: Row, direction: Direction, program: Program) -> bool:
    """Whether a group allows all traffic with itself, or may do so."""
    listed = inputs(group).get(direction)
    is_hidden = listed is UNKNOWN or (isinstance(listed, list) and UNKNOWN in listed)
    return is_hidden or any(each.allows_group for each in all_rules(group, direction, program))


def efa_users(group: Row, program: Program) -> list[Row]:
    """The launch templates and network interfaces with EFA that a group is put on."""
    return [
        row
        for row in program.users(group, LAUNCH_TEMPLATE, NETWORK_INTERFACE)
        if group.get("urn") in dependencies(row, _GROUPS_KEY[text(row.get("type"))])
        and _has_efa(row)
    ]


def groups_on(user: Row, program: Program) -> list[Row]:
    """The groups on a template or network interface; none if some are not of this program."""
    key = _GROUPS_KEY[text(user.get("type"))]
    groups = program.linked(user, key, *sorted(GROUPS))
    others = len(dependencies(user, key)) - len(groups) - len(program.linked(user, key, SUBNET))
    listed = [inputs(user).get("securityGroups")]
    if user.get("type") == LAUNCH_TEMPLATE:
        listed = [each.settings.get("securityGroups") for each in efa_interfaces(user)]
    ids = {one for each in listed for one in texts(each)}
    count = len(ids) + any(is_unknown(each) for each in listed)
    return groups if others == 0 and count <= len(groups) else []


def is_world(block: str) -> bool:
    """Whether a CIDR block is the whole internet, or one half of it."""
    try:
        return ip_network(block, strict=False).prefixlen <= 1
    except ValueError:
        return False


def _has_efa(user: Row) -> bool:
    is_efa = text(inputs(user).get("interfaceType")) in ("efa", "efa-only")
    return is_efa or bool(efa_interfaces(user))


def _direction(row: Row) -> str:
    if row.get("type") == SECURITY_GROUP_RULE:
        return text(inputs(row).get("type"))
    return "ingress" if row.get("type") == SECURITY_GROUP_INGRESS_RULE else "egress"


def _names_its_group(row: Row) -> bool:
    settings = inputs(row)
    if true(settings.get("self")):
        return True
    own, own_id = dependencies(row, "securityGroupId"), settings.get("securityGroupId")
    for key in ("referencedSecurityGroupId", "sourceSecurityGroupId"):
        peer = settings.get(key)
        if peer in (None, ""):
            continue
        if set(own) & set(dependencies(row, key)) or (text(peer) and peer == own_id):
            return True
    return False


def _rule(settings: Mapping[str, Any], path: str, *, is_self: object) -> GroupRule:
    blocks = dict(_blocks(settings, path))
    peers = {one for key in _PEERS for one in _texts(settings.get(key))}
    may_be_self = true(is_self) or is_unknown(is_self)
    return GroupRule(
        protocol=_protocol(settings),
        from_port=_port(settings.get("fromPort")),
        to_port=_port(settings.get("toPort")),
        path=path,
        blocks=blocks,
        peers=frozenset({*blocks.values(), *peers, *(["self"] if may_be_self else [])}),
    )


def _blocks(settings: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    start = f"{path}." if path else ""
    for key in _BLOCKS:
        value = settings.get(key)
        if text(value):
            yield f"{start}{key}", text(value)
        for position, block in enumerate(texts(value)):
            yield f"{start}{key}[{position}]", block


def _texts(value: object) -> Sequence[str]:
    return [text(value)] if text(value) else texts(value)


def _protocol(settings: Mapping[str, Any]) -> str | None:
    value = settings.get("protocol", settings.get("ipProtocol"))
    if is_unknown(value):
        return None
    name = str(value).lower()
    return ALL if name == "all" else name


def _port(value: object) -> int | None:
    amount = number(value)
    return None if amount is None else int(amount)

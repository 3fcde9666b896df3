"""Security group rules that open more than they say, or everything."""

from collections.abc import Iterable, Iterator
from typing import cast

from fabric.rows import number
from policy.examples import resource
from policy.group_rules import ALL, GROUPS, SEPARATE_RULES, GroupRule, is_world, rules_of
from policy.rule import Finding, Option, Rule, Subject
from policy.tokens import SECURITY_GROUP, SECURITY_GROUP_INGRESS_RULE

RULES_PAGE = "https://docs.aws.amazon.com/vpc/latest/userguide/security-group-rules.html"
SSH_PAGE = "https://docs.aws.amazon.com/securityhub/latest/userguide/ec2-controls.html#ec2-53"
PROVIDER_PAGE = (
    "https://www.pulumi.com/registry/packages/aws/api-docs/vpc/securitygroupingressrule/"
)

_SSH, _RDP = 22, 3389
_LAST_PORT = 65535
_ICMP = frozenset({"1", "58", "icmp", "icmpv6"})  # AWS advises to let path MTU messages in
_HOLDERS = GROUPS | SEPARATE_RULES


def _administration(subject: Subject) -> Iterator[Finding]:
    for rule in rules_of(subject.row, "ingress"):
        for path, block in _open_blocks(rule):
            if _is_for_administration(rule):
                yield Finding(
                    path=path, value=block, message=f"opens {_ports(rule)} to the internet"
                )


def _anything_else(subject: Subject) -> Iterator[Finding]:
    public = {number(port) for port in cast("Iterable[object]", subject.options["publicPorts"])}
    for rule in rules_of(subject.row, "ingress"):
        if _is_for_administration(rule) or rule.protocol in _ICMP:
            continue
        is_public = rule.from_port == rule.to_port and rule.from_port in public - {None}
        for path, block in () if is_public else _open_blocks(rule):
            yield Finding(path=path, value=block, message=f"opens {_ports(rule)} to the internet")


def _open_blocks(rule: GroupRule) -> Iterator[tuple[str, str]]:
    return ((path, block) for path, block in rule.blocks.items() if is_world(block))


def _is_for_administration(rule: GroupRule) -> bool:
    return rule.covers(_SSH) or rule.covers(_RDP) or _has_all_ports(rule)


def _has_all_ports(rule: GroupRule) -> bool:
    return (rule.from_port or 0, rule.to_port) == (0, _LAST_PORT)


def _ports(rule: GroupRule) -> str:
    if rule.protocol == ALL:
        return "every port"
    if rule.from_port is None or rule.to_port is None:
        return f"ports of {rule.protocol or 'a protocol'}"
    if rule.from_port == rule.to_port:
        return f"{rule.protocol or 'port'} {rule.from_port}"
    return f"{rule.protocol or 'ports'} {rule.from_port} to {rule.to_port}"


def _ports_of_all_traffic(subject: Subject) -> Iterator[Finding]:
    is_separate = subject.row.get("type") in SEPARATE_RULES
    for rule in [*rules_of(subject.row, "ingress"), *rules_of(subject.row, "egress")]:
        names_ports = bool(rule.from_port or rule.to_port)
        if rule.protocol != ALL or not names_ports or (is_separate and _has_all_ports(rule)):
            continue
        key = "fromPort" if rule.from_port else "toPort"
        yield Finding(
            path=rule.at(key),
            value=rule.from_port or rule.to_port,
            message="names ports, and protocol -1 is for all of them",
        )


RULES = (
    Rule(
        id="administration-closed-to-world",
        references=("R16",),
        family="security groups",
        level="mandatory",
        level_because="it exposes machines to whoever tries passwords and keys",
        sentence="No security group lets SSH, RDP or every port in from the whole internet.",
        why="Open administration ports are found and tried within minutes.",
        fix="take the rule out and use Session Manager, or name the addresses that may come in",
        url=SSH_PAGE,
        types=_HOLDERS,
        check=_administration,
        good=[
            resource(
                SECURITY_GROUP_INGRESS_RULE,
                ipProtocol="tcp",
                fromPort=22,
                toPort=22,
                cidrIpv4="203.0.113.0/24",
            )
        ],
        bad=[
            resource(
                SECURITY_GROUP_INGRESS_RULE,
                ipProtocol="tcp",
                fromPort=22,
                toPort=22,
                cidrIpv4="0.0.0.0/0",
            )
        ],
    ),
    Rule(
        id="ingress-closed-to-world",
        references=("R16",),
        family="security groups",
        level="advisory",
        level_because="a public service needs it; a training network hardly ever does",
        sentence="No security group lets any other port in from the whole internet.",
        why="What listens on the port is open to everybody.",
        fix="name a security group or the addresses that may come in, or list the port as public",
        url=RULES_PAGE,
        types=_HOLDERS,
        check=_anything_else,
        options={
            "publicPorts": Option(
                kind="array",
                default=[80, 443],
                description="Ports that may be open to the internet, such as those of websites.",
            )
        },
        good=[
            resource(
                SECURITY_GROUP,
                ingress=[
                    {
                        "protocol": "tcp",
                        "fromPort": 443,
                        "toPort": 443,
                        "cidrBlocks": ["10.0.0.0/16"],
                    }
                ],
            )
        ],
        bad=[
            resource(
                SECURITY_GROUP,
                ingress=[
                    {
                        "protocol": "tcp",
                        "fromPort": 8888,
                        "toPort": 8888,
                        "ipv6CidrBlocks": ["::/0"],
                    }
                ],
            )
        ],
    ),
    Rule(
        id="all-traffic-names-no-ports",
        references=(),
        family="security groups",
        level="mandatory",
        level_because="every port is open where some were asked for, or the provider refuses it",
        sentence="A security group rule for all traffic names no ports.",
        why="Protocol -1 is for every port, whatever stands beside it; an inline rule that names "
        "ports fails.",
        fix="set the protocol to tcp or udp, or take the ports out (0 in an inline rule)",
        url=PROVIDER_PAGE,
        types=_HOLDERS,
        check=_ports_of_all_traffic,
        good=[resource(SECURITY_GROUP_INGRESS_RULE, ipProtocol="-1", cidrIpv4="10.0.0.0/16")],
        bad=[
            resource(
                SECURITY_GROUP_INGRESS_RULE,
                ipProtocol="-1",
                fromPort=2049,
                toPort=2049,
                cidrIpv4="10.0.0.0/16",
            )
        ],
    ),
)
"""The rules on exposure, whatever a security group is for."""

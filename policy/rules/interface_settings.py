"""What each network interface of a template carries: addresses, security groups, a subnet."""

from collections.abc import Iterator, Mapping
from typing import Any

from fabric.rows import dependencies, mapping, number, text, texts, true
from policy.examples import interface, resource
from policy.launches import efa_interfaces
from policy.nodes import interfaces
from policy.rule import Finding, Rule, Subject
from policy.rules.interfaces import INTERFACE_PAGE
from policy.tokens import INSTANCE, LAUNCH_TEMPLATE, SECURITY_GROUP, SUBNET
from policy.values import UNKNOWN, is_unknown

EFA_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html"
TEMPLATE_PAGE = (
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestLaunchTemplateData.html"
)
CPU_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateCpuOptionsRequest.html"

_TEMPLATE = frozenset({LAUNCH_TEMPLATE})
_COUNTS = ("ipv4AddressCount", "ipv4PrefixCount", "ipv6AddressCount", "ipv6PrefixCount")
_LISTS = ("ipv4Addresses", "ipv4Prefixes", "ipv6Addresses", "ipv6Prefixes")
_FLAGS = ("associatePublicIpAddress", "primaryIpv6")
_TWO_INTERFACES = [interface(0, 0, "interface"), interface(0, 1)]


def _one_public_address(subject: Subject) -> Iterator[Finding]:
    every = interfaces(subject.row)
    for each in every:
        if len(every) > 1 and true(each.settings.get("associatePublicIpAddress")):
            yield Finding(
                path=f"{each.path}.associatePublicIpAddress",
                value=each.settings.get("associatePublicIpAddress"),
                message=f"a public address is asked for with {len(every)} interfaces",
            )


def _efa_only_without_address(subject: Subject) -> Iterator[Finding]:
    for each in interfaces(subject.row):
        if each.kind != "efa-only":
            continue
        for key in _address_settings(each.settings):
            yield Finding(
                path=f"{each.path}.{key}",
                value=each.settings[key],
                message="asks for an address on an interface that has no IP",
            )


def _address_settings(settings: Mapping[str, Any]) -> Iterator[str]:
    yield from (key for key in _COUNTS if number(settings.get(key)))
    yield from (key for key in _LISTS if texts(settings.get(key)))
    yield from (key for key in _FLAGS if true(settings.get(key)))
    if text(settings.get("privateIpAddress")):
        yield "privateIpAddress"


def _groups_beside_interfaces(subject: Subject) -> Iterator[Finding]:
    if not interfaces(subject.row):
        return
    for key in ("vpcSecurityGroupIds", "securityGroupNames"):
        value = subject.inputs.get(key)
        is_there = value is not UNKNOWN or _comes_from(subject, key, SECURITY_GROUP)
        if texts(value) or (is_unknown(value) and is_there):
            yield Finding(
                path=key,
                value=texts(value) or None,
                message="stands beside networkInterfaces, which have groups of their own",
            )


def _groups_in_interfaces(subject: Subject) -> Iterator[Finding]:
    if not efa_interfaces(subject.row):
        return
    for each in interfaces(subject.row):
        groups = each.settings.get("securityGroups")
        is_made_elsewhere = each.settings.get("networkInterfaceId") not in (None, "")
        if groups in (None, [], "") and not is_made_elsewhere and each.kind != "unknown":
            yield Finding(
                path=f"{each.path}.securityGroups",
                value=None,
                message=f"card {each.card}, device {each.device} gets the VPC's default group",
            )


def _group_in_common(subject: Subject) -> Iterator[Finding]:
    efa = efa_interfaces(subject.row)
    groups = [each.settings.get("securityGroups") for each in efa]
    if any(is_unknown(each) or not texts(each) for each in groups):
        return
    if groups and not set[str].intersection(*(set(texts(each)) for each in groups)):
        yield Finding(
            path="networkInterfaces",
            value=sorted({name for each in groups for name in texts(each)}),
            message=f"no security group is on all {len(efa)} EFA interfaces",
        )


def _deleted_with_node(subject: Subject) -> Iterator[Finding]:
    for each in interfaces(subject.row):
        value = each.settings.get("deleteOnTermination")
        if value is False or text(value).lower() == "false":
            yield Finding(
                path=f"{each.path}.deleteOnTermination",
                value=value,
                message="stays behind when its node is gone",
            )


def _one_subnet(subject: Subject) -> Iterator[Finding]:
    every = interfaces(subject.row)
    named = [each.settings.get("subnetId") for each in every]
    known = {text(each) for each in named if not is_unknown(each)}
    are_all_unknown = bool(named) and all(is_unknown(each) for each in named)
    subnets = _comes_from(subject, "networkInterfaces", SUBNET)
    if len(known) > 1 or (are_all_unknown and len(subnets) > 1):
        yield Finding(
            path="networkInterfaces",
            value=sorted(known - {""}) or None,
            message=f"{len(every)} interfaces do not name the same subnet",
        )


def _complete_cpu_options(subject: Subject) -> Iterator[Finding]:
    options = mapping(subject.at("cpuOptions"))
    given = {key for key in ("coreCount", "threadsPerCore") if number(options.get(key))}
    for key in {"coreCount", "threadsPerCore"} - given:
        if given and not is_unknown(options.get(key)):
            yield Finding(
                path=f"cpuOptions.{key}",
                value=options.get(key),
                message=f"{' and '.join(given)} stands there alone",
            )


def _comes_from(subject: Subject, key: str, type_: str) -> list[str]:
    return [urn for urn in dependencies(subject.row, key) if f"{type_}::" in urn]


RULES = (
    Rule(
        id="public-address-with-one-interface",
        references=("R11",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="No interface of several asks for a public address.",
        why="EC2 gives a public address at launch only to an instance with one interface.",
        fix="leave `associatePublicIpAddress` out, and reach the internet over a NAT gateway",
        url=INTERFACE_PAGE,
        types=_TEMPLATE,
        check=_one_public_address,
        good=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[interface(0, 0, "efa", associatePublicIpAddress="true")],
            )
        ],
        bad=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[
                    interface(0, 0, "efa", associatePublicIpAddress="true"),
                    interface(1, 0),
                ],
            )
        ],
    ),
    Rule(
        id="efa-only-without-address",
        references=("R12",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="An `efa-only` interface asks for no address, prefix or public address.",
        why="It has no IP stack, and EC2 refuses the launch with InvalidParameterValue.",
        fix="take these settings out, or make the interface `efa`",
        url=EFA_PAGE,
        types=_TEMPLATE,
        check=_efa_only_without_address,
        good=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[
                    interface(0, 0, "interface", ipv4PrefixCount=1),
                    interface(0, 1, associatePublicIpAddress="false"),
                ],
            )
        ],
        bad=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[
                    interface(0, 0, "interface"),
                    interface(0, 1, ipv4PrefixCount=1),
                ],
            )
        ],
    ),
    Rule(
        id="security-groups-inside-interfaces",
        references=("R13", "E-05"),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="A template with network interfaces names no security groups beside them.",
        why="EC2 takes security groups in the interfaces or in the template, never in both.",
        fix="move the groups to `securityGroups` of each interface",
        url=TEMPLATE_PAGE,
        types=_TEMPLATE,
        check=_groups_beside_interfaces,
        good=[resource(LAUNCH_TEMPLATE, networkInterfaces=_TWO_INTERFACES)],
        bad=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=_TWO_INTERFACES,
                vpcSecurityGroupIds=["sg-0123456789abcdef0"],
            )
        ],
    ),
    Rule(
        id="interface-names-security-groups",
        references=("R13", "E-05"),
        family="interfaces",
        level="mandatory",
        level_because="EFA is silently lost: the VPC's default group does not let its traffic out",
        sentence="Each network interface of a node with EFA names its security groups.",
        why="An interface without groups gets the VPC's default one, whose egress to anywhere does "
        "not count for EFA.",
        fix="give every interface the group that allows all traffic from and to itself",
        url=EFA_PAGE,
        types=_TEMPLATE,
        check=_groups_in_interfaces,
        good=[resource(LAUNCH_TEMPLATE, networkInterfaces=_TWO_INTERFACES)],
        bad=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[
                    interface(0, 0, "interface"),
                    interface(0, 1, securityGroups=[]),
                ],
            )
        ],
    ),
    Rule(
        id="efa-interfaces-share-a-group",
        references=("R14",),
        family="security groups",
        level="mandatory",
        level_because="EFA traffic between cards is silently dropped",
        sentence="One security group is on every EFA interface of a node.",
        why="A group that allows traffic from itself does not allow that of another group, and "
        "collectives also go from one card to another.",
        fix="put the same EFA group on all of them",
        url=EFA_PAGE,
        types=_TEMPLATE,
        check=_group_in_common,
        good=[
            resource(LAUNCH_TEMPLATE, networkInterfaces=[interface(0, 0, "efa"), interface(1, 0)])
        ],
        bad=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[
                    interface(0, 0, "efa"),
                    interface(1, 0, securityGroups=["sg-0123456789abcdef1"]),
                ],
            )
        ],
    ),
    Rule(
        id="interface-deleted-with-node",
        references=(),
        family="interfaces",
        level="advisory",
        level_because="nodes launch; what is left behind only costs addresses and clean-up",
        sentence="Network interfaces are deleted when their node terminates.",
        why="An interface that stays keeps its address and its security group, so that neither "
        "group nor subnet can be deleted.",
        fix="set `deleteOnTermination` to true",
        url=INTERFACE_PAGE,
        types=_TEMPLATE,
        check=_deleted_with_node,
        good=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[interface(0, 0, "efa", deleteOnTermination="true")],
            )
        ],
        bad=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[interface(0, 0, "efa", deleteOnTermination="false")],
            )
        ],
    ),
    Rule(
        id="interfaces-in-one-subnet",
        references=(),
        family="interfaces",
        level="advisory",
        level_because="two subnets of one zone do launch, though hardly ever by intent",
        sentence="The interfaces of a node name one subnet, all of them or none.",
        why="A node is in one Availability Zone: interfaces in two zones cannot launch, and ones "
        "in two subnets answer over the wrong card.",
        fix="name the same subnet in each interface, or leave it to what launches the node",
        url=INTERFACE_PAGE,
        types=_TEMPLATE,
        check=_one_subnet,
        good=[resource(LAUNCH_TEMPLATE, networkInterfaces=_TWO_INTERFACES)],
        bad=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[
                    interface(0, 0, "efa", subnetId="subnet-0123456789abcdef0"),
                    interface(1, 0, subnetId="subnet-0123456789abcdef1"),
                ],
            )
        ],
    ),
    Rule(
        id="cpu-options-complete",
        references=("R77",),
        family="interfaces",
        level="mandatory",
        level_because="the template or the instance cannot be made",
        sentence="CPU options give the core count and the threads per core together.",
        why="EC2 refuses one without the other.",
        fix="add the other one; `coreCount` is the number of cores of the instance type",
        url=CPU_PAGE,
        types=_TEMPLATE | {INSTANCE},
        check=_complete_cpu_options,
        good=[resource(LAUNCH_TEMPLATE, cpuOptions={"coreCount": 96, "threadsPerCore": 1})],
        bad=[resource(LAUNCH_TEMPLATE, cpuOptions={"threadsPerCore": 1})],
    ),
)
"""The rules on the settings of interfaces, and on the CPU options beside them."""

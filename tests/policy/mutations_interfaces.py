"""Ways to break the network interfaces, subnets and security groups of good stacks."""

from collections.abc import Callable
from typing import Any

from tests.policy.mutations import Mutation, Rows, first, of_type

Breaks = Callable[[Rows], None]
EKS = "eks-p4d-classic-layout"


def put(short: str, key: str, value: Any) -> Breaks:
    """Set one input of the first resource of a type."""

    def breaks(rows: Rows) -> None:
        first(rows, short)["inputs"][key] = value

    return breaks


def template(key: str, value: Any) -> Breaks:
    return put("LaunchTemplate", key, value)


def layout(position: int, **settings: Any) -> Breaks:
    """Change one network interface of the first launch template."""

    def breaks(rows: Rows) -> None:
        first(rows, "LaunchTemplate")["inputs"]["networkInterfaces"][position] |= settings

    return breaks


def more(*slots: tuple[int, int, str]) -> Breaks:
    """Add interfaces to the first launch template, each a card, a device and a type."""

    def breaks(rows: Rows) -> None:
        listed = first(rows, "LaunchTemplate")["inputs"]["networkInterfaces"]
        listed += [
            listed[0] | {"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind}
            for card, device, kind in slots
        ]

    return breaks


def fewer(start: int, stop: int | None = None) -> Breaks:
    """Take interfaces of the first launch template away."""

    def breaks(rows: Rows) -> None:
        del first(rows, "LaunchTemplate")["inputs"]["networkInterfaces"][start:stop]

    return breaks


def every_kind(kind: str) -> Breaks:
    """Make all interfaces of the first launch template one type."""

    def breaks(rows: Rows) -> None:
        for each in first(rows, "LaunchTemplate")["inputs"]["networkInterfaces"]:
            each["interfaceType"] = kind

    return breaks


def compute(key: str, value: Any) -> Breaks:
    def breaks(rows: Rows) -> None:
        first(rows, "ComputeEnvironment")["inputs"]["computeResources"][key] = value

    return breaks


def subnet(key: str, value: Any) -> Breaks:
    return put("Subnet", key, value)


def cpu(**options: int | None) -> Breaks:
    def breaks(rows: Rows) -> None:
        inputs = first(rows, "LaunchTemplate")["inputs"]
        inputs["cpuOptions"] = {**inputs.get("cpuOptions", {}), **options}

    return breaks


def both(*several: Breaks) -> Breaks:
    def breaks(rows: Rows) -> None:
        for each in several:
            each(rows)

    return breaks


def rule_of_group(name: str, **settings: Any) -> Breaks:
    """Change the rule of a security group that is a resource with this name."""

    def breaks(rows: Rows) -> None:
        (row,) = [row for row in rows if row["name"] == name]
        row["inputs"] |= settings

    return breaks


def without(name: str) -> Breaks:
    def breaks(rows: Rows) -> None:
        rows[:] = [row for row in rows if row["name"] != name]

    return breaks


def inline(direction: str, **rule: Any) -> Breaks:
    """Add an inline rule to the first security group."""

    def breaks(rows: Rows) -> None:
        inputs = first(rows, "SecurityGroup")["inputs"]
        inputs[direction] = [*inputs.get(direction, []), rule]

    return breaks


def other_group_in_rule(rows: Rows) -> None:
    (row,) = of_type(rows, "SecurityGroupIngressRule")
    row["inputs"]["referencedSecurityGroupId"] = "sg-0fedcba9876543210"
    del row["propertyDependencies"]["referencedSecurityGroupId"]


def no_self(direction: str) -> Breaks:
    def breaks(rows: Rows) -> None:
        first(rows, "SecurityGroup")["inputs"][direction][0]["self"] = False

    return breaks


FROM_ITSELF, TO_ITSELF = "network-efa-from-itself", "network-efa-to-itself"
WORLD = {"cidrIpv4": "0.0.0.0/0", "referencedSecurityGroupId": None}
SSH = {"protocol": "tcp", "fromPort": 22, "toPort": 22}
HTTPS = {"protocol": "tcp", "fromPort": 443, "toPort": 443}
NOTEBOOK = {"protocol": "tcp", "fromPort": 8888, "toPort": 8888}
OTHER = ["sg-0fedcba9876543210"]

_BROKEN: dict[str, list[tuple[str, str, Breaks]]] = {
    "efa-primary-interface": [
        ("dev", "efa-only is the primary", layout(0, interfaceType="efa-only")),
        (EKS, "nothing is at card 0, device 0", layout(0, deviceIndex=1)),
    ],
    "interface-slot-unique": [
        ("dev", "device index left out", layout(1, deviceIndex=None)),
        ("batch-p4d", "two interfaces on card 3, device 0", layout(3, networkCardIndex=3)),
    ],
    "efa-one-per-card": [
        ("dev", "ENA becomes efa", layout(0, interfaceType="efa")),
        (EKS, "a second efa-only on card 1", more((1, 2, "efa-only"))),
    ],
    "interface-type-exists": [
        ("dev", "an underscore", layout(1, interfaceType="efa_only")),
        (EKS, "capital letters", layout(0, interfaceType="EFA")),
    ],
    "efa-only-on-further-cards": [
        ("batch-p4d", "efa on one further card", layout(4, interfaceType="efa")),
        (EKS, "efa on every card", every_kind("efa")),
    ],
    "secondary-interface-is-not-efa": [
        (
            "batch-p4d",
            "EFA as a secondary interface",
            template("secondaryInterfaces", [{"networkCardIndex": 1, "interfaceType": "efa"}]),
        ),
        (
            "batch-p4d",
            "a secondary interface in a slot that is taken",
            template("secondaryInterfaces", [{"networkCardIndex": 2, "deviceIndex": 0}]),
        ),
    ],
    "public-address-with-one-interface": [
        ("dev", "a public address", layout(0, associatePublicIpAddress="true")),
        (EKS, "a public address as a flag", layout(0, associatePublicIpAddress=True)),
    ],
    "efa-only-without-address": [
        ("dev", "a public address", layout(1, associatePublicIpAddress="true")),
        ("batch-p4d", "an address prefix", layout(3, ipv4PrefixCount="1")),
        (EKS, "a private address", layout(2, ipv6Addresses=["2001:db8::1"])),
    ],
    "security-groups-inside-interfaces": [
        ("dev", "group ids beside them", template("vpcSecurityGroupIds", OTHER)),
        (EKS, "group names beside them", template("securityGroupNames", ["default"])),
    ],
    "interface-names-security-groups": [
        ("dev", "EFA without groups", layout(1, securityGroups=[])),
        (EKS, "the primary without groups", layout(0, securityGroups=None)),
    ],
    "efa-interfaces-share-a-group": [
        ("batch-p4d", "another group on the last card", layout(4, securityGroups=OTHER)),
        (EKS, "another group on card 0", layout(0, securityGroups=OTHER)),
    ],
    "interface-deleted-with-node": [
        ("dev", "false", layout(1, deleteOnTermination=False)),
        (EKS, "false as text", layout(3, deleteOnTermination="false")),
    ],
    "interfaces-in-one-subnet": [
        ("dev", "a subnet for one of two", layout(0, subnetId="subnet-0123456789abcdef0")),
        (
            EKS,
            "two subnets",
            both(layout(0, subnetId="subnet-0aaa"), layout(1, subnetId="subnet-0bbb")),
        ),
    ],
    "cpu-options-complete": [
        ("batch-p5en-odcr-group", "no core count", cpu(coreCount=None)),
        ("batch-p5en-odcr-group", "no threads per core", cpu(threadsPerCore=None)),
    ],
    "efa-supported-by-type": [
        ("dev", "a smaller size", compute("instanceTypes", ["g4dn.4xlarge"])),
        (
            EKS,
            "one of two types without",
            put("NodeGroup", "instanceTypes", ["p4d.24xlarge", "m7i.large"]),
        ),
    ],
    "efa-count-within-type": [
        ("batch-p4d", "one more than four", more((0, 2, "efa"))),
        (EKS, "a type with one EFA", put("NodeGroup", "instanceTypes", ["g5.48xlarge"])),
    ],
    "network-card-exists": [
        ("dev", "card 1 of one", layout(1, networkCardIndex=1)),
        (EKS, "card 4 of four", more((4, 1, "efa-only"))),
    ],
    "network-card-has-room": [
        ("batch-hpc7a", "three on a card for two", more((0, 1, "interface"), (0, 2, "interface"))),
        ("dev", "a type with one slot a card", compute("instanceTypes", ["hpc6id.32xlarge"])),
    ],
    "network-card-takes-efa": [
        ("batch-p6-b300", "efa on card 0", layout(0, interfaceType="efa")),
        ("batch-p6-b300", "efa-only beside ENA on card 0", more((0, 1, "efa-only"))),
    ],
    "one-slot-card-has-device-0": [
        ("dev", "a type with one slot a card", compute("instanceTypes", ["hpc6id.32xlarge"])),
        (EKS, "the older layout on it", put("NodeGroup", "instanceTypes", ["hpc6id.32xlarge"])),
    ],
    "efa-on-every-card": [
        ("batch-p4d", "the last card is left out", fewer(4)),
        ("batch-p6-b300", "16 cards, ENA on one", layout(7, interfaceType="interface")),
        (EKS, "a type with more cards", put("NodeGroup", "instanceTypes", ["p5.48xlarge"])),
    ],
    "efa-left-out": [
        ("batch-p4d", "no interfaces", template("networkInterfaces", [])),
        ("dev", "ENA alone", every_kind("interface")),
    ],
    "slot-for-task-interface": [
        (
            "batch-hpc7a",
            "ENA and EFA apart",
            both(layout(0, interfaceType="interface"), more((0, 1, "efa-only"))),
        ),
        ("batch-p5-capacity-block", "one more on card 0", more((0, 1, "interface"))),
    ],
    "cpu-options-fit-type": [
        ("batch-hpc7a", "a type without", cpu(coreCount=192, threadsPerCore=1)),
        ("batch-p5en-odcr-group", "more cores than there are", cpu(coreCount=192)),
        ("batch-p5en-odcr-group", "three threads", cpu(threadsPerCore=3)),
    ],
    "subnet-has-room-for-nodes": [
        ("dev", "a /28", both(subnet("cidrBlock", "10.40.0.0/28"), compute("maxVcpus", 640))),
        (
            "batch-p5-capacity-block",
            "efa on all 32 cards in a /24",
            both(every_kind("efa"), subnet("cidrBlock", "10.42.0.0/24")),
        ),
        (EKS, "2000 nodes", put("NodeGroup", "scalingConfig", {"maxSize": 2000})),
    ],
    "no-public-subnet-with-several-interfaces": [
        ("dev", "a public subnet", subnet("mapPublicIpOnLaunch", True)),
        (EKS, "a public subnet", subnet("mapPublicIpOnLaunch", "true")),
    ],
    "instance-type-in-region": [
        ("batch-p4d", "a region without it", subnet("availabilityZone", "us-west-1a")),
        (EKS, "another region without it", subnet("availabilityZone", "eu-west-3b")),
    ],
    "instance-type-in-zone": [
        ("dev", "the one zone without it", subnet("availabilityZone", "us-west-2d")),
        ("batch-hpc7a", "a zone without it", subnet("availabilityZone", "us-east-2a")),
    ],
    "efa-families-interoperate": [
        (EKS, "p4d and p5", put("NodeGroup", "instanceTypes", ["p4d.24xlarge", "p5.48xlarge"])),
        (
            "batch-p4d",
            "p4d and g6e",
            compute("instanceTypes", ["p4d.24xlarge", "g6e.48xlarge"]),
        ),
    ],
    "efa-group-allows-itself-in": [
        ("dev", "no rule", without(FROM_ITSELF)),
        ("dev", "TCP alone", rule_of_group(FROM_ITSELF, ipProtocol="tcp")),
        ("dev", "from another group", other_group_in_rule),
        (EKS, "inline, not from itself", no_self("ingress")),
    ],
    "efa-group-allows-itself-out": [
        ("dev", "no rule", without(TO_ITSELF)),
        ("dev", "UDP alone", rule_of_group(TO_ITSELF, ipProtocol="udp")),
        (EKS, "inline, to anywhere alone", no_self("egress")),
    ],
    "efa-group-closed-to-world": [
        ("dev", "a rule from anywhere", rule_of_group(FROM_ITSELF, **WORLD)),
        ("dev", "a rule from half of anywhere", rule_of_group(FROM_ITSELF, cidrIpv4="128.0.0.0/1")),
        (EKS, "inline, over IPv6", inline("ingress", **HTTPS, ipv6CidrBlocks=["::/0"])),
    ],
    "group-rules-inline-or-separate": [
        ("dev", "inline egress", inline("egress", **HTTPS, cidrBlocks=["0.0.0.0/0"])),
        ("dev", "inline ingress", inline("ingress", **SSH, cidrBlocks=["10.0.0.0/8"])),
    ],
    "default-group-lets-tasks-talk": [
        ("dev", "nothing in", put("DefaultSecurityGroup", "ingress", [])),
        ("batch-p4d", "nothing out", put("DefaultSecurityGroup", "egress", None)),
    ],
    "administration-closed-to-world": [
        ("dev", "every port", rule_of_group(FROM_ITSELF, **WORLD)),
        (EKS, "SSH inline", inline("ingress", **SSH, cidrBlocks=["10.0.0.0/8", "0.0.0.0/0"])),
    ],
    "ingress-closed-to-world": [
        (
            "dev",
            "a notebook",
            rule_of_group(FROM_ITSELF, **WORLD, ipProtocol="tcp", fromPort=8888, toPort=8888),
        ),
        (EKS, "inline, over IPv6", inline("ingress", **NOTEBOOK, ipv6CidrBlocks=["::/0"])),
    ],
    "all-traffic-names-no-ports": [
        ("dev", "SSH out of all traffic", rule_of_group(FROM_ITSELF, fromPort=22, toPort=22)),
        (
            EKS,
            "inline, up to the last port",
            inline("egress", protocol="-1", fromPort=0, toPort=65535),
        ),
    ],
}

MUTATIONS = tuple(
    Mutation(rule=rule, stack=stack, what=f"{what} ({stack})", breaks=breaks)
    for rule, ways in _BROKEN.items()
    for stack, what, breaks in ways
)

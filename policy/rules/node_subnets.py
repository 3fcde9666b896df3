"""Subnets against the nodes that are launched into them: addresses, zones, interoperation."""

import re
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError

from fabric.addresses import usable_addresses
from fabric.catalogue import zones_offering
from fabric.rows import Row, inputs, mapping, number, text, texts, true
from policy.examples import interface, resource
from policy.fleets import FLEETS, LAUNCHERS, OVERRIDES
from policy.launches import (
    all_known,
    names_other_subnets,
    node_interfaces,
    node_types,
    subnets,
    subnets_path,
    type_names,
)
from policy.nodes import interfaces
from policy.rule import Finding, Option, Rule, Subject
from policy.rules.interfaces import INTERFACE_PAGE
from policy.tokens import (
    BATCH_ENVIRONMENT,
    BATCH_JOB_QUEUE,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
    SUBNET,
)
from policy.values import is_unknown

SIZES_PAGE = "https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html"
OFFERINGS_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-discovery.html"
EFA_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html"

# EFA of these families only reaches nodes of these families: EFA_PAGE, "EFA limitations"
EFA_ISLAND = frozenset({"dl1", "p4d", "p4de"})


def _room_for_nodes(subject: Subject) -> Iterator[Finding]:
    every = node_interfaces(subject.row, subject.program)
    nodes = _most_nodes(subject)
    free = _free_addresses(subject)
    if not any(each.is_efa for each in every) or not all_known(every) or free is None:
        return
    of_task = 1 if subject.row.get("type") == BATCH_ENVIRONMENT else 0
    a_node = sum(each.kind != "efa-only" for each in every) + of_task
    if nodes * a_node > free:
        yield Finding(
            path=subnets_path(subject.row),
            value=nodes * a_node,
            message=f"{nodes} nodes with {a_node} addresses each; the subnets have {free}",
        )


def _most_nodes(subject: Subject) -> int:
    vcpus = max((each.vcpus for each in node_types(subject.row, subject.program)), default=0)
    ceiling = number(subject.at("computeResources.maxVcpus"))
    if ceiling and vcpus:
        return int(ceiling) // vcpus
    return int(number(subject.at("scalingConfig.maxSize")) or 0)


def _free_addresses(subject: Subject) -> int | None:
    if names_other_subnets(subject.row, subject.program):
        return None
    blocks = [_block(subnet) for subnet in subnets(subject.row, subject.program)]
    if not blocks or None in blocks:
        return None
    return sum(usable_addresses(block) for block in blocks if block)


def _block(subnet: Row) -> IPv4Network | None:
    try:
        return IPv4Network(text(inputs(subnet).get("cidrBlock")), strict=False)
    except (AddressValueError, NetmaskValueError):
        return None


def _public_subnet(subject: Subject) -> Iterator[Finding]:
    if subject.row.get("type") == LAUNCH_TEMPLATE:
        path, every = "networkInterfaces", interfaces(subject.row)
        named = subject.linked(path, SUBNET)
        places = named if len(named) == 1 else []  # which of several is whose is not known
    else:
        path, every = subnets_path(subject.row), node_interfaces(subject.row, subject.program)
        places = subnets(subject.row, subject.program)
    if len(every) < 2 or any(_refuses_public_address(each.settings) for each in every):
        return
    for subnet in places:
        if true(inputs(subnet).get("mapPublicIpOnLaunch")):
            yield Finding(
                path=path,
                value=text(subnet.get("name")),
                message=f"gives public addresses to nodes with {len(every)} interfaces",
            )


def _refuses_public_address(settings: object) -> bool:
    value = mapping(settings).get("associatePublicIpAddress")
    return value is False or text(value).lower() == "false"


def _offered_in_region(subject: Subject) -> Iterator[Finding]:
    paths = ("computeResources.instanceTypes", "instanceTypes", OVERRIDES)
    names = type_names(subject.row, subject.program)
    if is_unknown([subject.at(path) for path in paths]) or set(names) & set(
        texts(subject.options["newTypes"])
    ):
        return
    for region in sorted({_region(zone) for zone in _zones(subject)}):
        offers = [zones_offering(region=region, instance_type=name) for name in names]
        if offers and all(offer == () for offer in offers):
            yield Finding(
                path=subnets_path(subject.row),
                value=names,
                message=f"{region} does not offer {' or '.join(names)}",
            )


def _offered_in_zone(subject: Subject) -> Iterator[Finding]:
    for zone in sorted(_zones(subject)):
        for name in type_names(subject.row, subject.program):
            offering = zones_offering(region=_region(zone), instance_type=name)
            if offering and zone not in offering:
                yield Finding(
                    path=subnets_path(subject.row),
                    value=zone,
                    message=f"{name} is offered in {', '.join(offering)}",
                )


def _zones(subject: Subject) -> set[str]:
    rows = [subject.row, *subnets(subject.row, subject.program)]
    named = {text(inputs(row).get("availabilityZone")) for row in rows}
    return {zone for zone in named if re.fullmatch(r"[a-z-]+-[0-9][a-z]", zone)}


def _region(zone: str) -> str:
    return zone[:-1]


def _interoperate(subject: Subject) -> Iterator[Finding]:
    environments = subject.linked("computeEnvironmentOrders", BATCH_ENVIRONMENT)
    names = {
        each.name
        for launcher in environments or [subject.row]
        if any(each.is_efa for each in node_interfaces(launcher, subject.program))
        for each in node_types(launcher, subject.program)
        if each.supports_efa
    }
    alone = {name for name in names if name.partition(".")[0] in EFA_ISLAND}
    if alone and alone != names:
        yield Finding(
            path="computeEnvironmentOrders" if environments else "instanceTypes",
            value=sorted(names),
            message=f"EFA of {min(alone)} does not reach {min(names - alone)}",
        )


def _batch(*, cidr: str, zone: str = "us-west-2a", public: bool = False) -> list[Row]:
    compute = {
        "instanceTypes": ["g4dn.8xlarge"],
        "maxVcpus": 320,
        "subnets": ["subnet-0123456789abcdef0"],
        "launchTemplate": {"launchTemplateId": "lt-0123456789abcdef0", "version": "1"},
    }
    layout = [interface(0, 0, "interface"), interface(0, 1)]
    return [
        resource(
            SUBNET, "private", cidrBlock=cidr, availabilityZone=zone, mapPublicIpOnLaunch=public
        ),
        resource(LAUNCH_TEMPLATE, "nodes", networkInterfaces=layout),
        resource(
            BATCH_ENVIRONMENT,
            links={"computeResources": ["private", "nodes"]},
            computeResources=compute,
        ),
    ]


def _queue(*names: str) -> list[Row]:
    layout = [interface(0, 0, "efa"), *(interface(card, 0) for card in (1, 2, 3))]
    environments = [
        resource(
            BATCH_ENVIRONMENT,
            name,
            links={"computeResources": ["nodes"]},
            computeResources={"instanceTypes": [name]},
        )
        for name in names
    ]
    return [
        resource(LAUNCH_TEMPLATE, "nodes", networkInterfaces=layout),
        *environments,
        resource(BATCH_JOB_QUEUE, links={"computeEnvironmentOrders": list(names)}),
    ]


RULES = (
    Rule(
        id="subnet-has-room-for-nodes",
        references=("R10",),
        family="interfaces",
        level="mandatory",
        level_because="the nodes above the subnet's size cannot launch",
        sentence="The subnets of nodes with EFA have an address for each interface that takes one.",
        why="At full size the launch fails with InsufficientFreeAddressesInSubnet and a multi-node "
        "job waits for its last node for ever; each node of a Batch job takes one more address.",
        fix="use a larger subnet, fewer nodes, or `efa-only` interfaces, which take no address",
        url=SIZES_PAGE,
        types=frozenset({BATCH_ENVIRONMENT, NODE_GROUP}),
        check=_room_for_nodes,
        whole_program=True,
        good=_batch(cidr="10.0.0.0/26"),
        bad=_batch(cidr="10.0.0.0/28"),
    ),
    Rule(
        id="no-public-subnet-with-several-interfaces",
        references=("R11",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="Nodes with several interfaces are in subnets that give no public addresses.",
        why="EC2 gives a public address at launch to an instance with one interface only, and "
        "refuses the others.",
        fix="launch into a private subnet with a NAT gateway or endpoints",
        url=INTERFACE_PAGE,
        types=FLEETS,
        check=_public_subnet,
        whole_program=True,
        good=_batch(cidr="10.0.0.0/24"),
        bad=_batch(cidr="10.0.0.0/24", public=True),
    ),
    Rule(
        id="instance-type-in-region",
        references=("R18",),
        family="interfaces",
        level="mandatory",
        level_because="no instance can launch",
        sentence="The region of the nodes offers one of their instance types.",
        why="EC2 answers Unsupported, and EKS that the instance type does not exist.",
        fix="use a region that offers the type, or a type that the region offers",
        url=OFFERINGS_PAGE,
        types=LAUNCHERS,
        check=_offered_in_region,
        whole_program=True,
        options={
            "newTypes": Option(
                kind="array",
                default=[],
                description="Instance types that regions have got since the pack's data was made; "
                "they are not judged.",
            )
        },
        good=_batch(cidr="10.0.0.0/24"),
        bad=[
            resource(SUBNET, "private", availabilityZone="us-west-1a"),
            resource(
                NODE_GROUP,
                links={"subnetIds": ["private"]},
                subnetIds=["subnet-0123456789abcdef0"],
                instanceTypes=["p4de.24xlarge"],
            ),
        ],
    ),
    Rule(
        id="instance-type-in-zone",
        references=("R18",),
        family="interfaces",
        level="advisory",
        level_because="zone names differ from account to account, and the data is one account's",
        sentence="The Availability Zone of the nodes offers their instance type.",
        why="EC2 answers Unsupported in a zone without the type.",
        fix="ask `aws ec2 describe-instance-type-offerings` for the zones of your account",
        url=OFFERINGS_PAGE,
        types=LAUNCHERS,
        check=_offered_in_zone,
        whole_program=True,
        good=_batch(cidr="10.0.0.0/24"),
        bad=_batch(cidr="10.0.0.0/24", zone="us-west-2z"),
    ),
    Rule(
        id="efa-families-interoperate",
        references=("R19",),
        family="interfaces",
        level="advisory",
        level_because="each job that stays within one instance type does run",
        sentence="A queue or node group with EFA does not mix p4d, p4de or dl1 with other types.",
        why="EFA of these families does not reach that of any other, and a job over both hangs.",
        fix="give each of them a queue or node group of its own",
        url=EFA_PAGE,
        types=frozenset({BATCH_JOB_QUEUE, NODE_GROUP}),
        check=_interoperate,
        whole_program=True,
        good=_queue("p4d.24xlarge", "p4de.24xlarge"),
        bad=_queue("p4d.24xlarge", "g6e.48xlarge"),
    ),
)
"""The rules on nodes and the subnets, zones and queues that they share."""

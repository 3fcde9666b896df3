"""Where nodes stand: one Availability Zone, and the placement group that suits them."""

from collections import defaultdict
from collections.abc import Iterator

from fabric.rows import at, text
from policy.examples import interface, resource
from policy.fleets import FLEETS, LAUNCHERS, Fleet, fleet_of, fleets, known
from policy.reservations import SPECIFICATION
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    AUTO_SCALING_GROUP,
    BATCH_ENVIRONMENT,
    INSTANCE,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
    PLACEMENT_GROUP,
    SUBNET,
)
from policy.values import UNKNOWN

EFA_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html"
STRATEGIES_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html"
LIMITS_PAGE = (
    "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/limitations-placement-groups.html"
)

_PLACEMENT_INPUT = {
    AUTO_SCALING_GROUP: "placementGroup",
    BATCH_ENVIRONMENT: "computeResources.placementGroup",
    NODE_GROUP: "launchTemplate",
}
"""Where a launcher names its placement group; a node group leaves that to its launch template."""


def _one_zone(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    if fleet is None:
        return
    placement = fleet.placement
    in_cluster = placement is not None and placement.strategy == "cluster"
    names = _zones_of_instances(fleet) if subject.row.get("type") == INSTANCE else fleet.zones.names
    if len(names) > 1 and (fleet.uses_efa or in_cluster):
        yield Finding(
            path=fleet.zones.path,
            value=known(at(subject.row, fleet.zones.path)),
            message=f"nodes that belong together may start in {', '.join(names)}",
        )


def _zones_of_instances(instance: Fleet) -> tuple[str, ...]:
    """The zones of all instances in the cluster placement group of this one, which has a zone."""
    zones = instance.program.once("zones of instances in groups", lambda: _by_group(instance))
    group = _cluster(instance)
    return tuple(sorted(zones[group])) if group and instance.zones.names else ()


def _by_group(instance: Fleet) -> dict[str, set[str]]:
    zones: defaultdict[str, set[str]] = defaultdict(set)
    for fleet in fleets(instance.program):
        if fleet.kind == INSTANCE:
            zones[_cluster(fleet)].update(fleet.zones.names)
    return zones


def _cluster(fleet: Fleet) -> str:
    """The URN of a fleet's cluster placement group, empty where it has none of this program."""
    placement = fleet.placement
    is_cluster = placement is not None and placement.strategy == "cluster"
    return text((placement.group or {}).get("urn")) if placement and is_cluster else ""


def _efa_strategy(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    placement = fleet.placement if fleet is not None and fleet.uses_efa else None
    if placement and placement.strategy not in ("", "cluster"):
        yield Finding(
            path=placement.path,
            value=placement.value,
            message=f"nodes with EFA are in a {placement.strategy} placement group",
        )


def _type_takes_strategy(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    if fleet is None or fleet.placement is None:
        return
    strategy = fleet.placement.strategy
    refusing = {
        one.name
        for one in fleet.types
        if one.placement_strategies and strategy not in one.placement_strategies
    }
    for path, name in fleet.type_paths if strategy else ():
        if name in refusing:
            message = f"{name} cannot launch into a {strategy} placement group"
            yield Finding(path=path, value=name, message=message)


def _close_together(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    if fleet is None or not fleet.uses_efa or not fleet.is_unplaced:
        return
    template = fleet.template or {}
    hidden = UNKNOWN in (at(subject.row, SPECIFICATION), at(template, SPECIFICATION))
    alone = fleet.most is not None and fleet.most[1] < 2
    if fleet.market == "on-demand" and not (hidden or alone or fleet.target):
        yield Finding(
            path=_PLACEMENT_INPUT[fleet.kind],
            value=None,
            message="nodes with EFA launch on demand in no placement group",
        )


def _one_type(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    placement = fleet.placement if fleet is not None else None
    if fleet is None or placement is None or placement.strategy != "cluster":
        return
    names = dict.fromkeys(name for _, name in fleet.type_paths)
    if len(names) > 1:
        yield Finding(
            path=placement.path,
            value=placement.value,
            message=f"one cluster placement group is to hold {', '.join(names)}",
        )


EFA_TEMPLATE = resource(
    LAUNCH_TEMPLATE, "nodes", networkInterfaces=[interface(0, 0, "interface"), interface(0, 1)]
)
_GROUP = resource(PLACEMENT_GROUP, "group", strategy="cluster")
_SPREAD = resource(PLACEMENT_GROUP, "group", strategy="spread")
_SUBNETS = [
    resource(SUBNET, "first", availabilityZone="us-west-2a"),
    resource(SUBNET, "second", availabilityZone="us-west-2b"),
]


def _environment(*links: str, **settings: object) -> dict[str, object]:
    """A compute environment with the example's launch template and more links."""
    return resource(
        BATCH_ENVIRONMENT,
        links={"computeResources": ["nodes", *links]},
        computeResources={
            "type": "EC2",
            "instanceTypes": ["g6.12xlarge"],
            "maxVcpus": 96,
            "launchTemplate": {"launchTemplateId": "lt-0123456789abcdef0", "version": "1"},
            **settings,
        },
    )


RULES = (
    Rule(
        id="efa-one-zone",
        references=("R17", "E-03"),
        family="capacity",
        level="mandatory",
        level_because="nodes in different zones cannot reach each other by EFA",
        sentence="Nodes with EFA or in a cluster placement group share an Availability Zone.",
        why="EFA traffic and a cluster placement group end at the border of the zone, so a job "
        "spread over two never starts or falls back to TCP.",
        fix="give the launcher subnets of one Availability Zone",
        url=EFA_PAGE,
        types=LAUNCHERS,
        check=_one_zone,
        whole_program=True,
        good=[
            *_SUBNETS,
            EFA_TEMPLATE,
            _environment("first", subnets=["subnet-0123456789abcdef1"]),
        ],
        bad=[
            *_SUBNETS,
            EFA_TEMPLATE,
            _environment(
                "first", "second", subnets=["subnet-0123456789abcdef1", "subnet-0123456789abcdef2"]
            ),
        ],
    ),
    Rule(
        id="efa-cluster-strategy",
        references=("R41",),
        family="capacity",
        level="mandatory",
        level_because="the bandwidth that was asked for is lost in silence",
        sentence="The placement group of nodes with EFA has the strategy cluster.",
        why="The strategies spread and partition keep nodes apart, behind more switches.",
        fix="set the placement group's strategy to cluster",
        url=STRATEGIES_PAGE,
        types=FLEETS,
        check=_efa_strategy,
        whole_program=True,
        good=[_GROUP, EFA_TEMPLATE, _environment("group", placementGroup="group-1")],
        bad=[_SPREAD, EFA_TEMPLATE, _environment("group", placementGroup="group-1")],
    ),
    Rule(
        id="placement-group-takes-type",
        references=("R41",),
        family="capacity",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="Every instance type can launch into the placement group that it is given.",
        why="EC2 refuses some types, burstable ones among them, in a cluster placement group.",
        fix="choose an instance type that the strategy takes, or launch outside the group",
        url=LIMITS_PAGE,
        types=FLEETS,
        check=_type_takes_strategy,
        whole_program=True,
        good=[_GROUP, EFA_TEMPLATE, _environment("group", placementGroup="group-1")],
        bad=[
            _GROUP,
            EFA_TEMPLATE,
            _environment("group", placementGroup="group-1", instanceTypes=["t3.large"]),
        ],
    ),
    Rule(
        id="efa-placement-group",
        references=("R41",),
        family="capacity",
        level="advisory",
        level_because="nodes launch and talk, only farther apart than they could be",
        sentence="Nodes with EFA that launch on demand are in a cluster placement group.",
        why="Outside a group, EC2 places nodes anywhere in the zone, at a higher latency.",
        fix="name a cluster placement group where the nodes are launched",
        url=STRATEGIES_PAGE,
        types=frozenset(_PLACEMENT_INPUT),
        check=_close_together,
        whole_program=True,
        good=[_GROUP, EFA_TEMPLATE, _environment("group", placementGroup="group-1")],
        bad=[EFA_TEMPLATE, _environment()],
    ),
    Rule(
        id="cluster-group-one-type",
        references=(),
        family="capacity",
        level="advisory",
        level_because="it launches while there is capacity for every type in one place",
        sentence="A cluster placement group holds instances of one type.",
        why="Different types seldom stand close together, so launches into the group fail with "
        "InsufficientInstanceCapacity.",
        fix="list one instance type, or use a placement group for each",
        url=STRATEGIES_PAGE,
        types=FLEETS,
        check=_one_type,
        whole_program=True,
        good=[_GROUP, EFA_TEMPLATE, _environment("group", placementGroup="group-1")],
        bad=[
            _GROUP,
            EFA_TEMPLATE,
            _environment(
                "group", placementGroup="group-1", instanceTypes=["g6.12xlarge", "g6.24xlarge"]
            ),
        ],
    ),
)

"""How nodes are bought: what their types are sold for, and what Spot goes together with."""

from collections.abc import Iterator
from typing import Any

from policy.examples import interface, resource
from policy.fleets import FLEETS, fleet_of, known
from policy.reservations import SPECIFICATION, TARGET, target_of
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    AUTO_SCALING_GROUP,
    BATCH_ENVIRONMENT,
    INSTANCE,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
)

CLASSES_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html"
RESERVATION_PAGE = (
    "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-reservations.html"
)
SPOT_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-best-practices.html"

_MARKET_INPUT = {
    AUTO_SCALING_GROUP: "mixedInstancesPolicy.instancesDistribution",
    BATCH_ENVIRONMENT: "computeResources.type",
    NODE_GROUP: "capacityType",
}


def _offered(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    market = fleet.market if fleet is not None else None
    if fleet is None or market not in ("on-demand", "spot", "capacity-block"):
        return
    classes = {one.name: one.usage_classes for one in fleet.types}
    for path, name in fleet.type_paths:
        if name in classes and market not in classes[name]:
            message = f"{name} is not sold as {market}, only as {' or '.join(classes[name])}"
            yield Finding(path=path, value=name, message=message)


def _spot_template(subject: Subject) -> Iterator[Finding]:
    target = target_of(subject.row, subject.program)
    if target and subject.at("instanceMarketOptions.marketType") == "spot":
        yield Finding(
            path=TARGET,
            value=known(subject.at(TARGET)),
            message="a Spot launch targets a capacity reservation",
        )


def _spot_launcher(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    if fleet is not None and fleet.market == "spot" and fleet.target:
        path = _MARKET_INPUT[fleet.kind]
        yield Finding(
            path=path,
            value=known(subject.at(path)),
            message="launches Spot instances and targets a capacity reservation",
        )


def _spot_together(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    if fleet is None or fleet.market != "spot" or not fleet.uses_efa:
        return
    if fleet.most is None or fleet.most[1] > 1:
        path = _MARKET_INPUT[fleet.kind]
        yield Finding(
            path=path,
            value=known(subject.at(path)),
            message="nodes with EFA that work together are Spot instances",
        )


def _template(**settings: Any) -> dict[str, Any]:
    """A launch template with EFA."""
    return resource(
        LAUNCH_TEMPLATE,
        "nodes",
        networkInterfaces=[interface(0, 0, "interface"), interface(0, 1)],
        **settings,
    )


def _nodes(market: str, instance_type: str = "g6.12xlarge") -> dict[str, Any]:
    """A node group that launches from the template."""
    return resource(
        NODE_GROUP,
        links={"launchTemplate": ["nodes"]},
        capacityType=market,
        instanceTypes=[instance_type],
        launchTemplate={"id": "lt-0123456789abcdef0", "version": "1"},
        scalingConfig={"minSize": 0, "desiredSize": 0, "maxSize": 4},
    )


_TARGET = {"capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}}
_SPOT = {"marketType": "spot"}

RULES = (
    Rule(
        id="purchase-option-offered",
        references=("R46",),
        family="capacity",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="Every instance type is sold in the way it is bought: on demand, as Spot or in a "
        "Capacity Block.",
        why="EC2 answers Unsupported, and the launcher tries again for ever.",
        fix="choose a purchase option that the type has, or another type",
        url=CLASSES_PAGE,
        types=FLEETS,
        check=_offered,
        whole_program=True,
        good=[_template(), _nodes("SPOT")],
        bad=[_template(), _nodes("SPOT", "hpc7a.96xlarge")],
    ),
    Rule(
        id="spot-template-without-reservation",
        references=("R46",),
        family="capacity",
        level="mandatory",
        level_because="the launch is rejected, or the reservation stays unused",
        sentence="A Spot launch targets no capacity reservation.",
        why="Spot instances do not run in on-demand reservations, which are billed meanwhile.",
        fix=f"remove instanceMarketOptions to use the reservation, or {SPECIFICATION}",
        url=RESERVATION_PAGE,
        types=frozenset({INSTANCE, LAUNCH_TEMPLATE}),
        check=_spot_template,
        good=[resource(LAUNCH_TEMPLATE, instanceMarketOptions=_SPOT)],
        bad=[
            resource(
                LAUNCH_TEMPLATE,
                instanceMarketOptions=_SPOT,
                capacityReservationSpecification=_TARGET,
            )
        ],
    ),
    Rule(
        id="spot-launcher-without-reservation",
        references=("R46",),
        family="capacity",
        level="mandatory",
        level_because="the launch is rejected, or the reservation stays unused",
        sentence="What launches Spot instances targets no reservation; nor does its template.",
        why="Spot instances do not run in on-demand reservations, which are billed meanwhile.",
        fix="launch on demand, or use a template without the reservation",
        url=RESERVATION_PAGE,
        types=frozenset(_MARKET_INPUT),
        check=_spot_launcher,
        whole_program=True,
        good=[_template(capacityReservationSpecification=_TARGET), _nodes("ON_DEMAND")],
        bad=[_template(capacityReservationSpecification=_TARGET), _nodes("SPOT")],
    ),
    Rule(
        id="spot-efa-nodes",
        references=(),
        family="capacity",
        level="advisory",
        level_because="the nodes run until one of them is taken back",
        sentence="Several nodes with EFA, which work on one job, are not Spot instances.",
        why="A job over many nodes stops when AWS takes back one of them, and capacity for all in "
        "one zone is rare.",
        fix="launch on demand or from a reservation, or save checkpoints often",
        url=SPOT_PAGE,
        types=frozenset({AUTO_SCALING_GROUP, NODE_GROUP}),
        check=_spot_together,
        whole_program=True,
        good=[_template(), _nodes("ON_DEMAND")],
        bad=[_template(), _nodes("SPOT")],
    ),
)

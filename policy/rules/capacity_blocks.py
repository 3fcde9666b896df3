"""Capacity Blocks for ML: what a launch into one must and must not say."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from fabric.rows import at, mapping, text
from policy.examples import resource
from policy.fleets import LAUNCHERS, fleet_of, known
from policy.reservations import SPECIFICATION, TARGET, target_of
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    AUTO_SCALING_GROUP,
    BATCH_ENVIRONMENT,
    CAPACITY_BLOCK_RESERVATION,
    CAPACITY_RESERVATION,
    INSTANCE,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
)
from policy.values import is_unknown

LAUNCH_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-launch.html"
PURCHASE_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-purchase.html"
GROUPS_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-groups-launch.html"
SCALING_PAGE = (
    "https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-template-capacity-blocks.html"
)
MARKET_TYPE = "instanceMarketOptions.marketType"
BLOCK = "capacity-block"

_FLOATING = ("$Latest", "$Default")  # to an Auto Scaling group, no version is $Default


def _has_target(subject: Subject) -> Iterator[Finding]:
    hidden = is_unknown(subject.inputs.get(SPECIFICATION)) or subject.inputs.get("launchTemplate")
    if subject.at(MARKET_TYPE) == BLOCK and not (hidden or target_of(subject.row, subject.program)):
        yield Finding(path=TARGET, value=None, message="a Capacity Block launch names no block")


def _block_of_program(subject: Subject) -> Iterator[Finding]:
    target = target_of(subject.row, subject.program)
    market = subject.at(MARKET_TYPE)
    made = target.made_here if target else ()
    blocks = [row for row in made if row.get("type") == CAPACITY_BLOCK_RESERVATION]
    if blocks and len(blocks) == len(made) and market != BLOCK and not is_unknown(market):
        yield Finding(
            path=MARKET_TYPE,
            value=market,
            message=f"targets a Capacity Block as {text(market) or 'on-demand'} instances",
        )


def _reservation_of_program(subject: Subject) -> Iterator[Finding]:
    target = target_of(subject.row, subject.program)
    made = target.reservations if target else []
    if target and made and len(made) == len(target.made_here) and subject.at(MARKET_TYPE) == BLOCK:
        yield Finding(
            path=MARKET_TYPE, value=BLOCK, message="the target is an on-demand reservation"
        )


def _placed(subject: Subject) -> Iterator[Finding]:
    if subject.at(MARKET_TYPE) != BLOCK:
        return
    for path in ("placement.groupName", "placement.groupId", "placementGroup", "placementGroupId"):
        value = subject.at(path)
        if text(value) or is_unknown(value):
            message = "a Capacity Block is launched into a placement group"
            yield Finding(path=path, value=known(value), message=message)


def _launched_placed(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    placement = fleet.placement if fleet is not None and fleet.market == BLOCK else None
    if fleet is None or placement is None:
        return
    template_says_both = at(fleet.template or {}, MARKET_TYPE) == BLOCK
    if placement.path != fleet.template_path or not template_says_both:
        yield Finding(
            path=placement.path,
            value=placement.value,
            message="nodes of a Capacity Block are put into a placement group",
        )


def _scaled(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    if fleet is None or fleet.market != BLOCK:
        return
    if mapping(subject.inputs.get("mixedInstancesPolicy")):
        yield Finding(
            path="mixedInstancesPolicy",
            value=None,
            message="a mixed instances policy beside a Capacity Block",
        )
    for path in ("warmPool", "warmPoolConfig"):
        pool = subject.inputs.get(path)
        if isinstance(pool, Mapping):  # an empty one is a pool, too
            value = known(cast("object", pool))
            yield Finding(path=path, value=value, message="a warm pool of a Capacity Block")
    template = mapping(subject.at(fleet.template_path))
    version = template.get("version") or None
    unsaid = bool(template) and version is None and fleet.kind == AUTO_SCALING_GROUP
    if version in _FLOATING or unsaid:
        yield Finding(
            path=f"{fleet.template_path}.version",
            value=version,
            message="the next template version moves the running group to another block",
        )


def _bought(subject: Subject) -> Iterator[Finding]:
    yield Finding(
        path="capacityBlockOfferingId",
        value=known(subject.inputs.get("capacityBlockOfferingId")),
        message="the update buys a Capacity Block, and no destroy gives it back",
    )


def _block(**settings: Any) -> dict[str, Any]:
    """Inputs of a launch into a Capacity Block that exists, with more settings."""
    target = {"capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}}
    market = {"marketType": BLOCK}
    return {"capacityReservationSpecification": target, "instanceMarketOptions": market, **settings}


def _launch(kind: str, made: str, market: str | None) -> list[dict[str, Any]]:
    """A launch template that targets a reservation of its program."""
    options: dict[str, Any] = {"instanceMarketOptions": {"marketType": market}} if market else {}
    target = {"capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}}
    return [
        resource(kind, made),
        resource(
            LAUNCH_TEMPLATE,
            links={SPECIFICATION: [made]},
            capacityReservationSpecification=target,
            **options,
        ),
    ]


def _environment(**settings: Any) -> list[dict[str, Any]]:
    """A compute environment that launches into a Capacity Block."""
    template = {"launchTemplateId": "lt-0123456789abcdef0", "version": "1"}
    return [
        resource(LAUNCH_TEMPLATE, "block", **_block()),
        resource(
            BATCH_ENVIRONMENT,
            links={"computeResources": ["block"]},
            computeResources={"type": "EC2", "launchTemplate": template, **settings},
        ),
    ]


def _scaling(version: str, **settings: Any) -> list[dict[str, Any]]:
    """An Auto Scaling group that launches into a Capacity Block."""
    return [
        resource(LAUNCH_TEMPLATE, "block", **_block()),
        resource(
            AUTO_SCALING_GROUP,
            links={"launchTemplate": ["block"]},
            launchTemplate={"id": "lt-0123456789abcdef0", "version": version},
            **settings,
        ),
    ]


RULES = (
    Rule(
        id="capacity-block-target",
        references=("R30",),
        family="capacity",
        level="mandatory",
        level_because="the launch is rejected",
        sentence="A launch with the market type capacity-block targets a reservation.",
        why="A Capacity Block is entered by its id or its resource group only.",
        fix="set capacityReservationTarget to the block's id, or to the ARN of its resource group",
        url=LAUNCH_PAGE,
        types=frozenset({INSTANCE, LAUNCH_TEMPLATE}),
        check=_has_target,
        good=[resource(LAUNCH_TEMPLATE, **_block())],
        bad=[resource(LAUNCH_TEMPLATE, instanceMarketOptions={"marketType": BLOCK})],
    ),
    Rule(
        id="capacity-block-market-type",
        references=("R30",),
        family="capacity",
        level="mandatory",
        level_because="the launch is rejected",
        sentence="A launch that targets a Capacity Block has the market type capacity-block.",
        why="A block that was paid for takes no on-demand and no Spot instances.",
        fix="set instanceMarketOptions.marketType to capacity-block",
        url=LAUNCH_PAGE,
        types=frozenset({INSTANCE, LAUNCH_TEMPLATE}),
        check=_block_of_program,
        whole_program=True,
        good=_launch(CAPACITY_BLOCK_RESERVATION, "bought", BLOCK),
        bad=_launch(CAPACITY_BLOCK_RESERVATION, "bought", None),
    ),
    Rule(
        id="on-demand-reservation-market-type",
        references=("R31",),
        family="capacity",
        level="mandatory",
        level_because="the launch is rejected",
        sentence="A launch that targets an on-demand reservation is not a Capacity Block launch.",
        why="The market type capacity-block is accepted for reservations that are blocks alone.",
        fix="remove instanceMarketOptions, or target the block",
        url=LAUNCH_PAGE,
        types=frozenset({INSTANCE, LAUNCH_TEMPLATE}),
        check=_reservation_of_program,
        whole_program=True,
        good=_launch(CAPACITY_RESERVATION, "reserved", None),
        bad=_launch(CAPACITY_RESERVATION, "reserved", BLOCK),
    ),
    Rule(
        id="capacity-block-template-placement",
        references=("R32",),
        family="capacity",
        level="mandatory",
        level_because="the launch is rejected",
        sentence="A Capacity Block launch names no placement group.",
        why="Placement groups are not supported with blocks, whose instances are close already.",
        fix="remove the placement group",
        url=GROUPS_PAGE,
        types=frozenset({INSTANCE, LAUNCH_TEMPLATE}),
        check=_placed,
        good=[resource(LAUNCH_TEMPLATE, **_block())],
        bad=[resource(LAUNCH_TEMPLATE, **_block(placement={"groupName": "training"}))],
    ),
    Rule(
        id="capacity-block-launcher-placement",
        references=("R32",),
        family="capacity",
        level="mandatory",
        level_because="the launch is rejected",
        sentence="What launches from a Capacity Block template adds no placement group.",
        why="Placement groups are not supported with blocks, whose instances are close already.",
        fix="remove the placement group",
        url=GROUPS_PAGE,
        types=LAUNCHERS,
        check=_launched_placed,
        whole_program=True,
        good=_environment(),
        bad=_environment(placementGroup="training"),
    ),
    Rule(
        id="capacity-block-scaling",
        references=("R43",),
        family="capacity",
        level="mandatory",
        level_because="the group launches nothing, or leaves its block",
        sentence="A scaled group on a Capacity Block has one purchase option, no warm pool and a "
        "fixed launch template version.",
        why="Auto Scaling supports neither mixed instances nor warm pools with blocks, and a new "
        "template version for the next block must not reach a group that runs in this one.",
        fix="remove mixedInstancesPolicy and the warm pool, and name a template version by number",
        url=SCALING_PAGE,
        types=frozenset({AUTO_SCALING_GROUP, NODE_GROUP}),
        check=_scaled,
        whole_program=True,
        good=_scaling("1"),
        bad=_scaling("$Latest", warmPool={"minSize": 1}),
    ),
    Rule(
        id="capacity-block-purchase",
        references=("R45",),
        family="capacity",
        level="mandatory",
        level_because="the whole block is charged at once, and destroy refunds nothing",
        sentence="No stack buys a Capacity Block.",
        why="Creating the resource is a purchase that cannot be undone; a replacement buys again.",
        fix="buy the block outside, and give its id to the stack",
        url=PURCHASE_PAGE,
        types=frozenset({CAPACITY_BLOCK_RESERVATION}),
        check=_bought,
        good=[resource(LAUNCH_TEMPLATE, **_block())],
        bad=[
            resource(
                CAPACITY_BLOCK_RESERVATION,
                capacityBlockOfferingId="cb-0123456789abcdef0",
                instancePlatform="Linux/UNIX",
            )
        ],
    ),
)

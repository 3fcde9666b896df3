"""Capacity reservations: how they end, and how a launch asks for them."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from fabric.rows import Row, inputs, mapping, mappings, text, texts, true
from policy.examples import resource
from policy.fleets import known
from policy.program import Program
from policy.reservations import SPECIFICATION, TARGET, members, target_of
from policy.rule import Finding, Option, Rule, Subject
from policy.tokens import (
    AUTO_SCALING_GROUP,
    CAPACITY_RESERVATION,
    INSTANCE,
    LAUNCH_TEMPLATE,
    RESOURCE_GROUP,
    RESOURCE_GROUP_MEMBER,
)
from policy.values import is_unknown

TARGET_PAGE = (
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservationTarget.html"
)
PREFERENCE_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateCapacityReservationSpecificationRequest.html"
GROUPS_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-groups-launch.html"
CREATE_GROUP_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html"
CREATE_PAGE = (
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html"
)
PREFERENCE = f"{SPECIFICATION}.capacityReservationPreference"
ONLY = "capacity-reservations-only"
POOL = "AWS::EC2::CapacityReservationPool"

_ASKING = frozenset({AUTO_SCALING_GROUP, INSTANCE, LAUNCH_TEMPLATE})


def _single(subject: Subject) -> Iterator[Finding]:
    target = target_of(subject.row, subject.program)
    if target and target.ids is not None and target.groups is not None:
        yield Finding(
            path=TARGET,
            value=known(subject.at(TARGET)),
            message="targets both a reservation and a resource group of them",
        )


def _said(subject: Subject) -> Iterator[Finding]:
    specification = subject.inputs.get(SPECIFICATION)
    if not isinstance(specification, Mapping) or target_of(subject.row, subject.program):
        return
    said = mapping(cast("object", specification))
    if isinstance(said.get("capacityReservationTarget"), Mapping):
        yield Finding(path=TARGET, value={}, message="the target names no reservation and no group")
    elif not (said.get("capacityReservationPreference") or is_unknown(said)):
        yield Finding(path=SPECIFICATION, value={}, message="the specification says nothing")


def _only(subject: Subject) -> Iterator[Finding]:
    target = target_of(subject.row, subject.program)
    if not target or target.groups is None or target.preference not in ("", "default"):
        return
    market = mapping(subject.inputs.get("instanceMarketOptions")).get("marketType")
    if market != "capacity-block" and not is_unknown(market):  # a block never falls back
        yield Finding(
            path=PREFERENCE,
            value=target.preference or None,
            message="nodes that find no place in the group's reservations run on demand",
        )


def _fitting(subject: Subject) -> Iterator[Finding]:
    target = target_of(subject.row, subject.program)
    if target and target.preference in ("open", "none"):
        yield Finding(
            path=PREFERENCE,
            value=target.preference,
            message=f"the preference {target.preference} contradicts a target",
        )


def _ends(subject: Subject) -> Iterator[Finding]:
    kind, date = subject.inputs.get("endDateType"), subject.inputs.get("endDate")
    if is_unknown([kind, date]):
        return
    if kind == "limited" and not text(date):
        yield Finding(path="endDate", value=None, message="endDateType is limited, with no endDate")
    if kind != "limited" and text(date):
        message = f"an endDate, with endDateType {text(kind) or 'left at unlimited'}"
        yield Finding(path="endDateType", value=known(kind), message=message)


def _limited(subject: Subject) -> Iterator[Finding]:
    kind = subject.inputs.get("endDateType")
    allowed = true(subject.options["allowUnlimited"])
    if not allowed and kind != "limited" and not is_unknown(kind):
        yield Finding(path="endDateType", value=kind, message="billed until somebody cancels it")


def _pool(subject: Subject) -> Iterator[Finding]:
    configurations = subject.inputs.get("configurations")
    if not _holds_reservations(subject.row, subject.program) or is_unknown(configurations):
        return
    kinds = [text(one.get("type")) for one in mappings(configurations)]
    if POOL not in kinds:
        yield Finding(path="configurations", value=kinds, message=f"none of them is of type {POOL}")


def _holds_reservations(group: Row, program: Program) -> bool:
    """Whether the program puts reservations into the group, allows them there, or targets it."""
    parameters = [
        parameter
        for one in mappings(inputs(group).get("configurations"))
        for parameter in mappings(one.get("parameters"))
    ]
    allowed = [value for one in parameters for value in texts(one.get("values"))]
    if "AWS::EC2::CapacityReservation" in allowed or members(group, program):
        return True
    users = program.users(group, *sorted(_ASKING))
    return any(group in program.linked(user, SPECIFICATION, RESOURCE_GROUP) for user in users)


def _asking(preference: str | None = None, **target: Any) -> dict[str, Any]:
    """A launch template with a reservation target."""
    specification: dict[str, Any] = {"capacityReservationTarget": target}
    if preference:
        specification["capacityReservationPreference"] = preference
    return resource(LAUNCH_TEMPLATE, capacityReservationSpecification=specification)


def _reserving(**end: Any) -> dict[str, Any]:
    """A capacity reservation that ends as said."""
    return resource(
        CAPACITY_RESERVATION,
        availabilityZone="us-west-2b",
        instanceCount=4,
        instancePlatform="Linux/UNIX",
        instanceType="p4d.24xlarge",
        **end,
    )


def _grouped(*kinds: str) -> list[dict[str, Any]]:
    """A capacity reservation in a resource group with such configurations."""
    return [
        resource(CAPACITY_RESERVATION, "reserved"),
        resource(RESOURCE_GROUP, "pool", configurations=[{"type": kind} for kind in kinds]),
        resource(
            RESOURCE_GROUP_MEMBER,
            "member",
            links={"groupArn": ["pool"], "resourceArn": ["reserved"]},
        ),
    ]


_ID = {"capacityReservationId": "cr-0123456789abcdef0"}
_GROUP = {
    "capacityReservationResourceGroupArn": (
        "arn:aws:resource-groups:us-west-2:123456789012:group/pool"
    )
}

RULES = (
    Rule(
        id="reservation-target-is-one",
        references=("R33", "E-09"),
        family="capacity",
        level="mandatory",
        level_because="the launch is rejected",
        sentence="A launch targets one reservation or one resource group of them, never both.",
        why="EC2 takes a single target for a launch.",
        fix="keep the reservation's id or the resource group's ARN, and remove the other",
        url=TARGET_PAGE,
        types=_ASKING,
        check=_single,
        good=[_asking(**_ID)],
        bad=[_asking(**_ID, **_GROUP)],
    ),
    Rule(
        id="reservation-target-is-named",
        references=("R33",),
        family="capacity",
        level="mandatory",
        level_because="the reservation is lost in silence, and billed",
        sentence="A reservation target names a reservation or a resource group.",
        why="An empty target is no target: nodes run on demand beside the reservation.",
        fix="give the reservation's id or the group's ARN, or remove the empty block",
        url=TARGET_PAGE,
        types=_ASKING,
        check=_said,
        good=[_asking(**_ID)],
        bad=[_asking()],
    ),
    Rule(
        id="reservation-group-only",
        references=("R36", "E-09"),
        family="capacity",
        level="mandatory",
        level_because="nodes run outside the reservation in silence",
        sentence="A launch that targets a resource group of reservations starts nowhere else.",
        why="Where no reservation of the group fits, EC2 launches on demand and says nothing.",
        fix=f"set capacityReservationPreference to {ONLY}",
        url=GROUPS_PAGE,
        types=_ASKING,
        check=_only,
        good=[_asking(ONLY, **_GROUP)],
        bad=[_asking(**_GROUP)],
    ),
    Rule(
        id="reservation-preference-fits-target",
        references=("R36",),
        family="capacity",
        level="mandatory",
        level_because="the launch is rejected",
        sentence="A launch that targets a reservation does not prefer open ones, or none.",
        why="The preferences open and none are choices for launches without a target.",
        fix=f"set capacityReservationPreference to {ONLY}",
        url=PREFERENCE_PAGE,
        types=_ASKING,
        check=_fitting,
        good=[_asking(ONLY, **_ID)],
        bad=[_asking("open", **_ID)],
    ),
    Rule(
        id="reservation-end-is-consistent",
        references=("R39",),
        family="capacity",
        level="mandatory",
        level_because="the reservation cannot be created",
        sentence="A capacity reservation has an end date exactly if its end is limited.",
        why="EC2 refuses a limited reservation without a date, and a date on an unlimited one.",
        fix="set endDateType to limited together with endDate, or neither",
        url=CREATE_PAGE,
        types=frozenset({CAPACITY_RESERVATION}),
        check=_ends,
        good=[_reserving(endDateType="limited", endDate="2026-12-31T00:00:00Z")],
        bad=[_reserving(endDateType="limited")],
    ),
    Rule(
        id="reservation-ends",
        references=("R40",),
        family="capacity",
        level="advisory",
        level_because="it only costs more than it should",
        sentence="A capacity reservation ends by itself.",
        why="Reserved instances are billed at the on-demand price, used or not, until the end.",
        fix="set endDateType to limited and endDate to the end of the project",
        url=CREATE_PAGE,
        types=frozenset({CAPACITY_RESERVATION}),
        check=_limited,
        good=[_reserving(endDateType="limited", endDate="2026-12-31T00:00:00Z")],
        bad=[_reserving(endDateType="unlimited")],
        options={
            "allowUnlimited": Option(
                kind="boolean", default=False, description="whether a reservation may have no end"
            )
        },
    ),
    Rule(
        id="reservation-group-is-pool",
        references=("R44",),
        family="capacity",
        level="mandatory",
        level_because="the launch is rejected",
        sentence=f"A resource group of capacity reservations has a configuration {POOL}.",
        why="A group without it cannot be the target of a launch.",
        fix=f"add a configuration of type {POOL}",
        url=CREATE_GROUP_PAGE,
        types=frozenset({RESOURCE_GROUP}),
        check=_pool,
        whole_program=True,
        good=_grouped(POOL, "AWS::ResourceGroups::Generic"),
        bad=_grouped("AWS::ResourceGroups::Generic"),
    ),
)

"""What follows from the way instances are bought: placement group, purchase option, job time."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.capacity import (
    Capacity,
    CapacityBlock,
    NamedPlacementGroup,
    NoPlacementGroup,
    OnDemand,
    OwnPlacementGroup,
    PlacementGroupChoice,
    Reservation,
    ReservationGroup,
    ReservationGroupOf,
    ReservationOfStack,
    Reserve,
    Spot,
    UsageClass,
    longest_job,
    placement_group,
    usage_class,
)
from fabric.conflict import Conflict

NONE, OWN, NAMED = NoPlacementGroup(), OwnPlacementGroup(), NamedPlacementGroup(name="ours")
POOL = "arn:aws:resource-groups:us-west-2:123456789012:group/pool"
RESERVATION = "cr-0123456789abcdef0"
START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)

# What a group gets that asks for: the default, true, false, the group named ours. None: a conflict.
DECISIONS: list[tuple[Capacity, tuple[PlacementGroupChoice | None, ...]]] = [
    (OnDemand(), (OWN, OWN, NONE, NAMED)),
    (Spot(), (OWN, OWN, NONE, NAMED)),
    (Reserve(instance_type="p5.48xlarge", count=4, end_date=START), (OWN, OWN, NONE, NAMED)),
    (ReservationOfStack(stack="acme/train/dev", name="held"), (OWN, OWN, None, None)),
    (Reservation(reservation_id=RESERVATION), (NONE, None, NONE, NAMED)),
    (ReservationGroup(resource_group_arn=POOL), (NONE, None, NONE, NAMED)),
    (ReservationGroupOf(reservation_ids=(RESERVATION,)), (NONE, None, NONE, NAMED)),
    (CapacityBlock(target=RESERVATION), (NONE, None, NONE, None)),
    (CapacityBlock(target=POOL, ultra_server=True), (NONE, None, NONE, None)),
]
CAPACITIES = [capacity for capacity, _ in DECISIONS]


def kind(capacity: Capacity) -> str:
    return type(capacity).__name__


def test_the_table_decides_on_every_kind_of_capacity() -> None:
    assert {type(capacity) for capacity in CAPACITIES} == set(get_args(Capacity))


@pytest.mark.parametrize("column", range(4), ids=["default", "true", "false", "named"])
@pytest.mark.parametrize(("capacity", "decisions"), DECISIONS, ids=map(kind, CAPACITIES))
def test_the_placement_group_follows_from_capacity_and_wish(
    capacity: Capacity, decisions: tuple[PlacementGroupChoice | None, ...], column: int
) -> None:
    wanted = (None, True, False, "ours")[column]
    choice = placement_group(capacity=capacity, wanted=wanted)
    assert (None if isinstance(choice, Conflict) else choice) == decisions[column]


@pytest.mark.parametrize("capacity", CAPACITIES, ids=kind)
def test_what_nobody_asked_for_never_conflicts(capacity: Capacity) -> None:
    assert not isinstance(placement_group(capacity=capacity, wanted=None), Conflict)


@pytest.mark.parametrize("wanted", [True, "ours"])
def test_the_conflict_of_a_block_says_that_its_instances_are_close_already(
    wanted: bool | str,
) -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-groups-launch.html
    conflict = placement_group(capacity=CapacityBlock(target=RESERVATION), wanted=wanted)
    assert isinstance(conflict, Conflict)
    assert "Capacity Block" in conflict.reason
    assert conflict.fix.startswith("remove placementGroup")


def test_the_conflict_of_a_reservation_names_the_launch_failure_and_the_way_out() -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-cpg.html
    conflict = placement_group(capacity=Reservation(reservation_id=RESERVATION), wanted=True)
    assert isinstance(conflict, Conflict)
    assert "InsufficientInstanceCapacity" in conflict.reason
    assert "give the NAME" in conflict.fix


PURCHASES: dict[type[Capacity], UsageClass] = {CapacityBlock: "capacity-block", Spot: "spot"}


@pytest.mark.parametrize("capacity", CAPACITIES, ids=kind)
def test_what_is_neither_spot_nor_a_block_is_bought_on_demand(capacity: Capacity) -> None:
    assert usage_class(capacity) == PURCHASES.get(type(capacity), "on-demand")


# How long a job may run in a Capacity Block


def block(*, ultra_server: bool, length: timedelta = timedelta(days=1)) -> CapacityBlock:
    return CapacityBlock(
        target=RESERVATION, start=START, end=START + length, ultra_server=ultra_server
    )


@pytest.mark.parametrize(("ultra_server", "minutes"), [(False, 40), (True, 70)])
def test_a_job_ends_when_aws_warns_before_it_takes_the_instances_back(
    ultra_server: bool, minutes: int
) -> None:
    # 30 minutes before the end, 60 for UltraServers, and the warning 10 minutes before that:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html
    left = longest_job(block(ultra_server=ultra_server))
    assert left == timedelta(days=1) - timedelta(minutes=minutes)


@given(days=st.integers(1, 182), more=st.integers(1, 182))
def test_a_longer_block_leaves_as_much_more_time(days: int, more: int) -> None:
    short = longest_job(block(ultra_server=False, length=timedelta(days=days)))
    long = longest_job(block(ultra_server=False, length=timedelta(days=days + more)))
    assert short is not None
    assert long is not None
    assert long - short == timedelta(days=more)


@pytest.mark.parametrize(("start", "end"), [(None, None), (START, None), (None, START)])
def test_the_longest_job_of_a_block_without_both_dates_is_unknown(
    start: datetime | None, end: datetime | None
) -> None:
    assert longest_job(CapacityBlock(target=RESERVATION, start=start, end=end)) is None

"""How instances are bought, and what each way may be combined with.

`Capacity` is a tagged union: one value says where the instances of a group come from, and the
functions below say what follows from it for launch templates, placement groups and job time.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from fabric.conflict import Conflict

UsageClass = Literal["on-demand", "spot", "capacity-block"]


@dataclass(frozen=True, kw_only=True, slots=True)
class OnDemand:
    """Instances at the on-demand price, if there are any."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spot:
    """Spare instances that AWS may take back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    """An on-demand capacity reservation that exists."""

    reservation_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReservationOfStack:
    """An on-demand capacity reservation that another stack made, by its name there."""

    stack: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReservationGroup:
    """A resource group of capacity reservations that exists."""

    resource_group_arn: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReservationGroupOf:
    """Capacity reservations that exist, which the stack puts into a resource group."""

    reservation_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reserve:
    """An on-demand capacity reservation that the stack makes.

    `end_date` None means without an end, billed until it is cancelled.
    """

    instance_type: str
    count: int
    end_date: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CapacityBlock:
    """A Capacity Block for ML that was bought elsewhere.

    `target` is the block's id, or the ARN of the resource group that holds it. `ultra_server` marks
    a block of UltraServers, which AWS takes back earlier before its end.
    """

    target: str
    start: datetime | None = None
    end: datetime | None = None
    ultra_server: bool = False


Capacity = (
    OnDemand
    | Spot
    | Reservation
    | ReservationOfStack
    | ReservationGroup
    | ReservationGroupOf
    | Reserve
    | CapacityBlock
)


@dataclass(frozen=True, kw_only=True, slots=True)
class NoPlacementGroup:
    """Instances launch outside any placement group."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnPlacementGroup:
    """Instances launch into a cluster placement group that the stack makes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedPlacementGroup:
    """Instances launch into a cluster placement group that exists."""

    name: str


PlacementGroupChoice = NoPlacementGroup | OwnPlacementGroup | NamedPlacementGroup


def placement_group(
    *, capacity: Capacity, wanted: bool | str | None, close_together: bool = True
) -> PlacementGroupChoice | Conflict:
    """Decide on a placement group: `wanted` is true, false, a name, or None for the default.

    The default is a cluster placement group where the stack itself asks for the capacity, on demand
    and Spot for nodes that belong `close_together` only, and none where the capacity was set aside
    before. A reservation serves a placement group only when
    it was made in it: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-cpg.html. That of
    another stack comes with the group that the stack made it in.
    A Capacity Block takes none: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-groups-launch.html
    """
    if isinstance(capacity, CapacityBlock) and wanted:
        return Conflict(
            reason="a Capacity Block cannot be launched into a placement group",
            fix="remove placementGroup; the instances of a block are close to each other already",
        )
    if isinstance(capacity, Reservation | ReservationGroup | ReservationGroupOf) and wanted is True:
        return Conflict(
            reason="a placement group that this stack makes cannot be the one that the reservation "
            "was made in, and launches would fail with InsufficientInstanceCapacity",
            fix="remove placementGroup, or give the NAME of the group that the reservation was "
            "made in",
        )
    if isinstance(capacity, ReservationOfStack) and wanted not in (None, True):
        return Conflict(
            reason="a reservation of another stack comes with its group, if it was made in one",
            fix="remove placementGroup",
        )
    if isinstance(wanted, str):
        return NamedPlacementGroup(name=wanted)
    by_default = isinstance(capacity, Reserve | ReservationOfStack) or (
        close_together and isinstance(capacity, OnDemand | Spot)
    )
    own = by_default if wanted is None else wanted
    return OwnPlacementGroup() if own else NoPlacementGroup()


def usage_class(capacity: Capacity) -> UsageClass:
    """The purchase option, in the words of DescribeInstanceTypes' SupportedUsageClasses.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html
    """
    if isinstance(capacity, CapacityBlock):
        return "capacity-block"
    return "spot" if isinstance(capacity, Spot) else "on-demand"


def is_in_one_zone(capacity: Capacity) -> bool:
    """Whether all of the capacity is in one Availability Zone, as every single reservation is.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-reservations.html
    """
    return isinstance(capacity, Reserve | Reservation | ReservationOfStack | CapacityBlock)


def longest_job(block: CapacityBlock) -> timedelta | None:
    """How long a job that starts with the block may run, or None where its dates are unknown.

    AWS begins to terminate instances 30 minutes before the end of a block, UltraServers 60 minutes,
    after a warning 10 minutes earlier. Source:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html
    """
    if block.start is None or block.end is None:
        return None
    margin = timedelta(minutes=70 if block.ultra_server else 40)
    return block.end - margin - block.start

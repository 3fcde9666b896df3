"""`trainyard:placement`: named capacity, shared by every back end."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field, RootModel, model_validator

from fabric.capacity import (
    Capacity,
    CapacityBlock,
    OnDemand,
    PlacementGroupChoice,
    Reservation,
    ReservationGroup,
    ReservationGroupOf,
    ReservationOfStack,
    Reserve,
    Spot,
    longest_job,
    placement_group,
)
from fabric.conflict import Conflict
from settings.base import (
    AvailabilityZone,
    InstanceTypeName,
    Moment,
    Name,
    ReservationId,
    ResourceGroupArn,
    Section,
    StackName,
)
from settings.errors import refusal


def _under(key: str) -> BeforeValidator:
    """Let a text stand for a map with that one key."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


def _a_group(value: object) -> object:
    if value == "" or not isinstance(value, bool | str | None):
        raise refusal("is no placement group", "write true, false, or the NAME of a group")
    return value


class OnDemandSettings(Section):
    """Capacity at the on-demand price; there is nothing to say about it."""

    @property
    def capacity(self) -> Capacity:
        """The capacity as a value."""
        return OnDemand()


class SpotSettings(Section):
    """Spare capacity; there is nothing to say about it."""

    @property
    def capacity(self) -> Capacity:
        """The capacity as a value."""
        return Spot()


class ReserveSettings(Section):
    """An on-demand capacity reservation to make."""

    instance_type: InstanceTypeName = Field(description="What to reserve.")
    count: int = Field(ge=1, le=1000, description="Instances to reserve.")
    end_date: Moment | None = Field(
        default=None, description="When AWS ends the reservation, such as 2026-12-31T00:00:00Z."
    )
    unlimited: bool | None = Field(
        default=None, description="true: no end, billed until it is destroyed."
    )

    @model_validator(mode="after")
    def _bounded(self) -> "ReserveSettings":
        if self.end_date is None and not self.unlimited:
            raise refusal(
                "has no end, and a reservation is billed until it ends, used or not",
                "add endDate, or unlimited: true if that is what you want",
            )
        if self.end_date is not None and self.unlimited:
            raise refusal("has both endDate and unlimited", "keep one of them")
        return self

    @property
    def capacity(self) -> Capacity:
        """The capacity as a value."""
        return Reserve(instance_type=self.instance_type, count=self.count, end_date=self.end_date)


class ReservationSettings(Section):
    """A reservation that exists: its id, or its name in another stack of this program."""

    id: ReservationId | None = Field(default=None, description="Id of the reservation.")
    stack: StackName | None = Field(
        default=None, description="Stack of this program that made it, in place of an id."
    )
    name: Name | None = Field(default=None, description="Its name in that stack.")

    @model_validator(mode="after")
    def _one_target(self) -> "ReservationSettings":
        _ = self.capacity
        return self

    @property
    def capacity(self) -> Capacity:
        """The capacity as a value."""
        match (self.id, self.stack, self.name):
            case (str(reservation_id), None, None):
                return Reservation(reservation_id=reservation_id)
            case (None, str(stack), str(name)):
                return ReservationOfStack(stack=stack, name=name)
            case _:
                raise refusal(
                    "does not say which reservation", "give an id, or both stack and name"
                )


class ReservationGroupSettings(Section):
    """A resource group of reservations: its ARN, or the reservations to group."""

    arn: ResourceGroupArn | None = Field(
        default=None, description="ARN of a resource group that exists."
    )
    # not strict: a text may stand for this map, so pydantic reads it as Python, not as JSON
    reservations: Annotated[tuple[ReservationId, ...], Field(min_length=1, strict=False)] | None = (
        Field(default=None, description="Ids to put into a resource group that is made here.")
    )

    @model_validator(mode="after")
    def _one_target(self) -> "ReservationGroupSettings":
        _ = self.capacity
        return self

    @property
    def capacity(self) -> Capacity:
        """The capacity as a value."""
        match (self.arn, self.reservations):
            case (str(arn), None):
                return ReservationGroup(resource_group_arn=arn)
            case (None, tuple(reservation_ids)) if len(set(reservation_ids)) == len(
                reservation_ids
            ):
                return ReservationGroupOf(reservation_ids=reservation_ids)
            case _:
                raise refusal(
                    "does not say which reservations, each once",
                    "give an arn, or a list of reservations without doubles",
                )


class CapacityBlockSettings(Section):
    """A Capacity Block that was bought: its id, or the ARN of the resource group that holds it."""

    id: ReservationId | None = Field(default=None, description="Id of the block.")
    resource_group: ResourceGroupArn | None = Field(
        default=None, description="ARN of the resource group that holds it, in place of an id."
    )
    start: Moment | None = Field(default=None, description="When the block begins.")
    end: Moment | None = Field(
        default=None,
        description="When the block ends; with start, no job may run longer than the block leaves.",
    )
    ultra_server: bool = Field(
        default=False, description="Whether the block is of UltraServers, which end earlier."
    )

    @model_validator(mode="after")
    def _one_target(self) -> "CapacityBlockSettings":
        if self.ultra_server and not self.resource_group:
            raise refusal(
                "is of UltraServers, which are targeted through a resource group only",
                "give the ARN of the block's resource group as resourceGroup",
            )
        longest = longest_job(self.capacity)
        if longest is not None and longest < timedelta(minutes=1):
            raise refusal(
                "leaves no time for a job: AWS takes instances back before the end",
                "correct start and end; a block lasts a day at least",
            )
        return self

    @property
    def capacity(self) -> CapacityBlock:
        """The capacity as a value."""
        match (self.id, self.resource_group):
            case (str(target), None) | (None, str(target)):
                return CapacityBlock(
                    target=target, start=self.start, end=self.end, ultra_server=self.ultra_server
                )
            case _:
                raise refusal(
                    "does not say which block was bought", "give its id, or its resourceGroup"
                )


class PlacementSettings(Section):
    """One named capacity, with its zone and its placement group."""

    on_demand: OnDemandSettings | None = Field(
        default=None, description="At the on-demand price, if there is capacity: {}."
    )
    spot: SpotSettings | None = Field(
        default=None, description="Spare capacity: {}. AWS Batch groups cannot use it."
    )
    reserve: ReserveSettings | None = Field(
        default=None, description="A reservation that the stack makes and pays for."
    )
    reservation: Annotated[ReservationSettings, _under("id")] | None = Field(
        default=None, description="A reservation that exists; a text is its id."
    )
    reservation_group: Annotated[ReservationGroupSettings, _under("arn")] | None = Field(
        default=None, description="A resource group of reservations; a text is its ARN."
    )
    capacity_block: Annotated[CapacityBlockSettings, _under("id")] | None = Field(
        default=None, description="A Capacity Block that was bought; a text is its id."
    )
    availability_zone: AvailabilityZone | None = Field(
        default=None, description="Zone of the capacity; absent: that of the group which uses it."
    )
    placement_group: Annotated[bool | str | None, BeforeValidator(_a_group)] = Field(
        default=None,
        description="true: a cluster placement group made here; false: none; a NAME: one that "
        "exists, in which the reservation was made.",
    )

    @model_validator(mode="after")
    def _one_capacity(self) -> "PlacementSettings":
        given = self._given()
        if len(given) != 1:
            raise refusal(
                f"has {' and '.join(given)}" if given else "does not say where instances come from",
                f"keep exactly one of {', '.join(given or self._kinds())}",
            )
        choice = placement_group(capacity=self.capacity, wanted=self.placement_group)
        if isinstance(choice, Conflict):
            raise refusal(choice.reason, choice.fix)
        return self

    @property
    def capacity(self) -> Capacity:
        """The capacity as a value."""
        (kind,) = self._given().values()
        return kind.capacity

    def _given(self) -> "dict[str, _Kind]":
        return {key: kind for key, kind in self._kinds().items() if kind is not None}

    def _kinds(self) -> "dict[str, _Kind | None]":
        return {
            "onDemand": self.on_demand,
            "spot": self.spot,
            "reserve": self.reserve,
            "reservation": self.reservation,
            "reservationGroup": self.reservation_group,
            "capacityBlock": self.capacity_block,
        }


_Kind = (
    OnDemandSettings
    | SpotSettings
    | ReserveSettings
    | ReservationSettings
    | ReservationGroupSettings
    | CapacityBlockSettings
)


class PlacementSection(RootModel[Mapping[Name, PlacementSettings]]):
    """Every named capacity of a stack."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Where the instances of one group come from, and whether they share a placement group.

    `name` is the capacity's name in the configuration, or None for what a group gets unasked.
    """

    name: str | None
    capacity: Capacity
    placement_group: PlacementGroupChoice
    availability_zone: str | None


def placement_of(
    name: str | None, settings: PlacementSettings | None, *, close_together: bool = True
) -> Placement:
    """The placement that a group asks for by name, or on demand where it asks for none."""
    capacity = settings.capacity if settings else OnDemand()
    choice = placement_group(
        capacity=capacity,
        wanted=settings.placement_group if settings else None,
        close_together=close_together,
    )
    if isinstance(choice, Conflict):
        raise ValueError(choice.reason)  # PlacementSettings refuses this already
    return Placement(
        name=name,
        capacity=capacity,
        placement_group=choice,
        availability_zone=settings.availability_zone if settings else None,
    )

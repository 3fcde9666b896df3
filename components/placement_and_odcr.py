"""PlacementAndODCR: placement groups and reserved capacity for every back end."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

import pulumi
import pulumi_aws as aws
from pulumi import Input, Output, ResourceOptions

from fabric.capacity import (
    CapacityBlock,
    NamedPlacementGroup,
    OwnPlacementGroup,
    Reservation,
    ReservationGroup,
    ReservationGroupOf,
    ReservationOfStack,
    Reserve,
    usage_class,
)
from settings.placement import Placement, PlacementSettings, placement_of
from settings.stack import StackSettings

RESERVATION_METRICS = "AWS/EC2CapacityReservations"
IDLE_HOURS = 3


@dataclass(frozen=True, kw_only=True)
class LaunchPlacement:
    """What a group's launch template and its back end need to know of its capacity.

    Of `reservation_id` and `resource_group_arn` one is set where instances target a reservation,
    and `market_type` is set where they are not bought on demand. `waits_for` are resources that
    must exist before an instance can launch.
    """

    placement_group: Input[str] | None
    reservation_id: Input[str] | None
    resource_group_arn: Input[str] | None
    market_type: Literal["spot", "capacity-block"] | None
    waits_for: tuple[pulumi.Resource, ...]

    @property
    def capacity_reservation_specification(
        self,
    ) -> aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs | None:
        """Launch in the reservation or not at all, or None where no reservation is targeted.

        Without the preference, a resource group that has no room lets instances run on demand:
        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-groups-launch.html
        """
        if self.reservation_id is None and self.resource_group_arn is None:
            return None
        target = (
            aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
                capacity_reservation_id=self.reservation_id,
                capacity_reservation_resource_group_arn=self.resource_group_arn,
            )
        )
        return aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(
            capacity_reservation_preference="capacity-reservations-only",
            capacity_reservation_target=target,
        )

    @property
    def instance_market_options(self) -> aws.ec2.LaunchTemplateInstanceMarketOptionsArgs | None:
        """The purchase option, or None for on demand."""
        if self.market_type is None:
            return None
        return aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type=self.market_type)


@dataclass(frozen=True, kw_only=True)
class _Made:
    """What a named capacity has come to; a field is None where the capacity has no such thing."""

    placement_group: Input[str] | None = None
    reservation_id: Input[str] | None = None
    resource_group_arn: Input[str] | None = None
    waits_for: tuple[pulumi.Resource, ...] = ()


class PlacementAndODCR(pulumi.ComponentResource):
    """Every named capacity of the stack, and a placement group for each group that wants its own.

    `for_group` gives a back end the one value that its launch templates need.
    """

    def __init__(
        self, name: str, stack: StackSettings, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("trainyard:index:PlacementAndODCR", name, None, opts)
        self._stack = stack
        self._name = name
        self._own = ResourceOptions(parent=self)
        self._named: dict[str, _Made] = {
            key: self._make(key, settings) for key, settings in stack.placement.items()
        }
        self.register_outputs(self.outputs)

    @property
    def outputs(self) -> dict[str, Any]:
        """The stack output `placement`: what each named capacity targets and where it is."""
        return {
            name: {
                "capacityReservationId": made.reservation_id,
                "resourceGroupArn": made.resource_group_arn,
                "placementGroup": made.placement_group,
                "availabilityZone": self._stack.zone_of_placement(name),
                **_dates(self._stack.placement[name]),
            }
            for name, made in self._named.items()
        }

    def for_group(self, name: str, placement: Placement) -> LaunchPlacement:
        """Place the group `name`, whose resources here are named after it."""
        made = self._named.get(placement.name or "", _Made())
        group = made.placement_group
        waits_for = made.waits_for
        if isinstance(placement.placement_group, OwnPlacementGroup) and group is None:
            # groups that ask for capacity by themselves do not share a group: each may hold another
            # instance type or another zone, which a cluster placement group cannot mix well
            own = self._placement_group(name)
            group, waits_for = own.name, (own,)
        bought_as = usage_class(placement.capacity)
        return LaunchPlacement(
            placement_group=group,
            reservation_id=made.reservation_id,
            resource_group_arn=made.resource_group_arn,
            market_type=None if bought_as == "on-demand" else bought_as,
            waits_for=waits_for,
        )

    def _make(self, name: str, settings: PlacementSettings) -> _Made:
        placement = placement_of(name, settings)
        group = placement.placement_group
        named_group = group.name if isinstance(group, NamedPlacementGroup) else None
        match placement.capacity:
            case Reserve() as reserve:
                return self._reserve(name, reserve, placement)
            case Reservation(reservation_id=reservation_id):
                self._idle_alarm(name, reservation_id)
                return _Made(placement_group=named_group, reservation_id=reservation_id)
            case ReservationOfStack() as elsewhere:
                return self._from_stack(name, elsewhere)
            case ReservationGroup(resource_group_arn=arn):
                return _Made(placement_group=named_group, resource_group_arn=arn)
            case ReservationGroupOf(reservation_ids=reservation_ids):
                arn, members = self._resource_group(name, reservation_ids)
                return _Made(placement_group=named_group, resource_group_arn=arn, waits_for=members)
            case CapacityBlock(target=target):
                if target.startswith("cr-"):
                    return _Made(reservation_id=target)
                return _Made(resource_group_arn=target)
            case _:
                return _Made(placement_group=named_group)

    def _reserve(self, name: str, reserve: Reserve, placement: Placement) -> _Made:
        group_name: Input[str] | None = None
        group_arn: Input[str] | None = None
        match placement.placement_group:
            case OwnPlacementGroup():
                group = self._placement_group(f"{self._name}-{name}")
                group_name, group_arn = group.name, group.arn
            case NamedPlacementGroup(name=group_name):
                group_arn = self._placement_group_arn(group_name)
            case _:
                pass
        reservation = aws.ec2.CapacityReservation(
            f"{self._name}-{name}",
            instance_type=reserve.instance_type,
            instance_count=reserve.count,
            instance_platform="Linux/UNIX",
            availability_zone=self._zone_of(name),
            # only launches that name the reservation get it, so that nothing else uses it up
            instance_match_criteria="targeted",
            end_date_type="limited" if reserve.end_date else "unlimited",
            end_date=_utc(reserve.end_date) if reserve.end_date else None,
            placement_group_arn=group_arn,
            tags=self._tags(name),
            opts=self._own,
        )
        self._idle_alarm(name, reservation.id)
        return _Made(
            placement_group=group_name, reservation_id=reservation.id, waits_for=(reservation,)
        )

    def _zone_of(self, name: str) -> str:
        zone = self._stack.zone_of_placement(name)
        if zone is None:
            raise ValueError(f"placement {name} has no zone")  # settings refuse it already
        return zone

    def _from_stack(self, name: str, elsewhere: ReservationOfStack) -> _Made:
        reference = pulumi.StackReference(elsewhere.stack, opts=self._own)
        zone = self._stack.zone_of_placement(name)
        made = reference.require_output("placement").apply(
            lambda every: _entry(every, elsewhere, zone)
        )
        group = made.apply(lambda entry: entry.get("placementGroup"))
        return _Made(
            # None, an absent input, for a reservation that was made in no group
            placement_group=cast("Output[str]", group),
            reservation_id=made.apply(lambda entry: entry["capacityReservationId"]),
        )

    def _resource_group(
        self, name: str, reservation_ids: tuple[str, ...]
    ) -> tuple[Output[str], tuple[pulumi.Resource, ...]]:
        """A resource group that a launch can target.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
        """
        group = aws.resourcegroups.Group(
            f"{self._name}-{name}",
            configurations=[
                aws.resourcegroups.GroupConfigurationArgs(type="AWS::EC2::CapacityReservationPool"),
                aws.resourcegroups.GroupConfigurationArgs(
                    type="AWS::ResourceGroups::Generic",
                    parameters=[
                        aws.resourcegroups.GroupConfigurationParameterArgs(
                            name="allowed-resource-types",
                            values=["AWS::EC2::CapacityReservation"],
                        )
                    ],
                ),
            ],
            tags=self._tags(name),
            opts=self._own,
        )
        members: list[pulumi.Resource] = []
        for reservation_id in reservation_ids:
            member = aws.resourcegroups.Resource(
                f"{self._name}-{name}_{reservation_id}",
                group_arn=group.arn,
                resource_arn=self._arn(f"capacity-reservation/{reservation_id}"),
                opts=self._own,
            )
            self._idle_alarm(f"{name}_{reservation_id}", reservation_id)
            members.append(member)
        return group.arn, tuple(members)

    def _placement_group(self, resource_name: str) -> aws.ec2.PlacementGroup:
        return aws.ec2.PlacementGroup(
            resource_name,
            strategy=aws.ec2.PlacementStrategy.CLUSTER,
            tags=self._stack.tags(resource_name),
            opts=self._own,
        )

    def _placement_group_arn(self, group: str) -> Output[str]:
        return self._arn(f"placement-group/{group}")

    def _arn(self, resource: str) -> Output[str]:
        inside = pulumi.InvokeOutputOptions(parent=self)
        partition = aws.get_partition_output(opts=inside).partition
        account = aws.get_caller_identity_output(opts=inside).account_id
        return Output.concat(
            "arn:", partition, ":ec2:", self._stack.region, ":", account, ":", resource
        )

    def _idle_alarm(self, name: str, reservation_id: Input[str]) -> None:
        """Tell of reserved instances that nobody has used for hours; they are billed all the same.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservation-cw-metrics.html
        """
        topic = self._stack.common.alarm_topic
        aws.cloudwatch.MetricAlarm(
            f"{self._name}-{name}-idle",
            alarm_description=f"Reserved capacity {name} has had idle instances for {IDLE_HOURS} "
            "hours; unused, it costs as much as used.",
            namespace=RESERVATION_METRICS,
            metric_name="AvailableInstanceCount",
            dimensions={"CapacityReservationId": reservation_id},
            statistic="Minimum",
            comparison_operator="GreaterThanThreshold",
            threshold=0,
            period=3600,
            evaluation_periods=IDLE_HOURS,
            # a reservation that has ended sends no figures, and costs nothing
            treat_missing_data="notBreaching",
            alarm_actions=[topic] if topic else None,
            tags=self._tags(f"{name}-idle"),
            opts=self._own,
        )

    def _tags(self, name: str) -> dict[str, str]:
        return self._stack.tags(f"{self._name}-{name}")


def _dates(settings: PlacementSettings) -> dict[str, str]:
    """When the capacity can be used, as far as the configuration says."""
    block, reserve = settings.capacity_block, settings.reserve
    start = block.start if block else None
    end = block.end if block else reserve.end_date if reserve else None
    dates = {"start": start, "end": end}
    return {name: _utc(moment) for name, moment in dates.items() if moment}


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _entry(
    every: Mapping[str, Any], elsewhere: ReservationOfStack, zone: str | None
) -> Mapping[str, Any]:
    entry = every.get(elsewhere.name)
    if not entry or not entry.get("capacityReservationId"):
        raise pulumi.RunError(
            f"trainyard:placement: {elsewhere.name!r} is not a reservation of the stack "
            f"{elsewhere.stack}, which has {', '.join(every) or 'none'}; correct the name"
        )
    if zone and entry.get("availabilityZone") not in (None, zone):
        raise pulumi.RunError(
            f"trainyard:placement: {elsewhere.name!r} of {elsewhere.stack} is in "
            f"{entry['availabilityZone']}, and its nodes would be in {zone}; give the placement "
            f"availabilityZone: {entry['availabilityZone']}"
        )
    return entry

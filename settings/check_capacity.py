"""Rules between instance types, the capacity they come from, and where AWS offers them."""

from collections.abc import Iterator
from datetime import datetime

from fabric.capacity import (
    CapacityBlock,
    OnDemand,
    OwnPlacementGroup,
    Reserve,
    Spot,
    is_in_one_zone,
    longest_job,
    usage_class,
)
from fabric.catalogue import InstanceType, find_instance_type, zones_offering
from fabric.price_lines import PriceBook
from settings.batch import BatchGroupSettings
from settings.errors import PROJECT, Problem, nearest
from settings.keys import Keys
from settings.placement import Placement, PlacementSettings, placement_of
from settings.stack import StackSettings

PLACEMENT = f"{PROJECT}:placement"


def capacity_problems(stack: StackSettings, keys: Keys) -> Iterator[Problem]:
    """What AWS would refuse, or would never launch."""
    for name, settings in stack.placement.items():
        yield from _zone_outside_region(stack, name, settings)
        if settings.reserve:
            facts = find_instance_type(settings.reserve.instance_type)
            key = f"{PLACEMENT}.{name}.reserve.instanceType"
            placement = placement_of(name, settings)
            yield from _type_with_capacity(stack, key, facts, placement)
            yield from _reserve_without_zone(stack, name)
    for group in stack.batch.groups if stack.batch else ():
        if group.placement and group.placement not in stack.placement:
            yield from _unknown_placement(keys, group)
            continue
        placement = stack.placement_for(group)
        yield from _type_with_capacity(
            stack, keys.group(group, "instanceType"), group.type_facts, placement
        )
        yield from _spot_for_many_nodes(keys, group, placement)
        yield from _group_in_reserve(keys, group, placement)
        yield from _zones_apart(stack, keys, group, placement)
        yield from _jobs_in_block(stack, keys, group, placement)


def capacity_warnings(stack: StackSettings, keys: Keys, now: datetime) -> Iterator[Problem]:
    """What only an account or the calendar can decide."""
    for name, settings in stack.placement.items():
        yield from _dates(f"{PLACEMENT}.{name}", settings, now)
        yield from _shared_reserve(stack, name, settings)
    for group in stack.batch.groups if stack.batch else ():
        yield from _zone_without_offer(stack, keys, group)
        yield from _no_price(stack, keys, group)


def _zone_outside_region(
    stack: StackSettings, name: str, settings: PlacementSettings
) -> Iterator[Problem]:
    zone = settings.availability_zone
    if zone and not zone.startswith(stack.region):
        yield Problem(
            key=f"{PLACEMENT}.{name}.availabilityZone",
            value=zone,
            reason=f"is not in the region {stack.region}",
            fix="name the zone that the capacity is in, or change aws:region",
        )


def _type_with_capacity(
    stack: StackSettings, key: str, facts: InstanceType, placement: Placement
) -> Iterator[Problem]:
    wanted = usage_class(placement.capacity)
    if wanted not in facts.usage_classes:
        yield Problem(
            key=key,
            value=facts.name,
            reason=f"is not sold as {wanted}, only as {', '.join(facts.usage_classes)}",
            fix="choose another instance type, or another placement",
        )
    block = placement.capacity if isinstance(placement.capacity, CapacityBlock) else None
    if block and block.ultra_server != facts.ultra_server:
        yield Problem(
            key=key,
            value=facts.name,
            reason=f"is {'' if facts.ultra_server else 'not '}sold in UltraServers, and "
            f"{placement.name} says otherwise",
            fix=f"{'add' if facts.ultra_server else 'remove'} ultraServer: true at "
            f"{PLACEMENT}.{placement.name}.capacityBlock",
        )
    if (
        isinstance(placement.placement_group, OwnPlacementGroup)
        and "cluster" not in facts.placement_strategies
    ):
        yield Problem(
            key=key,
            value=facts.name,
            reason="cannot launch into a cluster placement group",
            fix="use a placement with placementGroup: false, or another instance type",
        )
    if zones_offering(region=stack.region, instance_type=facts.name) == ():
        yield Problem(
            key=key,
            value=facts.name,
            reason=f"is not offered in {stack.region}",
            fix="choose another region, or another instance type",
        )


def _reserve_without_zone(stack: StackSettings, name: str) -> Iterator[Problem]:
    if stack.zone_of_placement(name) is None:
        yield Problem(
            key=f"{PLACEMENT}.{name}.availabilityZone",
            value=None,
            reason="is required: a reservation is made in one zone, and no network names any",
            fix=f"add a zone of {stack.region}",
        )


def _unknown_placement(keys: Keys, group: BatchGroupSettings) -> Iterator[Problem]:
    if group.placement in keys.placement_names:
        return  # it is there, and its own errors are reported
    close = nearest(group.placement or "", keys.placement_names)
    yield Problem(
        key=keys.group(group, "placement"),
        value=group.placement,
        reason=f"is not in {PLACEMENT}",
        fix=f"write {close}" if close else f"add it to {PLACEMENT}, or remove it for on demand",
    )


def _spot_for_many_nodes(
    keys: Keys, group: BatchGroupSettings, placement: Placement
) -> Iterator[Problem]:
    if isinstance(placement.capacity, Spot):
        yield Problem(
            key=keys.group(group, "placement"),
            value=group.placement,
            reason="is Spot, and groups are for multi-node jobs, which AWS Batch leaves waiting "
            "for ever on Spot "
            "(https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html)",
            fix="use on demand, a reservation or a Capacity Block",
        )


def _group_in_reserve(
    keys: Keys, group: BatchGroupSettings, placement: Placement
) -> Iterator[Problem]:
    reserve = placement.capacity
    if not isinstance(reserve, Reserve):
        return
    if group.instance_type != reserve.instance_type:
        yield Problem(
            key=keys.group(group, "instanceType"),
            value=group.instance_type,
            reason=f"is not what {group.placement} reserves, which is {reserve.instance_type}",
            fix=f"write {reserve.instance_type}, or use another placement",
        )
    if group.max_nodes > reserve.count:
        yield Problem(
            key=keys.group(group, "maxNodes"),
            value=group.max_nodes,
            reason=f"is more than the {reserve.count} instances that {group.placement} reserves, "
            "and nodes launch in the reservation only",
            fix=f"lower maxNodes to {reserve.count}, or raise {PLACEMENT}.{group.placement}"
            ".reserve.count",
        )


def _zones_apart(
    stack: StackSettings, keys: Keys, group: BatchGroupSettings, placement: Placement
) -> Iterator[Problem]:
    zone = placement.availability_zone
    if zone is None and placement.name and is_in_one_zone(placement.capacity):
        zone = next(iter(stack.stated_zones(placement.name)), None)
    if zone and group.availability_zone and group.availability_zone != zone:
        yield Problem(
            key=keys.group(group, "availabilityZone"),
            value=group.availability_zone,
            reason=f"is not the zone of {group.placement}, which is {zone}",
            fix="remove availabilityZone here: it follows from the placement",
        )


def _jobs_in_block(
    stack: StackSettings, keys: Keys, group: BatchGroupSettings, placement: Placement
) -> Iterator[Problem]:
    block = (
        longest_job(placement.capacity) if isinstance(placement.capacity, CapacityBlock) else None
    )
    for job in group.jobs:
        if block is not None and stack.timeout_of(group, job) > block:
            minutes = int(block.total_seconds() // 60)
            yield Problem(
                key=keys.job(group, job, "timeoutMinutes"),
                value=job.timeout_minutes,
                reason=f"is longer than the {minutes} minutes that {group.placement} leaves before "
                "AWS takes its instances back",
                fix=f"write {minutes} or less",
            )


def _dates(key: str, settings: PlacementSettings, now: datetime) -> Iterator[Problem]:
    reserve, block = settings.reserve, settings.capacity_block
    if reserve and reserve.end_date and reserve.end_date <= now:
        yield Problem(
            key=f"{key}.reserve.endDate",
            value=reserve.end_date.isoformat(),
            reason="has passed: the reservation is gone, and launches that target it fail",
            fix="set a later date, or remove the reservation",
        )
    if reserve and reserve.unlimited:
        yield Problem(
            key=f"{key}.reserve.unlimited",
            value=True,
            reason=f"means that {reserve.count} x {reserve.instance_type} are billed until they "
            "are destroyed, used or not",
            fix="set an endDate if the work has an end",
        )
    if block and block.end and block.end <= now:
        yield Problem(
            key=f"{key}.capacityBlock.end",
            value=block.end.isoformat(),
            reason="has passed: nothing can be launched in this block any more",
            fix="name the next block",
        )
    if block and block.start and block.start > now:
        yield Problem(
            key=f"{key}.capacityBlock.start",
            value=block.start.isoformat(),
            reason="is still to come: until then no job starts, and Batch cancels those that wait "
            "longer than runnableLimitMinutes",
            fix="submit jobs when the block has begun, or shortly before",
        )


def _shared_reserve(
    stack: StackSettings, name: str, settings: PlacementSettings
) -> Iterator[Problem]:
    groups = [each for each in stack.batch.groups if each.placement == name] if stack.batch else []
    wanted = sum(group.max_nodes for group in groups)
    if settings.reserve and wanted > settings.reserve.count:
        yield Problem(
            key=f"{PLACEMENT}.{name}.reserve.count",
            value=settings.reserve.count,
            reason=f"is less than the {wanted} nodes that {len(groups)} groups may have together; "
            "what does not fit waits",
            fix="raise count, lower maxNodes, or let the groups take turns",
        )


def _zone_without_offer(
    stack: StackSettings, keys: Keys, group: BatchGroupSettings
) -> Iterator[Problem]:
    zone = stack.zone_of(group)
    offering = zones_offering(region=stack.region, instance_type=group.instance_type)
    if offering and zone not in offering:
        yield Problem(
            key=keys.group(group, "availabilityZone"),
            value=zone,
            reason=f"does not offer {group.instance_type} in the account that the catalogue comes "
            f"from ({', '.join(offering)} do); zone names differ from account to account",
            fix="compare zone ids in your account, or choose another zone",
        )


def _no_price(stack: StackSettings, keys: Keys, group: BatchGroupSettings) -> Iterator[Problem]:
    on_demand = isinstance(stack.placement_for(group).capacity, OnDemand)
    in_blocks = "capacity-block" in group.type_facts.usage_classes
    if (
        on_demand
        and in_blocks
        and PriceBook(stack.region).instance(group.instance_type).usd is None
    ):
        yield Problem(
            key=keys.group(group, "instanceType"),
            value=group.instance_type,
            reason="has no on-demand price in the price list; AWS may not sell it on demand",
            fix="use a reservation or a Capacity Block, or try a launch first",
        )

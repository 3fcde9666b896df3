"""Rules between the network and what lives in it."""

from collections import defaultdict
from collections.abc import Iterator

from settings.batch import BatchGroupSettings
from settings.errors import PROJECT, Problem
from settings.keys import Keys
from settings.network import ExistingNetwork, NetworkSettings
from settings.stack import StackSettings

NETWORK = f"{PROJECT}:network"


def network_problems(stack: StackSettings, keys: Keys) -> Iterator[Problem]:
    """What cannot work between the network and the groups."""
    network = stack.network
    if network is None:
        if stack.batch and "network" not in keys.sections:
            yield Problem(
                key=NETWORK,
                value=None,
                reason=f"is missing, and {PROJECT}:batch needs it",
                fix="add availabilityZones for a new VPC, or existing, or stack",
            )
        return
    yield from _zones_outside_region(stack, network)
    if network.existing:
        yield from _public_subnets(network.existing)
        yield from _zones_not_as_stated(stack, network.existing)
        yield from _subnets_elsewhere(stack, network.existing)
    if stack.batch:
        for group in stack.batch.groups:
            yield from _zone_without_subnet(stack, keys, group)
            yield from _public_addresses(stack, keys, group)
        yield from _subnets_too_small(stack, keys)


def network_warnings(stack: StackSettings) -> Iterator[Problem]:
    """What the network leaves to the person who deploys."""
    existing = stack.network.existing if stack.network else None
    if existing is None:
        return
    yield Problem(
        key=f"{NETWORK}.existing.vpcId",
        value=existing.vpc_id,
        reason="has a default security group that this stack leaves alone, and the tasks of "
        "multi-node jobs use it",
        fix="let that group admit all traffic from itself and send traffic to anywhere "
        "(https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html)",
    )
    for index, subnet in enumerate(stack.private_subnets):
        if subnet.addresses and subnet.free_addresses is not None:
            taken = subnet.addresses - subnet.free_addresses
            if taken > subnet.addresses // 2:
                yield Problem(
                    key=f"{NETWORK}.existing.privateSubnetIds[{index}]",
                    value=subnet.subnet_id,
                    reason=f"has {subnet.free_addresses} of {subnet.addresses} addresses free now",
                    fix="make sure that nodes which are still to come find room",
                )


def _zones_outside_region(stack: StackSettings, network: NetworkSettings) -> Iterator[Problem]:
    stated = network.existing.availability_zones if network.existing else ()
    key = f"{NETWORK}.existing.availabilityZones" if stated else f"{NETWORK}.availabilityZones"
    for index, zone in enumerate(stated or network.availability_zones):
        if not zone.startswith(stack.region):
            yield Problem(
                key=f"{key}[{index}]",
                value=zone,
                reason=f"is not in the region {stack.region}",
                fix=f"name a zone like {stack.region}a, or change aws:region",
            )


def _public_subnets(existing: ExistingNetwork) -> Iterator[Problem]:
    for index, subnet in enumerate(existing.private_subnet_ids):
        if subnet in existing.public_subnet_ids:
            yield Problem(
                key=f"{NETWORK}.existing.privateSubnetIds[{index}]",
                value=subnet,
                reason="is listed as a public subnet, too",
                fix="list a subnet whose traffic leaves through a NAT gateway: nodes with several "
                "network interfaces get no public address",
            )


def _subnets_elsewhere(stack: StackSettings, existing: ExistingNetwork) -> Iterator[Problem]:
    for index, subnet in enumerate(stack.private_subnets):
        if subnet.vpc_id not in (None, existing.vpc_id):
            yield Problem(
                key=f"{NETWORK}.existing.privateSubnetIds[{index}]",
                value=subnet.subnet_id,
                reason=f"is in another VPC, {subnet.vpc_id}",
                fix=f"name a subnet of {existing.vpc_id}, or correct vpcId",
            )


def _zones_not_as_stated(stack: StackSettings, existing: ExistingNetwork) -> Iterator[Problem]:
    for index, (stated, subnet) in enumerate(
        zip(existing.availability_zones, stack.private_subnets, strict=False)
    ):
        if subnet.availability_zone != stated:
            yield Problem(
                key=f"{NETWORK}.existing.availabilityZones[{index}]",
                value=stated,
                reason=f"is not the zone of {subnet.subnet_id}, which is in "
                f"{subnet.availability_zone}",
                fix=f"write {subnet.availability_zone}, or name another subnet",
            )


def _zone_without_subnet(
    stack: StackSettings, keys: Keys, group: BatchGroupSettings
) -> Iterator[Problem]:
    zones = [subnet.availability_zone for subnet in stack.private_subnets]
    if zones and stack.knows_placement_of(group) and stack.zone_of(group) not in zones:
        yield Problem(
            key=keys.group(group, "availabilityZone"),
            value=stack.zone_of(group),
            reason="has no private subnet in the network",
            fix=f"choose one of {', '.join(zones)}, or add the zone to {NETWORK}",
        )


def _public_addresses(
    stack: StackSettings, keys: Keys, group: BatchGroupSettings
) -> Iterator[Problem]:
    if not (group.layout and len(group.layout.interfaces) > 1 and stack.knows_placement_of(group)):
        return
    for subnet in stack.private_subnets:
        if subnet.assigns_public_addresses and subnet.availability_zone == stack.zone_of(group):
            yield Problem(
                key=keys.group(group, "instanceType"),
                value=group.instance_type,
                reason=f"has {len(group.layout.interfaces)} network interfaces, and "
                f"{subnet.subnet_id} assigns public addresses, which EC2 does for one only",
                fix="use a private subnet, or turn off its mapPublicIpOnLaunch",
            )


def _subnets_too_small(stack: StackSettings, keys: Keys) -> Iterator[Problem]:
    wanted: defaultdict[str, int] = defaultdict(int)
    largest: dict[str, BatchGroupSettings] = {}
    for group in stack.batch.groups if stack.batch else ():
        if not (stack.private_subnets and stack.knows_placement_of(group)):
            continue
        zone = stack.zone_of(group)
        addresses = group.max_nodes * group.addresses_per_node
        wanted[zone] += addresses
        rival = largest.get(zone)
        if rival is None or addresses > rival.max_nodes * rival.addresses_per_node:
            largest[zone] = group
    for zone, addresses in wanted.items():
        for subnet in stack.private_subnets:
            if subnet.availability_zone == zone and addresses > (subnet.addresses or addresses):
                group = largest[zone]
                yield Problem(
                    key=keys.group(group, "maxNodes"),
                    value=group.max_nodes,
                    reason=f"is too much for the subnet in {zone}: all groups there take "
                    f"{addresses} addresses ({group.addresses_per_node} for each node of this "
                    f"one, its task included), and it has {subnet.addresses}",
                    fix="lower maxNodes, or use a larger subnet or cidr",
                )

"""What the machines of a program cost: compute environments, node groups, Auto Scaling, instances.

All of them come down to a fleet: how many nodes of which types, started with which settings.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabric.catalogue import UnknownInstanceType, find_instance_type
from fabric.price_lines import PriceBook, PriceLine, Unit, price_line, product, together, total
from fabric.rows import (
    Row,
    dependencies,
    inputs,
    mapping,
    mappings,
    name,
    number,
    text,
    texts,
    true,
)

_LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
_GROUP_MEMBER = "aws:resourcegroups/resource:Resource"
_CAPACITY_BLOCK = "capacity-block"

_WHY_NO_HOURLY_PRICE = {
    "": "",
    "on-demand": "",
    "spot": "Spot price, which follows demand",
    _CAPACITY_BLOCK: "Capacity Block, paid up front",
}
"""By market type: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceMarketOptionsRequest.html"""


class Program:
    """The rows of a program, by URN, with the prices of its region."""

    def __init__(self, rows: Sequence[Row], *, region: str) -> None:
        self.prices = PriceBook(region)
        self._rows = {text(row.get("urn")): row for row in rows}
        self._members: dict[str, list[str]] = {}  # resource group -> what was put into it
        for row in rows:
            if row.get("type") == _GROUP_MEMBER:
                for group in dependencies(row, "groupArn"):
                    self._members.setdefault(group, []).extend(dependencies(row, "resourceArn"))

    def launch_template(self, row: Row, key: str) -> Row | None:
        """The launch template that the input `key` of a row refers to, if this program makes it."""
        found = (self._rows.get(urn, {}) for urn in dependencies(row, key))
        return next((row for row in found if row.get("type") == _LAUNCH_TEMPLATE), None)

    def reservations(self, template: Row) -> list[Row]:
        """Capacity reservations of this program that a launch template targets, also in a group."""
        reached = dict.fromkeys(dependencies(template, "capacityReservationSpecification"))
        queue = list(reached)
        for urn in queue:  # grows while it is read
            waits_for = texts(self._rows.get(urn, {}).get("dependencies"))
            new = dict.fromkeys((*waits_for, *self._members.get(urn, ()))).keys() - reached.keys()
            reached |= dict.fromkeys(new)
            queue.extend(new)
        found = [self._rows.get(urn, {}) for urn in sorted(reached)]
        return [row for row in found if row.get("type") == _RESERVATION]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Fleet:
    """Nodes of one resource, from `idle` to `full` of them, or so many vCPUs if `in_vcpus`.

    `settings` is the launch template's row, with the resource's own settings on top.
    """

    row: Row
    settings: Row
    types: tuple[str, ...]
    idle: float | None
    full: float | None
    market: str
    unpriced: str = ""
    in_vcpus: bool = False

    def nodes(self, amount: float | None, instance_type: str) -> float | None:
        """How many nodes of a type `amount` stands for."""
        if not self.in_vcpus or not amount:
            return amount
        try:
            return float(math.ceil(amount / find_instance_type(instance_type).vcpus))
        except UnknownInstanceType:
            return None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Target:
    """The capacity reservations, or their groups, that a fleet is launched into.

    `confined` fleets start nowhere else: only a group without `capacity-reservations-only` lets the
    rest start on demand. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
    """

    names: str
    confined: bool


def compute_environment(program: Program, row: Row) -> Iterator[PriceLine]:
    """An AWS Batch compute environment; the instances of an unmanaged one are not its own."""
    resources = mapping(inputs(row).get("computeResources"))
    if not resources:
        return
    kind = text(resources.get("type"))
    template = program.launch_template(row, "computeResources")
    fargate = "Fargate, priced by vCPU and memory" if kind.startswith("FARGATE") else ""
    yield from _fleet_lines(
        program,
        _Fleet(
            row=row,
            settings=template or {},
            types=tuple(texts(resources.get("instanceTypes"))),
            idle=number(resources.get("minVcpus") or 0),
            full=number(resources.get("maxVcpus")),
            market="spot" if kind == "SPOT" else "",
            unpriced=fargate or _from_elsewhere(resources, template),
            in_vcpus=True,
        ),
    )


def node_group(program: Program, row: Row) -> Iterator[PriceLine]:
    """An EKS managed node group, from its minSize to its maxSize."""
    own, scaling = inputs(row), mapping(inputs(row).get("scalingConfig"))
    template = program.launch_template(row, "launchTemplate")
    yield from _fleet_lines(
        program,
        _Fleet(
            row=row,
            settings=template or {},
            types=tuple(texts(own.get("instanceTypes"))) or _own_type(template or {}),
            idle=number(scaling.get("minSize")),
            full=number(scaling.get("maxSize")),
            market=text(own.get("capacityType")).lower().replace("_", "-"),
            unpriced=_from_elsewhere(own, template),
        ),
    )


def auto_scaling_group(program: Program, row: Row) -> Iterator[PriceLine]:
    """An Auto Scaling group, from its minSize to its maxSize."""
    own = inputs(row)
    policy = mapping(own.get("mixedInstancesPolicy"))
    overrides = mappings(mapping(policy.get("launchTemplate")).get("overrides"))
    template = program.launch_template(row, "mixedInstancesPolicy" if policy else "launchTemplate")
    settings = _on_top_of(template or {}, row)
    weighted = any("weightedCapacity" in override for override in overrides)
    yield from _fleet_lines(
        program,
        _Fleet(
            row=row,
            settings=settings,
            types=tuple(text(one.get("instanceType")) for one in overrides) or _own_type(settings),
            idle=number(own.get("minSize")),
            full=number(own.get("maxSize")),
            market="spot" if _buys_spot(policy) else "",
            unpriced="sizes in weights"
            if weighted
            else _from_elsewhere({**own, **policy}, template),
        ),
    )


def instance(program: Program, row: Row) -> Iterator[PriceLine]:
    """A single EC2 instance, which runs idle, too."""
    template = program.launch_template(row, "launchTemplate")
    settings = _on_top_of(template or {}, row)
    yield from _fleet_lines(
        program,
        _Fleet(
            row=row,
            settings=settings,
            types=_own_type(settings),
            idle=1.0,
            full=1.0,
            market="",
            unpriced=_from_elsewhere(inputs(row), template),
        ),
    )


def _fleet_lines(program: Program, fleet: _Fleet) -> Iterator[PriceLine]:
    """The instances, by their dearest type, and what comes with each of them."""

    def cost_at_full(instance_type: str) -> float:
        price = program.prices.instance(instance_type).usd
        cost = product(price, fleet.nodes(fleet.full, instance_type))
        return math.inf if cost is None else cost

    dearest = max(fleet.types, key=cost_at_full, default="")
    idle, full = fleet.nodes(fleet.idle, dearest), fleet.nodes(fleet.full, dearest)
    yield _instances(program, fleet, dearest, idle=idle, full=full)
    for what, each in _parts_of_a_node(program.prices, inputs(fleet.settings)):
        yield price_line(fleet.row, f"{what} of each node", unit=each, idle=idle, full=full)


def _instances(
    program: Program, fleet: _Fleet, dearest: str, *, idle: float | None, full: float | None
) -> PriceLine:
    settings = inputs(fleet.settings)
    market = fleet.market or text(mapping(settings.get("instanceMarketOptions")).get("marketType"))
    why_unpriced = (
        fleet.unpriced
        or _WHY_NO_HOURLY_PRICE.get(market, f"no price known for the market {market}")
        or _other_tenancy(settings)
    )
    unit = Unit(usd=None, note=why_unpriced) if why_unpriced else program.prices.instance(dearest)
    notes = [f"the dearest of {', '.join(fleet.types)}"] if len(fleet.types) > 1 else []
    # A block is paid for whether nodes run in it or not: even no nodes are not known to be free.
    is_block = market == _CAPACITY_BLOCK
    target = None if is_block else _target(settings)
    made_here = program.reservations(fleet.settings) if target else []
    if target and made_here:
        notes.append(f"runs in the reservation {', '.join(map(name, made_here))}, billed there")
        places = total(number(inputs(row).get("instanceCount")) for row in made_here)
        idle, full = _outside(idle, places, target), _outside(full, places, target)
    elif target:
        notes.append(f"reservation {target.names} billed while it exists, size not known here")
    return price_line(
        fleet.row,
        f"{dearest or 'unknown type'} instance",
        unit=unit,
        idle=idle,
        full=full,
        notes=notes,
        idle_is_known=not is_block and (target is None or bool(made_here)),
        full_is_known=not is_block,
    )


def _outside(nodes: float | None, places: float | None, target: _Target) -> float | None:
    """How many nodes find no place in the reservations and run, billed, outside."""
    if target.confined:
        return 0.0
    return None if nodes is None or places is None else max(0.0, nodes - places)


def _target(settings: Row) -> _Target | None:
    spec = mapping(settings.get("capacityReservationSpecification"))
    target = mapping(spec.get("capacityReservationTarget"))
    by_key = {key: [one for one in (text(v), *texts(v)) if one] for key, v in target.items()}
    names = ", ".join(one for ones in by_key.values() for one in ones)
    if not names:
        return None
    by_group = any(ones for key, ones in by_key.items() if "ResourceGroup" in key)
    only = spec.get("capacityReservationPreference") == "capacity-reservations-only"
    return _Target(names=names, confined=only or not by_group)


def _parts_of_a_node(prices: PriceBook, settings: Row) -> Iterator[tuple[str, Unit]]:
    """The volumes and public addresses that the settings give to each node."""
    mapped = (mapping(one.get("ebs")) for one in mappings(settings.get("blockDeviceMappings")))
    listed = (mapping(settings.get("rootBlockDevice")), *mappings(settings.get("ebsBlockDevices")))
    volumes = [volume for volume in (*mapped, *listed) if volume]
    if volumes:
        sizes = [f"{v.get('volumeSize')} GB {v.get('volumeType')}" for v in volumes]
        units = [
            prices.volume(size=v.get("volumeSize"), kind=v.get("volumeType"), settings=v)
            for v in volumes
        ]
        yield f"EBS {' + '.join(sizes)}", together(units)
    interfaces = (settings, *mappings(settings.get("networkInterfaces")))
    public = sum(true(one.get("associatePublicIpAddress")) for one in interfaces)
    if public:
        yield "public IPv4 address", prices.unit("public-ipv4").times(public)


def _buys_spot(policy: Row) -> bool:
    """Whether a mixed instances policy leaves some of the nodes to Spot; without a share, none.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
    """
    distribution = mapping(policy.get("instancesDistribution"))
    return number(distribution.get("onDemandPercentageAboveBaseCapacity", 100)) != 100


def _own_type(settings: Row) -> tuple[str, ...]:
    instance_type = text(inputs(settings).get("instanceType"))
    return (instance_type,) if instance_type else ()


def _other_tenancy(settings: Row) -> str:
    placement = mapping(settings.get("placement"))
    tenancy = text(placement.get("tenancy")) or text(settings.get("tenancy")) or "default"
    return "" if tenancy == "default" else f"no price known for {tenancy} tenancy"


def _from_elsewhere(own: Row, template: Row | None) -> str:
    """Why a fleet has no price when its launch template is not in the program to be read."""
    names_one = bool(mapping(own.get("launchTemplate")))
    return "its launch template is not in this program" if names_one and template is None else ""


def _on_top_of(template: Row, row: Row) -> Row:
    """The launch template's row with what the resource itself says on top."""
    merged = dict(template)
    for key in ("inputs", "propertyDependencies"):
        merged[key] = {**mapping(template.get(key)), **mapping(row.get(key))}
    merged["dependencies"] = [*texts(template.get("dependencies")), *texts(row.get("dependencies"))]
    return merged

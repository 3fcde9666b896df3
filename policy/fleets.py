"""Fleets: nodes as their launcher and its launch template describe them together.

A fleet is one compute environment, node group, Auto Scaling group or instance. A launch template
that nothing in its program launches counts as a fleet of its own: somebody else launches it.
Where several resources could be the one that an input came from, none is taken for it.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from fabric.catalogue import InstanceType
from fabric.rows import Row, at, inputs, mapping, mappings, number, text, texts
from policy.nodes import interfaces, known_types
from policy.program import Program
from policy.reservations import Target, target_of
from policy.tokens import (
    AUTO_SCALING_GROUP,
    BATCH_ENVIRONMENT,
    INSTANCE,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
    PLACEMENT_GROUP,
    SUBNET,
)
from policy.values import UNKNOWN, is_unknown

SUBNET_PATHS: Mapping[str, str] = {
    AUTO_SCALING_GROUP: "vpcZoneIdentifiers",
    BATCH_ENVIRONMENT: "computeResources.subnets",
    INSTANCE: "subnetId",
    NODE_GROUP: "subnetIds",
}
"""The input of each type of launcher that names its subnets."""

LAUNCHERS = frozenset(SUBNET_PATHS)
"""The types of resources that launch nodes into subnets."""

FLEETS = LAUNCHERS | {LAUNCH_TEMPLATE}

_OWN_PLACEMENT = {
    AUTO_SCALING_GROUP: ("placementGroup",),
    BATCH_ENVIRONMENT: ("computeResources.placementGroup",),
    INSTANCE: ("placementGroup", "placementGroupId"),
    LAUNCH_TEMPLATE: ("placement.groupName", "placement.groupId"),
}
_OWN_TEMPLATE = "launchTemplateSpecification"
_MIXED_TEMPLATE = f"mixedInstancesPolicy.launchTemplate.{_OWN_TEMPLATE}"
OVERRIDES = "mixedInstancesPolicy.launchTemplate.overrides"


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """The placement group of a fleet: where it is named, its name or id, and its row if made here.

    `path` is an input of the fleet's own row; `value` is None while unknown.
    """

    path: str
    value: str | None
    group: Row | None

    @property
    def strategy(self) -> str:
        """`cluster`, `partition` or `spread`; empty where the group is not of this program."""
        return text(inputs(self.group or {}).get("strategy"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Zones:
    """The Availability Zones that a fleet is seen to launch in; `complete` if there are no more."""

    path: str
    names: tuple[str, ...]
    complete: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """The nodes of one resource; `template` is its launch template if this program makes it."""

    row: Row
    template: Row | None
    program: Program

    @property
    def kind(self) -> str:
        """The type token of the launcher."""
        return text(self.row.get("type"))

    @property
    def template_path(self) -> str:
        """The input that names the launch template."""
        if self.kind == BATCH_ENVIRONMENT:
            return "computeResources.launchTemplate"
        own = mapping(inputs(self.row).get("mixedInstancesPolicy"))
        return _MIXED_TEMPLATE if self.kind == AUTO_SCALING_GROUP and own else "launchTemplate"

    @property
    def is_whole(self) -> bool:
        """Whether everything that it launches with is here: no template, or a visible one."""
        return self.template is not None or not at(self.row, self.template_path)

    @property
    def type_paths(self) -> list[tuple[str, str]]:
        """The instance types it may launch, each with its path in the launcher."""
        own = inputs(self.row)
        if self.kind == BATCH_ENVIRONMENT:
            return _numbered("computeResources.instanceTypes", at(self.row, "computeResources"))
        if self.kind == AUTO_SCALING_GROUP:
            found = [
                (f"{OVERRIDES}[{position}].instanceType", _type(one))
                for position, one in enumerate(_overrides(self.row))
            ]
        else:
            found = _numbered("instanceTypes", own) or [("instanceType", _type(own))]
        named = [(path, name) for path, name in found if name]
        from_template = _type(inputs(self.template or {}))
        return named or ([(self.template_path, from_template)] if from_template else [])

    @property
    def types(self) -> list[InstanceType]:
        """The facts of those of its instance types that the catalogue knows, by name."""
        return known_types([name for _, name in self.type_paths])

    @property
    def market(self) -> str | None:
        """The purchase option, in the words of `marketType`; None where it is not known yet."""
        own = inputs(self.row)
        if self.kind == BATCH_ENVIRONMENT:
            return self._batch_market()
        if self.kind == NODE_GROUP:
            if is_unknown(own.get("capacityType")):
                return None
            bought = text(own.get("capacityType")).lower().replace("_", "-")
            if bought not in ("", "on-demand"):
                return bought
        if self.kind == AUTO_SCALING_GROUP and _mixes_spot(self.row):
            return "spot"
        return _market(self.row) or (
            (_market(self.template or {}) or "on-demand") if self._market_is_seen() else None
        )

    @property
    def uses_efa(self) -> bool:
        """Whether the launch template gives its nodes an Elastic Fabric Adapter."""
        return self.template is not None and any(one.is_efa for one in interfaces(self.template))

    @property
    def placement(self) -> Placement | None:
        """The placement group of its nodes: the launcher's own, else the launch template's."""
        own = _placement(self.row, self.program)
        if own or self.template is None or self.template is self.row:
            return own
        given = _placement(self.template, self.program)
        if given is None:
            return None
        return Placement(path=self.template_path, value=given.value, group=given.group)

    @property
    def is_unplaced(self) -> bool:
        """Whether its nodes are sure to launch outside any placement group."""
        said = [inputs(row).get("placement") for row in (self.row, self.template or {})]
        hidden = UNKNOWN in (*said, inputs(self.row).get("computeResources"))
        return self.is_whole and not hidden and self.placement is None

    @property
    def target(self) -> Target | None:
        """The capacity reservations that it launches into: its own word, else the template's."""
        return target_of(self.row, self.program) or (
            target_of(self.template, self.program) if self.template is not None else None
        )

    @property
    def reservations(self) -> list[Row]:
        """The on-demand reservations of its program that it targets."""
        return self.target.reservations if self.target else []

    @property
    def zones(self) -> Zones:
        """The Availability Zones it names itself, or of its subnets that this program makes."""
        path = SUBNET_PATHS.get(self.kind, "")
        own_zone = text(inputs(self.row).get("availabilityZone"))
        if self.kind == INSTANCE and own_zone:
            return Zones(path="availabilityZone", names=(own_zone,), complete=True)
        listed: Any = at(self.row, path) if path else None
        if self.kind == AUTO_SCALING_GROUP and not listed:
            named = tuple(texts(inputs(self.row).get("availabilityZones")))
            return Zones(path="availabilityZones", names=named, complete=bool(named))
        count = len(cast("list[Any]", listed)) if isinstance(listed, list) else 1
        subnets = self.program.linked(self.row, path.partition(".")[0], SUBNET) if listed else []
        if len(subnets) > count:  # linked to more than it takes: which of them is not known
            subnets = []
        names = [name for one in subnets if (name := text(inputs(one).get("availabilityZone")))]
        return Zones(path=path, names=tuple(sorted(set(names))), complete=len(names) == count)

    @property
    def fewest(self) -> tuple[str, int] | None:
        """The input that keeps nodes running, and how many; None where either is unknown."""
        return self._nodes("minVcpus", "minSize", math.ceil)

    @property
    def most(self) -> tuple[str, int] | None:
        """The input that limits the nodes, and to how many; None where either is unknown."""
        return self._nodes("maxVcpus", "maxSize", math.floor)

    def _batch_market(self) -> str | None:
        """Of a template's market, Batch takes a Capacity Block alone.

        https://docs.aws.amazon.com/batch/latest/userguide/launch-templates.html
        https://aws.amazon.com/blogs/hpc/how-to-use-capacity-blocks-for-ml-with-aws-batch/
        """
        kind = text(at(self.row, "computeResources.type"))
        if kind != "EC2" or not self._market_is_seen():
            return "spot" if kind == "SPOT" else None
        given = _market(self.template or {})
        return given if given == "capacity-block" else "on-demand"

    def _nodes(
        self, vcpus: str, size: str, whole: Callable[[float], int]
    ) -> tuple[str, int] | None:
        if self.kind == BATCH_ENVIRONMENT:
            path = f"computeResources.{vcpus}"
            types = self.types
            if not types or len(types) < len({name for _, name in self.type_paths}):
                return None
            amount = number(at(self.row, path))
            each = min(one.vcpus for one in types)
            return None if amount is None else (path, whole(amount / each))
        path = f"scalingConfig.{size}" if self.kind == NODE_GROUP else size
        amount = 1.0 if self.kind == INSTANCE else number(at(self.row, path))
        return None if amount is None else (path, int(amount))

    def _market_is_seen(self) -> bool:
        said = [inputs(row).get("instanceMarketOptions") for row in (self.row, self.template or {})]
        return self.is_whole and not any(is_unknown(one) for one in said)


def fleet_of(row: Row, program: Program) -> Fleet | None:
    """The fleet of a launcher, or of a launch template that this program does not launch."""
    if row.get("type") == LAUNCH_TEMPLATE:
        launched = any(program.users(row, *LAUNCHERS))
        return None if launched else Fleet(row=row, template=row, program=program)
    if row.get("type") not in LAUNCHERS:
        return None
    keys = ("computeResources", "launchTemplate", "mixedInstancesPolicy")
    used = [key for key in keys if key in inputs(row)]
    templates = [one for key in used for one in program.linked(row, key, LAUNCH_TEMPLATE)]
    only = {text(one.get("urn")): one for one in templates}
    is_one = len(only) == 1 and not any(one.get(_OWN_TEMPLATE) for one in _overrides(row))
    template = next(iter(only.values())) if is_one else None
    return Fleet(row=row, template=template, program=program)


def fleets(program: Program) -> Iterator[Fleet]:
    """Every launcher's fleet."""
    for row in program.of_type(*sorted(LAUNCHERS)):
        fleet = fleet_of(row, program)
        if fleet is not None:
            yield fleet


def known(value: object) -> object:
    """A value as a finding shows it: None where something in it is unknown."""
    return None if is_unknown(value) else value


def _numbered(path: str, holder: object) -> list[tuple[str, str]]:
    key = path.rpartition(".")[2]
    names = texts(mapping(holder).get(key))
    return [(f"{path}[{position}]", name) for position, name in enumerate(names)]


def _overrides(row: Row) -> list[Mapping[str, Any]]:
    """The instance types of an Auto Scaling group's mix; each may name a template of its own."""
    return mappings(at(row, OVERRIDES))


def _type(settings: Mapping[str, Any]) -> str:
    return text(settings.get("instanceType"))


def _market(row: Row) -> str:
    return text(at(row, "instanceMarketOptions.marketType"))


def _mixes_spot(row: Row) -> bool:
    """Whether a mixed instances policy leaves nodes to Spot; without a share it leaves none.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
    """
    share = at(
        row, "mixedInstancesPolicy.instancesDistribution.onDemandPercentageAboveBaseCapacity"
    )
    percentage = number(share)
    return percentage is not None and percentage < 100


def _placement(row: Row, program: Program) -> Placement | None:
    for path in _OWN_PLACEMENT.get(text(row.get("type")), ()):
        value = at(row, path)
        if text(value) or is_unknown(value):
            return Placement(path=path, value=text(value) or None, group=_group(row, path, program))
    return None


def _group(row: Row, path: str, program: Program) -> Row | None:
    """The row of the placement group, by link if there is just one, else by its literal name."""
    linked = program.linked(row, path.partition(".")[0], PLACEMENT_GROUP)
    name = text(at(row, path))
    named = [
        one for one in program.of_type(PLACEMENT_GROUP) if inputs(one).get("name") == name != ""
    ]
    found = linked if len(linked) == 1 else named
    return found[0] if found else None

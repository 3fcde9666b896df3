"""Who launches nodes: of which instance types, from which templates, into which subnets."""

from typing import cast

from fabric.catalogue import InstanceType
from fabric.rows import Row, at, text
from policy.fleets import LAUNCHERS, SUBNET_PATHS, Fleet, fleet_of
from policy.nodes import Interface, interfaces, known_types
from policy.program import Program
from policy.tokens import SUBNET


def subnets_path(launcher: Row) -> str:
    """The path of the input that names the subnets."""
    return SUBNET_PATHS[text(launcher.get("type"))]


def subnets(launcher: Row, program: Program) -> list[Row]:
    """The subnets of this program that nodes are launched into."""
    return program.linked(launcher, subnets_path(launcher).partition(".")[0], SUBNET)


def names_other_subnets(launcher: Row, program: Program) -> bool:
    """Whether it may name subnets that are not resources of this program."""
    value: object = at(launcher, subnets_path(launcher))
    if not isinstance(value, list):
        return True
    return len(cast("list[object]", value)) > len(subnets(launcher, program))


def templates(launcher: Row, program: Program) -> list[Row]:
    """The launch template of this program that nodes are launched from; empty if there is none."""
    fleet = fleet_of(launcher, program)
    return [fleet.template] if fleet and fleet.template else []


def node_interfaces(launcher: Row, program: Program) -> list[Interface]:
    """The network interfaces of a node; empty where its template names none."""
    return [each for template in templates(launcher, program) for each in interfaces(template)]


def type_names(launcher: Row, program: Program) -> list[str]:
    """The instance types that nodes may have, as the launcher or else its template names them."""
    fleet = fleet_of(launcher, program)
    return [name for _, name in fleet.type_paths] if fleet else []


def node_types(launcher: Row, program: Program) -> list[InstanceType]:
    """The facts of the instance types that the catalogue knows."""
    return known_types(type_names(launcher, program))


def template_fleets(template: Row, program: Program) -> list[Fleet]:
    """The fleets launched from a template; the template alone where nothing here is sure to."""
    used_by = [fleet_of(row, program) for row in program.users(template, *LAUNCHERS)]
    urn = text(template.get("urn"))
    launched = [one for one in used_by if one and text((one.template or {}).get("urn")) == urn]
    return launched or [Fleet(row=template, template=template, program=program)]


def instance_types(template: Row, program: Program) -> list[InstanceType]:
    """The known instance types of a template's nodes, as its launchers or else itself name them."""
    return fleet_types(template_fleets(template, program))


def fleet_types(fleets: list[Fleet]) -> list[InstanceType]:
    """The known instance types of several fleets, each once."""
    return known_types({name for fleet in fleets for _, name in fleet.type_paths})


def efa_interfaces(template: Row) -> list[Interface]:
    """The interfaces of a template that have an EFA device."""
    return [each for each in interfaces(template) if each.is_efa]


def all_known(every: list[Interface]) -> bool:
    """Whether the slot and the type of each interface are known."""
    return all(
        each.kind != "unknown" and each.card is not None and each.device is not None
        for each in every
    )

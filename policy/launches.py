"""Who launches nodes: of which instance types, from which templates, into which subnets."""

from collections.abc import Mapping
from typing import cast

from fabric.catalogue import InstanceType
from fabric.rows import Row, dependencies, inputs, mapping, text, texts
from policy.nodes import Interface, interfaces, known_types, launched_types
from policy.program import Program
from policy.tokens import (
    AUTO_SCALING_GROUP,
    BATCH_ENVIRONMENT,
    INSTANCE,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
    SUBNET,
)

_SUBNETS: Mapping[str, str] = {
    AUTO_SCALING_GROUP: "vpcZoneIdentifiers",
    BATCH_ENVIRONMENT: "computeResources.subnets",
    INSTANCE: "subnetId",
    NODE_GROUP: "subnetIds",
}

LAUNCHERS = frozenset(_SUBNETS)
"""The types of resources that launch nodes into subnets."""


def sources(row: Row, key: str) -> list[str]:
    """URNs that one input came from, for certain.

    Unlike `fabric.rows.dependencies`, it names none for a literal beside inputs that have some.
    """
    by_property = mapping(row.get("propertyDependencies"))
    return texts(by_property.get(key)) if by_property else dependencies(row, key)


def subnets_path(launcher: Row) -> str:
    """The path of the input that names the subnets."""
    return _SUBNETS[text(launcher.get("type"))]


def subnets(launcher: Row, program: Program) -> list[Row]:
    """The subnets of this program that nodes are launched into."""
    return program.linked(launcher, subnets_path(launcher).partition(".")[0], SUBNET)


def names_other_subnets(launcher: Row, program: Program) -> bool:
    """Whether it may name subnets that are not resources of this program."""
    value: object = inputs(launcher)
    for key in subnets_path(launcher).split("."):
        value = mapping(value).get(key)
    if not isinstance(value, list):
        return True
    return len(cast("list[object]", value)) > len(subnets(launcher, program))


def templates(launcher: Row, program: Program) -> list[Row]:
    """The launch templates of this program that nodes are launched from."""
    in_batch = launcher.get("type") == BATCH_ENVIRONMENT
    key = "computeResources" if in_batch else "launchTemplate"
    return program.linked(launcher, key, LAUNCH_TEMPLATE)


def node_interfaces(launcher: Row, program: Program) -> list[Interface]:
    """The network interfaces of a node; empty where its template names none."""
    return [each for template in templates(launcher, program) for each in interfaces(template)]


def type_names(launcher: Row, program: Program) -> list[str]:
    """The instance types that nodes may have, as the launcher or else its template names them."""
    named = launched_types(launcher) or texts([inputs(launcher).get("instanceType")])
    return named or [
        name
        for template in templates(launcher, program)
        if (name := text(inputs(template).get("instanceType")))
    ]


def node_types(launcher: Row, program: Program) -> list[InstanceType]:
    """The facts of the instance types that the catalogue knows."""
    return known_types(type_names(launcher, program))


def efa_interfaces(template: Row) -> list[Interface]:
    """The interfaces of a template that have an EFA device."""
    return [each for each in interfaces(template) if each.is_efa]


def all_known(every: list[Interface]) -> bool:
    """Whether the slot and the type of each interface are known."""
    return all(
        each.kind != "unknown" and each.card is not None and each.device is not None
        for each in every
    )

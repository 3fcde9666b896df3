"""Who launches nodes: of which instance types, from which templates, into which subnets."""

from collections.abc import Mapping
from typing import cast

from fabric.catalogue import InstanceType
from fabric.rows import Row, inputs, mapping, text, texts
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

SUBNET_PATHS: Mapping[str, str] = {
    AUTO_SCALING_GROUP: "vpcZoneIdentifiers",
    BATCH_ENVIRONMENT: "computeResources.subnets",
    INSTANCE: "subnetId",
    NODE_GROUP: "subnetIds",
}
"""The input of each type of launcher that names its subnets."""

LAUNCHERS = frozenset(SUBNET_PATHS)
"""The types of resources that launch nodes into subnets."""


def subnets_path(launcher: Row) -> str:
    """The path of the input that names the subnets."""
    return SUBNET_PATHS[text(launcher.get("type"))]


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

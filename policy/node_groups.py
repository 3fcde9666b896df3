"""Managed node groups of EKS and the launch templates that they launch from."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from fabric.catalogue import InstanceType
from fabric.rows import Row, inputs, mapping, text
from policy.program import Program
from policy.tokens import EKS_CLUSTER, LAUNCH_TEMPLATE, NODE_GROUP
from policy.values import UNKNOWN, is_unknown


def template_of(group: Row, program: Program) -> Row | None:
    """The launch template of a node group, if this program makes it."""
    if not inputs(group).get("launchTemplate"):
        return None
    found = program.linked(group, "launchTemplate", LAUNCH_TEMPLATE)
    return found[0] if len(found) == 1 else None


def groups_of(template: Row, program: Program) -> list[Row]:
    """The node groups that launch from a template."""
    users = program.users(template, NODE_GROUP)
    return [group for group in users if template_of(group, program) is template]


def cluster_of(row: Row, program: Program) -> Row | None:
    """The cluster that a resource names in `clusterName`, if this program makes it."""
    name = text(inputs(row).get("clusterName"))
    found = program.linked(row, "clusterName", EKS_CLUSTER) or [
        each for each in program.of_type(EKS_CLUSTER) if name and inputs(each).get("name") == name
    ]
    return found[0] if len(found) == 1 else None


def only_cluster(program: Program) -> Row | None:
    """The cluster of a program that makes just one; charts do not say which they are for."""
    found = list(program.of_type(EKS_CLUSTER))
    return found[0] if len(found) == 1 else None


def misfits(ami_type: str, types: list[InstanceType]) -> Iterator[str]:
    """What an AMI type lacks for instance types; the types say themselves what they have.

    https://docs.aws.amazon.com/eks/latest/userguide/ml-eks-optimized-ami.html
    """
    if ami_type in ("", "CUSTOM") or ami_type.startswith("WINDOWS"):
        return
    architecture = "arm64" if "ARM_64" in ami_type else "x86_64"
    has_neuron = "NEURON" in ami_type or (
        ami_type.startswith("BOTTLEROCKET") and "NVIDIA" not in ami_type
    )
    for each in types:
        if each.architecture != architecture:
            yield f"{ami_type} is for {architecture}, {each.name} is {each.architecture}"
        elif each.nvidia_gpus and not ami_type.endswith("GPU") and "NVIDIA" not in ami_type:
            yield f"{ami_type} has no driver for the {each.nvidia_gpus} GPUs of {each.name}"
        elif each.neuron_devices and not has_neuron:
            yield f"{ami_type} has no driver for the Neuron devices of {each.name}"


def is_accelerated(types: list[InstanceType]) -> bool:
    """Whether any instance type has accelerators that need a driver in the image."""
    return any(each.nvidia_gpus or each.neuron_devices for each in types)


def market_of(template: Row) -> str | None:
    """`capacity-block`, `spot`, or empty; None while unknown."""
    options = inputs(template).get("instanceMarketOptions")
    return None if is_unknown(options) else text(mapping(options).get("marketType"))


def target_of(template: Row) -> Mapping[str, Any] | None:
    """What names a capacity reservation in a template: empty if nothing does, None while unknown.

    A target that is there but not known yet does count as one.
    """
    specification = inputs(template).get("capacityReservationSpecification")
    target: Any = mapping(specification).get("capacityReservationTarget")
    if UNKNOWN in (specification, target):
        return None
    return {key: value for key, value in mapping(target).items() if value}


def user_data_of(template: Row) -> str | None:
    """The user data in the clear; None where there is none, or none that can be read."""
    try:
        data = base64.b64decode(text(inputs(template).get("userData")), validate=True)
        return data.decode() or None
    except (binascii.Error, ValueError):
        return None

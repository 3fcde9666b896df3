"""File systems, and the zones of the nodes that mount them."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from fabric.rows import Row, inputs, text
from policy.fleets import LAUNCHERS
from policy.launches import subnets, templates
from policy.program import Program
from policy.tokens import (
    BATCH_ENVIRONMENT,
    BATCH_JOB_DEFINITION,
    EFS_FILE_SYSTEM,
    EFS_MOUNT_TARGET,
    LAUNCH_TEMPLATE,
    SECURITY_GROUP,
    SUBNET,
)


def zones(rows: Iterable[Row]) -> set[str]:
    """The Availability Zones that subnets name; those that name none are left out."""
    return {zone for row in rows if (zone := text(inputs(row).get("availabilityZone")))}


def clients(file_system: Row, program: Program) -> list[Row]:
    """The launchers whose nodes mount a file system, where the program shows that for certain.

    Their launch template takes something from it. Or a job definition does: then it is the one
    compute environment, as only a submission says which of several a job goes to.
    """
    mounting = program.users(file_system, LAUNCH_TEMPLATE)
    launchers = program.of_type(*sorted(LAUNCHERS))
    found = [row for row in launchers if any(t in mounting for t in templates(row, program))]
    environments = list(program.of_type(BATCH_ENVIRONMENT))
    if program.users(file_system, BATCH_JOB_DEFINITION) and len(environments) == 1:
        found += [row for row in environments if row not in found]
    return found


def client_zones(file_system: Row, program: Program) -> set[str]:
    """The zones of the nodes that mount a file system, as far as subnets show them."""
    return zones(
        subnet for row in clients(file_system, program) for subnet in subnets(row, program)
    )


def mount_targets(file_system: Row, program: Program) -> Iterator[Row]:
    """The mount targets of an EFS file system."""
    for target in program.users(file_system, EFS_MOUNT_TARGET):
        if file_system in program.linked(target, "fileSystemId", EFS_FILE_SYSTEM):
            yield target


def own_zones(row: Row, key: str, program: Program) -> set[str]:
    """The zones of the subnets that one input names."""
    return zones(program.linked(row, key, SUBNET))


def visible_groups(row: Row, key: str, program: Program) -> list[Row]:
    """The security groups of an input; none if it also has groups that are not of this program."""
    listed: Any = inputs(row).get(key)
    groups = program.linked(row, key, SECURITY_GROUP)
    return (
        groups if isinstance(listed, list) and len(groups) == len(cast("list[Any]", listed)) else []
    )

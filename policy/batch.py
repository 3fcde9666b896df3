"""What an AWS Batch compute environment says of its nodes, and who is meant to run on them."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from fabric.rows import Row, inputs, mapping, text
from policy.nodes import interfaces
from policy.program import Program
from policy.tokens import BATCH_ENVIRONMENT, BATCH_JOB_DEFINITION, LAUNCH_TEMPLATE


def compute_resources(environment: Row) -> Mapping[str, Any]:
    """The `computeResources` of a compute environment."""
    return mapping(inputs(environment).get("computeResources"))


def kind(environment: Row) -> str:
    """`EC2`, `SPOT`, `FARGATE`, `FARGATE_SPOT`, or `UNMANAGED`; empty where unknown."""
    if text(inputs(environment).get("type")).upper() == "UNMANAGED":
        return "UNMANAGED"
    return text(compute_resources(environment).get("type")).upper()


def launch_template(environment: Row, program: Program) -> Row | None:
    """The launch template of a compute environment, if the program has it."""
    if not compute_resources(environment).get("launchTemplate"):
        return None
    found = program.linked(environment, "computeResources", LAUNCH_TEMPLATE)
    return found[0] if len(found) == 1 else None


def has_efa(environment: Row, program: Program) -> bool:
    """Whether the launch template of a compute environment asks for EFA."""
    template = launch_template(environment, program)
    return template is not None and any(each.is_efa for each in interfaces(template))


def is_multi_node(definition: Row) -> bool:
    """Whether a job definition is for jobs that run on several nodes."""
    return text(inputs(definition).get("type")).lower() == "multinode"


def multi_node_definitions(program: Program) -> Iterator[Row]:
    """The job definitions for jobs that run on several nodes."""
    return filter(is_multi_node, program.of_type(BATCH_JOB_DEFINITION))


def serves_multi_node(environment: Row, program: Program) -> bool:
    """Whether multi-node jobs are meant for an environment, as far as resources show it.

    Only a submission says which queue a job goes to. EFA on the nodes tells, and so does being the
    one environment of a program that has multi-node definitions.
    """
    return has_efa(environment, program) or (
        any(multi_node_definitions(program))
        and len(list(islice(program.of_type(BATCH_ENVIRONMENT), 2))) == 1
    )

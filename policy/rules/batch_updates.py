"""What happens to AWS Batch compute environments and queues when they change or go."""

import math
import re
from collections.abc import Iterator, Mapping
from itertools import filterfalse, islice
from typing import Any

from fabric.rows import Row, inputs, mapping, name, number, text, true
from policy.batch import compute_resources, kind
from policy.batch_examples import environment, multi_node_job
from policy.examples import resource
from policy.job_definitions import instance_types, is_for_fargate
from policy.nodes import launched_types
from policy.program import Program
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    BATCH_ENVIRONMENT,
    BATCH_JOB_DEFINITION,
    BATCH_JOB_QUEUE,
    IAM_ROLE,
    IAM_ROLE_POLICY,
    IAM_ROLE_POLICY_ATTACHMENT,
    INSTANCE_PROFILE,
)
from policy.values import is_unknown

UPDATE_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/infrastructure-updates.html"
UPDATE_POLICY_PAGE = "https://docs.aws.amazon.com/batch/latest/APIReference/API_UpdatePolicy.html"
ENVIRONMENT_PAGE = "https://www.pulumi.com/registry/packages/aws/api-docs/batch/computeenvironment/"
DEFAULT_MINUTES, LONGEST_MINUTES = 30, 7200  # both by UPDATE_POLICY_PAGE
_SERVICE_LINKED = "aws-service-role/batch."


def _strategy_allows_updates(resources: Mapping[str, Any]) -> bool:
    strategy = resources.get("allocationStrategy")
    return is_unknown(strategy) or text(strategy).upper() not in ("", "BEST_FIT")


def _in_place(subject: Subject) -> Iterator[Finding]:
    if kind(subject.row) not in ("EC2", "SPOT"):
        return
    resources, role = compute_resources(subject.row), text(subject.at("serviceRole"))
    if not _strategy_allows_updates(resources):
        yield Finding(
            path="computeResources.allocationStrategy",
            value=text(resources.get("allocationStrategy")) or None,
            message="BEST_FIT, also the default, allows no update in place",
        )
    if role and _SERVICE_LINKED not in role:
        yield Finding(
            path="serviceRole", value=role, message="is not the service-linked role of Batch"
        )


def _outlive_updates(subject: Subject) -> Iterator[Finding]:
    policy = subject.at("updatePolicy")
    if is_unknown(policy) or true(mapping(policy).get("terminateJobsOnUpdate")):
        return
    if kind(subject.row) not in ("EC2", "SPOT"):
        return
    if not _strategy_allows_updates(compute_resources(subject.row)):
        return
    waits = number(mapping(policy).get("jobExecutionTimeoutMinutes")) or DEFAULT_MINUTES
    longest = _longest_job(subject.row, subject.program)
    needed = min(math.ceil(longest / 60), LONGEST_MINUTES)
    if needed > waits:
        yield Finding(
            path="updatePolicy.jobExecutionTimeoutMinutes",
            value=mapping(policy).get("jobExecutionTimeoutMinutes"),
            message=f"an update ends jobs after {waits:g} minutes, one may run {needed}",
        )


def _longest_job(environment: Row, program: Program) -> float:
    """For how many seconds a job may run that is seen to run here."""
    by_type = program.once(_longest_by_type, lambda: _longest_by_type(program))
    if len(list(islice(program.of_type(BATCH_ENVIRONMENT), 2))) == 1:
        return max(by_type.values(), default=0.0)
    return max((by_type.get(each, 0.0) for each in launched_types(environment)), default=0.0)


def _longest_by_type(program: Program) -> dict[str, float]:
    """The longest timeout in seconds by instance type; jobs that name none are under no name.

    Jobs on Fargate never run on the nodes that an update replaces.
    """
    longest: dict[str, float] = {}
    for definition in filterfalse(is_for_fargate, program.of_type(BATCH_JOB_DEFINITION)):
        timeout = mapping(inputs(definition).get("timeout")).get("attemptDurationSeconds")
        for type_ in instance_types(definition) or {""}:
            longest[type_] = max(longest.get(type_, 0.0), number(timeout) or 0.0)
    return longest


def _replaceable(subject: Subject) -> Iterator[Finding]:
    given = text(subject.at("name"))
    # what Pulumi or the provider make up ends in random digits
    if given and not re.search(r"[0-9a-f]{6,}$", given):
        yield Finding(path="name", value=given, message="is fixed")


def _policies(subject: Subject) -> Iterator[Finding]:
    program, upstream = subject.program, subject.program.upstream(subject.row)
    for role in _roles(subject):
        for attached in program.users(role, IAM_ROLE_POLICY, IAM_ROLE_POLICY_ATTACHMENT):
            urn = text(attached.get("urn"))
            if role in program.linked(attached, "role", IAM_ROLE) and urn not in upstream:
                yield Finding(
                    path="dependsOn",
                    value=name(attached),
                    message=f"a policy of role {name(role)} may go before the environment does",
                )


def _roles(subject: Subject) -> list[Row]:
    program = subject.program
    roles = subject.linked("computeResources", IAM_ROLE)
    if subject.at("serviceRole"):
        roles += subject.linked("serviceRole", IAM_ROLE)
    for profile in subject.linked("computeResources", INSTANCE_PROFILE):
        roles += program.linked(profile, "role", IAM_ROLE)
    return list({text(role.get("urn")): role for role in roles}.values())


def _attached(*, before: bool) -> list[dict[str, Any]]:
    """A service role with its policy, and an environment that waits for it or does not."""
    links = {"serviceRole": ["role"], **({"computeResources": ["policy"]} if before else {})}
    role = {"serviceRole": "arn:aws:iam::123456789012:role/batch"}
    return [
        resource(IAM_ROLE, "role"),
        resource(IAM_ROLE_POLICY_ATTACHMENT, "policy", links={"role": ["role"]}, role="batch"),
        environment(links=links, settings=role),
    ]


_LONG_JOB = multi_node_job(settings={"timeout": {"attemptDurationSeconds": 86400}})

RULES = (
    Rule(
        id="batch-updates-in-place",
        references=("R58",),
        family="batch",
        level="advisory",
        level_because="updates still work, by replacing the environment",
        sentence="A compute environment can be updated in place.",
        why="Only with Batch's service-linked role and a strategy other than BEST_FIT does Batch "
        "change nodes under a running queue; otherwise environment and queue are made anew.",
        fix="leave serviceRole out and set allocationStrategy BEST_FIT_PROGRESSIVE",
        url=UPDATE_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_in_place,
        good=[environment(allocationStrategy="BEST_FIT_PROGRESSIVE")],
        bad=[environment()],
    ),
    Rule(
        id="batch-jobs-outlive-updates",
        references=("R59",),
        family="batch",
        level="mandatory",
        level_because="an update ends running jobs without a word",
        sentence="An update waits as long as the longest job of the environment may run.",
        why="A job still running jobExecutionTimeoutMinutes (30 by default) after an update of "
        "the nodes began is killed with all that it has not saved.",
        fix="set updatePolicy.jobExecutionTimeoutMinutes to the longest timeout, at most 7200",
        url=UPDATE_POLICY_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_outlive_updates,
        whole_program=True,
        good=[
            _LONG_JOB,
            environment(
                allocationStrategy="BEST_FIT_PROGRESSIVE",
                settings={"updatePolicy": {"jobExecutionTimeoutMinutes": 1440}},
            ),
        ],
        bad=[_LONG_JOB, environment(allocationStrategy="BEST_FIT_PROGRESSIVE")],
    ),
    Rule(
        id="batch-replaceable-name",
        references=("R65",),
        family="batch",
        level="advisory",
        level_because="a replacement fails before anything is lost",
        sentence="Names of compute environments and job queues end in something random.",
        why="Pulumi makes the new one before it deletes the old one, and two cannot have one name.",
        fix="leave name out (namePrefix does, too), and have the queue replaced with its "
        "environment: replace_on_changes=['computeEnvironmentOrders']",
        url="https://github.com/pulumi/pulumi-aws/issues/6233",
        types=frozenset({BATCH_ENVIRONMENT, BATCH_JOB_QUEUE}),
        check=_replaceable,
        good=[environment(settings={"name": "training-367defe"})],
        bad=[environment(settings={"name": "training"})],
    ),
    Rule(
        id="batch-waits-for-policies",
        references=("R66",),
        family="batch",
        level="advisory",
        level_because="it runs; destroying it hangs",
        sentence="A compute environment depends on the policies of its roles.",
        why="If a policy is deleted first, Batch cannot clean up and the environment stays "
        "DELETING.",
        fix="list the policies and attachments in the environment's depends_on",
        url=ENVIRONMENT_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_policies,
        whole_program=True,
        good=_attached(before=True),
        bad=_attached(before=False),
    ),
)

"""Job queues of AWS Batch: where they lead, and when they give up on a job."""

from collections.abc import Iterator
from typing import Any

from fabric.catalogue import InstanceType
from fabric.rows import Row, mappings, number, text
from policy.batch import kind, serves_multi_node
from policy.batch_examples import environment
from policy.examples import resource
from policy.nodes import known_types, launched_types
from policy.rule import Finding, Rule, Subject
from policy.tokens import BATCH_ENVIRONMENT, BATCH_JOB_QUEUE, LAUNCH_TEMPLATE
from policy.values import is_unknown

QUEUE_PAGE = "https://docs.aws.amazon.com/batch/latest/APIReference/API_CreateJobQueue.html"
LIMIT_PAGE = (
    "https://docs.aws.amazon.com/batch/latest/APIReference/API_JobStateTimeLimitAction.html"
)
RUNNABLE_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html"

MOST_ENVIRONMENTS = 3  # QUEUE_PAGE
LEAST_SECONDS, MOST_SECONDS = 600, 86400  # LIMIT_PAGE
REASONS = (  # RUNNABLE_PAGE
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
)
_ORDERS = "computeEnvironmentOrders"
_LIMITS = "jobStateTimeLimitActions"


def _environments(subject: Subject) -> list[Row]:
    return subject.linked(_ORDERS, BATCH_ENVIRONMENT)


def _one_for_multi_node(subject: Subject) -> Iterator[Finding]:
    count = len(mappings(subject.at(_ORDERS)))
    serves = (serves_multi_node(each, subject.program) for each in _environments(subject))
    if count > 1 and any(serves):
        yield Finding(
            path=_ORDERS, value=count, message=f"{count} environments, a multi-node job tries one"
        )


def _size(subject: Subject) -> Iterator[Finding]:
    orders = mappings(subject.at(_ORDERS))
    if len(orders) > MOST_ENVIRONMENTS:
        yield Finding(path=_ORDERS, value=len(orders), message="Batch takes 3 at most")
    places = [number(each.get("order")) for each in orders]
    known = [place for place in places if place is not None]
    if len(set(known)) < len(known):
        yield Finding(
            path=_ORDERS,
            value=[int(place) for place in known],
            message="two environments have the same order",
        )


def _one_kind(subject: Subject) -> Iterator[Finding]:
    environments = _environments(subject)
    kinds = {kind(each) for each in environments} - {"", "UNMANAGED"}
    fargate = {each for each in kinds if each.startswith("FARGATE")}
    if fargate and kinds - fargate:
        yield Finding(path=_ORDERS, value=sorted(kinds), message="EC2 and Fargate do not mix")
    found: set[InstanceType] = set()
    for each in environments:
        found.update(known_types(launched_types(each)))
    architectures = sorted({facts.architecture for facts in found})
    if len(architectures) > 1:
        yield Finding(path=_ORDERS, value=architectures, message="architectures do not mix")


def _limits_valid(subject: Subject) -> Iterator[Finding]:
    for index, limit in enumerate(mappings(subject.at(_LIMITS))):
        path = f"{_LIMITS}[{index}]"
        seconds = number(limit.get("maxTimeSeconds"))
        if seconds is not None and not LEAST_SECONDS <= seconds <= MOST_SECONDS:
            yield Finding(
                path=f"{path}.maxTimeSeconds",
                value=int(seconds),
                message=f"not within {LEAST_SECONDS} and {MOST_SECONDS} seconds",
            )
        for key, allowed in (("state", ("RUNNABLE",)), ("reason", REASONS)):
            value = text(limit.get(key))
            if value and value not in allowed:
                yield Finding(
                    path=f"{path}.{key}", value=value, message=f"not {' or '.join(allowed)}"
                )


def _limits_complete(subject: Subject) -> Iterator[Finding]:
    limits = subject.at(_LIMITS)
    if is_unknown(limits):
        return
    present = {text(each.get("reason")) for each in mappings(limits)}
    missing = [reason for reason in REASONS if reason not in present]
    if missing:
        yield Finding(
            path=_LIMITS,
            value=sorted(present - {""}) or None,
            message="lacks " + ", ".join(missing),
        )


def _queue(*environments: str, **settings: Any) -> dict[str, Any]:
    orders = [
        {"order": order, "computeEnvironment": f"arn:aws:batch:us-east-1:123456789012:{name}"}
        for order, name in enumerate(environments, start=1)
    ]
    links = {_ORDERS: list(environments)}
    return resource(
        BATCH_JOB_QUEUE, "queue", links=links, **{"computeEnvironmentOrders": orders, **settings}
    )


def _limited(*reasons: str, seconds: int = LEAST_SECONDS) -> dict[str, Any]:
    return _queue(
        "environment",
        jobStateTimeLimitActions=[
            {"state": "RUNNABLE", "action": "CANCEL", "reason": reason, "maxTimeSeconds": seconds}
            for reason in reasons
        ],
    )


_TWO_WITH_EFA = [
    resource(LAUNCH_TEMPLATE, "template", networkInterfaces=[{"interfaceType": "efa"}]),
    *(
        environment(each, links={"computeResources": ["template"]}, launchTemplate={"version": "1"})
        for each in ("first", "second")
    ),
]

RULES = (
    Rule(
        id="batch-one-environment-per-queue",
        references=("R51",),
        family="batch",
        level="advisory",
        level_because="jobs run on the first environment; the others only look like a way out",
        sentence="A queue for multi-node jobs leads to one compute environment.",
        why="Batch moves no multi-node job on to the next environment when capacity is lacking.",
        fix="make a queue for each environment",
        url=RUNNABLE_PAGE,
        types=frozenset({BATCH_JOB_QUEUE}),
        check=_one_for_multi_node,
        whole_program=True,
        good=[*_TWO_WITH_EFA, _queue("first")],
        bad=[*_TWO_WITH_EFA, _queue("first", "second")],
    ),
    Rule(
        id="batch-queue-environments",
        references=("R80",),
        family="batch",
        level="mandatory",
        level_because="Batch refuses the queue",
        sentence="A queue has three compute environments at most, each with an order of its own.",
        why="CreateJobQueue fails.",
        fix="number them 1 to 3, and make a second queue for more",
        url=QUEUE_PAGE,
        types=frozenset({BATCH_JOB_QUEUE}),
        check=_size,
        good=[_queue("a", "b", "c")],
        bad=[_queue("a", "b", "c", "d")],
    ),
    Rule(
        id="batch-queue-one-kind",
        references=("R80",),
        family="batch",
        level="mandatory",
        level_because="Batch refuses the queue",
        sentence="The compute environments of a queue have one architecture, and Fargate or EC2.",
        why="CreateJobQueue fails.",
        fix="make a queue for each kind",
        url=QUEUE_PAGE,
        types=frozenset({BATCH_JOB_QUEUE}),
        check=_one_kind,
        whole_program=True,
        good=[environment("a"), environment("b", type="SPOT"), _queue("a", "b")],
        bad=[environment("a"), environment("b", type="FARGATE"), _queue("a", "b")],
    ),
    Rule(
        id="batch-time-limit-values",
        references=("R72",),
        family="batch",
        level="mandatory",
        level_because="Batch refuses the queue",
        sentence="Time limits of a queue are for RUNNABLE jobs, 10 minutes to a day, and for "
        "reasons that Batch knows.",
        why="CreateJobQueue fails.",
        fix="use RUNNABLE, 600 to 86400 seconds and one of the three reasons of the page",
        url=LIMIT_PAGE,
        types=frozenset({BATCH_JOB_QUEUE}),
        check=_limits_valid,
        good=[_limited(*REASONS)],
        bad=[_limited(*REASONS, seconds=60)],
    ),
    Rule(
        id="batch-time-limits",
        references=("R73",),
        family="batch",
        level="advisory",
        level_because="nothing runs, so only time is lost, and the queue behind the job",
        sentence="A queue gives up on jobs that cannot start, for each of the three reasons.",
        why="A job that no node fits, or for which there is no capacity, stays RUNNABLE for ever "
        "and blocks those behind it.",
        fix="add jobStateTimeLimitActions for the reasons that lack",
        url=RUNNABLE_PAGE,
        types=frozenset({BATCH_JOB_QUEUE}),
        check=_limits_complete,
        good=[_limited(*REASONS)],
        bad=[_limited(*REASONS[:1])],
    ),
)

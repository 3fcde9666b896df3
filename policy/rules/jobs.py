"""Job definitions of AWS Batch: nodes, time and attempts."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from fabric.batch_jobs import MAXIMUM_DEFINITION_BYTES
from fabric.catalogue import InstanceType
from fabric.rows import Row, inputs, mapping, mappings, number, text, texts
from policy.batch import compute_resources, is_multi_node
from policy.batch_examples import environment, multi_node_job, single_node_job
from policy.job_definitions import (
    PROPERTIES,
    covered_nodes,
    instance_types,
    node_ranges,
    properties,
)
from policy.nodes import known_types, launched_types
from policy.program import Program
from policy.rule import Finding, Option, Rule, Subject
from policy.tokens import BATCH_ENVIRONMENT, BATCH_JOB_DEFINITION
from policy.values import is_unknown

NODES_PAGE = "https://docs.aws.amazon.com/batch/latest/APIReference/API_NodeProperties.html"
MULTI_NODE_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html"
DEFINITION_PAGE = (
    "https://docs.aws.amazon.com/batch/latest/APIReference/API_RegisterJobDefinition.html"
)
TIMEOUT_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/job_timeouts.html"
RETRY_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html"

NODE_GROUPS_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/mnp-node-groups.html"
MOST_RANGES, USUAL_NODES = 5, 1000  # both by NODE_GROUPS_PAGE
SHORTEST_TIMEOUT_SECONDS = 60  # TIMEOUT_PAGE
_RANGES = "nodeProperties.nodeRangeProperties"


def _node_ranges(subject: Subject) -> Iterator[Finding]:
    settings, ranges = properties(subject.row, "nodeProperties"), node_ranges(subject.row)
    nodes, main = number(settings.get("numNodes")), number(settings.get("mainNode"))
    if nodes is None:
        return
    most = number(subject.options.get("nodes")) or USUAL_NODES
    if nodes > most:
        path = "nodeProperties.numNodes"
        yield Finding(path=path, value=int(nodes), message=f"the limit is {most:g} nodes")
        return
    if main is not None and main >= nodes:
        yield Finding(
            path="nodeProperties.mainNode",
            value=int(main),
            message=f"the last node of {nodes:g} is {nodes - 1:g}",
        )
    if len(ranges) > MOST_RANGES:
        yield Finding(path=_RANGES, value=len(ranges), message=f"Batch takes {MOST_RANGES} at most")
    covered: set[int] = set()
    for each in ranges:
        span = covered_nodes(each.target, int(nodes))
        if span is None:
            yield Finding(
                path=f"{each.path}.targetNodes",
                value=each.target or None,
                message="is not a range of nodes such as 0: or 1:3",
            )
            return
        covered.update(span)
    missing = sorted(set(range(int(nodes))) - covered)
    if missing:
        yield Finding(
            path=_RANGES,
            value=[each.target for each in ranges],
            message=f"{len(missing)} of {nodes:g} nodes are in no range, node {missing[0]} first",
        )


def _one_type(subject: Subject) -> Iterator[Finding]:
    named = sorted(instance_types(subject.row))
    if len(named) > 1:
        yield Finding(path=_RANGES, value=named, message="ranges name different instance types")


def _launchable(subject: Subject) -> Iterator[Finding]:
    """Speaks only if all environments name types with their sizes, so that nothing is guessed."""
    types = subject.program.once(_all_launched, lambda: _all_launched(subject.program))
    if not types:
        return
    for each in node_ranges(subject.row):
        for name in each.instance_types:
            if name not in types:
                yield Finding(
                    path=each.path,
                    value=name,
                    message=f"the program's environments launch {', '.join(sorted(types))} only",
                )


def _all_launched(program: Program) -> set[str]:
    """The instance types of all environments; empty unless each is sure to name its own."""
    environments = list(program.of_type(BATCH_ENVIRONMENT))
    listed = [compute_resources(each).get("instanceTypes") for each in environments]
    types = {name for each in environments for name in launched_types(each)}
    is_sure = all(texts(each) for each in listed) and not is_unknown(listed)
    return types if is_sure and all("." in name for name in types) else set()


def _room(subject: Subject) -> Iterator[Finding]:
    nodes = number(properties(subject.row, "nodeProperties").get("numNodes"))
    for facts in known_types(instance_types(subject.row)):
        limits = subject.program.once(
            (_limits, facts.name), partial(_limits, facts, subject.program)
        )
        room = [limit // facts.vcpus for limit in limits if limit is not None and facts.vcpus]
        if nodes is not None and room and max(room) < nodes:
            yield Finding(
                path="nodeProperties.numNodes",
                value=int(nodes),
                message=f"maxVcpus has room for {max(room):g} {facts.name} of {facts.vcpus} vCPUs",
            )


def _limits(facts: InstanceType, program: Program) -> set[float | None]:
    return {
        number(compute_resources(each).get("maxVcpus"))
        for each in program.of_type(BATCH_ENVIRONMENT)
        if launched_types(each) == [facts.name]
    }


def _platform(subject: Subject) -> Iterator[Finding]:
    platforms = texts(subject.at("platformCapabilities"))
    if is_multi_node(subject.row) and "FARGATE" in platforms:
        yield Finding(
            path="platformCapabilities", value=platforms, message="Fargate runs no multi-node job"
        )


def _definition_size(subject: Subject) -> Iterator[Finding]:
    values = {key: properties(subject.row, key) for key in PROPERTIES}
    encoded = json.dumps(values, separators=(",", ":"), default=repr)
    size = len(encoded.encode("utf-8", "replace"))
    if size > MAXIMUM_DEFINITION_BYTES:
        yield Finding(
            path=max(values, key=lambda key: len(str(values[key]))),
            value=size,
            message=f"{size} bytes, Batch takes {MAXIMUM_DEFINITION_BYTES}",
        )


def _seconds(row: Row) -> tuple[bool, float | None]:
    """Whether something stands for the timeout, be it unknown, and its seconds."""
    timeout = inputs(row).get("timeout")
    seconds = mapping(timeout).get("attemptDurationSeconds")
    return is_unknown(timeout) or bool(seconds), number(seconds)


def _timeout(subject: Subject) -> Iterator[Finding]:
    stands, _ = _seconds(subject.row)
    if not stands:
        yield Finding(path="timeout", value=None, message="no time limit")


def _timeout_minimum(subject: Subject) -> Iterator[Finding]:
    _, seconds = _seconds(subject.row)
    if seconds and seconds < SHORTEST_TIMEOUT_SECONDS:
        yield Finding(
            path="timeout.attemptDurationSeconds",
            value=int(seconds),
            message=f"under {SHORTEST_TIMEOUT_SECONDS} seconds",
        )


def _retries(subject: Subject) -> Iterator[Finding]:
    strategy = mapping(subject.at("retryStrategy"))
    attempts, listed = number(strategy.get("attempts")), strategy.get("evaluateOnExits")
    if attempts is None or attempts <= 1 or is_unknown(listed):
        return
    path, rules = "retryStrategy.evaluateOnExits", mappings(listed)
    if not rules or not _catches_all(rules[-1]):
        yield Finding(
            path=path,
            value=len(rules) or None,
            message=f"what no rule matches is tried {attempts:g} times",
        )
    if not any(_is_lost_host(rule) for rule in rules):
        yield Finding(
            path=path, value=len(rules) or None, message="no RETRY for status reason Host EC2*"
        )


def _catches_all(rule: Mapping[str, Any]) -> bool:
    conditions = [text(rule.get(key)) for key in ("onExitCode", "onReason", "onStatusReason")]
    given = {condition for condition in conditions if condition}
    return given == {"*"} and text(rule.get("action")).upper() == "EXIT"


def _is_lost_host(rule: Mapping[str, Any]) -> bool:
    reason = text(rule.get("onStatusReason"))
    return reason.startswith("Host EC2") and text(rule.get("action")).upper() == "RETRY"


def _lasting(seconds: int) -> dict[str, Any]:
    return multi_node_job(settings={"timeout": {"attemptDurationSeconds": seconds}})


def _retried(*rules: dict[str, str]) -> dict[str, Any]:
    strategy = {"attempts": 3, "evaluateOnExits": list(rules)}
    return multi_node_job(settings={"retryStrategy": strategy})


_LOST_HOST = {"onStatusReason": "Host EC2*", "action": "RETRY"}
_JOBS = frozenset({BATCH_JOB_DEFINITION})

RULES = (
    Rule(
        id="job-node-ranges",
        references=("R67",),
        family="jobs",
        level="mandatory",
        level_because="Batch refuses the definition",
        sentence="Up to 5 node ranges cover every node, the main one included, of 1000 at most.",
        why="RegisterJobDefinition fails.",
        fix="use one range `0:`, which also lets numNodes be overridden at submission",
        url=NODES_PAGE,
        types=_JOBS,
        check=_node_ranges,
        good=[multi_node_job(nodes=4)],
        bad=[multi_node_job(nodes=4, ranges=[{"targetNodes": "0:2"}])],
        decides_in_preview=False,
        options={
            "nodes": Option(
                kind="integer",
                default=USUAL_NODES,
                description="the account's limit of nodes in one job; AWS raises it on request",
            )
        },
    ),
    Rule(
        id="job-one-instance-type",
        references=("R52",),
        family="jobs",
        level="mandatory",
        level_because="the job cannot run",
        sentence="All node ranges of a job name the same instance type.",
        why="All nodes of a multi-node job are of one type.",
        fix="name one type in every range",
        url=NODE_GROUPS_PAGE,
        types=_JOBS,
        check=_one_type,
        good=[multi_node_job()],
        bad=[
            multi_node_job(
                ranges=[
                    {"targetNodes": "0", "container": {"instanceType": "c6in.32xlarge"}},
                    {"targetNodes": "1:", "container": {"instanceType": "p4d.24xlarge"}},
                ]
            )
        ],
        decides_in_preview=False,
    ),
    Rule(
        id="job-instance-type-launchable",
        references=("R52",),
        family="jobs",
        level="mandatory",
        level_because="the job never starts",
        sentence="Some compute environment of the program launches the type that a job names.",
        why="The job stays RUNNABLE until somebody looks.",
        fix="name the type of the environment that the job's queue leads to",
        url=MULTI_NODE_PAGE,
        types=_JOBS,
        check=_launchable,
        whole_program=True,
        good=[multi_node_job(), environment()],
        bad=[multi_node_job(), environment(instanceTypes=["p4de.24xlarge"])],
        decides_in_preview=False,
    ),
    Rule(
        id="job-nodes-fit-limit",
        references=("R53",),
        family="jobs",
        level="mandatory",
        level_because="the job never starts",
        sentence="maxVcpus of an environment has room for all nodes of its multi-node jobs.",
        why="Batch starts all nodes or none, and counts each with the type's default vCPUs.",
        fix="raise maxVcpus to nodes times vCPUs, or lower numNodes",
        url=MULTI_NODE_PAGE,
        types=_JOBS,
        check=_room,
        whole_program=True,
        good=[multi_node_job(nodes=4), environment(maxVcpus=4 * 96)],
        bad=[multi_node_job(nodes=4), environment(maxVcpus=4 * 96 - 1)],
        decides_in_preview=False,
    ),
    Rule(
        id="job-platform",
        references=("R50",),
        family="jobs",
        level="mandatory",
        level_because="Batch refuses the definition",
        sentence="A multi-node job definition is not for Fargate.",
        why="RegisterJobDefinition fails.",
        fix="set platformCapabilities to EC2 or leave it out",
        url=DEFINITION_PAGE,
        types=_JOBS,
        check=_platform,
        good=[multi_node_job(settings={"platformCapabilities": ["EC2"]})],
        bad=[multi_node_job(settings={"platformCapabilities": ["FARGATE"]})],
    ),
    Rule(
        id="job-definition-size",
        references=(),
        family="jobs",
        level="mandatory",
        level_because="Batch refuses the definition",
        sentence="A job definition has 24 KiB at most.",
        why="RegisterJobDefinition fails; scripts in the command are what fills it.",
        fix="move the command's text into the image",
        url="https://docs.aws.amazon.com/batch/latest/userguide/service_limits.html",
        types=_JOBS,
        check=_definition_size,
        good=[multi_node_job()],
        bad=[single_node_job(command=["#" * MAXIMUM_DEFINITION_BYTES])],
        decides_in_preview=False,
    ),
    Rule(
        id="job-timeout",
        references=("R70",),
        family="jobs",
        level="advisory",
        level_because="it costs money only: the job itself runs",
        sentence="A job definition has a time limit.",
        why="A job that hangs, as training does when a peer is gone, pays for its nodes for ever.",
        fix="set timeout.attemptDurationSeconds to what the longest run may take",
        url=TIMEOUT_PAGE,
        types=_JOBS,
        check=_timeout,
        good=[_lasting(86400)],
        bad=[multi_node_job()],
    ),
    Rule(
        id="job-timeout-minimum",
        references=("R70",),
        family="jobs",
        level="mandatory",
        level_because="Batch refuses the definition",
        sentence="A job's time limit is 60 seconds at least.",
        why="RegisterJobDefinition fails.",
        fix="raise attemptDurationSeconds; it is in seconds, not minutes",
        url=TIMEOUT_PAGE,
        types=_JOBS,
        check=_timeout_minimum,
        good=[_lasting(60)],
        bad=[_lasting(59)],
    ),
    Rule(
        id="job-retries",
        references=("R71",),
        family="jobs",
        level="advisory",
        level_because="failing runs are repeated, which only costs",
        sentence="A job with several attempts repeats lost hosts and nothing else.",
        why="Batch repeats what no rule matches, a typing error in the command included.",
        fix="retry on status reason `Host EC2*` and end with action EXIT on reason `*`",
        url=RETRY_PAGE,
        types=_JOBS,
        check=_retries,
        good=[_retried(_LOST_HOST, {"onReason": "*", "action": "EXIT"})],
        bad=[_retried(_LOST_HOST)],
    ),
)

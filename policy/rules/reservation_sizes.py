"""Whether a program's reservations hold as many instances as it launches into them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fabric.rows import at, inputs, mapping, mappings, number, text, texts
from policy.example_programs import reserved_nodes
from policy.examples import resource
from policy.fleets import LAUNCHERS, Fleet, fleet_of, fleets, known
from policy.program import Program
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    AUTO_SCALING_GROUP,
    BATCH_ENVIRONMENT,
    BATCH_JOB_DEFINITION,
    CAPACITY_RESERVATION,
    NODE_GROUP,
)

USE_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-using.html"
BILLING_PAGE = (
    "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-pricing-billing.html"
)

# Batch chooses desiredVcpus by its jobs, so that what a program says of it lasts no longer.
_DESIRED = {AUTO_SCALING_GROUP: "desiredCapacity", NODE_GROUP: "scalingConfig.desiredSize"}


def _place_for_running(subject: Subject) -> Iterator[Finding]:
    yield from _places(subject, at_most=False)


def _place_for_all(subject: Subject) -> Iterator[Finding]:
    yield from _places(subject, at_most=True)


def _places(subject: Subject, *, at_most: bool) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    if fleet is None:
        return
    wanted, held = fleet.most if at_most else _running(fleet), _confined_places(fleet)
    if wanted and held is not None and wanted[1] > held:
        path, nodes = wanted
        message = f"{nodes} nodes in {held} reserved places, and nodes start nowhere else"
        yield Finding(path=path, value=known(at(subject.row, path)), message=message)


def _running(fleet: Fleet) -> tuple[str, int] | None:
    """The input that keeps the most nodes running, a minimum or a wish, and how many."""
    path = _DESIRED.get(fleet.kind, "")
    desired, fewest = number(at(fleet.row, path)), fleet.fewest
    if desired is None or (fewest and fewest[1] >= desired):
        return fewest
    return path, int(desired)


def _place_for_job(subject: Subject) -> Iterator[Finding]:
    properties = _json(subject.inputs.get("nodeProperties"))
    nodes = number(properties.get("numNodes"))
    if nodes is None:
        return
    by_type = subject.program.once(_places_by_type, lambda: _places_by_type(subject.program))
    wanted = _wanted_types(properties)
    # an environment without a type fits every job, and a job without one every environment
    names = {*wanted, ""} if wanted else set(by_type)
    places = [held for name in names for held in by_type.get(name, ())]
    if places and all(held is not None and held < nodes for held in places):
        most = max(held or 0 for held in places)
        yield Finding(
            path="nodeProperties.numNodes",
            value=int(nodes),
            message=f"{int(nodes)} nodes in {most} reserved places, and nodes start nowhere else",
        )


def _wanted_types(properties: Mapping[str, Any]) -> set[str]:
    ranges = mappings(properties.get("nodeRangeProperties"))
    listed = {one for each in ranges for one in texts(each.get("instanceTypes"))}
    named = {text(mapping(each.get("container")).get("instanceType")) for each in ranges}
    return (listed | named) - {""}


def _places_by_type(program: Program) -> dict[str, set[int | None]]:
    """The places of compute environments by instance type, under no name for any type."""
    places: dict[str, set[int | None]] = {}
    for fleet in fleets(program):
        if fleet.kind == BATCH_ENVIRONMENT:
            for name in {launched for _, launched in fleet.type_paths} or {""}:
                places.setdefault(name, set()).add(_confined_places(fleet))
    return places


def _confined_places(fleet: Fleet) -> int | None:
    """How many nodes find a place, where there is none but in reservations of the program."""
    if fleet.target is None or not fleet.target.confined or not fleet.reservations:
        return None
    counts = [number(inputs(one).get("instanceCount")) for one in fleet.reservations]
    return None if None in counts else int(sum(one or 0 for one in counts))


def _too_many_places(subject: Subject) -> Iterator[Finding]:
    count = number(subject.inputs.get("instanceCount"))
    users = [one for one in fleets(subject.program) if subject.row in one.reservations]
    most = [one.most for one in users]
    if count is None or not users or None in most:
        return
    nodes = sum(one[1] for one in most if one)
    if count > nodes:
        message = f"{int(count)} places for at most {nodes} nodes of this program"
        yield Finding(path="instanceCount", value=int(count), message=message)


def _json(value: object) -> Mapping[str, Any]:
    try:
        return mapping(json.loads(text(value) or "{}"))
    except (ValueError, RecursionError):
        return {}


def _job(nodes: int) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "numNodes": nodes,
        "mainNode": 0,
        "nodeRangeProperties": [{"targetNodes": "0:", "container": {}}],
    }
    return resource(
        BATCH_JOB_DEFINITION, "job", type="multinode", nodeProperties=json.dumps(properties)
    )


RULES = (
    Rule(
        id="reservation-holds-job",
        references=("R38",),
        family="capacity",
        level="mandatory",
        level_because="the job can never start",
        sentence="A multi-node job has no more nodes than the reservation it runs in has places.",
        why="All nodes start together; those without a place fail with "
        "ReservationCapacityExceeded, and the job waits for ever.",
        fix="raise instanceCount of the reservation, or lower numNodes of the job",
        url=USE_PAGE,
        types=frozenset({BATCH_JOB_DEFINITION}),
        check=_place_for_job,
        whole_program=True,
        decides_in_preview=False,
        good=[*reserved_nodes(), _job(4)],
        bad=[*reserved_nodes(), _job(5)],
    ),
    Rule(
        id="reservation-holds-running-nodes",
        references=("R38",),
        family="capacity",
        level="mandatory",
        level_because="the launcher never becomes healthy",
        sentence="A launcher keeps no more nodes running than its reservation has places.",
        why="Nodes without a place fail with ReservationCapacityExceeded, again and again.",
        fix="raise instanceCount of the reservation, or lower the minimum and the desired size",
        url=USE_PAGE,
        types=LAUNCHERS,
        check=_place_for_running,
        whole_program=True,
        good=reserved_nodes(environment={"minVcpus": 384}),
        bad=reserved_nodes(environment={"minVcpus": 480, "maxVcpus": 480}),
    ),
    Rule(
        id="reservation-holds-all-nodes",
        references=("R38",),
        family="capacity",
        level="advisory",
        level_because="the nodes that have a place still start",
        sentence="A launcher has no more nodes at its maximum than its reservation has places.",
        why="Nodes beyond the reservation fail with ReservationCapacityExceeded.",
        fix="raise instanceCount of the reservation, or lower the maximum size",
        url=USE_PAGE,
        types=LAUNCHERS,
        check=_place_for_all,
        whole_program=True,
        good=reserved_nodes(),
        bad=reserved_nodes(environment={"maxVcpus": 480}),
    ),
    Rule(
        id="reservation-is-no-larger",
        references=("R40",),
        family="cost",
        level="advisory",
        level_because="it only costs more than it should",
        sentence="A reservation has no more places than the program's nodes can take.",
        why="Places that nothing can fill are billed at the on-demand price all the same.",
        fix="lower instanceCount, or raise the maximum size of what launches into it",
        url=BILLING_PAGE,
        types=frozenset({CAPACITY_RESERVATION}),
        check=_too_many_places,
        whole_program=True,
        good=reserved_nodes(),
        bad=reserved_nodes(reserved={"instanceCount": 16}),
    ),
)

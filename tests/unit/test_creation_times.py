"""Time until ready, against paths added up by hand and against brute force."""

import re
from collections.abc import Sequence
from itertools import pairwise
from time import process_time
from typing import Any

import pulumi_aws
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.creation_times import Ready, creation_times, time_until_ready

VPC = "aws:ec2/vpc:Vpc"  # 5 s
SUBNET = "aws:ec2/subnet:Subnet"  # 5 s
NAT = "aws:ec2/natGateway:NatGateway"  # 107 s
EKS = "aws:eks/cluster:Cluster"  # 590 s
NODES = "aws:eks/nodeGroup:NodeGroup"  # 119 s
ENVIRONMENT = "aws:batch/computeEnvironment:ComputeEnvironment"  # 38 s
ROLE = "aws:iam/role:Role"  # no published time
STACK = "pulumi:pulumi:Stack"
NETWORK = "trainyard:index:Network"
BATCH = "trainyard:index:BatchMNP"

Row = dict[str, Any]


def row(token: str, urn: str, *waits_for: str, parent: str | None = None) -> Row:
    return {"urn": urn, "type": token, "parent": parent, "dependencies": list(waits_for)}


def path(ready: Ready) -> list[tuple[str, float]]:
    return [(step.urn, step.seconds) for step in ready.critical_path]


def test_the_critical_path_is_the_slowest_chain_of_dependencies() -> None:
    ready = time_until_ready(
        [
            row(NODES, "nodes", "eks", "nat"),
            row(NAT, "nat", "subnet"),
            row(EKS, "eks", "subnet"),
            row(SUBNET, "subnet", "vpc"),
            row(VPC, "vpc"),
        ]
    )
    assert path(ready) == [("vpc", 5), ("subnet", 5), ("eks", 590), ("nodes", 119)]
    assert ready.seconds == 5 + 5 + 590 + 119


def test_what_does_not_wait_for_each_other_is_made_at_the_same_time() -> None:
    assert time_until_ready([row(NAT, f"nat{i}") for i in range(9)]).seconds == 107


def test_a_dependency_of_one_property_counts_like_any_other() -> None:
    nat = row(NAT, "nat") | {"dependencies": None, "propertyDependencies": {"subnetId": ["subnet"]}}
    assert time_until_ready([row(SUBNET, "subnet"), nat]).seconds == 5 + 107


def test_a_type_without_a_published_time_adds_nothing_and_is_named() -> None:
    ready = time_until_ready([row(VPC, "vpc"), row(ROLE, "role", "vpc"), row(NAT, "nat", "role")])
    assert path(ready) == [("vpc", 5), ("nat", 107)]
    assert ready.unknown == (ROLE,)


def test_a_program_of_unknown_types_alone_has_no_prediction() -> None:
    assert time_until_ready([row(ROLE, "role")]) == Ready(
        seconds=None, critical_path=(), unknown=(ROLE,)
    )


def test_an_empty_program_is_ready_at_once() -> None:
    assert time_until_ready([]) == Ready(seconds=0.0, critical_path=(), unknown=())


def test_components_providers_and_the_stack_are_not_listed_as_unknown() -> None:
    tokens = [STACK, NETWORK, "eks:index:Cluster", "pulumi:providers:aws"]
    tokens += ["pulumi:pulumi:StackReference", "kubernetes:helm.sh/v4:Chart"]
    assert time_until_ready([row(token, token) for token in tokens]).unknown == ()


def test_to_wait_for_a_component_is_to_wait_for_all_that_is_below_it() -> None:
    ready = time_until_ready(
        [
            row(STACK, "stack"),
            row(NETWORK, "network", parent="stack"),
            row("trainyard:index:Zone", "zone", parent="network"),
            row(NAT, "nat", parent="zone"),
            row(BATCH, "batch", parent="stack"),
            row(ENVIRONMENT, "environment", "network", parent="batch"),
        ]
    )
    assert path(ready) == [("nat", 107), ("environment", 38)]


def test_to_wait_for_a_resource_is_not_to_wait_for_its_children() -> None:
    ready = time_until_ready(
        [row(VPC, "vpc"), row(NAT, "nat", "vpc", parent="vpc"), row(SUBNET, "subnet", "vpc")]
    )
    assert ready.seconds == 5 + 107


def test_a_child_waits_for_nothing_of_its_parent() -> None:
    ready = time_until_ready(
        [
            row(NETWORK, "network", parent=None),
            row(NAT, "nat", parent="network"),
            row(SUBNET, "subnet", "network", parent="network"),
        ]
    )
    assert ready.seconds == 107


def test_dependencies_on_resources_that_are_not_in_the_program_are_ignored() -> None:
    assert time_until_ready([row(VPC, "vpc", "elsewhere", parent="gone")]).seconds == 5


def test_a_circle_is_an_error_that_names_it() -> None:
    rows = [row(VPC, "a", "b"), row(VPC, "b", "c"), row(VPC, "c", "a"), row(VPC, "d", "a")]
    with pytest.raises(ValueError, match=r"a -> b -> c -> a$"):
        time_until_ready(rows)


def test_components_whose_parts_wait_for_each_other_are_a_circle() -> None:
    rows = [
        row(NETWORK, "network"),
        row(BATCH, "batch"),
        row(VPC, "vpc", "batch", parent="network"),
        row(ENVIRONMENT, "environment", "network", parent="batch"),
    ]
    with pytest.raises(ValueError, match=r"vpc -> batch -> environment -> network -> vpc$"):
        time_until_ready(rows)


def test_a_chain_of_ten_thousand_resources_takes_no_recursion_and_little_time() -> None:
    rows = [row(SUBNET, str(i), str(i - 1), str(i // 2)) for i in range(1, 10_001)]
    rows[0]["dependencies"] = []
    start = process_time()
    ready = time_until_ready(rows)
    assert process_time() - start < 2  # about 0.04 s; in quadratic time it would be minutes
    assert ready.seconds == 5 * 10_000


def test_the_json_is_in_camel_case() -> None:
    ready = time_until_ready([row(VPC, "vpc"), row(ROLE, "role", "vpc")])
    assert ready.to_json() == {
        "seconds": 5.0,
        "criticalPath": [{"urn": "vpc", "seconds": 5.0}],
        "unknown": [ROLE],
    }


@pytest.mark.parametrize(
    "odd", [{}, {"urn": 7, "type": None}, {"urn": "u", "type": VPC, "dependencies": {"a": 1}}]
)
def test_rows_with_missing_or_odd_keys_are_tolerated(odd: Row) -> None:
    assert time_until_ready([odd, row(NAT, "nat")]).seconds == 107


WAITS = st.lists(st.tuples(st.sampled_from([VPC, NAT, EKS, ROLE]), st.sets(st.integers(0, 6))))


@given(WAITS.map(lambda nodes: nodes[:7]), st.randoms())
def test_the_prediction_equals_brute_force_on_small_programs(
    nodes: list[tuple[str, set[int]]], random: Any
) -> None:
    known = {VPC: 5, NAT: 107, EKS: 590, ROLE: 0}

    def slowest(i: int) -> int:
        token, waits = nodes[i]
        return known[token] + max([slowest(j) for j in waits if j < i], default=0)

    rows = [row(t, f"u{i}", *(f"u{j}" for j in w if j < i)) for i, (t, w) in enumerate(nodes)]
    random.shuffle(rows)
    ready = time_until_ready(rows)
    assert (ready.seconds or 0) == max(map(slowest, range(len(nodes))), default=0)
    assert_is_a_chain(rows, ready)


def assert_is_a_chain(rows: Sequence[Row], ready: Ready) -> None:
    """Each step of the path waits, if need be through others, for the one before it."""
    waits = {r["urn"]: r["dependencies"] for r in rows}

    def reaches(urn: str, target: str) -> bool:
        return urn == target or any(reaches(on, target) for on in waits[urn])

    steps = [step.urn for step in ready.critical_path]
    assert all(reaches(after, before) for before, after in pairwise(steps))
    assert sum(step.seconds for step in ready.critical_path) == (ready.seconds or 0)


@pytest.mark.parametrize("token", [t for t in creation_times() if t.startswith("aws:")])
def test_every_type_with_a_time_is_a_resource_of_the_pulumi_sdk(token: str) -> None:
    _, module, name = re.split("[:/]", token, maxsplit=2)
    resource = getattr(getattr(pulumi_aws, module), name.partition(":")[2])
    assert resource.pulumi_type == token

"""Every launcher counts: Auto Scaling groups with a mix of types and instances, not Batch alone."""

from collections.abc import Callable
from typing import Any

import pytest

from policy.catalogue import RULES
from policy.examples import interface, resource
from policy.judge import findings
from policy.program import Program
from policy.tokens import AUTO_SCALING_GROUP, INSTANCE, LAUNCH_TEMPLATE, SUBNET
from policy.values import UNKNOWN
from tests.policy.mutations import Rows


def found(rows: Rows) -> list[str]:
    """The ids of the mandatory rules on interfaces that the rows break."""
    return [
        rule.id
        for rule in RULES
        if rule.family == "interfaces" and rule.level == "mandatory"
        for row in rows
        if row["type"] in rule.types
        for _ in findings(rule, row, Program(rows), rule.defaults())
    ]


ONE_EFA = [interface(0, 0, "interface"), interface(0, 1)]


def template(layout: list[dict[str, Any]], *links: str) -> dict[str, Any]:
    by_input = {"networkInterfaces": list(links)}
    return resource(LAUNCH_TEMPLATE, "nodes", links=by_input, networkInterfaces=layout)


def mixed(*types: str, override: object = None, **settings: Any) -> dict[str, Any]:
    """An Auto Scaling group with these types; each of them may name a template of its own."""
    overrides = [{"instanceType": one, "launchTemplateSpecification": override} for one in types]
    return resource(
        AUTO_SCALING_GROUP,
        "group",
        links={"mixedInstancesPolicy": ["nodes"], "vpcZoneIdentifiers": ["private"]},
        mixedInstancesPolicy={"launchTemplate": {"overrides": overrides}},
        **settings,
    )


def instance(type_: str, **settings: Any) -> dict[str, Any]:
    from_template = {"links": {"launchTemplate": ["nodes"]}, "launchTemplate": {"version": "1"}}
    return resource(INSTANCE, "one", instanceType=type_, **from_template, **settings)


@pytest.mark.parametrize("launcher", [mixed, instance])
@pytest.mark.parametrize(
    ("rule", "type_", "layout"),
    [
        ("efa-supported-by-type", "m5.large", ONE_EFA),
        ("efa-count-within-type", "i7ie.48xlarge", [interface(0, 0, "efa"), interface(1, 0)]),
        ("network-card-exists", "p4d.24xlarge", [interface(0, 0, "efa"), interface(4, 0)]),
        ("network-card-takes-efa", "p6-b300.48xlarge", [interface(0, 0, "efa"), interface(1, 0)]),
    ],
)
def test_the_type_counts_that_a_group_or_an_instance_gives_a_template(
    launcher: Callable[[str], dict[str, Any]], rule: str, type_: str, layout: list[dict[str, Any]]
) -> None:
    assert found([template(layout), launcher(type_)]) == [rule]


def test_a_type_with_a_template_of_its_own_is_not_judged_by_another_template() -> None:
    other = {"launchTemplateId": "lt-0fedcba9876543210"}
    assert found([template(ONE_EFA), mixed("m5.large", override=other)]) == []


def test_a_template_is_not_judged_by_a_type_that_its_launcher_replaces() -> None:
    nodes = template(ONE_EFA)
    nodes["inputs"]["instanceType"] = "m5.large"
    assert found([nodes, instance("g6.12xlarge")]) == []


@pytest.mark.parametrize(("size", "is_found"), [(2, True), (1, False), (UNKNOWN, False)])
def test_a_group_that_grows_beyond_one_node_is_to_use_every_card(
    size: object, is_found: bool
) -> None:
    rows = [template(ONE_EFA), mixed("p4d.24xlarge", maxSize=size)]
    assert found(rows) == ["efa-on-every-card"] * is_found
    assert found([template(ONE_EFA), instance("p4d.24xlarge")]) == []


def test_a_public_subnet_is_seen_behind_a_mix_of_types_and_inside_an_interface() -> None:
    rule = "no-public-subnet-with-several-interfaces"
    public = resource(SUBNET, "private", mapPublicIpOnLaunch=True)
    assert found([public, template(ONE_EFA), mixed(vpcZoneIdentifiers=["subnet-1"])]) == [rule]
    assert found([public, template(ONE_EFA, "private")]) == [rule]


@pytest.mark.parametrize(
    ("type_", "options", "rules"),
    [
        ("p5en.48xlarge", {"threadsPerCore": 1}, ["cpu-options-complete"]),
        ("g5.8xlarge", {"coreCount": 8, "threadsPerCore": 2}, ["cpu-options-fit-type"]),
        ("g5.8xlarge", {"coreCount": 16, "threadsPerCore": 2}, []),  # as every such instance shows
    ],
)
def test_cpu_options_of_an_instance_are_judged(
    type_: str, options: dict[str, int], rules: list[str]
) -> None:
    assert found([resource(INSTANCE, instanceType=type_, cpuOptions=options)]) == rules

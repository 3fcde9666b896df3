"""What holds for every rule of the pack, whatever it is about."""

import copy
import importlib
import json
import pkgutil
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policy.rules
import tests.policy
from policy.catalogue import RULES
from policy.judge import findings, judge
from policy.left_out import LEFT_OUT
from policy.page import page
from policy.program import Program
from policy.rule import Rule
from policy.values import UNKNOWN
from rehearsal.run import rehearse
from tests.policy.mutations import Mutation, Rows, broken
from tests.policy.preview import as_in_preview

ROOT = Path(__file__).parents[2]
STACKS = ("dev", *sorted(path.stem for path in (ROOT / "examples").glob("*.yaml")))
FOREIGN = sorted(path.stem for path in Path(__file__).with_name("foreign").glob("*.json"))
MUTATIONS: tuple[Mutation, ...] = tuple(
    mutation
    for module in pkgutil.iter_modules(tests.policy.__path__)
    if module.name.startswith("mutations_")
    for mutation in importlib.import_module(f"tests.policy.{module.name}").MUTATIONS
)
REFERENCES = {
    f"R{number:02}"
    for first, last in ((1, 25), (30, 47), (50, 80), (90, 103))
    for number in range(first, last + 1)
}


@cache
def rows_of(stack: str) -> Rows:
    """The rows of dev, of an example, or of a program that knows nothing of ours."""
    if stack in FOREIGN:
        return json.loads(Path(__file__).with_name("foreign").joinpath(f"{stack}.json").read_text())
    name = stack if stack == "dev" else f"examples/{stack}.yaml"
    return [row.to_json() for row in rehearse(name).resources]


def found_by(rule: Rule, rows: Rows) -> list[str]:
    program = Program(rows)
    return [
        finding.message
        for row in rows
        if row["type"] in rule.types
        for finding in findings(rule, row, program, rule.defaults())
    ]


per_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)


def test_there_are_sixty_rules_or_more() -> None:
    assert len(RULES) >= 60


def test_each_rule_has_an_id_of_its_own() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_every_module_of_rules_is_in_the_catalogue() -> None:
    modules = [each.name for each in pkgutil.iter_modules(policy.rules.__path__)]
    made = [
        rule.id
        for module in modules
        for rule in getattr(importlib.import_module(f"policy.rules.{module}"), "RULES", ())
    ]
    assert sorted(made) == sorted(rule.id for rule in RULES)


def test_every_rule_of_the_reference_list_is_judged_or_left_out_with_a_reason() -> None:
    judged = {number for rule in RULES for number in rule.references if number.startswith("R")}
    assert judged | set(LEFT_OUT) == REFERENCES
    assert not judged & set(LEFT_OUT)
    assert all(LEFT_OUT.values())


def test_the_page_of_rules_is_current() -> None:
    assert (ROOT / "docs" / "rules.md").read_text() == page(), (
        "python -m policy.page --write docs/rules.md"
    )


@per_rule
def test_a_rule_says_what_why_and_what_to_do(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.id)
    assert rule.sentence.endswith(".")
    assert rule.why.endswith(".")
    assert not rule.fix.endswith(".")
    assert rule.level_because
    assert re.match(r"https://[\w.-]+/\S+$", rule.url)
    assert rule.types


@per_rule
def test_its_good_example_passes_every_mandatory_look_of_its_own(rule: Rule) -> None:
    assert found_by(rule, list(rule.good)) == []  # pyright: ignore[reportArgumentType]


@per_rule
def test_its_bad_example_is_found(rule: Rule) -> None:
    assert found_by(rule, list(rule.bad))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule.decides_in_preview], ids=lambda rule: rule.id
)
def test_its_bad_example_is_found_in_a_preview_already(rule: Rule) -> None:
    assert found_by(rule, as_in_preview(list(rule.bad)))  # pyright: ignore[reportArgumentType]


@per_rule
def test_its_good_example_is_not_accused_in_a_preview(rule: Rule) -> None:
    assert found_by(rule, as_in_preview(list(rule.good))) == []  # pyright: ignore[reportArgumentType]


@per_rule
def test_a_rule_can_be_broken_in_two_ways_at_least(rule: Rule) -> None:
    assert len([each for each in MUTATIONS if each.rule == rule.id]) >= 2


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_good_stack_that_was_broken_is_found(mutation: Mutation) -> None:
    (rule,) = [rule for rule in RULES if rule.id == mutation.rule]
    rows = rows_of(mutation.stack)
    assert found_by(rule, rows) == [], "the stack was not good"
    assert found_by(rule, broken(rows, mutation)), "slipped through"


@pytest.mark.parametrize("stack", [*STACKS, *FOREIGN])
def test_a_good_stack_has_no_mandatory_finding(stack: str) -> None:
    assert [each for each in judge(rows_of(stack)) if each["level"] == "mandatory"] == []


@pytest.mark.parametrize("stack", [*STACKS, *FOREIGN])
def test_a_good_stack_has_no_mandatory_finding_in_a_preview(stack: str) -> None:
    rows = as_in_preview(rows_of(stack))
    assert [each for each in judge(rows) if each["level"] == "mandatory"] == []


# --- any program at all ---------------------------------------------------------------------------

KEYS = sorted(
    {key for stack in STACKS for row in rows_of(stack) for key in row["inputs"]}
    | {"nodeGroupName", "scalingConfig", "vpcConfig", "storageCapacity", "deploymentType"}
)
leaves: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(
        ["", "p5.48xlarge", "efa-only", "{", "[]", "null", "$Latest", "10.0.0.0/16", "3"]
    ),
    st.just(UNKNOWN),
    st.text(max_size=5),
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=15,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_rule_crashes_on_anything(data: st.DataObject) -> None:
    """Inputs of examples with random trees in place of some, and links to anywhere."""
    rule = data.draw(st.sampled_from(RULES))
    base = data.draw(st.sampled_from([*rule.good, *rule.bad]))
    inputs = dict(base["inputs"])
    for key in data.draw(st.sets(st.sampled_from(sorted(inputs) or KEYS), max_size=4)):
        inputs[key] = data.draw(trees)
    inputs |= data.draw(st.dictionaries(st.sampled_from(KEYS), trees, max_size=3))
    odd = {
        "urn": "urn:odd",
        "type": base["type"],
        "inputs": data.draw(st.one_of(st.just(inputs), trees)),
        "propertyDependencies": data.draw(
            st.one_of(
                st.none(), st.dictionaries(st.sampled_from(KEYS), st.just(["urn:odd", "urn:x"]))
            )
        ),
    }
    rows = [*rule.bad, *rule.good, odd]
    judge(rows)


def test_a_resource_that_was_only_read_and_is_not_known_yet_is_not_accused() -> None:
    """`SecurityGroup.get` with an unknown id arrives in a preview without any inputs."""
    rows = copy.deepcopy(rows_of("dev"))
    for row in rows:
        if row["type"] in ("aws:ec2/securityGroup:SecurityGroup", "aws:ec2/vpc:Vpc"):
            row["inputs"] = {}
    assert [each for each in judge(rows) if each["level"] == "mandatory"] == []

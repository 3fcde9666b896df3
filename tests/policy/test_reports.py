"""Plain text, SARIF and JUnit say the same."""

import json
from typing import Any
from xml.etree import ElementTree

from policy.report import PackRule, Verdict, Violation, as_junit, as_sarif, as_text


def rule(name: str, level: str, *, decides_in_preview: bool = True) -> PackRule:
    return PackRule(
        id=name,
        level=level,
        sentence=f"{name} holds.",
        fix="do it",
        url=f"https://example.com/{name}",
        decides_in_preview=decides_in_preview,
    )


def violation(name: str, level: str, line: str = "it: a is 1: <odd>; do it") -> Violation:
    return Violation(rule=name, level=level, urn="urn:pulumi:dev::p::t::it", line=line)


RULES = [
    rule("hard", "mandatory"),
    rule("soft", "advisory", decides_in_preview=False),
    rule("off", "disabled"),
]
GOOD = Verdict(stack="good", file="good.yaml", resources=2)
WARNED = Verdict(
    stack="warned", file="w.yaml", resources=1, violations=[violation("soft", "advisory")]
)
BAD = Verdict(
    stack="bad",
    file="examples/bad.yaml",
    resources=3,
    violations=[violation("soft", "advisory"), violation("hard", "mandatory")],
)
UNREADABLE = Verdict(stack="none", file="none", errors=["no such file"])
ALL = [GOOD, WARNED, BAD, UNREADABLE]


def test_the_text_has_each_stack_its_findings_worst_first_and_the_sum() -> None:
    assert as_text(ALL, RULES) == (
        "good: passes, 2 resources\n"
        "warned: passes, 1 resource, 1 advisory\n"
        "  advisory   soft\n"
        "             it: a is 1: <odd>; do it\n"
        "bad: refused, 3 resources, 1 mandatory, 1 advisory\n"
        "  mandatory  hard\n"
        "             it: a is 1: <odd>; do it\n"
        "  advisory   soft\n"
        "             it: a is 1: <odd>; do it\n"
        "none: cannot be judged\n"
        "  error      no such file\n"
        "\n"
        "3 rules: 1 mandatory, 1 advisory, 1 disabled\n"
        "2 can decide in a preview, 1 only in an update: soft\n"
        "4 stacks: 2 pass, 2 do not\n"
    )


def sarif(*verdicts: Verdict) -> dict[str, Any]:
    (run,) = json.loads(as_sarif(verdicts, RULES))["runs"]
    return run


def test_sarif_has_the_rules_with_their_pages() -> None:
    described = sarif()["tool"]["driver"]["rules"]
    assert [each["id"] for each in described] == ["hard", "soft", "off"]
    assert described[0]["helpUri"] == "https://example.com/hard"
    assert [each["defaultConfiguration"]["level"] for each in described[:2]] == ["error", "warning"]
    assert [each["defaultConfiguration"]["enabled"] for each in described] == [True, True, False]


def test_sarif_places_a_violation_in_the_stack_s_file_and_at_its_resource() -> None:
    warning, error = sarif(BAD)["results"]
    assert (warning["ruleId"], warning["level"]) == ("soft", "warning")
    assert (error["ruleId"], error["level"]) == ("hard", "error")
    assert error["message"]["text"] == "it: a is 1: <odd>; do it"
    (location,) = error["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "examples/bad.yaml"
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "urn:pulumi:dev::p::t::it"


def test_sarif_tells_violations_of_one_rule_apart() -> None:
    two = [violation("hard", "mandatory", line) for line in ("one", "two")]
    results = sarif(Verdict(stack="s", file="s", violations=two))["results"]
    assert len({str(each["partialFingerprints"]) for each in results}) == 2


def test_sarif_says_that_a_stack_could_not_be_judged() -> None:
    (invocation,) = sarif(GOOD, UNREADABLE)["invocations"]
    assert not invocation["executionSuccessful"]
    assert "no such file" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    assert sarif(BAD)["invocations"][0]["executionSuccessful"]


def test_junit_fails_only_a_mandatory_rule() -> None:
    suites = ElementTree.fromstring(as_junit(ALL, RULES))
    counts = {
        suite.get("name"): tuple(
            suite.get(key) for key in ("tests", "failures", "errors", "skipped")
        )
        for suite in suites
    }
    assert counts == {
        "good": ("3", "0", "0", "1"),
        "warned": ("3", "0", "0", "1"),
        "bad": ("3", "1", "0", "1"),
        "none": ("1", "0", "1", "0"),
    }
    assert suites.findtext(".//testcase[@name='hard']/failure") == "it: a is 1: <odd>; do it"
    assert suites.findtext(".//testcase[@name='soft']/system-out") == "it: a is 1: <odd>; do it"

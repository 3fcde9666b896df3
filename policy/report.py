"""What a pack said of stacks, as plain text, SARIF and JUnit XML."""

import hashlib
import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PackRule:
    """A rule as the pack describes it; `level` is the configured one."""

    id: str
    level: str
    sentence: str
    fix: str
    url: str
    decides_in_preview: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """A rule broken by a resource; `line` says all of it but the rule's name."""

    rule: str
    level: str
    urn: str
    line: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the pack said of one stack.

    `file` is where to look in the repository: the stack's configuration, or its exported state.
    `errors` are reasons why it could not be judged.
    """

    stack: str
    file: str
    resources: int = 0
    violations: Sequence[Violation] = ()
    errors: Sequence[str] = ()

    @property
    def refused(self) -> bool:
        """Whether the engine would not create it."""
        return bool(self.errors) or any(each.level == "mandatory" for each in self.violations)


def as_text(verdicts: Sequence[Verdict], rules: Sequence[PackRule]) -> str:
    """Findings below each stack, then the rules by level and the sum of it."""
    return "\n".join([*_stacks(verdicts), "", *_rules(rules), _sum(verdicts)]) + "\n"


def _stacks(verdicts: Iterable[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        yield f"{verdict.stack}: {_summary(verdict)}"
        for error in verdict.errors:
            yield f"  error      {error}"
        for each in sorted(verdict.violations, key=_mandatory_first):
            yield f"  {each.level:<10} {each.rule}"
            yield f"             {each.line}"


def _mandatory_first(violation: Violation) -> tuple[bool, str, str]:
    return violation.level != "mandatory", violation.rule, violation.line


def _summary(verdict: Verdict) -> str:
    if verdict.errors:
        return "cannot be judged"
    counts = [
        f"{count} {level}"
        for level in ("mandatory", "advisory")
        if (count := sum(each.level == level for each in verdict.violations))
    ]
    word = "refused" if verdict.refused else "passes"
    return ", ".join([f"{word}, {_count(verdict.resources, 'resource')}", *counts])


def _rules(rules: Sequence[PackRule]) -> Iterator[str]:
    levels = ("mandatory", "remediate", "advisory", "disabled")
    counts = {level: sum(rule.level == level for rule in rules) for level in levels}
    said = ", ".join(f"{count} {level}" for level, count in counts.items() if count)
    yield f"{_count(len(rules), 'rule')}: {said}"
    late = [rule.id for rule in rules if not rule.decides_in_preview]
    names = f": {', '.join(late)}" if late else ""
    line = f"{len(rules) - len(late)} can decide in a preview, {len(late)} only in an update{names}"
    yield textwrap.fill(line, 100, subsequent_indent="  ", break_on_hyphens=False)


def _sum(verdicts: Sequence[Verdict]) -> str:
    refused = sum(verdict.refused for verdict in verdicts)
    return f"{_count(len(verdicts), 'stack')}: {len(verdicts) - refused} pass, {refused} do not"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def as_sarif(verdicts: Sequence[Verdict], rules: Sequence[PackRule]) -> str:
    """SARIF 2.1.0 as GitHub's code scanning reads it.

    A violation stands at the first line of its stack's file, as a resource has no line there.
    https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
    """
    driver = {"name": "trainyard policy pack", "rules": [_sarif_rule(rule) for rule in rules]}
    results = [
        _sarif_result(verdict, violation)
        for verdict in verdicts
        for violation in verdict.violations
    ]
    failures = [
        {"level": "error", "message": {"text": f"{verdict.stack}: {error}"}}
        for verdict in verdicts
        for error in verdict.errors
    ]
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "invocations": [
            {"executionSuccessful": not failures, "toolExecutionNotifications": failures}
        ],
        "results": results,
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _sarif_rule(rule: PackRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.sentence},
        "help": {"text": f"What to do: {rule.fix}. See {rule.url}"},
        "helpUri": rule.url,
        "defaultConfiguration": {
            "level": "warning" if rule.level == "advisory" else "error",
            "enabled": rule.level != "disabled",
        },
    }


def _relative(file: str) -> str:
    """The file below the working directory, where code scanning looks for it."""
    path = Path(file)
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else file


def _sarif_result(verdict: Verdict, violation: Violation) -> dict[str, Any]:
    what = f"{violation.rule}\n{violation.urn}\n{violation.line}"
    return {
        "ruleId": violation.rule,
        "level": "error" if violation.level == "mandatory" else "warning",
        "message": {"text": violation.line},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _relative(verdict.file)},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [{"fullyQualifiedName": violation.urn, "kind": "resource"}],
            }
        ],
        # without it GitHub takes two violations at one line for the same
        "partialFingerprints": {
            "primaryLocationLineHash": hashlib.sha256(what.encode()).hexdigest()[:16]
        },
    }


def as_junit(verdicts: Sequence[Verdict], rules: Sequence[PackRule]) -> str:
    """JUnit XML: a suite for each stack, a case for each rule; an advisory rule never fails.

    https://github.com/testmoapp/junitxml
    """
    suites = Xml.Element("testsuites", name="policy")
    for verdict in verdicts:
        suite = Xml.SubElement(suites, "testsuite", name=verdict.stack)
        for error in verdict.errors:
            case = Xml.SubElement(suite, "testcase", classname=verdict.stack, name="rehearsal")
            Xml.SubElement(case, "error", message=error)
        for rule in rules if not verdict.errors else ():
            case = Xml.SubElement(suite, "testcase", classname=verdict.stack, name=rule.id)
            _judge_case(case, rule, [each for each in verdict.violations if each.rule == rule.id])
        for tag, attribute in (
            ("failure", "failures"),
            ("error", "errors"),
            ("skipped", "skipped"),
        ):
            suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
        suite.set("tests", str(len(suite)))
    Xml.indent(suites)
    return Xml.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _judge_case(case: Xml.Element, rule: PackRule, violations: Sequence[Violation]) -> None:
    if rule.level == "disabled":
        Xml.SubElement(case, "skipped", message="disabled by the pack's configuration")
    mandatory = [each.line for each in violations if each.level == "mandatory"]
    advisory = [each.line for each in violations if each.level != "mandatory"]
    if mandatory:
        Xml.SubElement(case, "failure", message=rule.sentence).text = "\n".join(mandatory)
    if advisory:
        Xml.SubElement(case, "system-out").text = "\n".join(advisory)

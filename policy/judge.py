"""The verdict of all rules on a program: what the rehearsal shows, and what the pack reports."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fabric.rows import Row, text
from policy.catalogue import RULES
from policy.program import Program, is_out_of_sight
from policy.rule import Finding, Rule, Subject


def judge(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Every finding on a program's rows, as `findings` of `python -m rehearsal --json`.

    Each is {"rule", "level", "urn", "path", "value", "message", "fix", "url"}.
    """
    program = Program(rows)
    asked = rules_by_type(RULES)
    return [
        finding_json(rule, row, finding)
        for row in rows
        for rule in asked.get(text(row.get("type")), ())
        for finding in findings(rule, row, program, rule.defaults())
    ]


def rules_by_type(rules: Iterable[Rule]) -> Mapping[str, list[Rule]]:
    """The rules that are asked about a resource of each type."""
    by_type: defaultdict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        for type_ in sorted(rule.types):
            by_type[type_].append(rule)
    return by_type


def findings(
    rule: Rule, row: Row, program: Program, options: Mapping[str, Any]
) -> Iterator[Finding]:
    """What one rule finds on one resource; it sees the program only if it asked for it."""
    if is_out_of_sight(row):
        return
    around = program if rule.whole_program else Program()
    yield from rule.check(Subject(row=row, program=around, options=options))


def finding_json(rule: Rule, row: Row, finding: Finding) -> dict[str, Any]:
    """A finding as data."""
    return {
        "rule": rule.id,
        "level": rule.level,
        "urn": text(row.get("urn")),
        "path": finding.path,
        "value": finding.value,
        "message": finding.message,
        "fix": rule.fix,
        "url": rule.url,
    }

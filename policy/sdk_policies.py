"""The rules as policies of Pulumi's own SDK, for a stock `PolicyPack` and for its metadata.

A stock pack gives the same verdict as ours (`policy.analyzer`), only later: it reads every
resource anew for every policy. It cannot tell what is secret, so that its messages may show it.
https://www.pulumi.com/docs/iac/using-pulumi/crossguard/api/
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pulumi
from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import _DictProxy, _ListProxy  # pyright: ignore[reportPrivateUsage]

from fabric.rows import Row, name
from policy.judge import findings
from policy.program import Program
from policy.rule import Finding, Rule
from policy.values import is_unknown, with_unknowns
from policy.wire import ASSET, whole

LONGEST_VALUE = 80  # characters of a value that a message shows
DECIDES_IN_PREVIEW = "decides-in-preview"
_SEVERITY = {"mandatory": Severity.HIGH, "advisory": Severity.LOW}


def sdk_policy(rule: Rule) -> Policy:
    """The rule as a policy of one resource, or of the stack where it sees the whole program."""
    about: dict[str, Any] = {
        "name": rule.id,
        "description": rule.sentence,
        "enforcement_level": EnforcementLevel(rule.level),
        "config_schema": _schema(rule),
        "severity": _SEVERITY[rule.level],
        "tags": [rule.family, *rule.references, *([DECIDES_IN_PREVIEW] * rule.decides_in_preview)],
        "remediation_steps": rule.fix,
        "url": rule.url,
    }

    def of_resource(args: ResourceValidationArgs, report: ReportViolation) -> None:
        if args.resource_type in rule.types:
            row, options = _row(args), configured_options(rule, args.get_config())
            for finding in findings(rule, row, Program(), options):
                report(violation_line(rule, row, finding), None)

    def of_stack(args: StackValidationArgs, report: ReportViolation) -> None:
        program = Program(map(_row_in_stack, args.resources))
        options = configured_options(rule, args.get_config())
        for row in rows_to_judge(rule, program):
            for finding in findings(rule, row, program, options):
                report(violation_line(rule, row, finding), row["urn"])

    if rule.whole_program:
        return StackValidationPolicy(**about, validate=of_stack)
    return ResourceValidationPolicy(**about, validate=of_resource)


def rows_to_judge(rule: Rule, program: Program) -> Iterator[Row]:
    """The rows that a rule is asked about, in the order in which both packs ask."""
    return program.of_type(*sorted(rule.types))


def configured_options(rule: Rule, configured: Mapping[str, Any] | None) -> dict[str, Any]:
    """The value of each option of a rule, with integers as such."""
    return rule.defaults() | _unwrapped(dict(configured or {}))


def violation_line(rule: Rule, row: Row, finding: Finding) -> str:
    """One line: `name: path is VALUE: message; fix (url)`."""
    place = f" {finding.path}" if finding.path else ""
    value = "" if finding.value is None else f" is {_shown(finding.value)}"
    said = f"{name(row)}:{place}{value}: " if place or value else f"{name(row)}: "
    return " ".join(f"{said}{finding.message}; {rule.fix} ({rule.url})".split())


def _shown(value: object) -> str:
    if is_unknown(value) and not isinstance(value, (list, Mapping)):
        return repr(value)
    text = json.dumps(value, default=repr, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _schema(rule: Rule) -> PolicyConfigSchema | None:
    properties: dict[str, dict[str, Any]] = {
        key: {"type": option.kind, "default": option.default, "description": option.description}
        for key, option in rule.options.items()
    }
    return PolicyConfigSchema(properties=properties) if properties else None


def _row(args: ResourceValidationArgs) -> dict[str, Any]:
    return {
        "urn": args.urn,
        "type": args.resource_type,
        "name": args.name,
        "parent": args.opts.parent,
        "inputs": _unwrapped(args.props),
        "dependencies": [],
        "propertyDependencies": {},
        "protect": args.opts.protect,
        "retainOnDelete": False,
    }


def _row_in_stack(resource: PolicyResource) -> dict[str, Any]:
    return {
        "urn": resource.urn,
        "type": resource.resource_type,
        "name": resource.name,
        "parent": resource.opts.parent,
        "inputs": _unwrapped(resource.props),
        "dependencies": [each.urn for each in resource.dependencies],
        "propertyDependencies": {
            key: [each.urn for each in linked]
            for key, linked in resource.property_dependencies.items()
        },
        "protect": resource.opts.protect,
        "retainOnDelete": False,
    }


def _unwrapped(value: Any) -> Any:
    """Plain values from the SDK's proxies, which raise where a rule touches an unknown one."""
    if isinstance(value, (_DictProxy, _ListProxy)):
        value = cast("Any", value)["__target"]
    if isinstance(value, dict):
        return {key: _unwrapped(each) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_unwrapped(each) for each in cast("list[Any]", value)]
    if isinstance(value, (pulumi.Asset, pulumi.Archive)):
        return ASSET
    return whole(value) if isinstance(value, float) else with_unknowns(value)

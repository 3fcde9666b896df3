"""`python -m policy.page [--write PAGE | --check PAGE]`: docs/rules.md, made from the rules."""

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from fabric.generated_page import print_write_or_check
from fabric.rows import Row, mapping, text, texts
from policy.catalogue import RULES
from policy.left_out import LEFT_OUT
from policy.rule import Rule

INTRODUCTION = """\
# Rules

Made by `python -m policy.page --write docs/rules.md` from the rules themselves. How to use them,
set their levels and write your own: [policy.md](policy.md).

A **mandatory** rule stops a deployment, an **advisory** one only speaks. A rule about the whole
program speaks in a preview, and in an update after the resources exist; every other one refuses
its resource before it is created.
"""


def page() -> str:
    """The page as Markdown."""
    return "\n".join([INTRODUCTION, *_levels(), *_rules(), *_left_out()]) + "\n"


def _levels() -> Iterator[str]:
    mandatory = sum(rule.level == "mandatory" for rule in RULES)
    in_preview = sum(rule.decides_in_preview for rule in RULES)
    yield f"{len(RULES)} rules, {mandatory} mandatory; {in_preview} decide in a preview already."
    yield ""
    yield "| Rule | Level | Because | In preview | Sees |"
    yield "|---|---|---|---|---|"
    for rule in _by_family():
        preview = "decides" if rule.decides_in_preview else "waits for an update"
        sees = "the program" if rule.whole_program else "one resource"
        link = f"[{rule.id}](#{rule.id})"
        yield f"| {link} | {rule.level} | {rule.level_because} | {preview} | {sees} |"


def _rules() -> Iterator[str]:
    for family, rules in groupby(_by_family(), key=attrgetter("family")):
        yield f"\n## {family.capitalize()}"
        for rule in rules:
            yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    number = f" ({', '.join(rule.references)})" if rule.references else ""
    yield f"\n### {rule.id}\n"
    yield f"**{rule.sentence}**{number}\n"
    yield f"{rule.why} What to do: {rule.fix}. See <{rule.url}>.\n"
    for name, option in rule.options.items():
        default = json.dumps(option.default)
        yield f"- option `{name}` ({option.kind}, default `{default}`): {option.description}\n"
    yield "<details><summary>A program that keeps it, and one that breaks it</summary>\n"
    yield from _program(rule.good)
    yield ""
    yield from _program(rule.bad)
    yield "\n</details>"


def _program(rows: Sequence[Row]) -> Iterator[str]:
    yield "```json"
    for row in rows:
        links = {
            key: [urn.rpartition("::")[2] for urn in texts(urns)]
            for key, urns in mapping(row.get("propertyDependencies")).items()
        }
        shown = {"type": text(row.get("type")), "name": text(row.get("name"))}
        more = {"inputs": row.get("inputs"), **({"comesFrom": links} if links else {})}
        yield json.dumps({**shown, **more}, default=repr)
    yield "```"


def _left_out() -> Iterator[str]:
    yield "\n## Left out\n"
    yield "| Rule of the reference list | Why no rule here judges it |"
    yield "|---|---|"
    for number, reason in LEFT_OUT.items():
        yield f"| {number} | {reason} |"


def _by_family() -> list[Rule]:
    return sorted(RULES, key=lambda rule: (rule.family, rule.id))


def main(arguments: list[str] | None = None) -> int:
    """Print, write or check the page; the exit status is returned."""
    return print_write_or_check(
        page,
        program="python -m policy.page",
        description="Every rule as a Markdown page.",
        arguments=arguments,
    )


if __name__ == "__main__":
    sys.exit(main())

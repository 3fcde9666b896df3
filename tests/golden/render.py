"""A rehearsal as text that a person reviews: one block a resource, stable, made for diffs.

Resources are indented under their parents. What is long is opened: JSON texts and user data are
shown as structures, and this program's own scripts by their file. `${LaunchTemplate x.id}` stands
for what AWS makes up.
"""

import base64
import binascii
import email
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

import yaml

from rehearsal.model import Resource
from rehearsal.report import short_type
from rehearsal.run import REPOSITORY
from tests.support.rehearsing import Rehearsed

WIDTH = 100
WIDTH_IN_LIST = 160  # a row: one network interface, one device
SCRIPTS = REPOSITORY / "fabric" / "job_scripts"
# outputs that AWS makes up, and which other resources refer to
REFERENCES = ("id", "arn", "name", "repositoryUrl")
MADE_UP = re.compile(r"[0-9a-f]{7}")


def render(run: Rehearsed) -> str:
    """The whole rehearsal, ending with what the stack puts out."""
    placeholders = _placeholders(run)
    depths: dict[str | None, int] = {None: -1}
    lines: list[str] = []
    for each in run.resources:
        depth = depths[each.urn] = depths[each.parent] + 1
        lines += (f"{'  ' * depth}{line}" for line in _resource(run, each, placeholders))
        lines.append("")
    lines += ["outputs:", *_block(_opened(run.outputs, placeholders), 1)]
    return "\n".join(lines) + "\n"


def _resource(run: Rehearsed, resource: Resource, placeholders: Mapping[str, str]) -> Iterator[str]:
    yield f"{short_type(resource.type)} {resource.name}"
    inputs = {key: value for key, value in resource.inputs.items() if value not in ({}, [])}
    yield from _block(_opened(inputs, placeholders), 2)
    shown = {urn for urns in resource.property_dependencies.values() for urn in urns}
    kinds = {each.urn: f"{short_type(each.type)} {each.name}" for each in run.resources}
    # what an input refers to is seen in the input
    for name in sorted(kinds[urn] for urn in resource.dependencies if urn not in shown):
        yield f"    (after {name})"
    options = run.options.get(resource.urn)
    said = {
        "external": resource.external,
        "protect": resource.protect,
        "retainOnDelete": resource.retain_on_delete,
        "deleteBeforeReplace": options and options.delete_before_replace,
        "ignoreChanges": options and ", ".join(options.ignore_changes),
        "replaceOnChanges": options and ", ".join(options.replace_on_changes),
    }
    for name, value in said.items():
        if value:
            yield f"    ({name}{'' if value is True else f' {value}'})"


def _placeholders(run: Rehearsed) -> dict[str, str]:
    """A placeholder for every text that was made up, the longest first."""
    found: dict[str, str] = {}
    for each in run.resources:
        if each.external:
            continue
        for key in REFERENCES:
            text = run.options[each.urn].made_up.get(key)
            if isinstance(text, str) and MADE_UP.search(text) and key not in each.inputs:
                kind = short_type(each.type).rpartition(".")[2]
                found.setdefault(text, f"${{{kind} {each.name}.{key}}}")
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[0]), pair[0])))


def _opened(value: Any, placeholders: Mapping[str, str]) -> Any:
    """The value with JSON, MIME and scripts opened, and what was made up replaced."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return {key: _opened(each, placeholders) for key, each in fields.items()}
    if isinstance(value, list):
        return [_opened(each, placeholders) for each in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    if (opened := _json(value)) is not None:
        return _opened(opened, placeholders)
    if (parts := _mime_parts(value)) is not None:
        return {f"{name} (in MIME, base64)": _script(text) for name, text in parts}
    for made_up, placeholder in placeholders.items():
        value = value.replace(made_up, placeholder)
    return _script(value)


def _json(text: str) -> Any:
    try:
        return json.loads(text) if text.startswith(("{", "[")) else None
    except ValueError:
        return None


def _mime_parts(text: str) -> list[tuple[str, str]] | None:
    try:
        document = base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None
    if not document.startswith("Content-Type: multipart/"):
        return None
    parts = [each for each in email.message_from_string(document).walk() if each.get_filename()]
    return [(str(each.get_filename()), str(each.get_payload())) for each in parts]


def _script(text: str) -> str:
    """A script of ours by its file, with what was written into its `@PLACES@`; else the text."""
    if "\n" not in text:
        return text
    quoted = text.startswith("'")
    plain = shlex.split(text)[0] if quoted else text
    for name, pattern in _script_patterns().items():
        if match := pattern.fullmatch(plain.rstrip("\n")):
            filled = [f"{place}={value}" for place, value in match.groupdict().items()]
            notes = ["quoted for the shell"] if quoted else []
            return ", ".join([f"<file {name}>", *filled, *notes])
    return text


@cache
def _script_patterns() -> dict[str, re.Pattern[str]]:
    texts = {
        path.relative_to(REPOSITORY): path.read_text(encoding="ascii").rstrip("\n")
        for path in sorted(SCRIPTS.iterdir())
        if path.is_file()
    }
    return {str(name): re.compile(_pattern(text)) for name, text in texts.items()}


def _pattern(script: str) -> str:
    """The script with each `@PLACE@` as a group of that name."""
    text, *rest = re.split(r"@([A-Z_]+)@", script)
    pattern, seen = re.escape(text), set[str]()
    for place, following in zip(rest[::2], rest[1::2], strict=True):
        pattern += f"(?P={place})" if place in seen else f"(?P<{place}>.*)"
        pattern += re.escape(following)
        seen.add(place)
    return pattern


def _block(value: Any, depth: int) -> Iterator[str]:
    """YAML with short values in one line and long ones opened."""
    indent = "  " * depth
    width = WIDTH_IN_LIST if isinstance(value, list) else WIDTH
    entries: Sequence[tuple[str, Any]]
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        entries = [(f"{key}:", each) for key, each in sorted(fields.items())]
    else:
        entries = [("-", each) for each in cast("list[Any]", value)]
    for head, each in entries:
        line = f"{indent}{head} {_flow(each)}"
        if not isinstance(each, Mapping | list) or len(line) <= width:
            yield line
            continue
        lines = list(_block(each, depth + 1))
        if head == "-":
            lines[0] = f"{indent}- {lines[0].lstrip()}"
        else:
            yield f"{indent}{head}"
        yield from lines


def _flow(value: Any) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, width=10**6, sort_keys=True, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("\n...")

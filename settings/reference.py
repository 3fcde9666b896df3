"""`python -m settings.reference`: every setting as a Markdown page, from the models themselves.

`--write PAGE` writes the page, `--check PAGE` only says by the exit status whether it is current.
The models are read through the JSON schema that pydantic makes of them:
https://docs.pydantic.dev/latest/concepts/json_schema/
"""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast

from fabric.generated_page import print_write_or_check
from settings.errors import PROJECT
from settings.load import SECTIONS

Schema = Mapping[str, Any]

INTRODUCTION = """\
# Settings

Made by `python -m settings.reference --write docs/settings.md` from the models in `settings/`.
Keys that are not listed here are refused. Rules between keys, such as the zone of a reservation and
that of the group which uses it, are checked, too: `make preview` says what is wrong, and where.
A moment is a text such as `2026-12-31T00:00:00Z`. The groups of placement and batch bear names of
at most 32 lower-case letters, digits and hyphens.

`aws:region` is required; the [AWS provider's other settings](https://www.pulumi.com/registry/packages/aws/installation-configuration/)
hold as in any Pulumi program."""

PLAIN_TYPES = {
    "string": "text",
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
}
FORMATS = {"date-time": "moment", "ipv4network": "IPv4 block"}


def page() -> str:
    """The whole page: a chapter for each section, a table for each map in it."""
    lines = [INTRODUCTION]
    for section, model in SECTIONS.items():
        schema = model.model_json_schema(by_alias=True)
        lines += ["", f"## {PROJECT}:{section}", "", schema["description"]]
        lines += _contents(section, schema, schema.get("$defs", {}))
    return "\n".join(lines) + "\n"


def _contents(path: str, schema: Schema, models: Schema) -> Iterator[str]:
    """The table of a map's keys, and the maps in it, each under its own path."""
    if "properties" not in schema:
        yield from ("", f"It is a {_type(path, schema)}.")
        yield from _map_in(path, schema, models)
        return
    fields: Mapping[str, Schema] = schema["properties"]
    if not fields:
        yield from ("", "It has no keys: write `{}`.")
        return
    yield from ("", "| Key | Type | Default | What it is |", "|---|---|---|---|")
    for key, field in fields.items():
        default = "required" if key in schema.get("required", ()) else _default(field)
        about = (f"`{key}`", _type(f"{path}.{key}", field), default, field["description"])
        yield f"| {' | '.join(about)} |"
    for key, field in fields.items():
        yield from _map_in(f"{path}.{key}", field, models)


def _map_in(path: str, schema: Schema, models: Schema) -> Iterator[str]:
    if "anyOf" in schema:
        for each in schema["anyOf"]:
            yield from _map_in(path, each, models)
    elif "$ref" in schema:
        model = models[schema["$ref"].rpartition("/")[2]]
        yield from ("", f"### {path}", "", model["description"])
        yield from _contents(path, model, models)
    elif schema.get("type") == "array":
        yield from _map_in(f"{path}[]", schema["items"], models)
    elif schema.get("type") == "object":
        yield from _map_in(f"{path}.NAME", schema["additionalProperties"], models)


def _type(path: str, schema: Schema) -> str:
    if "anyOf" in schema:
        kinds = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(_type(path, each) for each in kinds)
    if "$ref" in schema:
        return f"[map](#{_anchor(path)})"
    if "enum" in schema:
        *first, last = (f"`{each}`" for each in schema["enum"])
        return f"{', '.join(first)} or {last}"
    kind: str = schema["type"]
    if kind == "array":
        return f"list of {_type(f'{path}[]', schema['items'])}"
    if kind == "object":
        return f"map of names to {_type(f'{path}.NAME', schema['additionalProperties'])}"
    return FORMATS.get(schema.get("format", ""), PLAIN_TYPES[kind]) + _limits(schema)


def _anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading without spaces."""
    return "".join(each for each in heading.lower() if each.isalnum() or each in "-_")


def _limits(schema: Schema) -> str:
    limits = {"exclusiveMinimum": "above", "minimum": "from", "maximum": "to"}
    return "".join(f" {word} {schema[key]:g}" for key, word in limits.items() if key in schema)


def _default(field: Schema) -> str:
    """The default as one writes it; nothing for none, and for a map whose keys have their own."""
    default: Any = field.get("default")
    if not default and default not in (False, 0):
        return ""
    if isinstance(default, dict):
        return ""
    if isinstance(default, list):
        return ", ".join(f"`{each['name']}`" for each in cast("list[dict[str, str]]", default))
    return f"`{json.dumps(default).strip(chr(34))}`"


def main(arguments: list[str] | None = None) -> int:
    """Print, write or check the page; the exit status is returned."""
    return print_write_or_check(
        page,
        program="python -m settings.reference",
        description="Every setting as a Markdown page.",
        arguments=arguments,
    )


if __name__ == "__main__":
    sys.exit(main())

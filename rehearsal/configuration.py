"""Reads Pulumi.yaml and a stack's file into the configuration that the CLI would hand a program."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from rehearsal.model import Json, Problem

PLACEHOLDER = "[secret]"


class ConfigurationError(Exception):
    """The files cannot be used; `problems` says why."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


@dataclass(frozen=True, kw_only=True, slots=True)
class StackConfiguration:
    """A stack's configuration with the project's defaults, keys with their namespace.

    Attributes:
        values: As written, encrypted values replaced by a placeholder.
        secret_keys: Keys that hold an encrypted value, at the top or deeper.
        problems: What the CLI would refuse about a value's type; the program may say it better.
    """

    project: str
    stack: str
    values: Mapping[str, Json]
    secret_keys: frozenset[str]
    problems: tuple[Problem, ...]

    @property
    def texts(self) -> dict[str, str]:
        """Every value as text, objects as JSON: the form in which a program receives it."""
        return {key: _text(value) for key, value in self.values.items()}

    @property
    def region(self) -> str | None:
        """The AWS region that the stack states, if any."""
        region = self.values.get("aws:region")
        return None if region is None else str(region)

    def section(self, name: str) -> Json:
        """The value of one of the project's own keys, None when there is none."""
        return self.values.get(f"{self.project}:{name}")


def read_configuration(
    stack_or_file: str, *, project: Path, overrides: Mapping[str, Json] | None = None
) -> StackConfiguration:
    """The configuration of a stack by name, or of any file in the form of a Pulumi.<stack>.yaml.

    Defaults and type checks are the CLI's,
    https://github.com/pulumi/pulumi/blob/master/sdk/go/common/workspace/config.go.

    Raises:
        ConfigurationError: A file is missing or has not the right form, or a key that the
            project requires is missing.
    """
    path = find_stack_file(stack_or_file, project=project)
    about_project = _mapping_in(project / "Pulumi.yaml")
    about_stack = _mapping_in(path)
    if not isinstance(about_stack.get("config"), dict):
        raise ConfigurationError(
            Problem(
                key=path.name,
                value=None,
                reason="has no map of the name config",
                fix="write it in the form of Pulumi.dev.yaml: config: and keys below it",
            )
        )
    name = str(about_project.get("name", project.name))
    written: dict[str, Json] = {**about_stack["config"], **(overrides or {})}
    qualified = {_qualified(key, project=name): value for key, value in written.items()}
    schema = _schema(about_project.get("config"), project=name)
    missing = [
        Problem(
            key=key,
            value=None,
            reason=f"is missing from {path.name}, and Pulumi.yaml has no default for it",
            fix="add it",
        )
        for key, rule in schema.items()
        if key not in qualified and rule.required
    ]
    if missing:
        raise ConfigurationError(*missing)
    defaults = {key: rule.default for key, rule in schema.items() if rule.default is not None}
    values = defaults | qualified
    return StackConfiguration(
        project=name,
        stack=stack_name(stack_or_file),
        values={key: _without_ciphertext(value) for key, value in values.items()},
        secret_keys=frozenset(key for key, value in values.items() if _has_ciphertext(value)),
        problems=tuple(
            Problem(
                key=key,
                value=None if isinstance(values[key], dict | list) else values[key],
                reason=f"is not of the type {rule.type}, which Pulumi.yaml states",
                fix=f"write a value of the type {rule.type}",
            )
            for key, rule in schema.items()
            if key in values and not _has_type(values[key], rule.type)
        ),
    )


def stack_name(stack_or_file: str) -> str:
    """`dev` for `dev` and for `Pulumi.dev.yaml`, `batch-p4d` for `examples/batch-p4d.yaml`."""
    if not _looks_like_file(stack_or_file):
        return stack_or_file
    return Path(stack_or_file).stem.removeprefix("Pulumi.")


def find_stack_file(stack_or_file: str, *, project: Path) -> Path:
    """The path of the stack's file; a relative path is tried from here, then from the project.

    Raises:
        ConfigurationError: There is no such file.
    """
    if not _looks_like_file(stack_or_file):
        path = project / f"Pulumi.{stack_or_file}.yaml"
        candidates = [path]
    else:
        path = Path(stack_or_file)
        candidates = [path, project / path]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    known = [each.name[len("Pulumi.") : -len(".yaml")] for each in project.glob("Pulumi.*.yaml")]
    known += [str(each.relative_to(project)) for each in project.glob("examples/*.yaml")]
    near = difflib.get_close_matches(stack_or_file, known, n=1, cutoff=0.5)
    raise ConfigurationError(
        Problem(
            key=path.name,
            value=stack_or_file,
            reason="does not exist",
            fix=f"did you mean {near[0]}?" if near else f"use one of: {', '.join(sorted(known))}",
        )
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    """What Pulumi.yaml says about one key."""

    type: str | None
    default: Json
    required: bool


def _schema(config: Json, *, project: str) -> dict[str, _Rule]:
    rules: dict[str, _Rule] = {}
    for written, entry in cast("dict[str, Json]", config or {}).items():
        key = _qualified(written, project=project)
        own = key.startswith(f"{project}:")
        about = cast("dict[str, Json]", entry if isinstance(entry, dict) else {"value": entry})
        default = about.get("default", about.get("value"))
        rules[key] = _Rule(
            type=about.get("type"), default=default, required=own and default is None
        )
    return rules


def _qualified(key: str, *, project: str) -> str:
    return key if ":" in key else f"{project}:{key}"


def _looks_like_file(stack_or_file: str) -> bool:
    return "/" in stack_or_file or stack_or_file.endswith((".yaml", ".yml"))


def _has_type(value: Json, wanted: str | None) -> bool:
    text = isinstance(value, str)
    match wanted:
        case "integer":
            number = isinstance(value, int) and not isinstance(value, bool)
            return number or (text and re.fullmatch(r"[-+]?\d+", value) is not None)
        case "boolean":
            return isinstance(value, bool) or (text and value in ("true", "false"))
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case "string":
            return not isinstance(value, dict | list) or _is_ciphertext(value)
        case _:
            return True


def _text(value: Json) -> str:
    match value:
        case str():
            return value
        case None:
            return ""
        case _:
            return json.dumps(value, separators=(",", ":"))


def _is_ciphertext(value: Json) -> bool:
    return isinstance(value, dict) and list(cast("dict[str, Json]", value)) == ["secure"]


def _has_ciphertext(value: Json) -> bool:
    return any(_is_ciphertext(each) for each in _walk(value))


def _walk(value: Json) -> Iterator[Json]:
    yield value
    if isinstance(value, dict):
        for each in cast("dict[str, Json]", value).values():
            yield from _walk(each)
    elif isinstance(value, list):
        for each in cast("list[Json]", value):
            yield from _walk(each)


def _without_ciphertext(value: Json) -> Json:
    if _is_ciphertext(value):
        return PLACEHOLDER
    if isinstance(value, dict):
        items = cast("dict[str, Json]", value).items()
        return {key: _without_ciphertext(each) for key, each in items}
    if isinstance(value, list):
        return [_without_ciphertext(each) for each in cast("list[Json]", value)]
    return value


class _Loader(yaml.CSafeLoader):
    """YAML as the CLI reads it: a key once, `on` and `22:00` and dates are texts."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value} is there twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


# YAML 1.1 makes booleans of on and yes, base-60 numbers of 22:00, dates of 2026-12-31; Pulumi's
# reader does not, https://github.com/go-yaml/yaml/tree/v3#compatibility
_SCALARS = (
    ("bool", re.compile(r"(true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    ("int", re.compile(r"[-+]?(0|[1-9][0-9]*|0x[0-9a-fA-F]+)$"), "-+0123456789"),
)
_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if not tag.endswith((":timestamp", ":bool", ":int"))
    ]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
for _kind, _pattern, _first in _SCALARS:
    for _character in _first:
        _Loader.yaml_implicit_resolvers.setdefault(_character, []).insert(
            0, (f"tag:yaml.org,2002:{_kind}", _pattern)
        )


def _mapping_in(path: Path) -> dict[str, Json]:
    """The map in a YAML file.

    Raises:
        ConfigurationError: There is no file, it is not YAML, or it is not a map.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - safe
    except OSError as error:
        raise _unreadable(path, str(error.strerror), "create it") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _unreadable(
            path, f"is not YAML: {' '.join(str(error).split())}", "mend it"
        ) from error
    if not isinstance(content, dict):
        raise _unreadable(
            path, "is not a map of keys and values", "write config: and keys below it"
        )
    return cast("dict[str, Json]", content)


def _unreadable(path: Path, reason: str, fix: str) -> ConfigurationError:
    return ConfigurationError(Problem(key=path.name, value=None, reason=reason, fix=fix))

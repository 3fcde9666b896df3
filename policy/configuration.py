"""The configuration of a pack, as the CLI reads it from `--policy-pack-config`."""

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2

LEVELS: Final = ("advisory", "mandatory", "remediate", "disabled")
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "string": (str,),
}

Configuration = Mapping[str, analyzer_pb2.PolicyConfig]
"""The level and the options of each rule."""


class ConfigurationError(ValueError):
    """A configuration says what no rule knows."""


def read_configuration(
    text: str, rules: Iterable[analyzer_pb2.PolicyInfo]
) -> dict[str, analyzer_pb2.PolicyConfig]:
    """What the engine would configure: a rule's own level and defaults, then `all`, then its key.

    Such as `{"all": "advisory", "a-rule": {"enforcementLevel": "mandatory", "an-option": 3}}`. The
    engine takes no notice of a rule's or an option's name that is wrong; here it is an error.
    https://www.pulumi.com/docs/iac/using-pulumi/crossguard/configuration/

    Raises:
        ConfigurationError: The text is no such object.
    """
    about = {rule.name: rule for rule in rules}
    given = {key: _entry(key, value) for key, value in _object(text).items()}
    given.pop("environments", None)  # the CLI's own key
    for unknown in sorted(given.keys() - about.keys() - {"all"}):
        raise ConfigurationError(f"{unknown} is no rule{_instead(unknown, about)}")
    for_all = given.get("all", {})
    if for_all.keys() - {"enforcementLevel"}:
        raise ConfigurationError("all takes an enforcementLevel only")
    return {name: _configured(rule, for_all | given.get(name, {})) for name, rule in about.items()}


def _object(text: str) -> dict[str, Any]:
    try:
        read: Any = json.loads(text or "{}")
    except ValueError as error:
        raise ConfigurationError(f"it is no JSON: {error}") from None
    if not isinstance(read, dict):
        raise ConfigurationError("it is not an object of rules")
    return cast("dict[str, Any]", read)


def _entry(key: str, value: Any) -> dict[str, Any]:
    """A level alone is short for an object with nothing else in it."""
    if key == "environments":
        return {}
    entry: Any = {"enforcementLevel": value} if isinstance(value, str) else value
    if not isinstance(entry, dict):
        raise ConfigurationError(f"{key} is neither a level nor an object")
    read = cast("dict[str, Any]", entry)
    if read.get("enforcementLevel", "advisory") not in LEVELS:
        level = json.dumps(read["enforcementLevel"])
        raise ConfigurationError(f"{key}: {level} is none of {', '.join(LEVELS)}")
    return read


def _configured(
    rule: analyzer_pb2.PolicyInfo, given: Mapping[str, Any]
) -> analyzer_pb2.PolicyConfig:
    schema: dict[str, dict[str, Any]] = json_format.MessageToDict(rule.configSchema.properties)
    options = {key: option["default"] for key, option in schema.items() if "default" in option}
    for key, value in given.items():
        if key == "enforcementLevel":
            continue
        if key not in schema:
            raise ConfigurationError(f"{rule.name} has no option {key}{_instead(key, schema)}")
        kind = schema[key]["type"]
        if not isinstance(value, _KINDS[kind]) or (kind != "boolean" and isinstance(value, bool)):
            raise ConfigurationError(f"{rule.name}.{key}: {json.dumps(value)} is no {kind}")
        options[key] = value
    level = given.get("enforcementLevel")
    configured = analyzer_pb2.PolicyConfig(
        enforcementLevel=rule.enforcementLevel
        if level is None
        else analyzer_pb2.EnforcementLevel.Value(level.upper())
    )
    configured.properties.update(options)
    return configured


def _instead(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]}" if close else ""

"""Resources as the engine sends them, read into rows once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, cast

from google.protobuf.struct_pb2 import Struct, Value

from fabric.rows import Row
from policy.rule import Finding
from policy.values import UNKNOWN, with_unknowns

# How the engine marks what is more than JSON:
# https://github.com/pulumi/pulumi/blob/master/sdk/go/common/resource/properties.go
SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a mark, no password
ASSETS: Final = frozenset({"c44067f5952c0a294b673a41bacd8c17", "0def7320c3a5731c473e5ecbe6d01bc7"})
HIDDEN: Final = "[secret]"
ASSET: Final[Mapping[str, Any]] = {"asset": {}}


class SentOptions(Protocol):
    """The options of a resource that rules can see."""

    @property
    def protect(self) -> bool: ...  # noqa: D102
    @property
    def parent(self) -> str: ...  # noqa: D102


class SentResource(Protocol):
    """What an AnalyzeRequest and an AnalyzerResource have in common."""

    @property
    def urn(self) -> str: ...  # noqa: D102
    @property
    def type(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def properties(self) -> Struct: ...  # noqa: D102
    @property
    def options(self) -> SentOptions: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True, slots=True)
class Secrets:
    """Where the secrets of a resource are, as paths of inputs, and the texts that they hold."""

    paths: set[str] = field(default_factory=set[str])
    texts: set[str] = field(default_factory=set[str])

    def hidden(self, finding: Finding, instead: str) -> Finding:
        """The finding, which says `instead` and no value where it is about a secret."""
        if any(
            _is_within(finding.path, path) or _is_within(path, finding.path) for path in self.paths
        ):
            return replace(finding, value=HIDDEN, message=instead)
        return finding

    def blotted(self, line: str) -> str:
        """The line without the text of any secret, which a rule may have met elsewhere."""
        for text in sorted(self.texts, key=len, reverse=True):
            line = line.replace(text, HIDDEN)
        return line


def received_row(
    sent: SentResource,
    secrets: Secrets,
    *,
    dependencies: Iterable[str] = (),
    property_dependencies: Mapping[str, Iterable[str]] | None = None,
) -> Row:
    """The row of a resource; what is secret in it is noted in `secrets`."""
    by_property = property_dependencies or {}
    return {
        "urn": sent.urn,
        "type": sent.type,
        "name": sent.name,
        "parent": sent.options.parent or None,
        "inputs": _mapping(sent.properties, "", secrets),
        "dependencies": list(dependencies),
        "propertyDependencies": {key: list(urns) for key, urns in by_property.items()},
        "protect": sent.options.protect,
        "retainOnDelete": False,  # the engine does not tell
    }


def _mapping(sent: Struct, path: str, secrets: Secrets) -> Any:
    fields = cast("Mapping[str, Value]", sent.fields)
    if SIGNATURE in fields:
        return _marked(fields, path, secrets)
    return {
        key: _plain(value, f"{path}.{key}" if path else key, secrets)
        for key, value in fields.items()
    }


def _marked(fields: Mapping[str, Value], path: str, secrets: Secrets) -> Any:
    """A secret's value, an empty asset, and UNKNOWN for a mark that came after this SDK."""
    mark = fields[SIGNATURE].string_value
    if mark in ASSETS:
        return ASSET
    if mark != SECRET or "value" not in fields:
        return UNKNOWN
    value = _plain(fields["value"], path, secrets)
    secrets.paths.add(path)
    secrets.texts.update(_long_texts(value))
    return value


def _plain(sent: Value, path: str, secrets: Secrets) -> Any:
    match sent.WhichOneof("kind"):
        case "string_value":
            return with_unknowns(sent.string_value)
        case "struct_value":
            return _mapping(sent.struct_value, path, secrets)
        case "list_value":
            values = enumerate(sent.list_value.values)
            return [_plain(value, f"{path}[{position}]", secrets) for position, value in values]
        case "number_value":
            return whole(sent.number_value)
        case "bool_value":
            return sent.bool_value
        case _:
            return None


def whole(value: float) -> float:
    """An integer where the number is one: the protocol has only floating point."""
    return int(value) if value.is_integer() else value


def _long_texts(value: Any) -> Iterable[str]:
    """The texts in a value that are long enough (4 characters) not to be found by chance."""
    if isinstance(value, str) and len(value) >= 4:
        yield value
    elif isinstance(value, dict):
        for each in cast("dict[str, Any]", value).values():
            yield from _long_texts(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _long_texts(each)


def _is_within(path: str, outer: str) -> bool:
    return not outer or path == outer or path.startswith((f"{outer}.", f"{outer}["))

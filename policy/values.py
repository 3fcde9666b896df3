"""Values that a preview does not know yet."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast


class Unknown:
    """The one value of an input that only an update will know."""

    def __repr__(self) -> str:
        return "[unknown]"


UNKNOWN: Final = Unknown()

# What the engine sends in place of an unknown value, one text for each type of value:
# https://github.com/pulumi/pulumi/blob/master/sdk/go/common/resource/plugin/rpc.go
_SENTINELS = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)


def with_unknowns(value: Any) -> Any:
    """The value with `UNKNOWN` in place of the engine's texts for it, at any depth."""
    if isinstance(value, str):
        return UNKNOWN if value in _SENTINELS else value
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value).items()
        return {key: with_unknowns(each) for key, each in entries}
    if isinstance(value, (list, tuple)):
        return [with_unknowns(each) for each in cast("Iterable[Any]", value)]
    return value


def is_unknown(value: object) -> bool:
    """Whether the value, or anything in it, is unknown."""
    if isinstance(value, Mapping):
        return any(is_unknown(each) for each in cast("Mapping[str, Any]", value).values())
    if isinstance(value, list):
        return any(is_unknown(each) for each in cast("list[Any]", value))
    return value is UNKNOWN

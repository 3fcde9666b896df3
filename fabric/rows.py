"""Reading resource rows as they come, from any Pulumi program: what does not fit is absent.

A row is one resource as `python -m rehearsal --json` prints it: `urn`, `type`, `name`, `parent`,
`inputs` (Pulumi's camelCase), `dependencies`, `propertyDependencies`, `protect`, `retainOnDelete`.
No reader raises: a key may be missing and a value may be of another type than the provider's.
"""

import math
from collections.abc import Mapping
from typing import Any, cast

Row = Mapping[str, Any]

_LARGEST = 1e12  # nothing that AWS counts or sizes comes near it


def inputs(row: Row) -> Mapping[str, Any]:
    """The inputs of a row."""
    return mapping(row.get("inputs"))


def at(row: Row, path: str) -> Any:
    """The input at a path such as `scalingConfig.maxSize`, or None; not through lists."""
    value: Any = inputs(row)
    for key in path.split("."):
        value = mapping(value).get(key)
    return value


def name(row: Row) -> str:
    """The resource name of a row, else the last part of its URN."""
    return text(row.get("name")) or text(row.get("urn")).rpartition("::")[2]


def dependencies(row: Row, key: str) -> list[str]:
    """URNs that one input came from; all of the row's where nothing was recorded by input."""
    by_property = mapping(row.get("propertyDependencies"))
    return texts(by_property.get(key) if by_property else row.get("dependencies"))


def text(value: object) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def texts(value: object) -> list[str]:
    """The strings of a list."""
    return [one for one in _items(value) if isinstance(one, str)]


def number(value: object) -> float | None:
    """A count or size, also from its decimal text; None if it is neither or makes no sense."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        result = float(value)
    except (ValueError, OverflowError):
        return None
    return result if 0 <= result <= _LARGEST and not math.isnan(result) else None


def true(value: object) -> bool:
    """Whether a flag is set; providers also write flags as text."""
    return value is True or text(value).lower() == "true"


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The mappings of a list."""
    return [cast("Mapping[str, Any]", one) for one in _items(value) if isinstance(one, Mapping)]


def _items(value: object) -> list[object]:
    return list(cast("list[object]", value)) if isinstance(value, (list, tuple)) else []

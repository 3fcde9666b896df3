"""Programs as a preview sees them: what AWS makes up is not known yet."""

import re
from typing import Any, cast

from policy.values import UNKNOWN
from tests.policy.mutations import Rows

# ids and ARNs, which only a creation gives
_MADE_BY_AWS = re.compile(
    r"(sg|subnet|vpc|lt|cr|igw|nat|rtb|eipalloc|vpce|fs|eni)-[0-9a-z]+|arn:.*"
)


def as_in_preview(rows: Rows) -> Rows:
    """The rows with UNKNOWN for ids and ARNs in the inputs that come from other resources.

    A text that holds such a value inside, such as a policy, is unknown as a whole.
    """
    return [{**row, "inputs": _inputs(row)} for row in rows]


def _inputs(row: dict[str, Any]) -> dict[str, Any]:
    linked = row["propertyDependencies"]
    return {
        key: _unknown(value) if linked.get(key) else value for key, value in row["inputs"].items()
    }


def _unknown(value: Any) -> Any:
    if isinstance(value, str):
        is_made = _MADE_BY_AWS.fullmatch(value) or value.startswith("{")
        return UNKNOWN if is_made else value
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        return {key: _unknown(each) for key, each in entries}
    if isinstance(value, list):
        return [_unknown(each) for each in cast("list[Any]", value)]
    return value

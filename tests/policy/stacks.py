"""Programs to judge: our own stacks, those of others, and either as the engine sends them."""

import json
from functools import cache
from pathlib import Path
from typing import Any, cast

from policy.values import UNKNOWN
from tests.policy.mutations import Rows
from tests.policy.preview import as_in_preview
from tests.support.rehearsing import STACKS, rehearsed_stack

FOREIGN = sorted(str(path) for path in Path(__file__).with_name("foreign").glob("*.json"))
PROGRAMS = (*STACKS, *FOREIGN)
UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"  # what the engine sends for UNKNOWN


@cache
def rows_of(program: str) -> Rows:
    """The rows of a stack of ours, or of a file of somebody else's."""
    if program in FOREIGN:
        return json.loads(Path(program).read_text())
    return [row.to_json() for row in rehearsed_stack(program).resources if not row.external]


def in_preview(rows: Rows) -> Rows:
    """The rows as the engine sends them in a preview."""
    return cast("Rows", _sent(as_in_preview(rows)))


def _sent(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sent(each) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_sent(each) for each in cast("list[Any]", value)]
    return UNKNOWN_TEXT if value is UNKNOWN else value

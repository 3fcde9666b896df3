"""Ways to break a good stack, so that it can be seen that each rule notices."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutation:
    """One way to break the good stack `stack` so that `rule` must notice.

    `stack` is `dev`, an example's name, or the name of a program in `tests/policy/foreign`.
    `breaks` changes the rows in place.
    """

    rule: str
    stack: str
    what: str
    breaks: Callable[[Rows], None]

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


def broken(rows: Rows, mutation: Mutation) -> Rows:
    """A copy of the rows with the mutation in it."""
    changed = copy.deepcopy(rows)
    mutation.breaks(changed)
    return changed


def of_type(rows: Rows, short: str) -> Iterator[dict[str, Any]]:
    """The rows whose type ends in `:Short`, such as `LaunchTemplate`."""
    return (row for row in rows if row["type"].endswith(f":{short}"))


def first(rows: Rows, short: str) -> dict[str, Any]:
    """The first row of a type."""
    return next(of_type(rows, short))


def edit_json(row: dict[str, Any], key: str, change: Callable[[Any], object]) -> None:
    """Change a JSON text among a row's inputs, such as `nodeProperties`."""
    value = json.loads(row["inputs"][key])
    change(value)
    row["inputs"][key] = json.dumps(value)

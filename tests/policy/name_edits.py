"""Short ways to say what a mutation changes, by resource name."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.policy.mutations import Mutation, Rows

Change = Callable[[Rows], None]


def row_of(rows: Rows, name: str, kind: str = "") -> dict[str, Any]:
    """The row with this resource name whose type ends in `kind`."""
    return next(row for row in rows if row["name"] == name and row["type"].endswith(kind))


def put(name: str, path: str, value: object, *, kind: str = "") -> Change:
    """Set an input such as `placement.groupName`, or leave it out where the value is None."""
    *parents, last = path.split(".")

    def change(rows: Rows) -> None:
        holder = row_of(rows, name, kind)["inputs"]
        for key in parents:
            holder = holder.setdefault(key, {})
        if value is None:
            holder.pop(last, None)
        else:
            holder[last] = value

    return change


def link(name: str, key: str, *sources: str, kind: str = "") -> Change:
    """Let an input come from these resources and no others."""

    def change(rows: Rows) -> None:
        row = row_of(rows, name, kind)
        row["propertyDependencies"][key] = [row_of(rows, each)["urn"] for each in sources]

    return change


def retype(name: str, type_: str) -> Change:
    """Let a resource be of another type."""

    def change(rows: Rows) -> None:
        row_of(rows, name)["type"] = type_

    return change


def both(*changes: Change) -> Change:
    """One change after the other."""

    def change(rows: Rows) -> None:
        for each in changes:
            each(rows)

    return change


def in_stack(stack: str, rule: str, *ways: tuple[str, Change]) -> Iterator[Mutation]:
    """Mutations of one stack that one rule must notice, each as (what, change)."""
    for what, breaks in ways:
        yield Mutation(rule=rule, stack=stack, what=what, breaks=breaks)

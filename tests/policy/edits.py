"""Short ways to say what a mutation changes."""

from collections.abc import Callable
from typing import Any

from tests.policy.mutations import Rows, of_type

Break = Callable[[Rows], None]


def named(rows: Rows, short: str, name: str) -> dict[str, Any]:
    """The row of a type with this resource name."""
    return next(row for row in of_type(rows, short) if row["name"] == name)


def put(short: str, name: str, path: str, value: object) -> Break:
    """Set an input, such as `vpcConfig.subnetIds` or `networkInterfaces.0.subnetId`."""

    def change(rows: Rows) -> None:
        holder, key = _holder(named(rows, short, name)["inputs"], path)
        holder[key] = value

    return change


def drop(short: str, name: str, path: str) -> Break:
    """Leave an input out."""

    def change(rows: Rows) -> None:
        holder, key = _holder(named(rows, short, name)["inputs"], path)
        del holder[key]

    return change


def unlink(short: str, name: str, key: str, *other: str) -> Break:
    """Let an input no longer come from the resources whose URN ends in one of the names."""

    def change(rows: Rows) -> None:
        row = named(rows, short, name)
        gone = [urn for urn in row["propertyDependencies"][key] if urn.endswith(other)]
        assert gone
        row["propertyDependencies"][key] = [
            urn for urn in row["propertyDependencies"][key] if urn not in gone
        ]
        row["dependencies"] = [urn for urn in row["dependencies"] if urn not in gone]

    return change


def remove(short: str, name: str) -> Break:
    """Take a resource out of the program."""

    def change(rows: Rows) -> None:
        rows.remove(named(rows, short, name))

    return change


def add(
    type_: str, name: str, links: dict[str, tuple[str, str]] | None = None, **inputs: Any
) -> Break:
    """Add a resource; `links` names the type and name of what an input comes from."""

    def change(rows: Rows) -> None:
        urns = {key: [named(rows, *other)["urn"]] for key, other in (links or {}).items()}
        rows.append(
            {
                "urn": f"urn:pulumi:prod::research::{type_}::{name}",
                "type": type_,
                "name": name,
                "parent": None,
                "inputs": inputs,
                "dependencies": sorted({urn for each in urns.values() for urn in each}),
                "propertyDependencies": urns,
                "protect": False,
                "retainOnDelete": False,
            }
        )

    return change


def both(*changes: Break) -> Break:
    """One change after the other."""

    def change(rows: Rows) -> None:
        for each in changes:
            each(rows)

    return change


def _holder(inputs: dict[str, Any], path: str) -> tuple[Any, Any]:
    *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    holder: Any = inputs
    for key in parents:
        holder = holder[key]
    return holder, last

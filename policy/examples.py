"""Short ways to write the programs that a rule's documentation and tests show."""

from typing import Any


def resource(
    type_: str, name: str = "it", *, links: dict[str, list[str]] | None = None, **inputs: Any
) -> dict[str, Any]:
    """A row; `links` names, for an input, the resources of the example that it comes from."""
    by_property = {key: [_urn(each) for each in names] for key, names in (links or {}).items()}
    return {
        "urn": _urn(name),
        "type": type_,
        "name": name,
        "parent": None,
        # a resource without any input would be one that was only read
        "inputs": inputs or {"tags": {"Name": name}},
        "dependencies": sorted({urn for urns in by_property.values() for urn in urns}),
        "propertyDependencies": by_property,
        "protect": False,
        "retainOnDelete": False,
    }


def interface(card: int, device: int, kind: str = "efa-only", **more: Any) -> dict[str, Any]:
    """One entry of a launch template's `networkInterfaces`."""
    return {
        "networkCardIndex": card,
        "deviceIndex": device,
        "interfaceType": kind,
        "securityGroups": ["sg-0123456789abcdef0"],
        **more,
    }


def _urn(name: str) -> str:
    return f"urn:pulumi:example::example::example::{name}"

"""What a launch template says of its nodes, and the facts of instance types."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from fabric.catalogue import InstanceType
from fabric.catalogue import instance_types as catalogue_types
from fabric.rows import Row, inputs, mapping, number, text, texts
from policy.values import UNKNOWN, is_unknown


@dataclass(frozen=True, kw_only=True, slots=True)
class Interface:
    """One network interface of a launch template; `card` and `device` are None where unknown."""

    card: int | None
    device: int | None
    kind: str
    path: str
    settings: Mapping[str, Any]

    @property
    def is_efa(self) -> bool:
        """Whether it has an EFA device, with or without an IP address."""
        return self.kind in ("efa", "efa-only")


def interfaces(template: Row) -> list[Interface]:
    """The network interfaces of a launch template, in its order.

    One that only an update will know is there with neither card nor device, and so is one for a
    list that only an update will know. An index that is left out is 0, and a type that is left out
    is `interface`:
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateInstanceNetworkInterfaceSpecificationRequest.html
    """
    listed = inputs(template).get("networkInterfaces")
    if not isinstance(listed, list):
        listed = [listed] if listed is UNKNOWN else []
    return [
        _interface(entry, path=f"networkInterfaces[{position}]")
        for position, entry in enumerate(cast("list[object]", listed))
        if _is_interface(entry)
    ]


def launched_types(launcher: Row) -> list[str]:
    """The instance types that a compute environment or a node group names."""
    settings = inputs(launcher)
    return texts(mapping(settings.get("computeResources")).get("instanceTypes")) or texts(
        settings.get("instanceTypes")
    )


def known_types(names: set[str] | list[str]) -> list[InstanceType]:
    """The facts of those names that the catalogue knows, by name."""
    catalogue = catalogue_types()
    return [catalogue[name] for name in sorted(set(names)) if name in catalogue]


def _is_interface(entry: object) -> bool:
    return entry is UNKNOWN or isinstance(entry, Mapping)


def _interface(entry: object, *, path: str) -> Interface:
    settings = mapping(entry)
    if entry is UNKNOWN:
        return Interface(card=None, device=None, kind="unknown", path=path, settings=settings)
    kind = settings.get("interfaceType")
    return Interface(
        card=_index(settings.get("networkCardIndex")),
        device=_index(settings.get("deviceIndex")),
        kind="unknown" if is_unknown(kind) else text(kind) or "interface",
        path=path,
        settings=settings,
    )


def _index(value: object) -> int | None:
    if value is None:
        return 0
    amount = number(value)
    return None if amount is None else int(amount)

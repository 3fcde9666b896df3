"""Every EC2 instance type that this program knows, and the zones that offer it.

`instance_types.json` and `instance_type_offerings.json` come from EC2's own answers, by
`python -m fabric.refresh.catalogue`. `instance_types_overlay.json` is kept by hand and holds what
those answers leave out. All three are read when first asked for.
"""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkCard:
    """A network card of an instance type, and how many network interfaces it takes.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html#network-cards
    """

    index: int
    maximum_interfaces: int
    takes_efa: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class InstanceType:
    """One EC2 instance type; amounts are per instance.

    `gpus` counts the GPU devices that a process sees, each a whole GPU or a fixed part of one.
    `neuron_cores` counts logical NeuronCores, for each of which a training process is started.
    `valid_threads_per_core` is empty where EC2 takes no CpuOptions.
    `efa_cards` are the cards that get an EFA, in order, as many as `maximum_efa_interfaces`.
    `ip_bandwidth_cards` get one more ENA interface for the most IP bandwidth, where AWS names them.
    `ultra_server` types are sold in UltraServers only, by Capacity Block.
    `usage_classes` and `placement_strategies` are in the words of the API.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html
    """

    name: str
    architecture: str
    vcpus: int
    cores: int
    threads_per_core: int
    valid_threads_per_core: tuple[int, ...]
    memory_mib: int
    gpus: int
    gpu_manufacturer: str | None
    gpu_name: str | None
    neuron_devices: int
    neuron_cores: int
    instance_store_disks: int
    instance_store_gb: int
    network_cards: tuple[NetworkCard, ...]
    maximum_efa_interfaces: int
    efa_cards: tuple[int, ...]
    ip_bandwidth_cards: tuple[int, ...]
    usage_classes: tuple[str, ...]
    placement_strategies: tuple[str, ...]
    bare_metal: bool
    burstable: bool
    ultra_server: bool
    network_performance: str

    @property
    def supports_efa(self) -> bool:
        """Whether an Elastic Fabric Adapter can be attached."""
        return self.maximum_efa_interfaces > 0

    @property
    def family(self) -> str:
        """The part of the name before the size, such as `p5`."""
        return self.name.partition(".")[0]

    @property
    def nvidia_gpus(self) -> int:
        """GPU devices that run CUDA."""
        return self.gpus if self.gpu_manufacturer == "NVIDIA" else 0


class UnknownInstanceType(KeyError):
    """No instance type has this `name`; `nearest` are up to three that are spelt like it."""

    def __init__(self, name: str, nearest: tuple[str, ...]) -> None:
        super().__init__(name)
        self.name = name
        self.nearest = nearest

    def __str__(self) -> str:
        hint = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        return f"unknown instance type {self.name}{hint}"


class _InstanceTypes(Mapping[str, InstanceType]):
    """Instance types by name, each made from its record when first asked for."""

    def __init__(self, api: Mapping[str, Any], overlay: Mapping[str, Any]) -> None:
        self._records: dict[str, dict[str, Any]] = {**api, **overlay["instanceTypes"]}
        self._corrections: dict[str, dict[str, Any]] = overlay["corrections"]
        self._neuron: dict[str, dict[str, Any]] = overlay["neuronDevices"]
        self._made: dict[str, InstanceType] = {}

    def __getitem__(self, name: str) -> InstanceType:
        if name not in self._made:
            record = self._records[name] | self._corrections.get(name, {})
            self._made[name] = _instance_type(name, record, self._neuron)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


@cache
def instance_types() -> Mapping[str, InstanceType]:
    """Every known instance type by name: the API's data with the overlay laid over it."""
    return _InstanceTypes(
        _read("instance_types.json")["instanceTypes"], _read("instance_types_overlay.json")
    )


def find_instance_type(name: str) -> InstanceType:
    """The instance type with this name, such as `p5.48xlarge`.

    Raises UnknownInstanceType, with the names that are spelt most like it.
    """
    known = instance_types()
    if name not in known:
        raise UnknownInstanceType(name, tuple(difflib.get_close_matches(name.lower(), known)))
    return known[name]


def zones_offering(*, region: str, instance_type: str) -> tuple[str, ...] | None:
    """The Availability Zones of the region that offer the type, sorted, such as `us-east-1a`.

    Empty where the region does not offer the type. None where the data cannot tell: a region it
    does not cover, or a type that no region answered for (those of the overlay). Zone names belong
    to the account that asked: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-regions-availability-zones.html
    """
    data = _read("instance_type_offerings.json")
    if region not in data["zones"] or instance_type not in data["offerings"]:
        return None
    return _zone_names(region, data["offerings"][instance_type].get(region, ""))


def region_zones(region: str) -> tuple[str, ...]:
    """The region's Availability Zones that offer any instance type, sorted; empty if unknown."""
    return _zone_names(region, _read("instance_type_offerings.json")["zones"].get(region, ""))


def _zone_names(region: str, suffixes: str) -> tuple[str, ...]:
    return tuple(region + suffix for suffix in suffixes.split())


@cache
def _read(file_name: str) -> dict[str, Any]:
    return json.loads(Path(__file__).with_name(file_name).read_bytes())


def _instance_type(name: str, record: dict[str, Any], neuron: dict[str, Any]) -> InstanceType:
    gpus = record.get("gpus", {})
    devices = record.get("neuronDevices", {})
    grouping = neuron.get(devices.get("name"), {}).get("physicalCoresPerLogicalCore", 1)
    store = record.get("instanceStore", {})
    cards = _network_cards(record["networkCards"])
    maximum_efa = record.get("maximumEfaInterfaces", 0)
    able = [card.index for card in cards if card.takes_efa]
    return InstanceType(
        name=name,
        architecture=record["architecture"],
        vcpus=record["vCpus"],
        cores=record["cores"],
        threads_per_core=record["threadsPerCore"],
        valid_threads_per_core=tuple(record["validThreadsPerCore"]),
        memory_mib=record["memoryMiB"],
        gpus=gpus.get("count", 0),
        gpu_manufacturer=gpus.get("manufacturer"),
        gpu_name=gpus.get("name"),
        neuron_devices=devices.get("count", 0),
        neuron_cores=devices.get("count", 0) * devices.get("coresPerDevice", 0) // grouping,
        instance_store_disks=store.get("disks", 0),
        instance_store_gb=store.get("totalGB", 0),
        network_cards=cards,
        maximum_efa_interfaces=maximum_efa,
        efa_cards=tuple(record.get("efaCards", able[:maximum_efa])),
        ip_bandwidth_cards=tuple(record.get("ipBandwidthCards", ())),
        usage_classes=tuple(record["usageClasses"]),
        placement_strategies=tuple(record["placementStrategies"]),
        bare_metal=record["bareMetal"],
        burstable=record["burstable"],
        ultra_server=record.get("ultraServer", False),
        network_performance=record["networkPerformance"],
    )


def _network_cards(groups: list[dict[str, Any]]) -> tuple[NetworkCard, ...]:
    cards = [
        NetworkCard(
            index=index, maximum_interfaces=group["maximumInterfaces"], takes_efa=group["efa"]
        )
        for group in groups
        for index in group["cards"]
    ]
    return tuple(sorted(cards, key=lambda card: card.index))

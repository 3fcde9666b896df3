"""Write the instance type catalogue of fabric from what EC2 answers.

`python -m fabric.refresh.catalogue` asks AWS with the caller's credentials, or whatever
`--endpoint-url` (or AWS_ENDPOINT_URL) names, such as a moto server, with any key. It needs
ec2:DescribeRegions, ec2:DescribeInstanceTypes and ec2:DescribeInstanceTypeOfferings.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3

# Besides every type with EFA or an accelerator, the catalogue holds what head nodes, controllers
# and other machines that do not train run on: these families in these sizes.
CONTROL_FAMILIES = frozenset(
    {"t3", "t4g"}
    | {"m5", "m6i", "m6g", "m7i", "m7g", "m7a"}
    | {"c5", "c6i", "c6g", "c7i", "c7g"}
    | {"r6i", "r7i"}
)
CONTROL_SIZES = frozenset(
    {"nano", "micro", "small", "medium", "large", "xlarge", "2xlarge", "4xlarge", "8xlarge"}
)

# The fields of an answer that tell of an accelerator:
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html
ACCELERATORS = frozenset(
    {"GpuInfo", "NeuronInfo", "InferenceAcceleratorInfo", "FpgaInfo", "MediaAcceleratorInfo"}
)
ARCHITECTURES = ("x86_64", "arm64")
NAMES_PER_CALL = (
    100  # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """What EC2 said, region by region."""

    described: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    zones: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    offered: dict[str, dict[str, set[str]]] = field(default_factory=dict[str, dict[str, set[str]]])


def ask(*, regions: Iterable[str], endpoint_url: str | None) -> Answers:
    """Ask each region what its zones offer, and the first region with a type to describe it.

    A region knows only its own types, and one that offers nothing is left out.
    Raises botocore.exceptions.ClientError or BotoCoreError where EC2 cannot be asked.
    """
    answers = Answers()
    for region in regions:
        client = _ec2(region, endpoint_url)
        pages = client.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone"
        )
        for offering in (each for page in pages for each in page["InstanceTypeOfferings"]):
            zone, name = offering["Location"], offering["InstanceType"]
            answers.zones.setdefault(region, set()).add(zone)
            answers.offered.setdefault(name, {}).setdefault(region, set()).add(zone)
        new = sorted(answers.offered.keys() - answers.described.keys())
        for start in range(0, len(new), NAMES_PER_CALL):
            names = new[start : start + NAMES_PER_CALL]
            for each in client.describe_instance_types(InstanceTypes=names)["InstanceTypes"]:
                answers.described[each["InstanceType"]] = each
    return answers


def enabled_regions(*, endpoint_url: str | None) -> list[str]:
    """The regions that the account can use, sorted."""
    regions = _ec2("us-east-1", endpoint_url).describe_regions()["Regions"]
    return sorted(region["RegionName"] for region in regions)


def is_wanted(answer: Mapping[str, Any]) -> bool:
    """Whether the catalogue holds a type that EC2 describes so."""
    family, _, size = answer["InstanceType"].partition(".")
    return (
        answer["NetworkInfo"]["EfaSupported"]
        or not ACCELERATORS.isdisjoint(answer)
        or (family in CONTROL_FAMILIES and size in CONTROL_SIZES)
    )


def record(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The catalogue's record of one type that EC2 describes; what the type lacks is left out."""
    cpu, network = answer["VCpuInfo"], answer["NetworkInfo"]
    supported = answer["ProcessorInfo"]["SupportedArchitectures"]
    fields = {
        "architecture": next(each for each in ARCHITECTURES if each in supported),
        "vCpus": cpu["DefaultVCpus"],
        "cores": cpu["DefaultCores"],
        "threadsPerCore": cpu["DefaultThreadsPerCore"],
        "validThreadsPerCore": cpu.get("ValidThreadsPerCore", []),
        "memoryMiB": answer["MemoryInfo"]["SizeInMiB"],
        "gpus": _gpus(answer),
        "neuronDevices": _neuron_devices(answer),
        "instanceStore": _instance_store(answer),
        "networkCards": _network_cards(network["NetworkCards"]),
        "maximumEfaInterfaces": network.get("EfaInfo", {}).get("MaximumEfaInterfaces"),
        "usageClasses": answer["SupportedUsageClasses"],
        "placementStrategies": answer["PlacementGroupInfo"]["SupportedStrategies"],
        "bareMetal": answer["BareMetal"],
        "burstable": answer["BurstablePerformanceSupported"],
        "networkPerformance": network["NetworkPerformance"],
    }
    return {name: value for name, value in fields.items() if value is not None}


def render(document: Mapping[str, str | Mapping[str, Any]]) -> str:
    """JSON with one line for each entry of each object in the document, sorted."""
    return (
        "{\n"
        + ",\n".join(f'"{key}": {_entries(value)}' for key, value in document.items())
        + "\n}\n"
    )


def write(answers: Answers, *, source: str, directory: Path) -> None:
    """Write instance_types.json and instance_type_offerings.json into the directory."""
    header = {"source": source, "date": datetime.now(UTC).date().isoformat()}
    wanted = {name: each for name, each in answers.described.items() if is_wanted(each)}
    types = {name: record(each) for name, each in wanted.items()}
    offerings = {
        name: {region: _suffixes(region, zones) for region, zones in answers.offered[name].items()}
        for name in wanted
    }
    zones = {region: _suffixes(region, names) for region, names in answers.zones.items()}
    for file_name, content in (
        ("instance_types.json", {"instanceTypes": types}),
        ("instance_type_offerings.json", {"zones": zones, "offerings": offerings}),
    ):
        (directory / file_name).write_text(render(header | content), encoding="utf-8")


def _gpus(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    if "GpuInfo" not in answer:
        return None
    (gpu,) = answer["GpuInfo"]["Gpus"]
    # Count is 0 where a type has part of a GPU, LogicalGpuCount is what a process sees.
    count = gpu.get("LogicalGpuCount", gpu["Count"])
    return {"manufacturer": gpu["Manufacturer"], "name": gpu["Name"], "count": count}


def _neuron_devices(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    if "NeuronInfo" not in answer:
        return None
    (device,) = answer["NeuronInfo"]["NeuronDevices"]
    cores = device["CoreInfo"]["Count"]
    return {"name": device["Name"], "count": device["Count"], "coresPerDevice": cores}


def _instance_store(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    if "InstanceStorageInfo" not in answer:
        return None
    store = answer["InstanceStorageInfo"]
    disks = sum(disk["Count"] for disk in store["Disks"])
    return {"disks": disks, "totalGB": store["TotalSizeInGB"]}


def _network_cards(cards: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[tuple[int, bool], list[int]] = {}
    for card in cards:
        kind = (card["MaximumNetworkInterfaces"], "efa" in card["InterfaceTypes"])
        groups.setdefault(kind, []).append(card["NetworkCardIndex"])
    return [
        {"cards": indices, "maximumInterfaces": maximum, "efa": efa}
        for (maximum, efa), indices in groups.items()
    ]


def _suffixes(region: str, zones: Iterable[str]) -> str:
    return " ".join(sorted(zone.removeprefix(region) for zone in zones))


def _entries(value: str | Mapping[str, Any]) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    entries = sorted(value.items())
    return "{\n" + ",\n".join(f'"{key}": {json.dumps(each)}' for key, each in entries) + "\n}"


def _ec2(region: str, endpoint_url: str | None) -> Any:
    return boto3.client(  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        "ec2", region_name=region, endpoint_url=endpoint_url
    )


def main() -> None:
    """Run the command line that the module's docstring shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoint-url", help="where to ask, when not AWS")
    parser.add_argument("--regions", nargs="+", help="default: all that the account can use")
    parser.add_argument("--source", default="AWS", help="who answers, for the files' headers")
    parser.add_argument("--directory", type=Path, default=Path(__file__).parents[1])
    options = parser.parse_args()
    regions = options.regions or enabled_regions(endpoint_url=options.endpoint_url)
    answers = ask(regions=regions, endpoint_url=options.endpoint_url)
    write(answers, source=options.source, directory=options.directory)


if __name__ == "__main__":
    main()

"""The committed catalogue against EC2's answers, which a moto server repeats from recordings.

moto 5.2.5 carries what DescribeInstanceTypes and DescribeInstanceTypeOfferings said on AWS.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

import fabric.catalogue

FABRIC = Path(fabric.catalogue.__file__).parent
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
SECONDS_TO_START = 30


def committed(file_name: str) -> dict[str, Any]:
    return json.loads((FABRIC / file_name).read_text())


REGIONS = list(committed("instance_type_offerings.json")["zones"])


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """The address of a moto server that lives as long as this module's tests."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=10)


def wait_for(port: int) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


@pytest.fixture(scope="module")
def refreshed(moto: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what the refresh command writes against moto."""
    directory = tmp_path_factory.mktemp("refreshed")
    command = [sys.executable, "-m", "fabric.refresh.catalogue", "--directory", str(directory)]
    subprocess.run(
        [*command, "--endpoint-url", moto, "--regions", *REGIONS],
        cwd=FABRIC.parent,
        env=os.environ | KEYS,
        check=True,
    )
    return directory


def ec2(moto: str, region: str) -> Any:
    return boto3.client(  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        "ec2",
        region_name=region,
        endpoint_url=moto,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


@pytest.fixture(scope="module")
def answers(moto: str) -> dict[str, Any]:
    """What EC2 answers of every instance type, by name."""
    types = ec2(moto, "us-east-1").describe_instance_types()["InstanceTypes"]
    return {each["InstanceType"]: each for each in types}


@pytest.mark.parametrize(
    ("file_name", "content"),
    [
        ("instance_types.json", "instanceTypes"),
        ("instance_type_offerings.json", "zones"),
        ("instance_type_offerings.json", "offerings"),
    ],
)
def test_the_refresh_command_reproduces_the_committed_file(
    refreshed: Path, file_name: str, content: str
) -> None:
    again = json.loads((refreshed / file_name).read_text())[content]
    assert again == committed(file_name)[content]


FIELDS: dict[str, Callable[[dict[str, Any]], object]] = {
    "architecture": lambda said: said["ProcessorInfo"]["SupportedArchitectures"][-1],
    "vCpus": lambda said: said["VCpuInfo"]["DefaultVCpus"],
    "cores": lambda said: said["VCpuInfo"]["DefaultCores"],
    "threadsPerCore": lambda said: said["VCpuInfo"]["DefaultThreadsPerCore"],
    "validThreadsPerCore": lambda said: said["VCpuInfo"].get("ValidThreadsPerCore") or [],
    "memoryMiB": lambda said: said["MemoryInfo"]["SizeInMiB"],
    "gpus": lambda said: (
        said.get("GpuInfo")
        and {
            "manufacturer": said["GpuInfo"]["Gpus"][0]["Manufacturer"],
            "name": said["GpuInfo"]["Gpus"][0]["Name"],
            "count": said["GpuInfo"]["Gpus"][0]["LogicalGpuCount"],
        }
    ),
    "neuronDevices": lambda said: (
        said.get("NeuronInfo")
        and {
            "name": said["NeuronInfo"]["NeuronDevices"][0]["Name"],
            "count": said["NeuronInfo"]["NeuronDevices"][0]["Count"],
            "coresPerDevice": said["NeuronInfo"]["NeuronDevices"][0]["CoreInfo"]["Count"],
        }
    ),
    "instanceStore": lambda said: (
        said.get("InstanceStorageInfo")
        and {
            "disks": said["InstanceStorageInfo"]["Disks"][0]["Count"],
            "totalGB": said["InstanceStorageInfo"]["TotalSizeInGB"],
        }
    ),
    "maximumEfaInterfaces": lambda said: (
        said["NetworkInfo"].get("EfaInfo", {}).get("MaximumEfaInterfaces")
    ),
    "usageClasses": lambda said: said["SupportedUsageClasses"],
    "placementStrategies": lambda said: said["PlacementGroupInfo"]["SupportedStrategies"],
    "bareMetal": lambda said: said["BareMetal"],
    "burstable": lambda said: said["BurstablePerformanceSupported"],
    "networkPerformance": lambda said: said["NetworkInfo"]["NetworkPerformance"],
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_every_committed_type_is_what_ec2_answers(
    answers: dict[str, Any], field: str
) -> None:
    for name, each in committed("instance_types.json")["instanceTypes"].items():
        assert each.get(field) == FIELDS[field](answers[name]), name


def test_the_fields_above_and_the_network_cards_are_all_that_a_committed_type_has() -> None:
    types = committed("instance_types.json")["instanceTypes"].values()
    assert {field for each in types for field in each} == {*FIELDS, "networkCards"}


def test_every_network_card_of_the_committed_types_is_what_ec2_answers(
    answers: dict[str, Any],
) -> None:
    for name, each in committed("instance_types.json")["instanceTypes"].items():
        cards = {
            index: (group["maximumInterfaces"], group["efa"])
            for group in each["networkCards"]
            for index in group["cards"]
        }
        assert cards == {
            card["NetworkCardIndex"]: (
                card["MaximumNetworkInterfaces"],
                "efa-only" in card["InterfaceTypes"],
            )
            for card in answers[name]["NetworkInfo"]["NetworkCards"]
        }, name


def test_every_type_with_efa_or_an_accelerator_is_in_the_catalogue(answers: dict[str, Any]) -> None:
    accelerators = {"GpuInfo", "NeuronInfo", "InferenceAcceleratorInfo"}
    due = {
        name
        for name, said in answers.items()
        if said["NetworkInfo"]["EfaSupported"] or accelerators & said.keys()
    }
    assert due <= committed("instance_types.json")["instanceTypes"].keys()


@pytest.mark.parametrize("region", REGIONS)
def test_the_committed_offerings_of_a_region_are_what_ec2_answers(moto: str, region: str) -> None:
    said = ec2(moto, region).describe_instance_type_offerings(LocationType="availability-zone")
    offered = {(each["InstanceType"], each["Location"]) for each in said["InstanceTypeOfferings"]}
    data = committed("instance_type_offerings.json")
    zones = {region + suffix for suffix in data["zones"][region].split()}
    assert zones == {zone for _, zone in offered}
    assert {
        (name, region + suffix)
        for name, regions in data["offerings"].items()
        for suffix in regions.get(region, "").split()
    } == {(name, zone) for name, zone in offered if name in data["offerings"]}

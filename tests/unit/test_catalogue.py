"""What the instance type catalogue says, and how the hand-kept overlay changes the API's data."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fabric.catalogue
from fabric.catalogue import (
    InstanceType,
    UnknownInstanceType,
    find_instance_type,
    instance_types,
    region_zones,
    zones_offering,
)
from fabric.refresh.catalogue import is_wanted, record, render

FABRIC = Path(fabric.catalogue.__file__).parent
GENERATED = ("instance_types.json", "instance_type_offerings.json")
PAGES = ("https://docs.aws.amazon.com/", "https://awsdocs-neuron.readthedocs-hosted.com/")


def data(file_name: str) -> dict[str, Any]:
    return json.loads((FABRIC / file_name).read_text())


def overlay_entries() -> list[tuple[str, dict[str, Any]]]:
    overlay = data("instance_types_overlay.json")
    sections = ("instanceTypes", "corrections", "neuronDevices")
    return [(name, entry) for section in sections for name, entry in overlay[section].items()]


# Finding a type


def test_a_type_is_found_with_the_figures_of_the_aws_specification_page() -> None:
    # https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html
    p5 = find_instance_type("p5.48xlarge")
    assert (p5.architecture, p5.vcpus, p5.cores, p5.threads_per_core) == ("x86_64", 192, 96, 2)
    assert p5.memory_mib == 2048 * 1024
    assert (p5.gpus, p5.gpu_manufacturer, p5.gpu_name) == (8, "NVIDIA", "H100")
    assert (p5.instance_store_disks, p5.instance_store_gb) == (8, 8 * 3800)
    assert (len(p5.network_cards), p5.network_performance) == (32, "3200 Gigabit")
    assert sum(card.maximum_interfaces for card in p5.network_cards) == 64


def test_a_misspelt_name_raises_with_the_names_spelt_most_like_it() -> None:
    with pytest.raises(UnknownInstanceType) as raised:
        find_instance_type("p5.48xlage")
    assert raised.value.name == "p5.48xlage"
    assert raised.value.nearest[0] == "p5.48xlarge"
    assert str(raised.value).startswith("unknown instance type p5.48xlage; did you mean p5.48xl")


def test_a_name_like_no_other_raises_without_suggestions() -> None:
    with pytest.raises(KeyError, match=r"^unknown instance type banana$") as raised:
        find_instance_type("banana")
    assert isinstance(raised.value, UnknownInstanceType)
    assert raised.value.nearest == ()


def test_the_catalogue_is_a_mapping_from_names_to_types_of_that_name() -> None:
    assert all(each.name == name for name, each in instance_types().items())
    assert len(instance_types()) == len(set(instance_types()))


@pytest.mark.parametrize("name", ["g5.xlarge", "trn1.2xlarge", "inf2.48xlarge", "t3.micro"])
def test_types_without_efa_are_known_as_such(name: str) -> None:
    assert not find_instance_type(name).supports_efa
    assert find_instance_type(name).efa_cards == ()


@pytest.mark.parametrize(
    ("name", "nvidia_gpus"),
    [("p4d.24xlarge", 8), ("g6f.large", 1), ("p6e-gb200.36xlarge", 4), ("trn2.48xlarge", 0)],
)
def test_nvidia_gpus_are_the_devices_that_a_process_sees(name: str, nvidia_gpus: int) -> None:
    assert find_instance_type(name).nvidia_gpus == nvidia_gpus


# What holds for every type


LAWS: dict[str, Callable[[InstanceType], bool]] = {
    "cards are numbered from 0 without a gap": lambda each: (
        [card.index for card in each.network_cards] == list(range(len(each.network_cards)))
    ),
    "as many cards get an EFA as the type takes": lambda each: (
        len(each.efa_cards) == each.maximum_efa_interfaces
    ),
    "no card gets two EFAs": lambda each: len(set(each.efa_cards)) == len(each.efa_cards),
    "every card that gets an EFA takes one": lambda each: all(
        each.network_cards[index].takes_efa for index in each.efa_cards
    ),
    "a type has EFA exactly where one of its cards takes it": lambda each: (
        each.supports_efa == any(card.takes_efa for card in each.network_cards)
    ),
    "a card for IP bandwidth has a slot beside its EFA": lambda each: all(
        each.network_cards[index].maximum_interfaces > (index in each.efa_cards)
        for index in each.ip_bandwidth_cards
    ),
    "card 0 has its ENA interface already": lambda each: 0 not in each.ip_bandwidth_cards,
    "vCPUs are cores times threads": lambda each: each.vcpus == each.cores * each.threads_per_core,
    "the default threads per core are valid where any are": lambda each: (
        each.threads_per_core in (each.valid_threads_per_core or (each.threads_per_core,))
    ),
    "GPUs have a name": lambda each: (each.gpus > 0) == (each.gpu_name is not None),
    "Neuron devices have cores": lambda each: (each.neuron_cores > 0) == (each.neuron_devices > 0),
    "instance store has disks": lambda each: (
        (each.instance_store_gb > 0) == (each.instance_store_disks > 0)
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_law_holds_for_every_type(law: str) -> None:
    assert [each.name for each in instance_types().values() if not LAWS[law](each)] == []


# Which cards get an EFA


@pytest.mark.parametrize("name", ["p6-b300.48xlarge", "p6e-gb200.36xlarge"])
def test_card_0_takes_no_efa_where_it_is_ena_only(name: str) -> None:
    each = find_instance_type(name)
    assert len(each.network_cards) == 17
    assert [card.index for card in each.network_cards if not card.takes_efa] == [0]


def test_the_lowest_able_cards_get_the_efa_of_a_type_with_fewer_efas_than_able_cards() -> None:
    i7ie = find_instance_type("i7ie.48xlarge")
    assert [card.takes_efa for card in i7ie.network_cards] == [True, True]
    assert i7ie.efa_cards == (0,)


def test_the_overlay_picks_one_efa_card_per_gpu_of_p6e_gb200() -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html#efa-for-p6e
    assert find_instance_type("p6e-gb200.36xlarge").efa_cards == (1, 5, 9, 13)


# The overlay


def test_an_overlay_type_has_the_figures_of_the_aws_specification_page() -> None:
    # https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html
    gb200 = find_instance_type("p6e-gb200.36xlarge")
    assert (gb200.architecture, gb200.vcpus, gb200.cores) == ("arm64", 144, 144)
    assert gb200.memory_mib == 960 * 1024
    assert (gb200.instance_store_disks, gb200.instance_store_gb) == (3, 3 * 7500)
    assert sum(card.maximum_interfaces for card in gb200.network_cards) == 39
    assert gb200.usage_classes == ("capacity-block",)


@pytest.mark.parametrize(
    ("name", "cards"),
    [
        ("p5.48xlarge", range(4, 32, 4)),
        ("p5e.48xlarge", range(4, 32, 4)),
        ("p6-b200.48xlarge", range(1, 8)),
        ("p6-b300.48xlarge", range(1, 17)),
        ("p4d.24xlarge", ()),
    ],
)
def test_the_overlay_names_the_cards_for_most_ip_bandwidth(
    name: str, cards: range | tuple[()]
) -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
    assert find_instance_type(name).ip_bandwidth_cards == tuple(cards)


@pytest.mark.parametrize(
    ("name", "devices", "cores"),
    [
        ("trn1.32xlarge", 16, 32),
        ("trn2.3xlarge", 1, 4),
        ("trn2.48xlarge", 16, 64),
        ("trn2u.48xlarge", 16, 64),
        ("inf2.48xlarge", 12, 24),
        ("p5.48xlarge", 0, 0),
    ],
)
def test_neuron_cores_are_the_logical_ones_of_the_default_configuration(
    name: str, devices: int, cores: int
) -> None:
    # https://awsdocs-neuron.readthedocs-hosted.com/en/latest/training/best-practices.html
    each = find_instance_type(name)
    assert (each.neuron_devices, each.neuron_cores) == (devices, cores)


@pytest.mark.parametrize(("name", "entry"), overlay_entries())
def test_an_overlay_entry_names_the_pages_it_was_read_from(
    name: str, entry: dict[str, Any]
) -> None:
    assert entry["sources"], name
    assert all(page.startswith(PAGES) for page in entry["sources"])


def test_the_overlay_adds_only_types_and_fields_that_the_api_data_lacks() -> None:
    overlay = data("instance_types_overlay.json")
    api = data("instance_types.json")["instanceTypes"]
    assert overlay["instanceTypes"].keys().isdisjoint(api)
    assert all(entry.keys().isdisjoint(api[name]) for name, entry in overlay["corrections"].items())


# Where a type is offered


def test_zones_are_full_names_of_zones_of_the_region() -> None:
    zones = zones_offering(region="us-east-2", instance_type="p5.48xlarge")
    assert zones == ("us-east-2a", "us-east-2b", "us-east-2c")


def test_a_region_that_lacks_the_type_offers_it_in_no_zone() -> None:
    assert zones_offering(region="us-west-1", instance_type="trn2.48xlarge") == ()


@pytest.mark.parametrize(
    ("region", "instance_type"),
    [
        ("us-gov-west-1", "p5.48xlarge"),
        ("us-east-1", "p6e-gb200.36xlarge"),
        ("us-east-1", "banana"),
    ],
)
def test_zones_are_unknown_for_regions_and_types_outside_the_data(
    region: str, instance_type: str
) -> None:
    assert zones_offering(region=region, instance_type=instance_type) is None


def test_every_type_is_offered_only_in_zones_of_its_region() -> None:
    regions = data("instance_type_offerings.json")["zones"]
    for region in regions:
        zones = set(region_zones(region))
        for name in instance_types():
            assert zones.issuperset(zones_offering(region=region, instance_type=name) or ())


def test_every_type_of_the_api_data_is_offered_somewhere() -> None:
    names = data("instance_types.json")["instanceTypes"].keys()
    offerings = data("instance_type_offerings.json")["offerings"]
    assert offerings.keys() == names
    assert all(offerings.values())


def test_region_zones_are_those_that_offer_anything() -> None:
    assert region_zones("ca-central-1") == ("ca-central-1a", "ca-central-1b", "ca-central-1d")
    assert region_zones("mars-north-1") == ()


# How the files are made


@pytest.mark.parametrize("file_name", GENERATED)
def test_a_generated_file_is_rendered_with_one_entry_a_line_and_says_when_and_whence(
    file_name: str,
) -> None:
    document = data(file_name)
    assert render(document) == (FABRIC / file_name).read_text()
    assert document["source"]
    assert document["date"]


def answer(name: str, **fields: object) -> dict[str, Any]:
    """What EC2 says of a small type without EFA or accelerator."""
    card = {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 2, "InterfaceTypes": ["interface"]}
    return {
        "InstanceType": name,
        "ProcessorInfo": {"SupportedArchitectures": ["i386", "x86_64"]},
        "VCpuInfo": {"DefaultVCpus": 2, "DefaultCores": 1, "DefaultThreadsPerCore": 2},
        "MemoryInfo": {"SizeInMiB": 4096},
        "NetworkInfo": {
            "EfaSupported": False,
            "NetworkCards": [card],
            "NetworkPerformance": "Up to 5 Gigabit",
        },
        "SupportedUsageClasses": ["on-demand"],
        "PlacementGroupInfo": {"SupportedStrategies": ["spread"]},
        "BareMetal": False,
        "BurstablePerformanceSupported": True,
    } | fields


def test_what_a_type_lacks_is_left_out_of_its_record() -> None:
    made = record(answer("t3.medium"))
    assert made["architecture"] == "x86_64"
    assert made["validThreadsPerCore"] == []
    assert made.keys().isdisjoint(
        {"gpus", "neuronDevices", "instanceStore", "maximumEfaInterfaces"}
    )


def test_part_of_a_gpu_counts_as_one_device() -> None:
    gpu = {"Manufacturer": "NVIDIA", "Name": "L4", "Count": 0, "LogicalGpuCount": 1}
    made = record(answer("g6f.large", GpuInfo={"Gpus": [gpu]}))
    assert made["gpus"] == {"manufacturer": "NVIDIA", "name": "L4", "count": 1}


def test_cards_alike_share_an_entry_of_the_record() -> None:
    network = answer("x")["NetworkInfo"]
    able = {"MaximumNetworkInterfaces": 4, "InterfaceTypes": ["interface", "efa", "efa-only"]}
    cards = [
        *network["NetworkCards"],
        {"NetworkCardIndex": 1, **able},
        {"NetworkCardIndex": 2, **able},
    ]
    made = record(answer("x.large", NetworkInfo=network | {"NetworkCards": cards}))
    assert made["networkCards"] == [
        {"cards": [0], "maximumInterfaces": 2, "efa": False},
        {"cards": [1, 2], "maximumInterfaces": 4, "efa": True},
    ]


@pytest.mark.parametrize(
    ("described", "wanted"),
    [
        (answer("m7i.2xlarge"), True),
        (answer("m7i.12xlarge"), False),
        (answer("m4.large"), False),
        (answer("vt1.3xlarge", MediaAcceleratorInfo={}), True),
        (answer("m4.16xlarge", NetworkInfo={"EfaSupported": True}), True),
    ],
)
def test_efa_accelerated_and_control_types_are_wanted(
    described: dict[str, Any], wanted: bool
) -> None:
    assert is_wanted(described) is wanted

"""Which network interface goes on which network card, for every instance type with EFA.

The layouts below are written from the text and the samples of AWS's page, and what EC2 can attach
is read from its own DescribeInstanceTypes answers, which moto carries; neither from the catalogue.
"""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

import pytest

from fabric.catalogue import find_instance_type, instance_types
from fabric.interfaces import (
    InterfaceLayout,
    InterfaceType,
    IpBandwidth,
    efa_layout,
    task_interface_fits,
)

Layout = set[tuple[int, int, str]]
"""Network card, device and interface type of each interface."""

IP_BANDWIDTHS: tuple[IpBandwidth, ...] = ("oneAddress", "maximum")


@cache
def network_info() -> dict[str, dict[str, Any]]:
    """What EC2 answers of the network of every type with EFA."""
    packed = files("moto").joinpath("ec2/resources/instance_types.json.gz").read_bytes()
    answers = {
        name: said["NetworkInfo"] for name, said in json.loads(gzip.decompress(packed)).items()
    }
    return {name: said for name, said in answers.items() if said["EfaSupported"]}


def layout_of(
    name: str, ip_bandwidth: IpBandwidth = "oneAddress", *, keep_slot: bool = False
) -> InterfaceLayout:
    return efa_layout(
        instance_type=find_instance_type(name),
        ip_bandwidth=ip_bandwidth,
        keep_slot_on_card_0=keep_slot,
    )


def triples(layout: InterfaceLayout) -> list[tuple[int, int, str]]:
    return [
        (each.network_card_index, each.device_index, each.interface_type)
        for each in layout.interfaces
    ]


def on(cards: int | range, *, device: int, kind: InterfaceType) -> Layout:
    return {(card, device, kind) for card in (cards if isinstance(cards, range) else [cards])}


def ena(cards: int | range, *, device: int) -> Layout:
    return on(cards, device=device, kind="interface")


def efa_only(cards: int | range, *, device: int) -> Layout:
    return on(cards, device=device, kind="efa-only")


def efa_with_ena(cards: int | range, *, device: int) -> Layout:
    return on(cards, device=device, kind="efa")


# What AWS's page says: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html

PRIMARY = ena(0, device=0)
CARD_0 = PRIMARY | efa_only(0, device=1)

ONE_ADDRESS: dict[str, Layout] = {
    # The general rule: ENA and EFA-only on card 0, EFA-only at device 0 of every further card.
    "g4dn.8xlarge": CARD_0,
    "c6in.32xlarge": CARD_0 | efa_only(1, device=0),
    "hpc7a.96xlarge": CARD_0 | efa_only(1, device=0),
    "p4d.24xlarge": CARD_0 | efa_only(range(1, 4), device=0),
    "trn1.32xlarge": CARD_0 | efa_only(range(1, 8), device=0),
    "trn2.48xlarge": CARD_0 | efa_only(range(1, 16), device=0),
    "p5en.48xlarge": CARD_0 | efa_only(range(1, 16), device=0),
    # #efa-for-p5 and #efa-for-p6-b200, use case 1.
    "p5.48xlarge": CARD_0 | efa_only(range(1, 32), device=0),
    "p6-b200.48xlarge": CARD_0 | efa_only(range(1, 8), device=0),
    # #efa-for-p6-b300, use case 1: the primary card takes ENA only.
    "p6-b300.48xlarge": PRIMARY | efa_only(range(1, 17), device=0),
    # #efa-for-p6e: 4 EFA interfaces of 400 Gbps, on cards 1, 5, 9 and 13.
    "p6e-gb200.36xlarge": PRIMARY | efa_only(range(1, 14, 4), device=0),
    # One slot a card leaves no room for two interfaces on card 0, and an EFA-only one cannot be
    # primary: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html
    "hpc6id.32xlarge": efa_with_ena(0, device=0) | efa_only(1, device=0),
    # One EFA in all, though both cards take it: card 0 is the first that the rule serves.
    "i7ie.48xlarge": CARD_0,
}

MOST_BANDWIDTH: dict[str, Layout] = {
    # The general rule: ENA at device 1 of a further card that needs IP bandwidth.
    "g4dn.8xlarge": ONE_ADDRESS["g4dn.8xlarge"],
    "c6in.32xlarge": ONE_ADDRESS["c6in.32xlarge"] | ena(1, device=1),
    "hpc7a.96xlarge": ONE_ADDRESS["hpc7a.96xlarge"] | ena(1, device=1),
    "p4d.24xlarge": ONE_ADDRESS["p4d.24xlarge"] | ena(range(1, 4), device=1),
    "trn1.32xlarge": ONE_ADDRESS["trn1.32xlarge"] | ena(range(1, 8), device=1),
    "trn2.48xlarge": ONE_ADDRESS["trn2.48xlarge"] | ena(range(1, 16), device=1),
    "p5en.48xlarge": ONE_ADDRESS["p5en.48xlarge"] | ena(range(1, 16), device=1),
    # #efa-for-p5, use case 2: eight addresses, the further seven on every fourth card.
    "p5.48xlarge": ONE_ADDRESS["p5.48xlarge"] | ena(range(4, 32, 4), device=1),
    # #efa-for-p6-b200, use case 2: eight addresses.
    "p6-b200.48xlarge": ONE_ADDRESS["p6-b200.48xlarge"] | ena(range(1, 8), device=1),
    # #efa-for-p6-b300, use case 2: seventeen addresses.
    "p6-b300.48xlarge": ONE_ADDRESS["p6-b300.48xlarge"] | ena(range(1, 17), device=1),
    # #efa-for-p6e: ENA on the even cards, the odd ones take EFA only.
    "p6e-gb200.36xlarge": ONE_ADDRESS["p6e-gb200.36xlarge"] | ena(range(2, 17, 2), device=1),
    # Where a card has one slot, EFA and ENA are one interface.
    "hpc6id.32xlarge": efa_with_ena(range(2), device=0),
    "i7ie.48xlarge": ONE_ADDRESS["i7ie.48xlarge"] | ena(1, device=1),
}


@pytest.mark.parametrize("name", ONE_ADDRESS)
def test_a_node_with_one_address_is_laid_out_as_aws_says(name: str) -> None:
    assert triples(layout_of(name)) == sorted(ONE_ADDRESS[name])


@pytest.mark.parametrize("name", MOST_BANDWIDTH)
def test_a_node_with_most_ip_bandwidth_is_laid_out_as_aws_says(name: str) -> None:
    assert triples(layout_of(name, "maximum")) == sorted(MOST_BANDWIDTH[name])


def test_the_only_slot_of_a_further_card_without_efa_is_device_0() -> None:
    one_efa = replace(
        find_instance_type("hpc6id.32xlarge"), maximum_efa_interfaces=1, efa_cards=(0,)
    )
    layout = efa_layout(instance_type=one_efa, ip_bandwidth="maximum")
    assert triples(layout) == [(0, 0, "efa"), (1, 0, "interface")]


@pytest.mark.parametrize(
    ("name", "one_address", "maximum"),
    [
        ("g4dn.8xlarge", 1, 1),
        ("hpc6id.32xlarge", 1, 2),
        ("p5.48xlarge", 1, 8),
        ("p6-b200.48xlarge", 1, 8),
        ("p6-b300.48xlarge", 1, 17),
    ],
)
def test_addresses_of_a_node_are_those_that_aws_counts(
    name: str, one_address: int, maximum: int
) -> None:
    assert layout_of(name).private_addresses == one_address
    assert layout_of(name, "maximum").private_addresses == maximum


# What EC2 can attach


VARIANTS: list[tuple[str, IpBandwidth, bool]] = [
    (name, ip_bandwidth, keep_slot)
    for name in network_info()
    for ip_bandwidth in IP_BANDWIDTHS
    for keep_slot in (False, True)
]


def efa_cards(layout: InterfaceLayout) -> list[int]:
    return [card for card, _, kind in triples(layout) if kind in ("efa", "efa-only")]


def cards_of(said: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {card["NetworkCardIndex"]: card for card in said["NetworkCards"]}


LAWS: dict[str, Callable[[dict[str, Any], InterfaceLayout], bool]] = {
    "every interface is on a card that the type has": lambda said, layout: all(
        card in cards_of(said) for card, _, _ in triples(layout)
    ),
    "every device has a slot of its card": lambda said, layout: all(
        device < cards_of(said)[card]["MaximumNetworkInterfaces"]
        for card, device, _ in triples(layout)
    ),
    "no two interfaces share a slot": lambda said, layout: (
        max(Counter((card, device) for card, device, _ in triples(layout)).values()) == 1
    ),
    "every card takes interfaces of that kind": lambda said, layout: all(
        kind in cards_of(said)[card]["InterfaceTypes"] for card, _, kind in triples(layout)
    ),
    "the node has no more interfaces than the type takes": lambda said, layout: (
        len(layout.interfaces) <= said["MaximumNetworkInterfaces"]
    ),
    "the primary interface has an address": lambda said, layout: (
        [kind for card, device, kind in triples(layout) if (card, device) == (0, 0)]
        in (["interface"], ["efa"])
    ),
    "no card has two EFAs": lambda said, layout: (
        len(efa_cards(layout)) == len(set(efa_cards(layout)))
    ),
    "the node has every EFA of its type": lambda said, layout: (
        layout.efa_count == len(efa_cards(layout)) == said["EfaInfo"]["MaximumEfaInterfaces"]
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_ec2_can_launch_every_layout_of_every_type(law: str) -> None:
    assert [
        variant
        for variant in VARIANTS
        if not LAWS[law](
            network_info()[variant[0]], layout_of(variant[0], variant[1], keep_slot=variant[2])
        )
    ] == []


def test_only_types_laid_out_by_hand_above_are_outside_what_ec2_answers() -> None:
    with_efa = {name for name, each in instance_types().items() if each.supports_efa}
    assert with_efa - network_info().keys() == {"p6e-gb200.36xlarge"}
    assert network_info().keys() < with_efa


def test_interfaces_are_in_order_of_card_and_device() -> None:
    for name, ip_bandwidth, keep_slot in VARIANTS:
        layout = triples(layout_of(name, ip_bandwidth, keep_slot=keep_slot))
        assert layout == sorted(layout), name


# Addresses and the slot of a task


def every_layout(ip_bandwidth: IpBandwidth, *, keep_slot: bool) -> Iterator[tuple[str, Layout]]:
    for name, each in instance_types().items():
        if each.supports_efa:
            yield name, set(triples(layout_of(name, ip_bandwidth, keep_slot=keep_slot)))


@pytest.mark.parametrize("keep_slot", [False, True])
def test_one_address_is_one_address_for_every_type(keep_slot: bool) -> None:
    for name, layout in every_layout("oneAddress", keep_slot=keep_slot):
        assert [card for card, _, kind in layout if kind != "efa-only"] == [0], name


def test_most_ip_bandwidth_keeps_the_efa_of_every_type_where_it_was() -> None:
    most = dict(every_layout("maximum", keep_slot=False))
    for name, layout in every_layout("oneAddress", keep_slot=False):
        efa = {(card, device) for card, device, kind in layout if kind != "interface"}
        assert efa == {(card, device) for card, device, kind in most[name] if kind != "interface"}


def test_a_task_finds_a_slot_on_card_0_of_every_type_that_has_two() -> None:
    without = {
        name
        for name, said in network_info().items()
        if not task_interface_fits(
            instance_type=find_instance_type(name), layout=layout_of(name, keep_slot=True)
        )
        or len(layout_of(name, keep_slot=True).on_card(0))
        == cards_of(said)[0]["MaximumNetworkInterfaces"]
    }
    assert without == {"hpc6id.32xlarge"}


def test_a_slot_is_kept_by_joining_ena_and_efa_on_a_card_0_of_two_slots_or_one() -> None:
    joined = {
        name
        for name, layout in every_layout("oneAddress", keep_slot=True)
        if efa_with_ena(0, device=0) <= layout
    }
    assert joined == {
        name
        for name, said in network_info().items()
        if cards_of(said)[0]["MaximumNetworkInterfaces"] <= 2
    }
    assert joined >= {"p5.48xlarge", "p5e.48xlarge", "trn2.48xlarge", "hpc6a.48xlarge"}


def test_keeping_a_slot_changes_nothing_beyond_card_0_and_nothing_where_slots_are_plenty() -> None:
    kept = dict(every_layout("maximum", keep_slot=True))
    for name, layout in every_layout("maximum", keep_slot=False):
        assert {each for each in layout ^ kept[name] if each[0] > 0} == set(), name
    assert kept["p5en.48xlarge"] == MOST_BANDWIDTH["p5en.48xlarge"]
    assert kept["p6-b300.48xlarge"] == MOST_BANDWIDTH["p6-b300.48xlarge"]


def test_without_a_kept_slot_a_task_may_find_none() -> None:
    p5 = find_instance_type("p5.48xlarge")
    assert not task_interface_fits(instance_type=p5, layout=layout_of("p5.48xlarge"))


def test_a_card_has_its_own_interfaces_only() -> None:
    layout = layout_of("p5.48xlarge", "maximum")
    kinds = [each.interface_type for each in layout.on_card(4)]
    assert kinds == ["efa-only", "interface"]
    assert [each.interface_type for each in layout.on_card(5)] == ["efa-only"]


def test_a_type_without_efa_has_no_layout() -> None:
    with pytest.raises(ValueError, match=r"^g5\.xlarge has no EFA$"):
        layout_of("g5.xlarge")

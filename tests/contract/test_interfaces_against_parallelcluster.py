"""Our interface layouts against those that AWS ParallelCluster's own code makes.

tests/contract/parallelcluster holds its recorded answers and says how they were recorded.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fabric.catalogue import find_instance_type, instance_types
from fabric.interfaces import efa_layout

RECORDING: dict[str, Any] = json.loads(
    (Path(__file__).parent / "parallelcluster/interfaces.json").read_text()
)
THEIRS: dict[str, list[tuple[int, int, str]]] = {
    name: [(card, device, kind) for card, device, kind in interfaces]
    for name, interfaces in RECORDING["layouts"].items()
}
OURS: dict[str, list[tuple[int, int, str]]] = {
    name: [
        (interface.network_card_index, interface.device_index, interface.interface_type)
        for interface in efa_layout(instance_type=each).interfaces
    ]
    for name, each in instance_types().items()
    if each.supports_efa
}

EFA_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html"
ONE_EFA_ON_TWO_CARDS = (
    "ParallelCluster takes fewer EFAs than cards to mean that card 0 takes none. But EC2 answers "
    "that it takes efa-only, and where card 0 supports EFA AWS puts one there: " + EFA_PAGE
)
DISAGREEMENTS = {
    "i7ie.48xlarge": ONE_EFA_ON_TWO_CARDS,
    "i7ie.metal-48xl": ONE_EFA_ON_TWO_CARDS,
    "i8ge.48xlarge": ONE_EFA_ON_TWO_CARDS,
    "i8ge.metal-48xl": ONE_EFA_ON_TWO_CARDS,
    "p6e-gb200.36xlarge": "ParallelCluster puts an EFA on all 16 further cards. Each of the 4 GPUs "
    "sends 400 Gbps, over one card or two, and AWS shows one: " + EFA_PAGE + "#efa-for-p6e",
}
AGREED = sorted(OURS.keys() - DISAGREEMENTS)


def kinds_by_card(layout: list[tuple[int, int, str]]) -> Counter[tuple[int, str]]:
    return Counter((card, kind) for card, _, kind in layout)


def efa_cards(layout: list[tuple[int, int, str]]) -> list[int]:
    return [card for card, _, kind in layout if kind != "interface"]


def test_the_recording_is_of_the_named_version_and_of_every_type_with_efa() -> None:
    assert RECORDING["source"].startswith("aws-parallelcluster 3.16.1, ")
    assert THEIRS.keys() == OURS.keys()


def test_the_same_kinds_of_interface_are_on_the_same_cards_but_where_a_reason_is_given() -> None:
    differing = {name for name in OURS if kinds_by_card(OURS[name]) != kinds_by_card(THEIRS[name])}
    assert differing == DISAGREEMENTS.keys()


def test_a_node_of_every_type_takes_as_many_addresses() -> None:
    for name in OURS:
        ours, theirs = (
            [kind for _, _, kind in layout if kind != "efa-only"]
            for layout in (OURS[name], THEIRS[name])
        )
        assert len(ours) == len(theirs) == 1, name


def test_the_interfaces_of_card_0_are_the_same_to_the_device() -> None:
    for name in AGREED:
        ours, theirs = (
            [each for each in layout if each[0] == 0] for layout in (OURS[name], THEIRS[name])
        )
        assert ours == theirs, name


def test_further_cards_have_their_efa_at_device_0_where_parallelcluster_still_has_it_at_1() -> None:
    # AWS's page moved the EFA of further cards from device 1 to device 0. EC2 counts devices by
    # card and takes both; ParallelCluster knows device 0 for cards with a single slot only.
    for name in AGREED:
        cards = find_instance_type(name).network_cards
        ours, theirs = (
            {card: device for card, device, _ in layout if card > 0}
            for layout in (OURS[name], THEIRS[name])
        )
        assert ours == dict.fromkeys(ours, 0), name
        assert theirs == {card: min(1, cards[card].maximum_interfaces - 1) for card in ours}, name


@pytest.mark.parametrize(
    "name", ["i7ie.48xlarge", "i7ie.metal-48xl", "i8ge.48xlarge", "i8ge.metal-48xl"]
)
def test_the_one_efa_of_a_type_with_two_cards_is_on_card_0_which_takes_it(name: str) -> None:
    assert [card.takes_efa for card in find_instance_type(name).network_cards] == [True, True]
    assert (efa_cards(OURS[name]), efa_cards(THEIRS[name])) == ([0], [1])


def test_p6e_gb200_has_an_efa_for_each_gpu_where_parallelcluster_has_one_on_every_card() -> None:
    name = "p6e-gb200.36xlarge"
    assert efa_cards(OURS[name]) == [1, 5, 9, 13]
    assert len(efa_cards(OURS[name])) == find_instance_type(name).gpus
    assert efa_cards(THEIRS[name]) == list(range(1, 17))


def test_card_0_of_p6_b300_is_left_to_ena_by_both() -> None:
    for layouts in (OURS, THEIRS):
        assert [each for each in layouts["p6-b300.48xlarge"] if each[0] == 0] == [
            (0, 0, "interface")
        ]

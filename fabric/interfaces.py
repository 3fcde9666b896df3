"""Which network interface goes on which network card of an instance type.

The rule is AWS's own, https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html:
the primary interface (card 0, device 0) is a plain ENA interface, a card 0 that takes EFA gets an
EFA-only interface at device 1, and every further card gets an EFA-only interface at device 0 and,
for more IP bandwidth, an ENA interface at device 1.
"""

from dataclasses import dataclass
from typing import Literal

from fabric.catalogue import InstanceType, NetworkCard

InterfaceType = Literal["interface", "efa", "efa-only"]
IpBandwidth = Literal["oneAddress", "maximum"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkInterface:
    """One network interface of a launch template.

    `interface_type` is the EC2 API's word: `interface` is ENA, `efa` is EFA with ENA, and
    `efa-only` is EFA without an IP address (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html).
    """

    network_card_index: int
    device_index: int
    interface_type: InterfaceType


@dataclass(frozen=True, kw_only=True, slots=True)
class InterfaceLayout:
    """All network interfaces of one node, ordered by network card and device."""

    interfaces: tuple[NetworkInterface, ...]

    @property
    def efa_count(self) -> int:
        """EFA devices that a process on the node sees."""
        return sum(1 for each in self.interfaces if each.interface_type != "interface")

    @property
    def private_addresses(self) -> int:
        """Private IPv4 addresses that one node takes from its subnet; EFA-only takes none.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html
        """
        return sum(1 for each in self.interfaces if each.interface_type != "efa-only")

    def on_card(self, index: int) -> tuple[NetworkInterface, ...]:
        """The interfaces on the network card with this index."""
        return tuple(each for each in self.interfaces if each.network_card_index == index)


def efa_layout(
    *,
    instance_type: InstanceType,
    ip_bandwidth: IpBandwidth = "oneAddress",
    keep_slot_on_card_0: bool = False,
) -> InterfaceLayout:
    """Lay out every EFA interface that the type has, and the ENA interfaces for its IP traffic.

    `ip_bandwidth="oneAddress"` gives the node one IP address. `"maximum"` adds ENA interfaces on
    the type's further cards, each with an address; on a card with one slot ENA joins the EFA.
    `keep_slot_on_card_0` leaves a slot of card 0 free for one more interface, such as that of an
    awsvpc task, by joining ENA and EFA in one `efa` interface where card 0 has two slots or fewer.

    Raises ValueError for a type without EFA.
    """
    if not instance_type.efa_cards:
        raise ValueError(f"{instance_type.name} has no EFA")
    with_address = _ip_bandwidth_cards(instance_type) if ip_bandwidth == "maximum" else ()
    primary, *further = instance_type.network_cards
    interfaces = _on_card_0(
        primary, efa=0 in instance_type.efa_cards, keep_slot=keep_slot_on_card_0
    )
    for card in further:
        interfaces += _on_further_card(
            card, efa=card.index in instance_type.efa_cards, ena=card.index in with_address
        )
    return InterfaceLayout(interfaces=tuple(interfaces))


def task_interface_fits(*, instance_type: InstanceType, layout: InterfaceLayout) -> bool:
    """Whether card 0 has a slot left for the interface of an awsvpc task.

    Which card ECS attaches that interface to is not documented; card 0 is the safe assumption.
    """
    return len(layout.on_card(0)) < instance_type.network_cards[0].maximum_interfaces


def _on_card_0(card: NetworkCard, *, efa: bool, keep_slot: bool) -> list[NetworkInterface]:
    if not efa:
        return [_interface(0, 0, "interface")]
    slots_for_nodes = card.maximum_interfaces - (1 if keep_slot else 0)
    if slots_for_nodes < 2:
        return [_interface(0, 0, "efa")]
    return [_interface(0, 0, "interface"), _interface(0, 1, "efa-only")]


def _on_further_card(card: NetworkCard, *, efa: bool, ena: bool) -> list[NetworkInterface]:
    if efa and ena and card.maximum_interfaces < 2:
        return [_interface(card.index, 0, "efa")]
    interfaces = [_interface(card.index, 0, "efa-only")] if efa else []
    if ena:
        interfaces.append(_interface(card.index, min(1, card.maximum_interfaces - 1), "interface"))
    return interfaces


def _ip_bandwidth_cards(instance_type: InstanceType) -> tuple[int, ...]:
    return instance_type.ip_bandwidth_cards or tuple(range(1, len(instance_type.network_cards)))


def _interface(card: int, device: int, interface_type: InterfaceType) -> NetworkInterface:
    return NetworkInterface(
        network_card_index=card, device_index=device, interface_type=interface_type
    )

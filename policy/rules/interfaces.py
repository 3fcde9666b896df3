"""The layout of network interfaces on network cards, as far as a template alone shows it."""

from collections import defaultdict
from collections.abc import Iterator

from fabric.rows import mappings
from policy.examples import interface, resource
from policy.launches import all_known, efa_interfaces
from policy.nodes import Interface, interfaces
from policy.rule import Finding, Rule, Subject
from policy.tokens import LAUNCH_TEMPLATE
from policy.values import UNKNOWN

EFA_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html"
CARDS_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html#network-cards"
INTERFACE_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateInstanceNetworkInterfaceSpecificationRequest.html"
SECONDARY_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateInstanceSecondaryInterfaceSpecificationRequest.html"

_TEMPLATE = frozenset({LAUNCH_TEMPLATE})


def _primary(subject: Subject) -> Iterator[Finding]:
    every = interfaces(subject.row)
    first = [each for each in every if (each.card, each.device) == (0, 0)]
    if every and not first and all(None not in (each.card, each.device) for each in every):
        yield Finding(
            path="networkInterfaces", value=None, message="no interface is at card 0, device 0"
        )
    for each in first:
        if each.kind == "efa-only":
            yield Finding(
                path=f"{each.path}.interfaceType",
                value=each.kind,
                message="the primary interface has no IP address",
            )


def _unique_slot(subject: Subject) -> Iterator[Finding]:
    taken: dict[tuple[int, int], Interface] = {}
    for each in interfaces(subject.row):
        if each.card is None or each.device is None:
            continue
        before = taken.setdefault((each.card, each.device), each)
        if before is not each:
            yield Finding(
                path=f"{each.path}.deviceIndex",
                value=each.device,
                message=f"card {each.card}, device {each.device} is {before.path}'s already",
            )


def _one_efa_a_card(subject: Subject) -> Iterator[Finding]:
    by_card: defaultdict[int, list[Interface]] = defaultdict(list)
    for each in efa_interfaces(subject.row):
        if each.card is not None:
            by_card[each.card].append(each)
    for card, (_, *further) in by_card.items():
        for each in further:
            yield Finding(
                path=f"{each.path}.interfaceType",
                value=each.kind,
                message=f"card {card} has {len(further) + 1} EFA interfaces and takes one",
            )


def _type_is_known(subject: Subject) -> Iterator[Finding]:
    for each in interfaces(subject.row):
        if each.kind not in ("interface", "efa", "efa-only", "unknown"):
            yield Finding(
                path=f"{each.path}.interfaceType",
                value=each.kind,
                message="is none of interface, efa and efa-only",
            )


def _addresses_on_further_cards(subject: Subject) -> Iterator[Finding]:
    every = interfaces(subject.row)
    with_address = [each for each in every if each.kind == "efa" and each.card]
    if with_address and all_known(every):
        yield Finding(
            path=f"{with_address[0].path}.interfaceType",
            value="efa",
            message=f"takes a private address, on {len(with_address)} of the further cards",
        )


def _secondary(subject: Subject) -> Iterator[Finding]:
    taken = {(each.card, each.device) for each in interfaces(subject.row)}
    for position, settings in enumerate(mappings(subject.at("secondaryInterfaces"))):
        path = f"secondaryInterfaces[{position}]"
        kind = settings.get("interfaceType")
        if kind not in (None, "", "secondary", UNKNOWN):
            yield Finding(
                path=f"{path}.interfaceType",
                value=kind,
                message="a secondary interface is `secondary` and nothing else",
            )
        slot = (settings.get("networkCardIndex"), settings.get("deviceIndex"))
        if all(isinstance(index, int) for index in slot) and slot in taken:
            yield Finding(
                path=f"{path}.deviceIndex",
                value=slot[1],
                message=f"card {slot[0]}, device {slot[1]} has a network interface already",
            )


RULES = (
    Rule(
        id="efa-primary-interface",
        references=("R04",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="The primary interface, card 0 device 0, is there and has an IP address.",
        why="An efa-only interface cannot be the primary one, and no instance is without one.",
        fix="put `interface` (or `efa`) at card 0, device 0",
        url=EFA_PAGE,
        types=_TEMPLATE,
        check=_primary,
        good=[
            resource(
                LAUNCH_TEMPLATE, networkInterfaces=[interface(0, 0, "interface"), interface(0, 1)]
            )
        ],
        bad=[resource(LAUNCH_TEMPLATE, networkInterfaces=[interface(0, 0), interface(1, 0)])],
    ),
    Rule(
        id="interface-slot-unique",
        references=("R03",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="Each network interface has a network card and device index of its own.",
        why="EC2 refuses two interfaces in one slot; an index that is left out counts as 0.",
        fix="count `deviceIndex` up within each network card",
        url=CARDS_PAGE,
        types=_TEMPLATE,
        check=_unique_slot,
        good=[
            resource(
                LAUNCH_TEMPLATE, networkInterfaces=[interface(0, 0, "interface"), interface(0, 1)]
            )
        ],
        bad=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[
                    interface(0, 0, "interface"),
                    interface(1, 0),
                    interface(1, 0, "interface"),
                ],
            )
        ],
    ),
    Rule(
        id="efa-one-per-card",
        references=("R05",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="A network card has one EFA interface at most, `efa` or `efa-only`.",
        why="EC2 attaches one Elastic Fabric Adapter to a network card and refuses the second.",
        fix="move it to a card of its own, or make it an `interface`",
        url=CARDS_PAGE,
        types=_TEMPLATE,
        check=_one_efa_a_card,
        good=[
            resource(LAUNCH_TEMPLATE, networkInterfaces=[interface(0, 0, "efa"), interface(1, 1)])
        ],
        bad=[
            resource(LAUNCH_TEMPLATE, networkInterfaces=[interface(0, 0, "efa"), interface(0, 1)])
        ],
    ),
    Rule(
        id="interface-type-exists",
        references=(),
        family="interfaces",
        level="mandatory",
        level_because="the template cannot be made",
        sentence="The type of a network interface is `interface`, `efa` or `efa-only`.",
        why="EC2 refuses any other word; `efa_only` and `EFA` are the usual slips.",
        fix="write `interface`, `efa` or `efa-only`",
        url=INTERFACE_PAGE,
        types=_TEMPLATE,
        check=_type_is_known,
        good=[
            resource(
                LAUNCH_TEMPLATE, networkInterfaces=[interface(0, 0, "interface"), interface(0, 1)]
            )
        ],
        bad=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[interface(0, 0, "interface"), interface(0, 1, "efa_only")],
            )
        ],
    ),
    Rule(
        id="efa-only-on-further-cards",
        references=("R09",),
        family="interfaces",
        level="advisory",
        level_because="it launches, and wastes addresses of the subnet",
        sentence="EFA interfaces on cards 1 and up are `efa-only`.",
        why="Each `efa` takes a private address for IP traffic that training sends over card 0; 32 "
        "nodes with 32 cards use up a /22, and further interfaces confuse routing.",
        fix="make them `efa-only`, unless IP traffic needs the bandwidth of these cards",
        url=EFA_PAGE,
        types=_TEMPLATE,
        check=_addresses_on_further_cards,
        good=[
            resource(LAUNCH_TEMPLATE, networkInterfaces=[interface(0, 0, "efa"), interface(1, 0)])
        ],
        bad=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[interface(0, 0, "efa"), interface(1, 1, "efa")],
            )
        ],
    ),
    Rule(
        id="secondary-interface-is-not-efa",
        references=(),
        family="interfaces",
        level="mandatory",
        level_because="the template cannot be made, or its instance cannot launch",
        sentence="`secondaryInterfaces` has no EFA, and no slot that a network interface has.",
        why="Secondary interfaces belong to secondary networks and only have the type `secondary`; "
        "EFA belongs in `networkInterfaces`.",
        fix="list EFA in `networkInterfaces`, and give each secondary interface a free slot",
        url=SECONDARY_PAGE,
        types=_TEMPLATE,
        check=_secondary,
        good=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[interface(0, 0, "interface")],
                secondaryInterfaces=[
                    {"networkCardIndex": 1, "deviceIndex": 0, "interfaceType": "secondary"}
                ],
            )
        ],
        bad=[
            resource(
                LAUNCH_TEMPLATE,
                networkInterfaces=[interface(0, 0, "interface")],
                secondaryInterfaces=[
                    {"networkCardIndex": 1, "deviceIndex": 0, "interfaceType": "efa-only"}
                ],
            )
        ],
    ),
)
"""The rules, a module for each family; `policy.catalogue` is the one list of them all."""

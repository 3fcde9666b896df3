"""Network interfaces and CPU options against what the instance type has."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from fabric.catalogue import InstanceType
from fabric.rows import mapping, number
from policy.examples import interface, resource
from policy.fleets import Fleet, fleet_of
from policy.launches import (
    all_known,
    efa_interfaces,
    fleet_types,
    instance_types,
    node_types,
    template_fleets,
)
from policy.nodes import interfaces
from policy.rule import Finding, Rule, Subject
from policy.rules.interfaces import CARDS_PAGE, EFA_PAGE
from policy.tokens import (
    AUTO_SCALING_GROUP,
    BATCH_ENVIRONMENT,
    INSTANCE,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
)

TYPES_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html#efa-instance-types"
BATCH_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/efa.html"
MULTI_NODE_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html"
CPU_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cpu-options-supported-instances-values.html"

_TEMPLATE = frozenset({LAUNCH_TEMPLATE})


def _type_has_efa(subject: Subject) -> Iterator[Finding]:
    efa = efa_interfaces(subject.row)
    for instance_type in instance_types(subject.row, subject.program) if efa else ():
        if not instance_type.supports_efa:
            yield Finding(
                path=f"{efa[0].path}.interfaceType",
                value=efa[0].kind,
                message=f"{instance_type.name} has no EFA",
            )


def _not_too_many(subject: Subject) -> Iterator[Finding]:
    efa = efa_interfaces(subject.row)
    for instance_type in instance_types(subject.row, subject.program):
        most = _most_efa_interfaces(instance_type)
        if instance_type.supports_efa and len(efa) > most:
            yield Finding(
                path="networkInterfaces",
                value=len(efa),
                message=f"{len(efa)} have EFA; {instance_type.name} takes {most}",
            )


def _most_efa_interfaces(instance_type: InstanceType) -> int:
    """The type's maximum; all cards that take EFA, where AWS recommends only some of those."""
    able = tuple(card.index for card in instance_type.network_cards if card.takes_efa)
    maximum = instance_type.maximum_efa_interfaces
    return maximum if instance_type.efa_cards == able[:maximum] else len(able)


def _card_exists(subject: Subject) -> Iterator[Finding]:
    for instance_type in instance_types(subject.row, subject.program):
        cards = len(instance_type.network_cards)
        for each in interfaces(subject.row):
            if each.card is not None and each.card >= cards:
                yield Finding(
                    path=f"{each.path}.networkCardIndex",
                    value=each.card,
                    message=f"{instance_type.name} has cards 0 to {cards - 1}",
                )


def _card_has_room(subject: Subject) -> Iterator[Finding]:
    used = Counter(each.card for each in interfaces(subject.row))
    for instance_type in instance_types(subject.row, subject.program):
        for card in instance_type.network_cards:
            if used[card.index] > card.maximum_interfaces:
                yield Finding(
                    path="networkInterfaces",
                    value=used[card.index],
                    message=f"{used[card.index]} interfaces on card {card.index}, which takes "
                    f"{card.maximum_interfaces} on {instance_type.name}",
                )


def _card_takes_efa(subject: Subject) -> Iterator[Finding]:
    for instance_type in instance_types(subject.row, subject.program):
        without = {card.index for card in instance_type.network_cards if not card.takes_efa}
        for each in efa_interfaces(subject.row) if instance_type.supports_efa else ():
            if each.card in without:
                yield Finding(
                    path=f"{each.path}.interfaceType",
                    value=each.kind,
                    message=f"card {each.card} of {instance_type.name} takes no EFA",
                )


def _one_slot(subject: Subject) -> Iterator[Finding]:
    for instance_type in instance_types(subject.row, subject.program):
        narrow = {c.index for c in instance_type.network_cards if c.maximum_interfaces == 1}
        for each in interfaces(subject.row):
            if each.card in narrow and each.device:
                yield Finding(
                    path=f"{each.path}.deviceIndex",
                    value=each.device,
                    message=f"card {each.card} of {instance_type.name} has one slot, device 0",
                )


def _all_cards_used(subject: Subject) -> Iterator[Finding]:
    every = interfaces(subject.row)
    efa = efa_interfaces(subject.row)
    if not efa or not all_known(every):
        return
    clusters = [each for each in template_fleets(subject.row, subject.program) if _is_many(each)]
    for instance_type in fleet_types(clusters):
        if len(efa) < instance_type.maximum_efa_interfaces:
            yield Finding(
                path="networkInterfaces",
                value=len(efa),
                message=f"uses {len(efa)} of the {instance_type.maximum_efa_interfaces} EFA of "
                f"{instance_type.name}",
            )


def _is_many(fleet: Fleet) -> bool:
    """Whether nodes work together: those of Batch and EKS, and of a group that grows beyond one."""
    if fleet.kind == AUTO_SCALING_GROUP:
        return fleet.most is not None and fleet.most[1] > 1
    return fleet.kind in (BATCH_ENVIRONMENT, NODE_GROUP)


def _efa_left_out(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    placement = fleet.placement if fleet and fleet.is_whole and _is_many(fleet) else None
    if fleet is None or placement is None or placement.strategy not in ("", "cluster"):
        return
    every = interfaces(fleet.template or {})
    has_efa = fleet.types and all(each.supports_efa for each in fleet.types)
    if has_efa and all_known(every) and not any(each.is_efa for each in every):
        first = fleet.types[0]
        yield Finding(
            path="computeResources" if subject.at("computeResources") else fleet.template_path,
            value=None,
            message=f"{first.name} has {first.maximum_efa_interfaces} EFA and uses none",
        )


def _room_for_task(subject: Subject) -> Iterator[Finding]:
    on_card_0 = [each for each in interfaces(subject.row) if each.card == 0]
    if not efa_interfaces(subject.row):
        return
    fleets = template_fleets(subject.row, subject.program)
    for instance_type in fleet_types([each for each in fleets if each.kind == BATCH_ENVIRONMENT]):
        slots = instance_type.network_cards[0].maximum_interfaces
        if 1 < slots <= len(on_card_0):
            yield Finding(
                path=f"{on_card_0[-1].path}.deviceIndex",
                value=on_card_0[-1].device,
                message=f"card 0 of {instance_type.name} has {slots} slots and none is left",
            )


def _cpu_options(subject: Subject) -> Iterator[Finding]:
    options = mapping(subject.at("cpuOptions"))
    threads, cores = number(options.get("threadsPerCore")), number(options.get("coreCount"))
    if not threads and not cores:
        return
    is_instance = subject.row.get("type") == INSTANCE
    types_of = node_types if is_instance else instance_types
    for instance_type in types_of(subject.row, subject.program):
        # an instance that runs reports its type's own numbers, which nobody need have asked for
        if is_instance and cores == instance_type.cores and _threads(instance_type) == threads:
            continue
        valid = instance_type.valid_threads_per_core
        if not valid or (threads and threads not in valid):
            allowed = " or ".join(str(each) for each in valid) or "no CPU options"
            yield Finding(
                path="cpuOptions.threadsPerCore",
                value=options.get("threadsPerCore"),
                message=f"{instance_type.name} takes {allowed}",
            )
        elif cores and cores > instance_type.cores:
            yield Finding(
                path="cpuOptions.coreCount",
                value=options.get("coreCount"),
                message=f"{instance_type.name} has {instance_type.cores} cores",
            )


def _threads(instance_type: InstanceType) -> int:
    """The threads of a core where nothing else is asked for."""
    return instance_type.vcpus // instance_type.cores


def _template(name: str, *layout: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [resource(LAUNCH_TEMPLATE, instanceType=name, networkInterfaces=[*layout], **more)]


def _batch(name: str, *layout: dict[str, Any]) -> list[dict[str, Any]]:
    compute = {
        "instanceTypes": [name],
        "launchTemplate": {"launchTemplateId": "lt-0123456789abcdef0", "version": "1"},
        "placementGroup": "training",
    }
    return [
        resource(LAUNCH_TEMPLATE, "nodes", networkInterfaces=[*layout]),
        resource(
            BATCH_ENVIRONMENT,
            links={"computeResources": ["nodes"]},
            computeResources=compute,
        ),
    ]


_ENA = interface(0, 0, "interface")
_P4D = (interface(0, 0, "efa"), interface(1, 0), interface(2, 0), interface(3, 0))

RULES = (
    Rule(
        id="efa-supported-by-type",
        references=("R01",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="Nodes with EFA interfaces are of an instance type that has EFA.",
        why="EC2 refuses the launch as Unsupported; mostly only the largest sizes have EFA.",
        fix="choose a type with EFA, or make the interfaces `interface`",
        url=TYPES_PAGE,
        types=_TEMPLATE,
        check=_type_has_efa,
        whole_program=True,
        good=_template("g5.8xlarge", _ENA, interface(0, 1)),
        bad=_template("g5.4xlarge", _ENA, interface(0, 1)),
    ),
    Rule(
        id="efa-count-within-type",
        references=("R02",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="Nodes have no more EFA interfaces than their instance type takes.",
        why="EC2 refuses the launch with AttachmentLimitExceeded.",
        fix="take out the EFA interfaces above the type's maximum",
        url=TYPES_PAGE,
        types=_TEMPLATE,
        check=_not_too_many,
        whole_program=True,
        good=_template("p4d.24xlarge", *_P4D),
        bad=_template("i7ie.48xlarge", interface(0, 0, "efa"), interface(1, 0)),
    ),
    Rule(
        id="network-card-exists",
        references=("R03",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="Each interface is on a network card that the instance type has.",
        why="EC2 refuses the launch.",
        fix="count `networkCardIndex` from 0 up to the type's last card",
        url=CARDS_PAGE,
        types=_TEMPLATE,
        check=_card_exists,
        whole_program=True,
        good=_template("p4d.24xlarge", *_P4D),
        bad=_template("p4d.24xlarge", _ENA, interface(4, 0)),
    ),
    Rule(
        id="network-card-has-room",
        references=("R03",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="No network card has more interfaces than it takes on the instance type.",
        why="EC2 refuses the launch with AttachmentLimitExceeded.",
        fix="spread the interfaces over the cards; `efa` joins ENA and EFA in one slot",
        url=CARDS_PAGE,
        types=_TEMPLATE,
        check=_card_has_room,
        whole_program=True,
        good=_template("hpc7a.96xlarge", _ENA, interface(0, 1), interface(1, 0)),
        bad=_template("hpc7a.96xlarge", _ENA, interface(0, 1), interface(0, 2, "interface")),
    ),
    Rule(
        id="network-card-takes-efa",
        references=("R06",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="EFA interfaces are on network cards that take EFA.",
        why="Card 0 of some types carries IP traffic only; EC2 refuses EFA on it: `Network Card 0 "
        "(requested: 1, limit: 0)`.",
        fix="make the interface on that card `interface`, and put EFA on the cards after it",
        url=EFA_PAGE,
        types=_TEMPLATE,
        check=_card_takes_efa,
        whole_program=True,
        good=_template("p6-b300.48xlarge", _ENA, interface(1, 0)),
        bad=_template("p6-b300.48xlarge", interface(0, 0, "efa"), interface(1, 0)),
    ),
    Rule(
        id="one-slot-card-has-device-0",
        references=("R07",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="On a network card with one slot the interface has device index 0.",
        why="Such a card has no device 1, the index that older layouts put on every further card.",
        fix="set `deviceIndex` to 0",
        url=CARDS_PAGE,
        types=_TEMPLATE,
        check=_one_slot,
        whole_program=True,
        good=_template("hpc6id.32xlarge", interface(0, 0, "efa"), interface(1, 0)),
        bad=_template("hpc6id.32xlarge", interface(0, 0, "efa"), interface(1, 1)),
    ),
    Rule(
        id="efa-on-every-card",
        references=("R08", "E-05"),
        family="interfaces",
        level="mandatory",
        level_because="bandwidth is silently lost",
        sentence="Nodes with EFA that work together have all of it that their type offers.",
        why="A node with fewer EFA interfaces launches and trains at a part of the bandwidth that "
        "is paid for, without any error.",
        fix="add an `efa-only` interface on each card that takes EFA",
        url=EFA_PAGE,
        types=_TEMPLATE,
        check=_all_cards_used,
        whole_program=True,
        good=_batch("p4d.24xlarge", *_P4D),
        bad=_batch("p4d.24xlarge", *_P4D[:1]),
    ),
    Rule(
        id="efa-left-out",
        references=("R08",),
        family="interfaces",
        level="advisory",
        level_because="nodes of one-node jobs may well do without",
        sentence="Nodes in a cluster placement group use the EFA of their instance type.",
        why="Who asks for nodes close together wants a fast network; without EFA they talk TCP.",
        fix="lay out EFA interfaces in the launch template, or leave the placement group out",
        url=BATCH_PAGE,
        types=frozenset({AUTO_SCALING_GROUP, BATCH_ENVIRONMENT, NODE_GROUP}),
        check=_efa_left_out,
        whole_program=True,
        good=_batch("p4d.24xlarge", *_P4D),
        bad=_batch("p4d.24xlarge", _ENA),
    ),
    Rule(
        id="slot-for-task-interface",
        references=("R25",),
        family="interfaces",
        level="advisory",
        level_because="AWS does not say which card the task's interface goes to",
        sentence="Nodes of Batch with EFA keep a slot of network card 0 free.",
        why="Each node of a multi-node job gets one more interface, for its task; without a free "
        "slot the job would not start.",
        fix="join ENA and EFA in one `efa` interface at card 0, device 0",
        url=MULTI_NODE_PAGE,
        types=_TEMPLATE,
        check=_room_for_task,
        whole_program=True,
        good=_batch("hpc7a.96xlarge", interface(0, 0, "efa"), interface(1, 0)),
        bad=_batch("hpc7a.96xlarge", _ENA, interface(0, 1), interface(1, 0)),
    ),
    Rule(
        id="cpu-options-fit-type",
        references=("R77",),
        family="interfaces",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="CPU options name threads per core and cores that the instance type can have.",
        why="Bare metal, g5 and most hpc types take no CPU options, and Graviton has one thread a "
        "core; EC2 refuses what does not fit.",
        fix="leave `cpuOptions` out, or give values that the type lists",
        url=CPU_PAGE,
        types=_TEMPLATE | {INSTANCE},
        check=_cpu_options,
        whole_program=True,
        good=_template("p5en.48xlarge", _ENA, cpuOptions={"coreCount": 96, "threadsPerCore": 1}),
        bad=_template("hpc7a.96xlarge", _ENA, cpuOptions={"coreCount": 192, "threadsPerCore": 1}),
    ),
)
"""The rules on what an instance type has; its facts come from `fabric.catalogue`."""

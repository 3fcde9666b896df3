"""What an EKS node group buys and starts, which its launch template must not contradict."""

from collections.abc import Iterator
from typing import Any

from fabric.rows import Row, inputs, mapping, text, texts
from policy.examples import resource
from policy.launches import efa_interfaces
from policy.node_groups import is_accelerated, market_of, misfits, target_of, template_of
from policy.nodes import known_types
from policy.rule import Finding, Rule, Subject
from policy.tokens import LAUNCH_TEMPLATE, NODE_GROUP
from policy.values import is_unknown

TEMPLATES_PAGE = "https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html"
BLOCKS_PAGE = "https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html"


def _image_twice(subject: Subject) -> Iterator[Finding]:
    template = template_of(subject.row, subject.program)
    if template is None or not inputs(template).get("imageId"):
        return
    ami_type, release = text(subject.at("amiType")), text(subject.at("releaseVersion"))
    if ami_type not in ("", "CUSTOM"):  # an update sees CUSTOM, which EKS fills in
        yield Finding(path="amiType", value=ami_type, message="the template has an image")
    if release and not release.startswith("ami-"):  # an update sees the image's id
        yield Finding(path="releaseVersion", value=release, message="the template has an image")


def _type_twice(subject: Subject) -> Iterator[Finding]:
    template = template_of(subject.row, subject.program)
    own = subject.at("instanceTypes")
    if template is None:
        return
    settings = inputs(template)
    if settings.get("instanceType") and own:
        yield Finding(
            path="instanceTypes", value=texts(own), message="the template has an instance type"
        )
    named = settings.get("instanceType") or settings.get("instanceRequirements") or own
    # a plain group may well mean t3.medium, which has neither EFA nor Capacity Blocks
    special = efa_interfaces(template) or subject.at("capacityType") == "CAPACITY_BLOCK"
    if special and not named:
        yield Finding(
            path="instanceTypes", value=None, message="nobody names one, so it is t3.medium"
        )


def _ami_type_of_template(subject: Subject) -> Iterator[Finding]:
    template = template_of(subject.row, subject.program)
    of_template = inputs(template or {})
    types = known_types(
        [text(of_template.get("instanceType")), *texts(subject.at("instanceTypes"))]
    )
    ami_type = subject.at("amiType")
    hidden = template is None and subject.at("launchTemplate")
    if not ami_type and not hidden and not of_template.get("imageId") and is_accelerated(types):
        yield Finding(
            path="amiType", value=None, message=f"{types[0].name} needs an image with its driver"
        )
    own = known_types([text(of_template.get("instanceType"))])
    for message in misfits(text(ami_type), own):
        yield Finding(path="amiType", value=ami_type, message=message)


def _capacity(subject: Subject) -> Iterator[Finding]:
    bought = subject.at("capacityType")
    template = template_of(subject.row, subject.program)
    market = market_of(template) if template is not None else None
    if is_unknown(bought):
        return
    if bought == "CAPACITY_BLOCK":
        yield from _capacity_block(subject, template)
    elif market in ("capacity-block", "spot"):
        yield _bought(bought, f"the template buys as {market}, which capacityType must say")
    if bought == "SPOT" and template is not None and target_of(template):
        yield _bought(bought, "Spot never uses the capacity reservation that the template names")


def _capacity_block(subject: Subject, template: Row | None) -> Iterator[Finding]:
    if subject.at("instanceTypes"):
        yield Finding(
            path="instanceTypes",
            value=texts(subject.at("instanceTypes")),
            message="with a Capacity Block the template has the instance type",
        )
    if template is None:
        if not subject.at("launchTemplate"):
            yield _bought("CAPACITY_BLOCK", "no launch template names the block")
        return
    if market_of(template) not in (None, "capacity-block"):
        yield _bought("CAPACITY_BLOCK", "the template's market type is not capacity-block")
    if target_of(template) == {}:
        yield _bought("CAPACITY_BLOCK", "the template names no block")
    if not inputs(template).get("instanceType"):
        yield _bought("CAPACITY_BLOCK", "the template has no instance type")


def _bought(value: object, message: str) -> Finding:
    return Finding(path="capacityType", value=value, message=message)


def _update_strategy(subject: Subject) -> Iterator[Finding]:
    template = template_of(subject.row, subject.program)
    update = subject.at("updateConfig")
    strategy = mapping(update).get("updateStrategy")
    unknown = is_unknown(strategy) or (is_unknown(update) and not mapping(update))
    if template is not None and target_of(template) and not unknown and strategy != "MINIMAL":
        yield Finding(
            path="updateConfig.updateStrategy",
            value=strategy,
            message="new nodes start before old ones go, but the reservation is full",
        )


def _from(template: dict[str, Any], **group: Any) -> list[dict[str, Any]]:
    """A launch template, and a node group with these settings that launches from it."""
    return [
        resource(LAUNCH_TEMPLATE, "template", **template),
        resource(
            NODE_GROUP,
            "nodes",
            links={"launchTemplate": ["template"]},
            launchTemplate={"id": "lt-0123456789abcdef0", "version": "1"},
            **group,
        ),
    ]


_RESERVED = {
    "capacityReservationSpecification": {
        "capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}
    }
}
_TYPE = {"instanceType": "p5.48xlarge"}
_BLOCK = {"instanceMarketOptions": {"marketType": "capacity-block"}}
_IMAGE = {"imageId": "ami-0123456789abcdef0"}
_ONLY_GROUPS = frozenset({NODE_GROUP})

RULES = (
    Rule(
        id="eks-image-given-once",
        references=("E-07",),
        family="eks",
        level="mandatory",
        level_because="the node group cannot be created",
        sentence="A node group whose template has an image names no AMI type and no release.",
        why="EKS refuses both.",
        fix="drop amiType and releaseVersion, or the template's imageId",
        url=TEMPLATES_PAGE,
        types=_ONLY_GROUPS,
        check=_image_twice,
        whole_program=True,
        good=_from(_IMAGE),
        bad=_from(_IMAGE, amiType="AL2023_x86_64_NVIDIA"),
    ),
    Rule(
        id="eks-instance-type-given-once",
        references=("E-10",),
        family="eks",
        level="mandatory",
        level_because="the node group cannot be created, or with quite another type",
        sentence="The instance type stands in the node group or in its template, not in both.",
        why="EKS refuses both, and with neither it silently starts t3.medium, which has no EFA.",
        fix="name the types in one of the two",
        url="https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateNodegroup.html",
        types=_ONLY_GROUPS,
        check=_type_twice,
        whole_program=True,
        good=_from(_TYPE),
        bad=_from(_TYPE, instanceTypes=["p5.48xlarge"]),
    ),
    Rule(
        id="eks-ami-type-given",
        references=("E-12",),
        family="eks",
        level="mandatory",
        level_because="nodes start without the driver of their accelerators",
        sentence="A node group with accelerators names an AMI type that has their driver.",
        why="Left out, EKS takes its standard image, on which no pod ever gets a GPU.",
        fix="set amiType, such as AL2023_x86_64_NVIDIA or AL2023_x86_64_NEURON",
        url="https://docs.aws.amazon.com/eks/latest/userguide/ml-eks-optimized-ami.html",
        types=_ONLY_GROUPS,
        check=_ami_type_of_template,
        whole_program=True,
        good=_from(_TYPE, amiType="AL2023_x86_64_NVIDIA"),
        bad=_from(_TYPE),
    ),
    Rule(
        id="eks-capacity-type",
        references=("E-10", "R30", "R43"),
        family="eks",
        level="mandatory",
        level_because="the node group cannot be created, or leaves its reservation unused",
        sentence="A node group and its template agree on how capacity is bought.",
        why="A Capacity Block takes capacityType, marketType, target and instance type together, "
        "and EKS refuses a template for Spot.",
        fix="for a block set CAPACITY_BLOCK, and in the template capacity-block, the block's id "
        "and the instance type; for Spot set capacityType alone",
        url=BLOCKS_PAGE,
        types=_ONLY_GROUPS,
        check=_capacity,
        whole_program=True,
        good=_from(_TYPE | _BLOCK | _RESERVED, capacityType="CAPACITY_BLOCK"),
        bad=_from(_TYPE | _BLOCK | _RESERVED, capacityType="ON_DEMAND"),
    ),
    Rule(
        id="eks-update-strategy",
        references=(),
        family="eks",
        level="advisory",
        level_because="it fails only where the reservation has no node to spare",
        sentence="A node group on a reservation is updated by the strategy MINIMAL.",
        why="By default EKS starts new nodes first, for which a full reservation has no place.",
        fix="set updateConfig.updateStrategy to MINIMAL",
        url="https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupUpdateConfig.html",
        types=_ONLY_GROUPS,
        check=_update_strategy,
        whole_program=True,
        good=_from(_RESERVED, updateConfig={"updateStrategy": "MINIMAL"}),
        bad=_from(_RESERVED),
    ),
)

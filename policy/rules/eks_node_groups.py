"""What a managed node group of EKS says of itself."""

from collections.abc import Iterator
from typing import Any

from fabric.rows import inputs, mapping, mappings, number, text, texts, true
from policy.eks_versions import minor
from policy.examples import resource
from policy.node_groups import cluster_of, is_accelerated, misfits
from policy.nodes import known_types
from policy.rule import Finding, Rule, Subject
from policy.tokens import EKS_CLUSTER, NODE_GROUP
from policy.values import is_unknown

TEMPLATES_PAGE = "https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html"
API_PAGE = "https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateNodegroup.html"
AMI_PAGE = "https://docs.aws.amazon.com/eks/latest/userguide/ml-eks-optimized-ami.html"
SKEW_PAGE = "https://kubernetes.io/releases/version-skew-policy/#kubelet"
REPAIR_PAGE = "https://docs.aws.amazon.com/eks/latest/userguide/node-repair.html"
_KUBELET_MAY_BE_OLDER_BY = 3  # SKEW_PAGE
_PAIRS = (
    ("updateConfig", "maxUnavailable", "maxUnavailablePercentage"),
    ("nodeRepairConfig", "maxUnhealthyNodeThresholdCount", "maxUnhealthyNodeThresholdPercentage"),
    ("nodeRepairConfig", "maxParallelNodesRepairedCount", "maxParallelNodesRepairedPercentage"),
)
_OVERRIDE = (
    "nodeMonitoringCondition",
    "nodeUnhealthyReason",
    "minRepairWaitTimeMins",
    "repairAction",
)


def _version_pinned(subject: Subject) -> Iterator[Finding]:
    version = mapping(subject.at("launchTemplate")).get("version")
    if text(version).startswith("$"):
        yield Finding(
            path="launchTemplate.version", value=version, message="it is not a version's number"
        )


def _disk_in_template(subject: Subject) -> Iterator[Finding]:
    for key in ("diskSize", "remoteAccess"):
        value = subject.at(key)
        if subject.at("launchTemplate") and value:
            yield Finding(
                path=key,
                value=None if is_unknown(value) else value,
                message="it stands beside a launch template",
            )


def _ami_type_fits(subject: Subject) -> Iterator[Finding]:
    ami_type = text(subject.at("amiType"))
    for message in misfits(ami_type, known_types(texts(subject.at("instanceTypes")))):
        yield Finding(path="amiType", value=ami_type, message=message)


def _ami_type_gone(subject: Subject) -> Iterator[Finding]:
    ami_type = text(subject.at("amiType"))
    if ami_type.startswith("AL2_"):
        yield Finding(path="amiType", value=ami_type, message="Amazon Linux 2 ends with 1.32")


def _sizes(subject: Subject) -> Iterator[Finding]:
    sizes = mapping(subject.at("scalingConfig"))
    least, wanted, most = (number(sizes.get(key)) for key in ("minSize", "desiredSize", "maxSize"))
    in_order = (
        ("minSize", least, "maxSize", most),
        ("minSize", least, "desiredSize", wanted),
        ("desiredSize", wanted, "maxSize", most),
    )
    for low_key, low, high_key, high in in_order:
        if low is not None and high is not None and low > high:
            yield Finding(
                path=f"scalingConfig.{low_key}",
                value=sizes.get(low_key),
                message=f"{low_key} {low:g} is above {high_key} {high:g}",
            )
    if most == 0:
        yield Finding(path="scalingConfig.maxSize", value=0, message="it is below 1")


def _pairs(subject: Subject) -> Iterator[Finding]:
    for holder, count, percentage in _PAIRS:
        settings = mapping(subject.at(holder))
        if settings.get(count) and settings.get(percentage):
            value = settings.get(percentage)
            yield Finding(
                path=f"{holder}.{percentage}",
                value=None if is_unknown(value) else value,
                message=f"it stands beside {count}",
            )


def _override_fields(subject: Subject) -> Iterator[Finding]:
    path = "nodeRepairConfig.nodeRepairConfigOverrides"
    overrides = mapping(subject.at("nodeRepairConfig")).get("nodeRepairConfigOverrides")
    for position, each in enumerate(mappings(overrides)):
        missing = [key for key in _OVERRIDE if not each.get(key)]
        if missing:
            yield Finding(
                path=f"{path}[{position}]", value=None, message=f"it has no {', '.join(missing)}"
            )


def _no_repair(subject: Subject) -> Iterator[Finding]:
    repair = subject.at("nodeRepairConfig")
    types = known_types(texts(subject.at("instanceTypes")))
    if (
        is_accelerated(types)
        and not is_unknown(repair)
        and not true(mapping(repair).get("enabled"))
    ):
        yield Finding(
            path="nodeRepairConfig.enabled",
            value=mapping(repair).get("enabled"),
            message="a node with a failed accelerator stays in the group",
        )


def _version_skew(subject: Subject) -> Iterator[Finding]:
    cluster = cluster_of(subject.row, subject.program)
    if cluster is None:
        return
    version = text(subject.at("version"))
    own, control_plane = minor(version), minor(inputs(cluster).get("version"))
    if own is None or control_plane is None:
        return
    behind = control_plane - own
    if behind < 0 or behind > _KUBELET_MAY_BE_OLDER_BY:
        yield Finding(
            path="version",
            value=version,
            message=f"the cluster has 1.{control_plane}, which takes kubelets of 1."
            f"{control_plane - _KUBELET_MAY_BE_OLDER_BY} to 1.{control_plane}",
        )


def _group(**more: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "clusterName": "train",
        "amiType": "AL2023_x86_64_NVIDIA",
        "instanceTypes": ["p5.48xlarge"],
        "scalingConfig": {"minSize": 0, "desiredSize": 2, "maxSize": 4},
        "nodeRepairConfig": {"enabled": True},
    }
    return resource(NODE_GROUP, **(settings | more))


def _of_cluster(version: str) -> list[dict[str, Any]]:
    return [
        resource(EKS_CLUSTER, "train", version="1.35"),
        resource(NODE_GROUP, links={"clusterName": ["train"]}, version=version),
    ]


_ONLY_GROUPS = frozenset({NODE_GROUP})

RULES = (
    Rule(
        id="eks-template-version-pinned",
        references=("R43", "R60"),
        family="eks",
        level="advisory",
        level_because="nodes do get the template, only at another time than planned",
        sentence="A node group names a version of its launch template by number.",
        why="EKS turns $Latest into a number once: every preview shows a difference, and nodes "
        "are replaced whenever it is applied.",
        fix="use the launch template's latest_version output",
        url=TEMPLATES_PAGE,
        types=_ONLY_GROUPS,
        check=_version_pinned,
        good=[_group(launchTemplate={"id": "lt-0123456789abcdef0", "version": "3"})],
        bad=[_group(launchTemplate={"id": "lt-0123456789abcdef0", "version": "$Latest"})],
    ),
    Rule(
        id="eks-disk-in-template",
        references=("E-11",),
        family="eks",
        level="mandatory",
        level_because="the node group cannot be created",
        sentence="With a launch template a node group sets no diskSize and no remoteAccess.",
        why="EKS refuses what the template should say.",
        fix="set the disk in blockDeviceMappings of the template, and use Session Manager",
        url=TEMPLATES_PAGE,
        types=_ONLY_GROUPS,
        check=_disk_in_template,
        good=[_group(launchTemplate={"id": "lt-0123456789abcdef0", "version": "3"})],
        bad=[_group(launchTemplate={"id": "lt-0123456789abcdef0", "version": "3"}, diskSize=200)],
    ),
    Rule(
        id="eks-ami-type-fits",
        references=("E-12",),
        family="eks",
        level="mandatory",
        level_because="nodes do not start, or start without their accelerators",
        sentence="The AMI type of a node group has its architecture and its accelerator's driver.",
        why="Without the driver in the image no pod ever gets a GPU or a Neuron device.",
        fix="use AL2023_x86_64_NVIDIA, AL2023_ARM_64_NVIDIA, AL2023_x86_64_NEURON or the like",
        url=AMI_PAGE,
        types=_ONLY_GROUPS,
        check=_ami_type_fits,
        good=[_group()],
        bad=[_group(amiType="AL2023_x86_64_STANDARD")],
    ),
    Rule(
        id="eks-ami-type-exists",
        references=("E-12",),
        family="eks",
        level="mandatory",
        level_because="the node group cannot be created with a supported version",
        sentence="No node group has an Amazon Linux 2 image.",
        why="EKS makes no such images for Kubernetes 1.33 and later.",
        fix="use the AL2023 or Bottlerocket AMI type",
        url="https://docs.aws.amazon.com/eks/latest/userguide/eks-ami-deprecation-faqs.html",
        types=_ONLY_GROUPS,
        check=_ami_type_gone,
        good=[_group()],
        bad=[_group(amiType="AL2_x86_64_GPU")],
    ),
    Rule(
        id="eks-sizes-in-order",
        references=(),
        family="eks",
        level="mandatory",
        level_because="the node group cannot be created",
        sentence="The sizes of a node group are in order, and the largest is at least 1.",
        why="EKS refuses other sizes.",
        fix="set minSize <= desiredSize <= maxSize",
        url="https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupScalingConfig.html",
        types=_ONLY_GROUPS,
        check=_sizes,
        good=[_group()],
        bad=[_group(scalingConfig={"minSize": 0, "desiredSize": 8, "maxSize": 4})],
    ),
    Rule(
        id="eks-count-or-percentage",
        references=("E-15",),
        family="eks",
        level="mandatory",
        level_because="the node group cannot be created",
        sentence="Updates and repairs of a node group are limited by a count or by a percentage.",
        why="EKS refuses both.",
        fix="keep one of the two",
        url="https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupUpdateConfig.html",
        types=_ONLY_GROUPS,
        check=_pairs,
        good=[_group(updateConfig={"maxUnavailable": 1})],
        bad=[_group(updateConfig={"maxUnavailable": 1, "maxUnavailablePercentage": 33})],
    ),
    Rule(
        id="eks-repair-override-complete",
        references=("E-15",),
        family="eks",
        level="mandatory",
        level_because="the node group cannot be created",
        sentence="Each override of node repair has its condition, reason, waiting time and action.",
        why="EKS refuses an override with less.",
        fix=f"set {', '.join(_OVERRIDE)}",
        url=REPAIR_PAGE,
        types=_ONLY_GROUPS,
        check=_override_fields,
        good=[
            _group(
                nodeRepairConfig={
                    "enabled": True,
                    "nodeRepairConfigOverrides": [
                        {
                            "nodeMonitoringCondition": "AcceleratedHardwareReady",
                            "nodeUnhealthyReason": "NvidiaXID13Error",
                            "minRepairWaitTimeMins": 10,
                            "repairAction": "Reboot",
                        }
                    ],
                }
            )
        ],
        bad=[_group(nodeRepairConfig={"nodeRepairConfigOverrides": [{"repairAction": "Reboot"}]})],
    ),
    Rule(
        id="eks-node-repair",
        references=("E-15",),
        family="eks",
        level="advisory",
        level_because="somebody may watch the nodes",
        sentence="A node group with accelerators repairs its nodes.",
        why="A node whose GPU fails stays Ready, and takes and fails one job after another.",
        fix="set nodeRepairConfig.enabled, and install the eks-node-monitoring-agent add-on",
        url=REPAIR_PAGE,
        types=_ONLY_GROUPS,
        check=_no_repair,
        good=[_group()],
        bad=[_group(nodeRepairConfig={"enabled": False})],
    ),
    Rule(
        id="eks-node-version-skew",
        references=("E-01",),
        family="eks",
        level="mandatory",
        level_because="the node group cannot be created or updated",
        sentence="The nodes' Kubernetes version is the cluster's, or up to three older.",
        why="A kubelet that is newer than its API server, or much older, is not supported.",
        fix="leave the version out, or raise the cluster first",
        url=SKEW_PAGE,
        types=_ONLY_GROUPS,
        check=_version_skew,
        whole_program=True,
        good=_of_cluster("1.35"),
        bad=_of_cluster("1.36"),
    ),
)

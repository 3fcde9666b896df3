"""Launch templates of EKS node groups, and what the two must not both say."""

import base64
import tomllib
from collections.abc import Iterator
from email import message_from_string
from typing import Any, cast

from fabric.rows import Row, inputs, mapping, mappings, number, text, texts, true
from policy.examples import resource
from policy.node_groups import cluster_of, groups_of, user_data_of
from policy.program import Program
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    EKS_CLUSTER,
    EKS_COMPONENT,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
    POD_IDENTITY_ASSOCIATION,
    SECURITY_GROUP,
    SECURITY_GROUP_EGRESS_RULE,
    SECURITY_GROUP_INGRESS_RULE,
    SECURITY_GROUP_RULE,
)
from policy.values import is_unknown

TEMPLATES_PAGE = "https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html"
BLOCKS_PAGE = "https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html"
_FORBIDDEN = ("iamInstanceProfile", "instanceInitiatedShutdownBehavior", "hibernationOptions")
_JOINING = ("apiServerEndpoint", "certificateAuthority", "cidr")
_CLUSTER_TAG = "kubernetes.io/cluster/"
# https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateNodegroup.html
_DEFAULT_AMI_TYPE = "AL2023_x86_64_STANDARD"


def _forbidden(subject: Subject) -> Iterator[Finding]:
    if not groups_of(subject.row, subject.program):
        return
    for key in _FORBIDDEN:
        if subject.at(key):
            yield Finding(path=key, value=None, message="EKS sets it itself")
    for position, each in enumerate(mappings(subject.at("networkInterfaces"))):
        if each.get("subnetId"):
            yield Finding(
                path=f"networkInterfaces[{position}].subnetId",
                value=text(each.get("subnetId")) or None,
                message="the node group chooses the subnet",
            )


def _hop_limit(subject: Subject) -> Iterator[Finding]:
    program = subject.program
    limit = number(mapping(subject.at("metadataOptions")).get("httpPutResponseHopLimit"))
    most = 1 if any(program.of_type(POD_IDENTITY_ASSOCIATION)) else 2
    if limit is not None and limit > most and groups_of(subject.row, program):
        yield Finding(
            path="metadataOptions.httpPutResponseHopLimit",
            value=limit,
            message=f"above {most}, so pods take the node's role"
            if most == 1
            else "more hops than a pod is away",
        )


def _cluster_group(subject: Subject) -> Iterator[Finding]:
    """Groups that this program makes are not the cluster's own: EKS makes that one.

    Without a private endpoint nodes join by the public one, whatever their groups.
    """
    program, template = subject.program, subject.row
    found = [cluster_of(each, program) for each in groups_of(template, program)]
    clusters = [each for each in found if each is not None and _has_private_endpoint(each)]
    if not clusters:
        return
    related = {text(each.get("urn")) for each in clusters}
    for cluster in clusters:
        groups = program.linked(cluster, "vpcConfig", SECURITY_GROUP)
        related.update(text(each.get("urn")) for each in groups)
    for key, named in _named_groups(subject):
        links = program.linked(template, key, SECURITY_GROUP)
        of_cluster = program.linked(template, key, EKS_CLUSTER, EKS_COMPONENT)
        all_seen = 0 < len({*map(str, named)}) <= len(links)
        if all_seen and not of_cluster and not any(_knows(g, related, program) for g in links):
            yield Finding(
                path=key,
                value=sorted(texts(named)) or None,
                message="the cluster's security group is not among them",
            )


def _has_private_endpoint(cluster: Row) -> bool:
    return true(mapping(inputs(cluster).get("vpcConfig")).get("endpointPrivateAccess"))


def _named_groups(subject: Subject) -> Iterator[tuple[str, list[Any]]]:
    """The inputs that name security groups, with those that they name."""
    yield "vpcSecurityGroupIds", _listed(subject.at("vpcSecurityGroupIds"))
    interfaces = mappings(subject.at("networkInterfaces"))
    named = [group for each in interfaces for group in _listed(each.get("securityGroups"))]
    yield "networkInterfaces", named


def _listed(groups: Any) -> list[Any]:
    """The ids in a list; several that are not known yet count as one."""
    return (
        [each for each in cast("list[Any]", groups) if text(each) or is_unknown(each)]
        if isinstance(groups, list)
        else []
    )


def _knows(group: Row, related: set[str], program: Program) -> bool:
    """Whether a group is the control plane's, or a rule of it comes from the control plane."""
    rules = program.users(
        group, SECURITY_GROUP_RULE, SECURITY_GROUP_INGRESS_RULE, SECURITY_GROUP_EGRESS_RULE
    )
    sources = {text(group.get("urn")), *texts(group.get("dependencies"))}
    for rule in rules:
        sources.update(texts(rule.get("dependencies")))
    return bool(sources & related)


def _tagged_twice(subject: Subject) -> Iterator[Finding]:
    program, template = subject.program, subject.row
    if not groups_of(template, program):
        return
    for key in ("vpcSecurityGroupIds", "networkInterfaces"):
        if not subject.at(key):
            continue
        of_cluster = program.linked(template, key, EKS_CLUSTER, EKS_COMPONENT)
        tagged = [
            each
            for each in program.linked(template, key, SECURITY_GROUP)
            if any(tag.startswith(_CLUSTER_TAG) for tag in mapping(inputs(each).get("tags")))
        ]
        if len(tagged) + bool(of_cluster) > 1:
            yield Finding(
                path=key, value=None, message=f"two of its groups carry a {_CLUSTER_TAG} tag"
            )


def _user_data_form(subject: Subject) -> Iterator[Finding]:
    user_data = user_data_of(subject.row)
    groups = groups_of(subject.row, subject.program)
    if user_data is None or subject.at("imageId") or not groups:
        return
    given = [inputs(each).get("amiType") or _DEFAULT_AMI_TYPE for each in groups]
    ami_types = [text(each) for each in given]  # empty while unknown
    if any(each.startswith("BOTTLEROCKET") for each in ami_types) and not _is_toml(user_data):
        yield Finding(path="userData", value=None, message="Bottlerocket takes TOML")
    is_mime = message_from_string(user_data).get_content_maintype() == "multipart"
    if any(each.startswith("AL") for each in ami_types) and not is_mime:
        yield Finding(path="userData", value=None, message="it is no MIME multi-part document")


def _is_toml(user_data: str) -> bool:
    try:
        tomllib.loads(user_data)
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
    return True


def _joins_cluster(subject: Subject) -> Iterator[Finding]:
    if not subject.at("imageId") or not groups_of(subject.row, subject.program):
        return
    if not subject.at("userData"):
        yield Finding(path="userData", value=None, message="an own image gets none from EKS")
    user_data = _with_decoded_parts(user_data_of(subject.row) or "")
    missing = [key for key in _JOINING if key not in user_data]
    if "node.eks.aws" in user_data and missing:
        yield Finding(
            path="userData", value=None, message=f"its NodeConfig has no {', '.join(missing)}"
        )


def _with_decoded_parts(user_data: str) -> str:
    """User data, followed by the parts of a MIME document in the clear."""
    payloads = [each.get_payload(decode=True) for each in message_from_string(user_data).walk()]
    decoded = [each.decode(errors="replace") for each in payloads if isinstance(each, bytes)]
    return "\n".join([user_data, *decoded])


def _nodes(
    user_data: str = "", ami_type: str = "AL2023_x86_64_NVIDIA", **template: Any
) -> list[dict[str, Any]]:
    """A node group and its launch template."""
    if user_data:
        template["userData"] = base64.b64encode(user_data.encode()).decode()
    return [
        resource(LAUNCH_TEMPLATE, "template", **template),
        resource(
            NODE_GROUP,
            "nodes",
            links={"launchTemplate": ["template"]},
            launchTemplate={"id": "lt-0123456789abcdef0", "version": "1"},
            amiType=ami_type,
        ),
    ]


def _in_groups(*groups: str, tags: dict[str, str] | None = None) -> list[dict[str, Any]]:
    ids = [f"sg-0123456789abcdef{position}" for position in range(len(groups))]
    template = resource(
        LAUNCH_TEMPLATE,
        "template",
        links={"vpcSecurityGroupIds": list(groups)},
        vpcSecurityGroupIds=ids,
    )
    return [
        resource(EKS_CLUSTER, "cluster", vpcConfig={"endpointPrivateAccess": True}),
        resource(SECURITY_GROUP, "efa", tags=tags or {}),
        template,
        resource(
            NODE_GROUP,
            "nodes",
            links={"launchTemplate": ["template"], "clusterName": ["cluster"]},
            launchTemplate={"id": "lt-0123456789abcdef0", "version": "1"},
            clusterName="cluster",
        ),
    ]


_MIME = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

spec: {instance: {localStorage: {strategy: RAID0}}}
--//--
"""
_NODE_CONFIG = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: train
"""
_JOINED = _NODE_CONFIG + "".join(f"    {key}: example\n" for key in _JOINING)
_POD_ROLE = resource(POD_IDENTITY_ASSOCIATION, "pods", namespace="train", serviceAccount="train")
_ONLY_TEMPLATES = frozenset({LAUNCH_TEMPLATE})

RULES = (
    Rule(
        id="eks-template-leaves-to-eks",
        references=("E-07",),
        family="eks",
        level="mandatory",
        level_because="the node group cannot be created",
        sentence="The template of a node group has no subnet, profile, shutdown or hibernation.",
        why="EKS sets these itself and refuses a template that does.",
        fix="drop the setting from the template; give subnets and role to the node group",
        url=TEMPLATES_PAGE,
        types=_ONLY_TEMPLATES,
        check=_forbidden,
        whole_program=True,
        good=_nodes(networkInterfaces=[{"deviceIndex": 0}]),
        bad=_nodes(iamInstanceProfile={"name": "nodes"}),
    ),
    Rule(
        id="eks-metadata-hop-limit",
        references=("E-08",),
        family="eks",
        level="advisory",
        level_because="pods may need the node's role, if only for a while",
        sentence="Pods reach instance metadata only where no Pod Identity gives them their role.",
        why="With a hop limit of 2 every pod can take the node's role; more than 2 is no use.",
        fix="set httpPutResponseHopLimit to 1 with Pod Identity, else to 2",
        url="https://docs.aws.amazon.com/eks/latest/best-practices/identity-and-access-management.html",
        types=_ONLY_TEMPLATES,
        check=_hop_limit,
        whole_program=True,
        good=[*_nodes(metadataOptions={"httpPutResponseHopLimit": 1}), _POD_ROLE],
        bad=[*_nodes(metadataOptions={"httpPutResponseHopLimit": 2}), _POD_ROLE],
    ),
    Rule(
        id="eks-cluster-security-group",
        references=("E-06",),
        family="eks",
        level="mandatory",
        level_because="nodes do not join the cluster",
        sentence="A template that names security groups names the cluster's own, too, where nodes "
        "join by the private endpoint.",
        why="EKS adds it only where the template names none; without it the control plane and "
        "the nodes do not reach each other.",
        fix="add the cluster's vpcConfig.clusterSecurityGroupId",
        url=TEMPLATES_PAGE,
        types=_ONLY_TEMPLATES,
        check=_cluster_group,
        whole_program=True,
        good=_in_groups("efa", "cluster"),
        bad=_in_groups("efa"),
    ),
    Rule(
        id="eks-one-cluster-tag",
        references=("E-06",),
        family="eks",
        level="advisory",
        level_because="it matters to load balancers alone",
        sentence="One security group of a node, the cluster's own, carries the cluster's tag.",
        why="The load balancer controller expects exactly one, and registers no pod otherwise.",
        fix="drop the kubernetes.io/cluster tag from the group for EFA",
        url="https://github.com/eksctl-io/eksctl/pull/8556",
        types=_ONLY_TEMPLATES,
        check=_tagged_twice,
        whole_program=True,
        good=_in_groups("efa", "cluster"),
        bad=_in_groups("efa", "cluster", tags={f"{_CLUSTER_TAG}train": "owned"}),
    ),
    Rule(
        id="eks-user-data-form",
        references=("E-07",),
        family="eks",
        level="mandatory",
        level_because="the node group cannot be created",
        sentence="User data for an image of EKS is MIME multi-part, or TOML for Bottlerocket.",
        why="EKS merges its own part into it and refuses what it cannot merge with.",
        fix="wrap scripts and NodeConfig as parts of a MIME document",
        url=TEMPLATES_PAGE,
        types=_ONLY_TEMPLATES,
        check=_user_data_form,
        whole_program=True,
        good=_nodes(_MIME),
        bad=_nodes("#!/bin/sh\necho hello\n"),
    ),
    Rule(
        id="eks-image-joins-cluster",
        references=("E-07",),
        family="eks",
        level="mandatory",
        level_because="nodes do not join the cluster",
        sentence="With an image of one's own the user data tells the node which cluster to join.",
        why="EKS adds nothing then: name, endpoint, certificate and CIDR must be in NodeConfig.",
        fix="write apiServerEndpoint, certificateAuthority and cidr into the NodeConfig",
        url="https://awslabs.github.io/amazon-eks-ami/nodeadm/",
        types=_ONLY_TEMPLATES,
        check=_joins_cluster,
        whole_program=True,
        good=_nodes(_JOINED, "CUSTOM", imageId="ami-0123456789abcdef0"),
        bad=_nodes(_NODE_CONFIG, "CUSTOM", imageId="ami-0123456789abcdef0"),
    ),
)

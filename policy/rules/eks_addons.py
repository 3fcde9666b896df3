"""What runs on every cluster: add-ons, device plugins, pod identities."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fabric.rows import Row, inputs, mapping, mappings, text, true
from policy.documents import statements
from policy.eks_versions import minor
from policy.examples import resource
from policy.node_groups import cluster_of, only_cluster
from policy.program import Program
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    EKS_ADDON,
    EKS_CLUSTER,
    HELM_CHART,
    HELM_RELEASE,
    IAM_ROLE,
    NODE_GROUP,
    POD_IDENTITY_ASSOCIATION,
)
from policy.values import UNKNOWN, is_unknown

EFA_PAGE = "https://docs.aws.amazon.com/eks/latest/userguide/device-management-efa.html"
EFA_PLUGIN = "aws-efa-k8s-device-plugin"
EFA_DRIVER = "aws-dranet"
_EFA_DRIVER_MINOR = 34  # Kubernetes 1.34: EFA_PAGE
_CHARTS = frozenset({HELM_CHART, HELM_RELEASE})
_BOOTSTRAPPED = frozenset({"coredns", "kube-proxy", "vpc-cni"})
_AGENT = "eks-pod-identity-agent"
_MONITOR = "eks-node-monitoring-agent"
_PODS = "pods.eks.amazonaws.com"
_REPELS = frozenset({"NO_SCHEDULE", "NO_EXECUTE"})


def _chart(row: Row) -> str:
    """A chart's name: the last part of a name, path or address."""
    return text(inputs(row).get("chart")).rstrip("/").rpartition("/")[2]


def _charts(program: Program, name: str) -> list[Row]:
    return [row for row in program.of_type(*sorted(_CHARTS)) if _chart(row) == name]


def _two_efa_managers(subject: Subject) -> Iterator[Finding]:
    program = subject.program
    plugins = _charts(program, EFA_PLUGIN)
    several = len(list(program.of_type(EKS_CLUSTER))) > 1
    if _chart(subject.row) != EFA_DRIVER or not plugins or several:
        return
    if not any(_chooses_nodes(each) for each in [subject.row, *plugins]):
        yield Finding(
            path="chart", value=subject.at("chart"), message=f"{EFA_PLUGIN} is installed, too"
        )


def _chooses_nodes(row: Row) -> bool:
    values = inputs(row).get("values")
    written = mapping(values)
    files = inputs(row).get("valueYamlFiles")
    return values is UNKNOWN or bool(
        written.get("nodeSelector") or written.get("affinity") or files
    )


def _efa_driver_too_early(subject: Subject) -> Iterator[Finding]:
    cluster = only_cluster(subject.program)
    version = minor(inputs(cluster or {}).get("version"))
    early = version is not None and version < _EFA_DRIVER_MINOR
    if _chart(subject.row) == EFA_DRIVER and early:
        yield Finding(
            path="chart",
            value=subject.at("chart"),
            message=f"it takes Kubernetes 1.{_EFA_DRIVER_MINOR}, the cluster has 1.{version}",
        )


def _efa_plugin_repelled(subject: Subject) -> Iterator[Finding]:
    values = subject.at("values")
    if _chart(subject.row) != EFA_PLUGIN or is_unknown(values) or subject.at("valueYamlFiles"):
        return
    tolerations = mappings(mapping(values).get("tolerations"))
    for group in subject.program.of_type(NODE_GROUP):
        for taint in mappings(inputs(group).get("taints")):
            if _repels(taint) and not any(_tolerates(each, taint) for each in tolerations):
                yield Finding(
                    path="values.tolerations",
                    value=None,
                    message=f"it does not tolerate the taint {text(taint.get('key'))} of nodes",
                )
                return


def _repels(taint: Mapping[str, Any]) -> bool:
    return bool(text(taint.get("key"))) and text(taint.get("effect")) in _REPELS


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if not toleration.get("key"):
        return toleration.get("operator") == "Exists"
    same = toleration.get("key") == taint.get("key")
    exists = toleration.get("operator") == "Exists"
    return same and (exists or toleration.get("value") == taint.get("value"))


def _addon_conflict(subject: Subject) -> Iterator[Finding]:
    cluster = cluster_of(subject.row, subject.program)
    name, resolve = text(subject.at("addonName")), subject.at("resolveConflictsOnCreate")
    if cluster is None or name not in _BOOTSTRAPPED or is_unknown(resolve):
        return
    value = inputs(cluster).get("bootstrapSelfManagedAddons")
    bootstrapped = value is None or true(value)
    if bootstrapped and resolve != "OVERWRITE":
        yield Finding(
            path="resolveConflictsOnCreate",
            value=resolve,
            message=f"the cluster comes with a {name} of its own",
        )


def _no_agent(subject: Subject) -> Iterator[Finding]:
    if not _has_addon(subject, _AGENT):
        yield Finding(path="roleArn", value=None, message=f"no add-on {_AGENT} hands the role out")


def _no_monitor(subject: Subject) -> Iterator[Finding]:
    repairs = true(mapping(subject.at("nodeRepairConfig")).get("enabled"))
    seen = _has_addon(subject, _MONITOR) or _charts(subject.program, _MONITOR)
    if repairs and not seen:
        yield Finding(
            path="nodeRepairConfig.enabled", value=True, message=f"there is no add-on {_MONITOR}"
        )


def _has_addon(subject: Subject, name: str) -> bool:
    """Whether the cluster has an add-on, or may have: by Auto Mode, or from another program."""
    addons = list(subject.program.of_type(EKS_ADDON))
    cluster = cluster_of(subject.row, subject.program)
    auto_mode = mapping(inputs(cluster or {}).get("computeConfig")).get("enabled")
    named = [inputs(each).get("addonName") for each in addons]
    return not addons or bool(auto_mode) or any(is_unknown(n) or n == name for n in named)


def _pod_trust(subject: Subject) -> Iterator[Finding]:
    of_pods = [
        each
        for each in statements(subject.at("assumeRolePolicy"))
        if each.allows and _PODS in each.principals
    ]
    for action in ("sts:AssumeRole", "sts:TagSession"):
        if of_pods and not any(each.grants(action) for each in of_pods):
            yield Finding(
                path="assumeRolePolicy", value=_PODS, message=f"pods may not use {action}"
            )


def _trust(*actions: str) -> str:
    pods = {"Effect": "Allow", "Principal": {"Service": _PODS}, "Action": list(actions)}
    return json.dumps({"Version": "2012-10-17", "Statement": [pods]})


def _with_plugin(**values: Any) -> list[dict[str, Any]]:
    taint = {"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}
    return [
        resource(NODE_GROUP, "nodes", taints=[taint]),
        resource(HELM_RELEASE, "plugin", chart=EFA_PLUGIN, values=values),
    ]


def _with_driver(version: str) -> list[dict[str, Any]]:
    return [
        resource(EKS_CLUSTER, "train", version=version),
        resource(HELM_RELEASE, "driver", chart=EFA_DRIVER),
    ]


def _with_addon(resolve: str) -> list[dict[str, Any]]:
    return [
        resource(EKS_CLUSTER, "train", bootstrapSelfManagedAddons=True),
        resource(
            EKS_ADDON,
            links={"clusterName": ["train"]},
            clusterName="train",
            addonName="vpc-cni",
            resolveConflictsOnCreate=resolve,
        ),
    ]


_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
_OTHER_ADDON = resource(EKS_ADDON, "names", addonName="coredns")
_POD_ROLE = resource(POD_IDENTITY_ASSOCIATION, "pods", namespace="train", serviceAccount="train")
_REPAIRED = resource(NODE_GROUP, "nodes", nodeRepairConfig={"enabled": True})
_PLUGIN = resource(HELM_RELEASE, "plugin", chart=EFA_PLUGIN)

RULES = (
    Rule(
        id="efa-one-device-manager",
        references=("E-16",),
        family="eks",
        level="mandatory",
        level_because="pods get the same device twice, or none",
        sentence="The EFA device plugin and the EFA DRA driver do not run on the same nodes.",
        why="Each hands out every EFA device of the node without asking the other.",
        fix="install one of them, or keep them on different nodes by nodeSelector",
        url=EFA_PAGE,
        types=_CHARTS,
        check=_two_efa_managers,
        whole_program=True,
        good=[resource(HELM_RELEASE, "driver", chart=EFA_DRIVER)],
        bad=[resource(HELM_RELEASE, "driver", chart=EFA_DRIVER), _PLUGIN],
    ),
    Rule(
        id="efa-driver-version",
        references=("E-16",),
        family="eks",
        level="mandatory",
        level_because="its pods do not start, and nobody gets EFA",
        sentence="The EFA DRA driver runs on Kubernetes 1.34 or later.",
        why="It builds on an API that earlier versions do not have.",
        fix=f"raise the cluster's version, or install {EFA_PLUGIN}",
        url=EFA_PAGE,
        types=_CHARTS,
        check=_efa_driver_too_early,
        whole_program=True,
        good=_with_driver("1.35"),
        bad=_with_driver("1.33"),
    ),
    Rule(
        id="efa-plugin-tolerates",
        references=("E-16",),
        family="eks",
        level="advisory",
        level_because="the chart's own list of tolerations may change",
        sentence="The EFA device plugin tolerates the taints of the node groups.",
        why="Where it cannot run no EFA is offered, and pods that ask for one wait for ever.",
        fix="set values.tolerations of the chart to the taints of the groups",
        url=EFA_PAGE,
        types=_CHARTS,
        check=_efa_plugin_repelled,
        whole_program=True,
        good=_with_plugin(tolerations=[_TOLERATION]),
        bad=_with_plugin(),
    ),
    Rule(
        id="eks-addon-takes-over",
        references=("E-13",),
        family="eks",
        level="advisory",
        level_because="it fails only where the settings differ",
        sentence="An add-on that the cluster already has of its own may overwrite it.",
        why="The add-on meets fields that somebody else has set, and its creation fails.",
        fix="set bootstrapSelfManagedAddons to false, or resolveConflictsOnCreate to OVERWRITE",
        url="https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateAddon.html",
        types=frozenset({EKS_ADDON}),
        check=_addon_conflict,
        whole_program=True,
        good=_with_addon("OVERWRITE"),
        bad=_with_addon("NONE"),
    ),
    Rule(
        id="pod-identity-agent",
        references=("E-14",),
        family="eks",
        level="advisory",
        level_because="another program may install the agent",
        sentence="A cluster with pod identities has the add-on that hands them out.",
        why="Without it pods start without credentials, or with those of their node.",
        fix=f"make an aws.eks.Addon {_AGENT}",
        url="https://docs.aws.amazon.com/eks/latest/userguide/pod-id-agent-setup.html",
        types=frozenset({POD_IDENTITY_ASSOCIATION}),
        check=_no_agent,
        whole_program=True,
        good=[_POD_ROLE, resource(EKS_ADDON, "agent", addonName=_AGENT)],
        bad=[_POD_ROLE, _OTHER_ADDON],
    ),
    Rule(
        id="pod-identity-trust",
        references=("E-14",),
        family="eks",
        level="mandatory",
        level_because="pods get no credentials",
        sentence="A role for pods lets them both assume it and tag the session.",
        why="EKS tags the session with cluster, namespace and account name; without that it fails.",
        fix="allow sts:AssumeRole and sts:TagSession in the trust policy",
        url="https://docs.aws.amazon.com/eks/latest/userguide/pod-id-role.html",
        types=frozenset({IAM_ROLE}),
        check=_pod_trust,
        good=[resource(IAM_ROLE, assumeRolePolicy=_trust("sts:AssumeRole", "sts:TagSession"))],
        bad=[resource(IAM_ROLE, assumeRolePolicy=_trust("sts:AssumeRole"))],
    ),
    Rule(
        id="eks-node-monitoring",
        references=("E-15",),
        family="eks",
        level="advisory",
        level_because="nodes that are not Ready are repaired all the same",
        sentence="A cluster that repairs nodes has the agent that watches their hardware.",
        why="Without it EKS sees no failed GPU, network card or disk.",
        fix=f"make an aws.eks.Addon {_MONITOR}",
        url="https://docs.aws.amazon.com/eks/latest/userguide/node-health.html",
        types=frozenset({NODE_GROUP}),
        check=_no_monitor,
        whole_program=True,
        good=[_REPAIRED, resource(EKS_ADDON, "monitor", addonName=_MONITOR)],
        bad=[_REPAIRED, _OTHER_ADDON],
    ),
)

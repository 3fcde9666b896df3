"""EKS programs whose verdict is not obvious."""

import base64
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import Any

import pytest

from policy.eks_versions import AS_OF, OLDEST, OLDEST_STANDARD, SUPPORT
from policy.examples import resource
from policy.judge import findings
from policy.node_groups import misfits
from policy.nodes import known_types
from policy.program import Program
from policy.rules import eks_addons, eks_capacity, eks_clusters, eks_node_groups, eks_templates
from policy.tokens import (
    EKS_CLUSTER,
    HELM_RELEASE,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
    SECURITY_GROUP,
    SECURITY_GROUP_RULE,
)
from policy.values import UNKNOWN

RULES = {
    rule.id: rule
    for module in (eks_addons, eks_capacity, eks_clusters, eks_node_groups, eks_templates)
    for rule in module.RULES
}


def verdict(rule_id: str, *rows: dict[str, Any]) -> list[str]:
    rule, program = RULES[rule_id], Program(rows)
    return [
        finding.message
        for row in rows
        if row["type"] in rule.types
        for finding in findings(rule, row, program, rule.defaults())
    ]


def nodes(template: dict[str, Any], **group: Any) -> list[dict[str, Any]]:
    return [
        resource(LAUNCH_TEMPLATE, "template", **template),
        resource(
            NODE_GROUP,
            "nodes",
            links={"launchTemplate": ["template"]},
            launchTemplate={"id": UNKNOWN, "version": UNKNOWN},
            **group,
        ),
    ]


@pytest.mark.parametrize(
    ("ami_type", "instance_type"),
    [
        ("AL2023_x86_64_NVIDIA", "p6-b300.48xlarge"),
        ("AL2023_ARM_64_NVIDIA", "g5g.16xlarge"),
        ("AL2023_x86_64_NEURON", "trn2.48xlarge"),
        ("BOTTLEROCKET_x86_64_NVIDIA_FIPS", "p5.48xlarge"),
        ("BOTTLEROCKET_x86_64", "trn1.32xlarge"),
        ("AL2023_ARM_64_STANDARD", "hpc7g.16xlarge"),
        ("CUSTOM", "p5.48xlarge"),
    ],
)
def test_an_image_of_eks_fits_the_family_that_it_is_made_for(
    ami_type: str, instance_type: str
) -> None:
    assert list(misfits(ami_type, known_types([instance_type]))) == []


def test_bottlerocket_for_nvidia_has_no_neuron_driver() -> None:
    assert list(misfits("BOTTLEROCKET_x86_64_NVIDIA", known_types(["trn1.32xlarge"])))


def test_what_eks_fills_in_after_an_update_is_no_contradiction() -> None:
    filled_in = {"amiType": "CUSTOM", "releaseVersion": "ami-0123456789abcdef0", "version": "1.35"}
    rows = nodes({"imageId": "ami-0123456789abcdef0"}, **filled_in, diskSize=0, instanceTypes=[])
    assert not verdict("eks-image-given-once", *rows)
    assert not verdict("eks-disk-in-template", *rows)


def test_a_capacity_block_whose_id_is_not_known_yet_is_a_target() -> None:
    target = {"capacityReservationTarget": {"capacityReservationId": UNKNOWN}}
    template = {
        "instanceType": "p5.48xlarge",
        "instanceMarketOptions": {"marketType": "capacity-block"},
        "capacityReservationSpecification": target,
    }
    assert not verdict("eks-capacity-type", *nodes(template, capacityType="CAPACITY_BLOCK"))


def test_a_template_that_another_program_makes_is_not_judged() -> None:
    group = resource(
        NODE_GROUP,
        launchTemplate={"id": "lt-0123456789abcdef0", "version": "1"},
        capacityType="CAPACITY_BLOCK",
    )
    assert not verdict("eks-capacity-type", group)
    assert not verdict(
        "eks-ami-type-given",
        group | {"inputs": {**group["inputs"], "instanceTypes": ["p5.48xlarge"]}},
    )


def test_a_plain_group_may_leave_its_type_to_eks_but_one_with_efa_may_not() -> None:
    disk = {"blockDeviceMappings": [{"ebs": {"volumeSize": 200}}]}
    efa = {"networkInterfaces": [{"interfaceType": "efa"}]}
    assert not verdict("eks-instance-type-given-once", *nodes(disk))
    assert verdict("eks-instance-type-given-once", *nodes(disk | efa))
    assert verdict("eks-instance-type-given-once", *nodes(disk, capacityType="CAPACITY_BLOCK"))


def cluster(network: dict[str, Any], links: dict[str, list[str]] | None = None) -> dict[str, Any]:
    row = resource(EKS_CLUSTER, "cluster", links=links, vpcConfig=network)
    row["inputs"]["name"] = "train"
    return row


def joined(cluster_name: object = "train", **network: Any) -> list[dict[str, Any]]:
    """A node group behind one group of the program, not the cluster's, and a cluster."""
    links = {"launchTemplate": ["template"]}
    if cluster_name is UNKNOWN:
        links["clusterName"] = ["cluster"]
    return [
        cluster(network),
        resource(SECURITY_GROUP, "efa"),
        resource(
            LAUNCH_TEMPLATE,
            "template",
            links={"vpcSecurityGroupIds": ["efa"]},
            vpcSecurityGroupIds=[UNKNOWN],
        ),
        resource(
            NODE_GROUP,
            "nodes",
            links=links,
            launchTemplate={"id": UNKNOWN},
            clusterName=cluster_name,
        ),
    ]


@pytest.mark.parametrize(
    ("cluster_name", "private", "guilty"),
    [
        (UNKNOWN, True, True),
        ("train", True, True),
        ("train", False, False),  # nodes join by the public endpoint
        ("train", UNKNOWN, False),
        ("another", True, False),
    ],
)
def test_only_the_private_endpoint_of_its_own_cluster_asks_for_the_clusters_group(
    cluster_name: object, private: object, guilty: bool
) -> None:
    rows = joined(cluster_name, endpointPrivateAccess=private)
    assert bool(verdict("eks-cluster-security-group", *rows)) == guilty


def node_group_behind_rule(*, rule_from_cluster: bool) -> list[dict[str, Any]]:
    """The layout of pulumi-eks: an own node group that the control plane's group lets in."""
    source = ["control-plane" if rule_from_cluster else "nodes-group"]
    _, group = nodes({}, clusterName="train")
    template = resource(
        LAUNCH_TEMPLATE,
        "template",
        links={"vpcSecurityGroupIds": ["nodes-group"]},
        vpcSecurityGroupIds=[UNKNOWN],
    )
    return [
        resource(SECURITY_GROUP, "control-plane"),
        resource(SECURITY_GROUP, "nodes-group"),
        cluster(
            {"endpointPrivateAccess": True, "securityGroupIds": UNKNOWN},
            links={"vpcConfig": ["control-plane"]},
        ),
        resource(
            SECURITY_GROUP_RULE,
            "rule",
            links={"securityGroupId": ["nodes-group"], "sourceSecurityGroupId": source},
            type="ingress",
        ),
        template,
        group,
    ]


def test_a_group_that_lets_the_control_plane_in_need_not_be_the_clusters_own() -> None:
    assert not verdict(
        "eks-cluster-security-group", *node_group_behind_rule(rule_from_cluster=True)
    )
    assert verdict("eks-cluster-security-group", *node_group_behind_rule(rule_from_cluster=False))


def test_a_literal_group_beside_one_of_the_program_may_be_the_clusters() -> None:
    rows = joined(endpointPrivateAccess=True)
    assert verdict("eks-cluster-security-group", *rows)
    rows[2]["inputs"]["vpcSecurityGroupIds"].append("sg-0123456789abcdef0")
    assert not verdict("eks-cluster-security-group", *rows)


def test_bottlerocket_takes_toml() -> None:
    toml = base64.b64encode(b"[settings.kubernetes]\nmax-pods = 30\n").decode()
    bottlerocket = nodes({"userData": toml}, amiType="BOTTLEROCKET_x86_64_NVIDIA")
    assert not verdict("eks-user-data-form", *bottlerocket)
    assert verdict("eks-user-data-form", *nodes({"userData": toml}, amiType="AL2023_x86_64_NVIDIA"))


def test_user_data_must_suit_every_group_that_launches_from_it() -> None:
    script = base64.b64encode(b"#!/bin/sh\n").decode()
    template, first = nodes({"userData": script}, amiType="WINDOWS_CORE_2022_x86_64")
    second = {**first, "urn": f"{first['urn']}-2"}
    for ami_type, guilty in (("AL2023_x86_64_STANDARD", True), ("", True), (UNKNOWN, False)):
        second["inputs"] = {**first["inputs"], "amiType": ami_type}
        assert bool(verdict("eks-user-data-form", template, first, second)) == guilty


def test_a_node_config_may_stand_in_a_part_in_base64() -> None:
    def launched(*keys: str) -> list[dict[str, Any]]:
        config = "apiVersion: node.eks.aws/v1alpha1\n" + "".join(f"{key}: x\n" for key in keys)
        document = MIMEMultipart()
        document.attach(MIMEText(config, "x-node", "utf-8"))  # utf-8 is sent in base64
        assert "node.eks.aws" not in document.as_string()
        user_data = base64.b64encode(document.as_bytes()).decode()
        return nodes({"userData": user_data, "imageId": "ami-0123456789abcdef0"})

    complete = ("apiServerEndpoint", "certificateAuthority", "cidr")
    assert not verdict("eks-image-joins-cluster", *launched(*complete))
    assert verdict("eks-image-joins-cluster", *launched(*complete[:2]))


def test_an_endpoint_that_is_not_known_yet_is_not_accused() -> None:
    for network in (UNKNOWN, {"publicAccessCidrs": UNKNOWN}, {"endpointPublicAccess": UNKNOWN}):
        assert not verdict("eks-endpoint-not-open", resource(EKS_CLUSTER, vpcConfig=network))


def test_plugin_and_driver_may_each_have_their_own_nodes() -> None:
    driver = resource(
        HELM_RELEASE, "driver", chart="aws-dranet", values={"nodeSelector": {"a": "b"}}
    )
    plugin = resource(HELM_RELEASE, "plugin", chart="aws-efa-k8s-device-plugin")
    assert not verdict("efa-one-device-manager", driver, plugin)


def test_support_of_versions_ends_in_their_order() -> None:
    assert list(SUPPORT) == sorted(SUPPORT, key=lambda each: each.extended_until)
    assert all(each.standard_until < each.extended_until for each in SUPPORT)


def test_on_the_day_of_the_table_1_30_was_gone_and_1_34_the_oldest_at_the_usual_price() -> None:
    assert (AS_OF, OLDEST, OLDEST_STANDARD) == ("2026-11-21", "1.31", "1.34")

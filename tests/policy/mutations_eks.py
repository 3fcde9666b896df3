"""Ways to break good EKS programs."""

import base64
import json

from tests.policy.edits import Break, add, both, drop, named, put, remove, unlink
from tests.policy.mutations import Mutation, Rows

RELEASE = "kubernetes:helm.sh/v3:Release"
DRIVER = add(RELEASE, "driver", chart="aws-dranet")
TARGET = "capacityReservationSpecification.capacityReservationTarget"


def _raw(rule: str, what: str, breaks: Break) -> Mutation:
    return Mutation(rule=rule, stack="eks-raw", what=what, breaks=breaks)


def _component(rule: str, what: str, breaks: Break) -> Mutation:
    return Mutation(rule=rule, stack="eks-component", what=what, breaks=breaks)


def _group(key: str, value: object, name: str = "p4d") -> Break:
    return put("NodeGroup", name, key, value)


def _template(key: str, value: object, name: str = "p4d") -> Break:
    return put("LaunchTemplate", name, key, value)


def _cluster(key: str, value: object) -> Break:
    return put("Cluster", "train", key, value)


def _encoded(user_data: str) -> str:
    return base64.b64encode(user_data.encode()).decode()


def _pods(action: str) -> str:
    pods = {"Service": "pods.eks.amazonaws.com"}
    return json.dumps({"Statement": {"Effect": "Allow", "Principal": pods, "Action": action}})


def _own_groups_only(name: str) -> Break:
    def change(rows: Rows) -> None:
        unlink("LaunchTemplate", name, "networkInterfaces", "::train")(rows)
        for each in named(rows, "LaunchTemplate", name)["inputs"]["networkInterfaces"]:
            each["securityGroups"] = each["securityGroups"][:1]

    return change


MUTATIONS = (
    # node groups
    _raw("eks-template-version-pinned", "latest", _group("launchTemplate.version", "$Latest")),
    _raw("eks-template-version-pinned", "default", _group("launchTemplate.version", "$Default")),
    _raw("eks-disk-in-template", "a disk size", _group("diskSize", 500)),
    _raw("eks-disk-in-template", "an SSH key", _group("remoteAccess", {"ec2SshKey": "mine"})),
    _raw("eks-ami-type-fits", "no driver", _group("amiType", "AL2023_x86_64_STANDARD")),
    _raw("eks-ami-type-fits", "Arm", _group("amiType", "AL2023_ARM_64_NVIDIA")),
    _raw("eks-ami-type-fits", "Neuron on GPUs", _group("amiType", "AL2023_x86_64_NEURON")),
    _raw("eks-ami-type-fits", "Trainium with NVIDIA", _group("instanceTypes", ["trn1.32xlarge"])),
    _raw("eks-ami-type-exists", "AL2 with GPUs", _group("amiType", "AL2_x86_64_GPU")),
    _raw("eks-ami-type-exists", "AL2", _group("amiType", "AL2_x86_64", "system")),
    _raw("eks-sizes-in-order", "desired too high", _group("scalingConfig.desiredSize", 9)),
    _raw("eks-sizes-in-order", "minimum too high", _group("scalingConfig.minSize", "8")),
    _raw("eks-count-or-percentage", "in updates", _group("updateConfig.maxUnavailable", 1)),
    _raw(
        "eks-count-or-percentage",
        "in repairs",
        _group("nodeRepairConfig.maxParallelNodesRepairedPercentage", 10),
    ),
    _raw(
        "eks-repair-override-complete",
        "no reason",
        drop(
            "NodeGroup", "p4d", "nodeRepairConfig.nodeRepairConfigOverrides.0.nodeUnhealthyReason"
        ),
    ),
    _raw(
        "eks-repair-override-complete",
        "no action",
        drop("NodeGroup", "block", "nodeRepairConfig.nodeRepairConfigOverrides.0.repairAction"),
    ),
    _raw("eks-node-repair", "left out", drop("NodeGroup", "p4d", "nodeRepairConfig")),
    _raw("eks-node-repair", "off", _group("nodeRepairConfig.enabled", False)),
    _raw("eks-node-version-skew", "newer than the cluster", _group("version", "1.36")),
    _raw("eks-node-version-skew", "four behind", _group("version", "1.31")),
    # what a node group buys
    _raw(
        "eks-image-given-once", "AMI type", _template("imageId", "ami-0123456789abcdef0", "system")
    ),
    _raw(
        "eks-image-given-once",
        "release",
        both(
            _template("imageId", "ami-0123456789abcdef0"),
            drop("NodeGroup", "p4d", "amiType"),
            _group("releaseVersion", "1.35.0-20260714"),
        ),
    ),
    _raw("eks-instance-type-given-once", "twice", _template("instanceType", "p4d.24xlarge")),
    _raw("eks-instance-type-given-once", "nowhere", drop("NodeGroup", "p4d", "instanceTypes")),
    _raw("eks-ami-type-given", "left out", drop("NodeGroup", "p4d", "amiType")),
    _raw("eks-ami-type-given", "type in the template", drop("NodeGroup", "block", "amiType")),
    _raw(
        "eks-ami-type-given",
        "unfit for the template's type",
        _group("amiType", "AL2023_x86_64_STANDARD", "block"),
    ),
    _raw("eks-capacity-type", "on demand", _group("capacityType", "ON_DEMAND", "block")),
    _raw("eks-capacity-type", "left out", drop("NodeGroup", "block", "capacityType")),
    _raw("eks-capacity-type", "no block", drop("LaunchTemplate", "block", TARGET)),
    _raw("eks-capacity-type", "no type", drop("LaunchTemplate", "block", "instanceType")),
    _raw(
        "eks-capacity-type", "no market", drop("LaunchTemplate", "block", "instanceMarketOptions")
    ),
    _raw(
        "eks-capacity-type",
        "Spot template",
        _template("instanceMarketOptions", {"marketType": "spot"}),
    ),
    _raw(
        "eks-update-strategy",
        "default",
        _group("updateConfig.updateStrategy", "DEFAULT", "block"),
    ),
    _raw("eks-update-strategy", "left out", drop("NodeGroup", "block", "updateConfig")),
    # launch templates
    _raw("eks-template-leaves-to-eks", "profile", _template("iamInstanceProfile", {"name": "x"})),
    _raw(
        "eks-template-leaves-to-eks",
        "subnet",
        _template("networkInterfaces.0.subnetId", "subnet-0123456789abcdef0"),
    ),
    _raw(
        "eks-template-leaves-to-eks",
        "shutdown",
        _template("instanceInitiatedShutdownBehavior", "terminate"),
    ),
    _raw(
        "eks-metadata-hop-limit",
        "2 with Pod Identity",
        _template("metadataOptions.httpPutResponseHopLimit", 2),
    ),
    _component(
        "eks-metadata-hop-limit",
        "3 without",
        _template("metadataOptions.httpPutResponseHopLimit", "3", "p5"),
    ),
    _raw("eks-cluster-security-group", "own group only", _own_groups_only("p4d")),
    _raw("eks-cluster-security-group", "on a block", _own_groups_only("block")),
    _raw(
        "eks-one-cluster-tag",
        "owned",
        put("SecurityGroup", "efa", "tags", {"kubernetes.io/cluster/train": "owned"}),
    ),
    _raw(
        "eks-one-cluster-tag",
        "shared",
        put("SecurityGroup", "efa", "tags", {"kubernetes.io/cluster/other": "shared"}),
    ),
    _raw("eks-user-data-form", "a bare script", _template("userData", _encoded("#!/bin/sh\nls"))),
    _raw(
        "eks-user-data-form",
        "MIME for Bottlerocket",
        _group("amiType", "BOTTLEROCKET_x86_64_NVIDIA"),
    ),
    _raw("eks-image-joins-cluster", "only storage", _template("imageId", "ami-0123456789abcdef0")),
    _raw(
        "eks-image-joins-cluster",
        "nothing",
        _template("imageId", "ami-0123456789abcdef0", "system"),
    ),
    # clusters
    _raw(
        "eks-endpoint-not-open",
        "to the world",
        _cluster("vpcConfig.publicAccessCidrs", ["0.0.0.0/0"]),
    ),
    _raw(
        "eks-endpoint-not-open",
        "by default",
        drop("Cluster", "train", "vpcConfig.publicAccessCidrs"),
    ),
    _raw(
        "eks-endpoint-not-open",
        "to the world in halves",
        _cluster("vpcConfig.publicAccessCidrs", ["0.0.0.0/1", "128.0.0.0/1"]),
    ),
    _component(
        "eks-endpoint-not-open",
        "in a component's child",
        put("Cluster", "train-eksCluster", "vpcConfig.endpointPublicAccess", True),
    ),
    _raw("eks-private-endpoint", "off", _cluster("vpcConfig.endpointPrivateAccess", False)),
    _raw(
        "eks-private-endpoint",
        "left out",
        drop("Cluster", "train", "vpcConfig.endpointPrivateAccess"),
    ),
    _component(
        "eks-some-endpoint",
        "both off",
        put("Cluster", "train-eksCluster", "vpcConfig.endpointPrivateAccess", False),
    ),
    _component(
        "eks-some-endpoint",
        "one off, one left out",
        drop("Cluster", "train-eksCluster", "vpcConfig.endpointPrivateAccess"),
    ),
    _raw(
        "eks-two-zones", "one subnet", _cluster("vpcConfig.subnetIds", ["subnet-0bbbbbbbbbbbbbbb0"])
    ),
    _raw(
        "eks-two-zones",
        "two in one zone",
        put("Subnet", "private-b", "availabilityZone", "us-east-2a"),
    ),
    _raw("eks-version-supported", "1.27", _cluster("version", "1.27")),
    _raw("eks-version-supported", "1.30", _cluster("version", "1.30")),
    _raw("eks-version-standard-support", "1.33", _cluster("version", "1.33")),
    _raw("eks-version-standard-support", "1.31", _cluster("version", "1.31")),
    _raw("eks-upgrade-policy-stated", "left out", drop("Cluster", "train", "upgradePolicy")),
    _raw("eks-upgrade-policy-stated", "empty", _cluster("upgradePolicy", {})),
    _raw("eks-secrets-key", "left out", drop("Cluster", "train", "encryptionConfig")),
    _raw("eks-secrets-key", "not for secrets", _cluster("encryptionConfig.resources", [])),
    _raw("eks-control-plane-logs", "none", drop("Cluster", "train", "enabledClusterLogTypes")),
    _raw("eks-control-plane-logs", "one", _cluster("enabledClusterLogTypes", ["audit"])),
    _raw(
        "eks-access-entries",
        "both",
        _cluster("accessConfig.authenticationMode", "API_AND_CONFIG_MAP"),
    ),
    _raw("eks-access-entries", "left out", drop("Cluster", "train", "accessConfig")),
    # add-ons
    _raw("efa-one-device-manager", "both", DRIVER),
    _raw(
        "efa-one-device-manager",
        "from a registry",
        add(RELEASE, "driver", chart="oci://public.ecr.aws/eks/aws-dranet"),
    ),
    _raw("efa-driver-version", "1.33", both(DRIVER, _cluster("version", "1.33"))),
    _raw("efa-driver-version", "1.31", both(DRIVER, _cluster("version", "1.31"))),
    _raw("efa-plugin-tolerates", "no toleration", drop("Release", "efa", "values.tolerations")),
    _raw(
        "efa-plugin-tolerates", "another", put("Release", "efa", "values.tolerations.0.key", "efa")
    ),
    _raw(
        "eks-addon-takes-over",
        "left out",
        both(
            drop("Cluster", "train", "bootstrapSelfManagedAddons"),
            drop("Addon", "vpc-cni", "resolveConflictsOnCreate"),
        ),
    ),
    _raw(
        "eks-addon-takes-over",
        "NONE",
        both(
            _cluster("bootstrapSelfManagedAddons", True),
            put("Addon", "coredns", "resolveConflictsOnCreate", "NONE"),
        ),
    ),
    _raw("pod-identity-agent", "removed", remove("Addon", "eks-pod-identity-agent")),
    _raw(
        "pod-identity-agent",
        "another in its place",
        put("Addon", "eks-pod-identity-agent", "addonName", "metrics-server"),
    ),
    _raw(
        "pod-identity-trust",
        "no tags",
        put("Role", "data", "assumeRolePolicy", _pods("sts:AssumeRole")),
    ),
    _raw(
        "pod-identity-trust",
        "only tags",
        put("Role", "data", "assumeRolePolicy", _pods("sts:TagSession")),
    ),
    _raw("eks-node-monitoring", "removed", remove("Addon", "eks-node-monitoring-agent")),
    _raw(
        "eks-node-monitoring",
        "another in its place",
        put("Addon", "eks-node-monitoring-agent", "addonName", "metrics-server"),
    ),
)

"""Clusters of Amazon EKS."""

from collections.abc import Iterator
from typing import Any

from fabric.rows import mapping, text, texts, true
from policy.eks_versions import AS_OF, OLDEST, OLDEST_STANDARD, minor
from policy.examples import resource
from policy.file_systems import zones
from policy.group_rules import is_world
from policy.rule import Finding, Option, Rule, Subject
from policy.tokens import EKS_CLUSTER, SUBNET
from policy.values import UNKNOWN, is_unknown

ENDPOINT_PAGE = "https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html"
VERSIONS_PAGE = "https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html"
_LOG_TYPES = ["api", "audit", "authenticator", "controllerManager", "scheduler"]


def _is_off(value: object) -> bool:
    return value is False or text(value).lower() == "false"


def _open_endpoint(subject: Subject) -> Iterator[Finding]:
    network = mapping(subject.at("vpcConfig"))
    public, cidrs = network.get("endpointPublicAccess"), network.get("publicAccessCidrs")
    if not network or _is_off(public) or is_unknown(public):
        return
    if not cidrs:
        yield Finding(
            path="vpcConfig.publicAccessCidrs", value=None, message="left out, it is 0.0.0.0/0"
        )
    for position, cidr in enumerate(texts(cidrs)):
        if is_world(cidr):
            yield Finding(
                path=f"vpcConfig.publicAccessCidrs[{position}]",
                value=cidr,
                message="the whole internet reaches the Kubernetes API",
            )


def _no_private_endpoint(subject: Subject) -> Iterator[Finding]:
    network = mapping(subject.at("vpcConfig"))
    value = network.get("endpointPrivateAccess")
    if network and not true(value) and not is_unknown(value):
        yield Finding(
            path="vpcConfig.endpointPrivateAccess",
            value=value,
            message="nodes reach the Kubernetes API by its public address",
        )


def _no_endpoint(subject: Subject) -> Iterator[Finding]:
    network = mapping(subject.at("vpcConfig"))
    private = network.get("endpointPrivateAccess")
    if _is_off(network.get("endpointPublicAccess")) and not private:
        yield Finding(
            path="vpcConfig.endpointPrivateAccess", value=private, message="both ways in are off"
        )


def _one_zone(subject: Subject) -> Iterator[Finding]:
    subnets: Any = mapping(subject.at("vpcConfig")).get("subnetIds")
    if not isinstance(subnets, list) or not subnets or subject.at("outpostConfig"):
        return
    count = len(subnets)  # pyright: ignore[reportUnknownArgumentType]
    linked = subject.linked("vpcConfig", SUBNET)
    named = [zone for each in linked for zone in zones([each])]
    if count == 1 or (len(named) == len(linked) == count and len(set(named)) == 1):
        yield Finding(
            path="vpcConfig.subnetIds",
            value=sorted(set(named)) or None,
            message=f"{count} subnet{'s' if count > 1 else ''}, in one Availability Zone",
        )


def _version_gone(subject: Subject) -> Iterator[Finding]:
    own, oldest = minor(subject.at("version")), minor(subject.options["oldest"])
    if own is not None and oldest is not None and own < oldest:
        yield Finding(
            path="version",
            value=subject.at("version"),
            message=f"EKS supports 1.{oldest} and later, as of {AS_OF}",
        )


def _version_extended(subject: Subject) -> Iterator[Finding]:
    own, oldest = minor(subject.at("version")), minor(subject.options["oldest"])
    if own is not None and oldest is not None and own < oldest:
        yield Finding(
            path="version",
            value=subject.at("version"),
            message=f"standard support begins at 1.{oldest}, as of {AS_OF}",
        )


def _no_upgrade_policy(subject: Subject) -> Iterator[Finding]:
    policy = subject.at("upgradePolicy")
    if not mapping(policy).get("supportType") and not is_unknown(policy):
        yield Finding(
            path="upgradePolicy.supportType", value=None, message="left out, it is EXTENDED"
        )


def _secrets_unencrypted(subject: Subject) -> Iterator[Finding]:
    config = subject.at("encryptionConfig")
    encrypted = mapping(config).get("resources")
    if UNKNOWN not in (config, encrypted) and "secrets" not in texts(encrypted):
        yield Finding(
            path="encryptionConfig.resources", value=None, message="no key of one's own for secrets"
        )


def _missing_logs(subject: Subject) -> Iterator[Finding]:
    enabled = subject.at("enabledClusterLogTypes")
    missing = [each for each in texts(subject.options["types"]) if each not in texts(enabled)]
    if missing and not is_unknown(enabled):
        yield Finding(
            path="enabledClusterLogTypes",
            value=texts(enabled),
            message=f"no {', '.join(missing)}",
        )


def _authentication_mode(subject: Subject) -> Iterator[Finding]:
    access = subject.at("accessConfig")
    mode = mapping(access).get("authenticationMode")
    if text(mode) != "API" and not is_unknown(access) and not is_unknown(mode):
        yield Finding(
            path="accessConfig.authenticationMode",
            value=mode,
            message="the aws-auth config map decides who is administrator",
        )


def _cluster(**network: Any) -> dict[str, Any]:
    settings = {"endpointPublicAccess": False, "endpointPrivateAccess": True} | network
    return resource(EKS_CLUSTER, vpcConfig=settings)


def _across(*in_zones: str) -> list[dict[str, Any]]:
    names = [f"subnet{position}" for position, _ in enumerate(in_zones)]
    ids = [f"subnet-0123456789abcdef{position}" for position, _ in enumerate(in_zones)]
    subnets = [
        resource(SUBNET, name, availabilityZone=zone)
        for name, zone in zip(names, in_zones, strict=True)
    ]
    cluster = resource(EKS_CLUSTER, links={"vpcConfig": names}, vpcConfig={"subnetIds": ids})
    return [*subnets, cluster]


_ONLY_CLUSTERS = frozenset({EKS_CLUSTER})

RULES = (
    Rule(
        id="eks-endpoint-not-open",
        references=("E-13",),
        family="eks",
        level="mandatory",
        level_because="it exposes the Kubernetes API",
        sentence="The public endpoint of a cluster is off, or open to named networks.",
        why="Left out, the whole internet may try the API, and every hole in it.",
        fix="set endpointPublicAccess to false, or list your networks in publicAccessCidrs",
        url=ENDPOINT_PAGE,
        types=_ONLY_CLUSTERS,
        check=_open_endpoint,
        good=[_cluster(endpointPublicAccess=True, publicAccessCidrs=["203.0.113.0/24"])],
        bad=[_cluster(endpointPublicAccess=True)],
    ),
    Rule(
        id="eks-private-endpoint",
        references=("E-13",),
        family="eks",
        level="advisory",
        level_because="nodes may come from an address that the public endpoint admits",
        sentence="The private endpoint of a cluster is on.",
        why="Otherwise nodes go out through NAT to join, and lose the cluster with it.",
        fix="set vpcConfig.endpointPrivateAccess",
        url=ENDPOINT_PAGE,
        types=_ONLY_CLUSTERS,
        check=_no_private_endpoint,
        good=[_cluster()],
        bad=[_cluster(endpointPublicAccess=True, endpointPrivateAccess=False)],
    ),
    Rule(
        id="eks-some-endpoint",
        references=("E-13",),
        family="eks",
        level="mandatory",
        level_because="the cluster cannot be created",
        sentence="A cluster has a public or a private endpoint.",
        why="EKS refuses a cluster that nobody reaches.",
        fix="set vpcConfig.endpointPrivateAccess",
        url=ENDPOINT_PAGE,
        types=_ONLY_CLUSTERS,
        check=_no_endpoint,
        good=[_cluster()],
        bad=[_cluster(endpointPrivateAccess=False)],
    ),
    Rule(
        id="eks-two-zones",
        references=("E-03",),
        family="eks",
        level="mandatory",
        level_because="the cluster cannot be created",
        sentence="A cluster has subnets in two Availability Zones or more.",
        why="EKS puts its control plane into two, even where the nodes stay in one.",
        fix="add a subnet of another zone to vpcConfig.subnetIds; node groups need not use it",
        url="https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html",
        types=_ONLY_CLUSTERS,
        check=_one_zone,
        whole_program=True,
        good=_across("us-east-1a", "us-east-1b"),
        bad=_across("us-east-1a", "us-east-1a"),
    ),
    Rule(
        id="eks-version-supported",
        references=("E-01",),
        family="eks",
        level="mandatory",
        level_because="the cluster cannot be created",
        sentence="EKS still supports the cluster's Kubernetes version.",
        why="EKS makes no cluster with an older one, and upgrades those that exist by itself.",
        fix="choose a version in standard support",
        url=VERSIONS_PAGE,
        types=_ONLY_CLUSTERS,
        check=_version_gone,
        options={
            "oldest": Option(
                kind="string", default=OLDEST, description="Oldest version in extended support."
            )
        },
        good=[resource(EKS_CLUSTER, version=OLDEST_STANDARD)],
        bad=[resource(EKS_CLUSTER, version="1.27")],
    ),
    Rule(
        id="eks-version-standard-support",
        references=("E-01",),
        family="eks",
        level="advisory",
        level_because="it only costs more",
        sentence="The cluster's Kubernetes version is in standard support.",
        why="An hour of a cluster in extended support costs six times as much.",
        fix="raise version, one minor version at a time",
        url=VERSIONS_PAGE,
        types=_ONLY_CLUSTERS,
        check=_version_extended,
        options={
            "oldest": Option(
                kind="string",
                default=OLDEST_STANDARD,
                description="Oldest version in standard support.",
            )
        },
        good=[resource(EKS_CLUSTER, version=OLDEST_STANDARD)],
        bad=[resource(EKS_CLUSTER, version="1.32")],
    ),
    Rule(
        id="eks-upgrade-policy-stated",
        references=("E-01",),
        family="eks",
        level="advisory",
        level_because="it only costs more",
        sentence="A cluster says what happens when standard support ends.",
        why="Left out, it stays on its version, in extended support at six times the price.",
        fix="set upgradePolicy.supportType to STANDARD or, on purpose, EXTENDED",
        url=VERSIONS_PAGE,
        types=_ONLY_CLUSTERS,
        check=_no_upgrade_policy,
        good=[resource(EKS_CLUSTER, upgradePolicy={"supportType": "STANDARD"})],
        bad=[resource(EKS_CLUSTER, version="1.35")],
    ),
    Rule(
        id="eks-secrets-key",
        references=("E-13",),
        family="eks",
        level="advisory",
        level_because="EKS encrypts with a key of AWS anyway",
        sentence="A cluster's secrets are encrypted with a key of one's own.",
        why="Only such a key can be taken away, and shows who used it.",
        fix="set encryptionConfig with a KMS key and resources: [secrets]",
        url="https://docs.aws.amazon.com/eks/latest/userguide/envelope-encryption.html",
        types=_ONLY_CLUSTERS,
        check=_secrets_unencrypted,
        good=[
            resource(
                EKS_CLUSTER,
                encryptionConfig={
                    "resources": ["secrets"],
                    "provider": {"keyArn": "arn:aws:kms:us-east-1:123456789012:key/example"},
                },
            )
        ],
        bad=[resource(EKS_CLUSTER, version="1.35")],
    ),
    Rule(
        id="eks-control-plane-logs",
        references=("E-13",),
        family="eks",
        level="advisory",
        level_because="the cluster runs without them",
        sentence="A cluster writes the logs of its control plane that the option `types` lists.",
        why="Afterwards nobody can say who did what, or why a pod was not scheduled.",
        fix="list the types in enabledClusterLogTypes",
        url="https://docs.aws.amazon.com/eks/latest/userguide/control-plane-logs.html",
        types=_ONLY_CLUSTERS,
        check=_missing_logs,
        options={"types": Option(kind="array", default=_LOG_TYPES, description="Logs to write.")},
        good=[resource(EKS_CLUSTER, enabledClusterLogTypes=_LOG_TYPES)],
        bad=[resource(EKS_CLUSTER, enabledClusterLogTypes=["audit"])],
    ),
    Rule(
        id="eks-access-entries",
        references=("E-13",),
        family="eks",
        level="advisory",
        level_because="aws-auth still works",
        sentence="Access to a cluster is given by access entries alone.",
        why="One wrong line in the aws-auth config map locks everybody out, and no API shows it.",
        fix="set accessConfig.authenticationMode to API, and make access entries",
        url="https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html",
        types=_ONLY_CLUSTERS,
        check=_authentication_mode,
        good=[resource(EKS_CLUSTER, accessConfig={"authenticationMode": "API"})],
        bad=[resource(EKS_CLUSTER, accessConfig={"authenticationMode": "CONFIG_MAP"})],
    ),
)

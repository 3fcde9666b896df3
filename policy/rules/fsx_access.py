"""FSx for Lustre and what is around it: security groups, nodes, data repositories, backups."""

from collections.abc import Iterator
from typing import Any

from fabric.rows import text, true
from policy.examples import resource
from policy.file_systems import client_zones, own_zones, visible_groups
from policy.group_rules import allows_itself
from policy.ports import keeps_out, written
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    BATCH_ENVIRONMENT,
    DATA_REPOSITORY_ASSOCIATION,
    LAUNCH_TEMPLATE,
    LUSTRE_FILE_SYSTEM,
    SECURITY_GROUP,
    SUBNET,
)

EFA_PAGE = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/efa-file-systems.html"
GROUPS_PAGE = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html"
DRA_PAGE = (
    "https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateDataRepositoryAssociation.html"
)
_LUSTRE_PORTS = [(988, 988), (1018, 1023)]  # GROUPS_PAGE
_MOST_ASSOCIATIONS = 8  # DRA_PAGE


def _ports(subject: Subject) -> Iterator[Finding]:
    groups = visible_groups(subject.row, "securityGroupIds", subject.program)
    closed = keeps_out(groups, subject.program, _LUSTRE_PORTS) if groups else []
    if closed:
        listed = " and ".join(map(written, closed))
        yield Finding(
            path="securityGroupIds",
            value=None,
            message=f"no rule of its groups lets TCP {listed} in",
        )


def _associations(subject: Subject) -> Iterator[Finding]:
    of_it = [
        each
        for each in subject.program.users(subject.row, DATA_REPOSITORY_ASSOCIATION)
        if subject.row in subject.program.linked(each, "fileSystemId", LUSTRE_FILE_SYSTEM)
    ]
    if len(of_it) > _MOST_ASSOCIATIONS:
        yield Finding(
            path="", value=len(of_it), message=f"more than {_MOST_ASSOCIATIONS} data repositories"
        )
    for key in ("importPath", "exportPath", "autoImportPolicy"):
        given = subject.at(key)
        if of_it and given and given != "NONE":  # a policy of NONE is none
            yield Finding(
                path=key,
                value=text(given) or None,
                message="there are data repository associations",
            )
    kinds = (text(subject.at("deploymentType")), text(subject.at("storageType")))
    if of_it and (kinds[0] == "SCRATCH_1" or kinds[1] == "INTELLIGENT_TIERING"):
        yield Finding(
            path="deploymentType",
            value=kinds[0],
            message=f"{' '.join(filter(None, kinds))} takes no data repository association",
        )


def _zone(subject: Subject) -> Iterator[Finding]:
    own = own_zones(subject.row, "subnetIds", subject.program)
    others = client_zones(subject.row, subject.program) - own
    if own and others:
        listed = ", ".join(sorted(others))
        yield Finding(
            path="subnetIds",
            value=sorted(own),
            message=f"it is in {', '.join(sorted(own))}, nodes that mount it are in {listed}",
        )


def _backups(subject: Subject) -> Iterator[Finding]:
    days = subject.at("automaticBackupRetentionDays")
    linked = subject.program.users(subject.row, DATA_REPOSITORY_ASSOCIATION)
    persistent = text(subject.at("deploymentType")).startswith("PERSISTENT")
    if persistent and not linked and not subject.at("importPath") and not days:
        yield Finding(
            path="automaticBackupRetentionDays",
            value=days,
            message="neither backups nor a data repository",
        )


def _efa_group(subject: Subject) -> Iterator[Finding]:
    if not true(subject.at("efaEnabled")):
        return
    for group in visible_groups(subject.row, "securityGroupIds", subject.program):
        for direction in ("ingress", "egress"):
            if not allows_itself(group, direction, subject.program):
                yield Finding(
                    path="securityGroupIds",
                    value=None,
                    message=f"a group of it allows no {direction} of all traffic with itself",
                )


def _lustre(
    name: str = "it", links: dict[str, list[str]] | None = None, **more: Any
) -> dict[str, Any]:
    settings = {"deploymentType": "PERSISTENT_2", "storageType": "SSD", **more}
    return resource(LUSTRE_FILE_SYSTEM, name, links=links, **settings)


def _behind(*ports: tuple[int, int]) -> list[dict[str, Any]]:
    rules = [{"protocol": "tcp", "fromPort": a, "toPort": b, "self": True} for a, b in ports]
    return [
        resource(SECURITY_GROUP, "lustre", ingress=rules),
        _lustre(links={"securityGroupIds": ["lustre"]}, securityGroupIds=["sg-0123456789abcdef0"]),
    ]


def _efa_behind(**directions: Any) -> list[dict[str, Any]]:
    return [
        resource(SECURITY_GROUP, "efa", **directions),
        _lustre(
            links={"securityGroupIds": ["efa"]},
            efaEnabled=True,
            securityGroupIds=["sg-0123456789abcdef0"],
        ),
    ]


def _mounted_from(zone: str) -> list[dict[str, Any]]:
    return [
        resource(SUBNET, "here", availabilityZone="us-east-1a"),
        resource(SUBNET, "nodes", availabilityZone=zone),
        _lustre("lustre", links={"subnetIds": ["here"]}, subnetIds="subnet-0123456789abcdef0"),
        resource(LAUNCH_TEMPLATE, "template", links={"userData": ["lustre"]}, userData="bW91bnQ="),
        resource(
            BATCH_ENVIRONMENT,
            "environment",
            links={"computeResources": ["template", "nodes"]},
            computeResources={"subnets": ["subnet-0123456789abcdef1"]},
        ),
    ]


def _with_repository(**more: Any) -> list[dict[str, Any]]:
    return [
        _lustre("lustre", **more),
        resource(
            DATA_REPOSITORY_ASSOCIATION,
            links={"fileSystemId": ["lustre"]},
            fileSystemId="fs-0123456789abcdef0",
            dataRepositoryPath="s3://data",
            fileSystemPath="/data",
        ),
    ]


_ALL_ITSELF = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
_ONLY_LUSTRE = frozenset({LUSTRE_FILE_SYSTEM})

RULES = (
    Rule(
        id="fsx-ports-open",
        references=("R94",),
        family="storage",
        level="mandatory",
        level_because="it cannot be created or mounted",
        sentence="The security groups of FSx for Lustre let TCP 988 and 1018-1023 in.",
        why="Its servers and clients talk on all of these ports, also among themselves.",
        fix="add ingress for TCP 988 and 1018-1023 from the group itself and from the clients",
        url=GROUPS_PAGE,
        types=_ONLY_LUSTRE,
        check=_ports,
        whole_program=True,
        good=_behind((988, 988), (1018, 1023)),
        bad=_behind((988, 988), (1021, 1023)),
    ),
    Rule(
        id="fsx-efa-group",
        references=("R95",),
        family="storage",
        level="mandatory",
        level_because="it cannot be created",
        sentence="A security group of FSx with EFA allows all traffic from and to itself.",
        why="EFA traffic is neither TCP nor UDP, and passes only between members of such a group.",
        fix="add an ingress and an egress rule, protocol -1, with the group itself",
        url=EFA_PAGE,
        types=_ONLY_LUSTRE,
        check=_efa_group,
        whole_program=True,
        good=_efa_behind(ingress=[_ALL_ITSELF], egress=[_ALL_ITSELF]),
        bad=_efa_behind(ingress=[_ALL_ITSELF]),
    ),
    Rule(
        id="fsx-data-repository",
        references=("R96",),
        family="storage",
        level="mandatory",
        level_because="the association cannot be created",
        sentence="A file system with data repository associations has at most eight, and no paths.",
        why="FSx takes either way of linking a bucket, and none for SCRATCH_1 or tiered storage.",
        fix="drop importPath and exportPath, and choose SCRATCH_2 or PERSISTENT_2 on SSD",
        url=DRA_PAGE,
        types=_ONLY_LUSTRE,
        check=_associations,
        whole_program=True,
        good=_with_repository(),
        bad=_with_repository(deploymentType="SCRATCH_1"),
    ),
    Rule(
        id="fsx-zone-of-nodes",
        references=("R97",),
        family="storage",
        level="advisory",
        level_because="it works, with more latency and a charge for each byte",
        sentence="FSx for Lustre is in the Availability Zone of the nodes that mount it.",
        why="Each read crosses zones, which costs, and EFA cannot cross them at all.",
        fix="put the file system into the subnet of the nodes",
        url=EFA_PAGE,
        types=_ONLY_LUSTRE,
        check=_zone,
        whole_program=True,
        good=_mounted_from("us-east-1a"),
        bad=_mounted_from("us-east-1b"),
    ),
    Rule(
        id="fsx-persistent-backed-up",
        references=(),
        family="storage",
        level="advisory",
        level_because="the data may be easy to make again",
        sentence="A persistent file system has automatic backups or a data repository.",
        why="Nothing brings back a deleted file, nor the file system after a wrong destroy.",
        fix="set automaticBackupRetentionDays, or link a bucket",
        url="https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-backups-fsx.html",
        types=_ONLY_LUSTRE,
        check=_backups,
        whole_program=True,
        good=[_lustre(automaticBackupRetentionDays=7)],
        bad=[_lustre(automaticBackupRetentionDays=0)],
    ),
)

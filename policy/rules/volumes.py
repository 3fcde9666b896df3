"""EFS file systems and EBS volumes."""

from collections.abc import Iterator, Mapping
from typing import Any

from fabric.rows import mapping, mappings, text, true
from policy.examples import resource
from policy.file_systems import client_zones, mount_targets, own_zones, visible_groups
from policy.ports import keeps_out
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    BATCH_ENVIRONMENT,
    EFS_FILE_SYSTEM,
    EFS_MOUNT_TARGET,
    INSTANCE,
    LAUNCH_TEMPLATE,
    SECURITY_GROUP,
    SUBNET,
    VOLUME,
)
from policy.values import is_unknown

NFS_PORT = (2049, 2049)  # https://docs.aws.amazon.com/efs/latest/ug/network-access.html
_VOLUMES = frozenset({INSTANCE, LAUNCH_TEMPLATE, VOLUME})
_OLD_TYPES = frozenset({"gp2", "standard"})


def _missing_mount_targets(subject: Subject) -> Iterator[Finding]:
    program = subject.program
    targets = list(mount_targets(subject.row, program))
    reached = [own_zones(each, "subnetId", program) for each in targets]
    if not targets or not all(reached):
        return
    missing = client_zones(subject.row, program).difference(*reached)
    if missing:
        yield Finding(
            path="",
            value=sorted(set[str]().union(*reached)),
            message=f"no mount target in {', '.join(sorted(missing))}, where nodes mount it",
        )


def _nfs_port(subject: Subject) -> Iterator[Finding]:
    groups = visible_groups(subject.row, "securityGroups", subject.program)
    if groups and keeps_out(groups, subject.program, [NFS_PORT]):
        yield Finding(
            path="securityGroups", value=None, message="no rule of its groups lets TCP 2049 in"
        )


def _efs_unencrypted(subject: Subject) -> Iterator[Finding]:
    value = subject.at("encrypted")
    if not true(value) and not is_unknown(value):
        yield Finding(path="encrypted", value=value, message="files are stored as they are")


def _volumes(subject: Subject) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The path of each new EBS volume, the name of its type's input, and its settings."""
    if subject.row.get("type") == VOLUME:
        yield "", "type", subject.inputs
    root = mapping(subject.at("rootBlockDevice"))
    if root:
        yield "rootBlockDevice.", "volumeType", root
    for position, device in enumerate(mappings(subject.at("ebsBlockDevices"))):
        yield f"ebsBlockDevices[{position}].", "volumeType", device
    for position, device in enumerate(mappings(subject.at("blockDeviceMappings"))):
        volume = mapping(device.get("ebs"))
        if volume:
            yield f"blockDeviceMappings[{position}].ebs.", "volumeType", volume


def _volume_unencrypted(subject: Subject) -> Iterator[Finding]:
    for path, _, volume in _volumes(subject):
        value = volume.get("encrypted")
        if not true(value) and not is_unknown(value):
            yield Finding(
                path=f"{path}encrypted", value=value, message="the volume is not encrypted"
            )


def _old_volume_type(subject: Subject) -> Iterator[Finding]:
    for path, key, volume in _volumes(subject):
        kind = text(volume.get(key))
        if kind in _OLD_TYPES:
            yield Finding(
                path=f"{path}{key}", value=kind, message=f"{kind} is of an earlier generation"
            )


def _efs_for(zone: str) -> list[dict[str, Any]]:
    return [
        resource(SUBNET, "here", availabilityZone="us-east-1a"),
        resource(SUBNET, "nodes", availabilityZone=zone),
        resource(EFS_FILE_SYSTEM, "home", encrypted=True),
        resource(
            EFS_MOUNT_TARGET,
            links={"fileSystemId": ["home"], "subnetId": ["here"]},
            fileSystemId="fs-0123456789abcdef0",
            subnetId="subnet-0123456789abcdef0",
        ),
        resource(LAUNCH_TEMPLATE, "template", links={"userData": ["home"]}, userData="bW91bnQ="),
        resource(
            BATCH_ENVIRONMENT,
            "environment",
            links={"computeResources": ["template", "nodes"]},
            computeResources={"subnets": ["subnet-0123456789abcdef1"]},
        ),
    ]


def _target_behind(port: int) -> list[dict[str, Any]]:
    rule = {"protocol": "tcp", "fromPort": port, "toPort": port, "self": True}
    return [
        resource(SECURITY_GROUP, "efs", ingress=[rule]),
        resource(
            EFS_MOUNT_TARGET,
            links={"securityGroups": ["efs"]},
            securityGroups=["sg-0123456789abcdef0"],
        ),
    ]


def _template_with(**volume: Any) -> list[dict[str, Any]]:
    settings = {"volumeSize": 200, "volumeType": "gp3", "encrypted": "true"} | volume
    return [resource(LAUNCH_TEMPLATE, blockDeviceMappings=[{"ebs": settings}])]


RULES = (
    Rule(
        id="efs-mount-target-in-each-zone",
        references=("R91",),
        family="storage",
        level="mandatory",
        level_because="nodes of the other zones cannot mount it, and their jobs hang",
        sentence="EFS has a mount target in each zone whose nodes mount it.",
        why="The file system's name has no address in a zone without a mount target.",
        fix="make an aws.efs.MountTarget in a subnet of each zone",
        url="https://docs.aws.amazon.com/efs/latest/ug/accessing-fs.html",
        types=frozenset({EFS_FILE_SYSTEM}),
        check=_missing_mount_targets,
        whole_program=True,
        good=_efs_for("us-east-1a"),
        bad=_efs_for("us-east-1b"),
    ),
    Rule(
        id="efs-port-open",
        references=("R91",),
        family="storage",
        level="mandatory",
        level_because="nothing can mount it, and jobs hang",
        sentence="The security groups of a mount target let TCP 2049 in.",
        why="EFS speaks NFS on that port; a closed one makes the mount wait without an error.",
        fix="add ingress for TCP 2049 from the security groups of the nodes",
        url="https://docs.aws.amazon.com/efs/latest/ug/network-access.html",
        types=frozenset({EFS_MOUNT_TARGET}),
        check=_nfs_port,
        whole_program=True,
        good=_target_behind(2049),
        bad=_target_behind(111),
    ),
    Rule(
        id="efs-encrypted",
        references=(),
        family="storage",
        level="advisory",
        level_because="nobody gets at the disks but through AWS",
        sentence="An EFS file system is encrypted at rest.",
        why="It cannot be switched on later: all files would have to move.",
        fix="set encrypted to true",
        url="https://docs.aws.amazon.com/efs/latest/ug/encryption-at-rest.html",
        types=frozenset({EFS_FILE_SYSTEM}),
        check=_efs_unencrypted,
        good=[resource(EFS_FILE_SYSTEM, encrypted=True)],
        bad=[resource(EFS_FILE_SYSTEM, encrypted=False)],
    ),
    Rule(
        id="volume-encrypted",
        references=(),
        family="storage",
        level="advisory",
        level_because="the account may encrypt every new volume by default",
        sentence="New EBS volumes are encrypted.",
        why="Snapshots of a plain volume are plain, too, wherever they are copied or shared.",
        fix="set encrypted to true",
        url="https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption.html",
        types=_VOLUMES,
        check=_volume_unencrypted,
        good=_template_with(),
        bad=_template_with(encrypted="false"),
    ),
    Rule(
        id="volume-type-current",
        references=(),
        family="storage",
        level="advisory",
        level_because="it only costs more",
        sentence="General purpose EBS volumes are gp3.",
        why="gp2 costs a quarter more, and its speed hangs on its size.",
        fix="set the volume type to gp3",
        url="https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html",
        types=_VOLUMES,
        check=_old_volume_type,
        good=_template_with(),
        bad=_template_with(volumeType="gp2"),
    ),
)

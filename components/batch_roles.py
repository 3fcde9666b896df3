"""The roles of a Batch stack: one for hosts, one for the jobs' own code."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
from pulumi import Input, Output, ResourceOptions

from components.policy_documents import allow, assumed_by, policy_document
from settings.batch import BatchSettings
from settings.stack import StackSettings

# https://docs.aws.amazon.com/batch/latest/userguide/instance_IAM_role.html
ECS_HOST_POLICY = "service-role/AmazonEC2ContainerServiceforEC2Role"
# https://docs.aws.amazon.com/systems-manager/latest/userguide/setup-instance-permissions.html
SESSION_MANAGER_POLICY = "AmazonSSMManagedInstanceCore"


@dataclass(frozen=True, kw_only=True)
class BatchRoles:
    """ARNs of the hosts' instance profile and of the jobs' role.

    `attachments` must outlive the compute environments, else these hang while they are deleted.
    """

    instance_profile: Input[str]
    job: Input[str]
    attachments: tuple[pulumi.Resource, ...]


def batch_roles(
    name: str, stack: StackSettings, batch: BatchSettings, own: ResourceOptions
) -> BatchRoles:
    """Make the roles that the settings do not bring along."""
    attachments: tuple[pulumi.Resource, ...] = ()
    profile: Input[str] | None = batch.roles.instance_profile
    if profile is None:
        profile, attachments = _host_profile(name, stack, own)
    return BatchRoles(
        instance_profile=profile,
        job=batch.roles.job or _job_role(name, stack, batch, own),
        attachments=attachments,
    )


def _host_profile(
    name: str, stack: StackSettings, own: ResourceOptions
) -> tuple[Input[str], tuple[pulumi.Resource, ...]]:
    role = aws.iam.Role(
        f"{name}-host",
        assume_role_policy=assumed_by("ec2.amazonaws.com"),
        permissions_boundary=stack.common.permissions_boundary,
        tags=stack.tags(f"{name}-host"),
        opts=own,
    )
    policies = {"ecs": ECS_HOST_POLICY}
    if stack.common.session_manager:
        policies["session-manager"] = SESSION_MANAGER_POLICY
    partition = aws.get_partition_output(opts=pulumi.InvokeOutputOptions(parent=role)).partition
    attachments = tuple(
        aws.iam.RolePolicyAttachment(
            f"{name}-host-{key}",
            role=role.name,
            policy_arn=Output.concat("arn:", partition, ":iam::aws:policy/", policy),
            opts=own,
        )
        for key, policy in policies.items()
    )
    profile = aws.iam.InstanceProfile(
        f"{name}-host", role=role.name, tags=stack.tags(f"{name}-host"), opts=own
    )
    return profile.arn, attachments


def _job_role(
    name: str, stack: StackSettings, batch: BatchSettings, own: ResourceOptions
) -> Input[str]:
    """A role that reaches the buckets of the settings, and nothing else."""
    role = aws.iam.Role(
        f"{name}-job",
        assume_role_policy=assumed_by("ecs-tasks.amazonaws.com"),
        permissions_boundary=stack.common.permissions_boundary,
        tags=stack.tags(f"{name}-job"),
        opts=own,
    )
    readable = sorted({*batch.read_buckets, *batch.write_buckets})
    if readable:
        statements = [
            allow(["s3:ListBucket", "s3:GetBucketLocation"], readable),
            allow(["s3:GetObject"], [f"{bucket}/*" for bucket in readable]),
        ]
        if batch.write_buckets:
            writable = [f"{bucket}/*" for bucket in batch.write_buckets]
            statements.append(
                allow(["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"], writable)
            )
        aws.iam.RolePolicy(
            f"{name}-job-buckets", role=role.id, policy=policy_document(*statements), opts=own
        )
    return role.arn

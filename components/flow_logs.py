"""Flow logs of a VPC, with a log group and a role that really reaches it."""

import pulumi_aws as aws
from pulumi import Input, ResourceOptions

from components.policy_documents import allow, assumed_by, policy_document
from settings.stack import StackSettings


def flow_logs(
    name: str, stack: StackSettings, vpc_id: Input[str], retention_days: int, own: ResourceOptions
) -> None:
    """Log the VPC's accepted and rejected traffic for `retention_days` days.

    The role's actions: https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-iam-role.html
    """
    tags = stack.tags(f"{name}-flow")
    group = aws.cloudwatch.LogGroup(
        f"{name}-flow",
        retention_in_days=retention_days,
        kms_key_id=stack.common.kms_key,
        tags=tags,
        opts=own,
    )
    role = aws.iam.Role(
        f"{name}-flow",
        assume_role_policy=assumed_by("vpc-flow-logs.amazonaws.com"),
        permissions_boundary=stack.common.permissions_boundary,
        tags=tags,
        opts=own,
    )
    may_write = aws.iam.RolePolicy(
        f"{name}-flow",
        role=role.id,
        policy=group.arn.apply(
            lambda arn: policy_document(
                allow(
                    ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"],
                    [arn, f"{arn}:*"],
                ),
                # this action takes no narrower resource
                allow(["logs:DescribeLogGroups"], ["*"]),
            )
        ),
        opts=own,
    )
    aws.ec2.FlowLog(
        f"{name}-flow",
        vpc_id=vpc_id,
        traffic_type="ALL",
        log_destination_type="cloud-watch-logs",
        log_destination=group.arn,
        iam_role_arn=role.arn,
        tags=tags,
        opts=ResourceOptions.merge(own, ResourceOptions(depends_on=[may_write])),
    )

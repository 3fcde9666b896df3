"""`trainyard:common`: what holds for everything that the stack makes."""

from collections.abc import Mapping

from pydantic import Field

from settings.base import KmsKeyArn, PolicyArn, Section, TopicArn


class CommonSettings(Section):
    """Settings for everything that the stack makes."""

    tags: Mapping[str, str] = Field(
        default_factory=dict, description="Tags on every resource and every instance."
    )
    permissions_boundary: PolicyArn | None = Field(
        default=None, description="ARN of the policy that bounds every role made here."
    )
    kms_key: KmsKeyArn | None = Field(
        default=None,
        description="ARN of the KMS key that encrypts volumes, logs and container images; "
        "absent: AWS's own keys.",
    )
    session_manager: bool = Field(
        default=True, description="Whether people reach hosts by Systems Manager's Session Manager."
    )
    key_pair: str | None = Field(
        default=None, min_length=1, description="EC2 key pair for SSH to hosts; absent: none."
    )
    alarm_topic: TopicArn | None = Field(
        default=None, description="ARN of the SNS topic that alarms notify; absent: they only show."
    )

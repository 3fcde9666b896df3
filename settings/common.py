"""`trainyard:common`: what holds for everything that the stack makes."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from settings.base import KmsKeyArn, PolicyArn, Section, TopicArn
from settings.errors import PROJECT, refusal


def _own_tags(tags: Mapping[str, str]) -> Mapping[str, str]:
    taken = [key for key in tags if key in ("", "Name") or key.startswith(("aws:", f"{PROJECT}:"))]
    if taken:
        raise refusal(
            f"has {' and '.join(map(repr, taken))}, which AWS or the stack sets itself",
            "remove it, or choose another key",
        )
    return tags


class CommonSettings(Section):
    """Settings for everything that the stack makes."""

    tags: Annotated[Mapping[str, str], AfterValidator(_own_tags)] = Field(
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

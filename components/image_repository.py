"""The repository of the stack's own container images."""

import json

import pulumi_aws as aws
from pulumi import ResourceOptions

from settings.stack import StackSettings

UNTAGGED_DAYS = 14


def image_repository(
    name: str, stack: StackSettings, *, keep: bool, own: ResourceOptions
) -> aws.ecr.Repository:
    """Create a repository whose tags never change their meaning.

    `keep` leaves it and its images in the account at destroy; else both go.
    """
    opts = ResourceOptions.merge(own, ResourceOptions(retain_on_delete=keep))
    repository = aws.ecr.Repository(
        name,
        image_tag_mutability="IMMUTABLE",
        image_scanning_configuration=aws.ecr.RepositoryImageScanningConfigurationArgs(
            scan_on_push=True
        ),
        encryption_configurations=[
            aws.ecr.RepositoryEncryptionConfigurationArgs(
                encryption_type="KMS", kms_key=stack.common.kms_key
            )
        ]
        if stack.common.kms_key
        else None,
        force_delete=not keep,
        tags=stack.tags(name),
        opts=opts,
    )
    aws.ecr.LifecyclePolicy(
        name, repository=repository.name, policy=json.dumps(_lifecycle()), opts=opts
    )
    return repository


def _lifecycle() -> dict[str, object]:
    """Drop layers that no tag names; what a job may run by its tag stays.

    Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/lifecycle_policy_parameters.html
    """
    return {
        "rules": [
            {
                "rulePriority": 1,
                "description": f"images without a tag go after {UNTAGGED_DAYS} days",
                "selection": {
                    "tagStatus": "untagged",
                    "countType": "sinceImagePushed",
                    "countUnit": "days",
                    "countNumber": UNTAGGED_DAYS,
                },
                "action": {"type": "expire"},
            }
        ]
    }

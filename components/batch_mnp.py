"""BatchMNP: AWS Batch for multi-node parallel jobs."""

from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi import Output, ResourceOptions

from components.batch_group import BatchGroup, SharedByGroups
from components.batch_roles import batch_roles
from components.image_repository import image_repository
from components.network import Network
from components.placement_and_odcr import PlacementAndODCR
from settings.stack import StackSettings


class BatchMNP(pulumi.ComponentResource):
    """Every Batch group of the stack with what they share: roles, log group, image repository.

    Outputs: `groups`, a BatchGroup by name; `repository_url`; `log_group`.
    """

    groups: dict[str, BatchGroup]
    repository_url: Output[str]
    log_group: Output[str]

    def __init__(
        self,
        name: str,
        stack: StackSettings,
        network: Network,
        placement: PlacementAndODCR,
        opts: ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:index:BatchMNP", name, None, opts)
        if stack.batch is None:
            raise ValueError("the stack has no batch section")
        own = ResourceOptions(parent=self)
        log_group = aws.cloudwatch.LogGroup(
            f"{name}-jobs",
            retention_in_days=stack.batch.log_retention_days,
            kms_key_id=stack.common.kms_key,
            tags=stack.tags(f"{name}-jobs"),
            opts=own,
        )
        repository = image_repository(
            f"{name}-images", stack, keep=stack.batch.keep_images, own=own
        )
        self.log_group = log_group.name
        self.repository_url = repository.repository_url
        shared = SharedByGroups(
            stack=stack,
            network=network,
            placement=placement,
            roles=batch_roles(name, stack, stack.batch, own),
            log_group=self.log_group,
            repository_url=self.repository_url,
        )
        self.groups = {
            group.name: BatchGroup(f"{name}-{group.name}", group, shared, opts=own)
            for group in stack.batch.groups
        }
        self.register_outputs(self.outputs)

    @property
    def outputs(self) -> dict[str, Any]:
        """The stack output `batch`."""
        return {
            "imageRepository": self.repository_url,
            "logGroup": self.log_group,
            "groups": {name: group.outputs for name, group in self.groups.items()},
        }

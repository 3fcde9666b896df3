"""The settings of a whole stack, and what follows from them for each group of nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from fabric.capacity import CapacityBlock, longest_job
from settings.batch import BatchGroupSettings, BatchSettings, JobSettings
from settings.common import CommonSettings
from settings.errors import PROJECT, Problem
from settings.network import NetworkSettings, PrivateSubnet
from settings.placement import Placement, PlacementSettings, placement_of

DEFAULT_TIMEOUT_MINUTES = {"collectiveBandwidth": 30}
DAY_IN_MINUTES = 1440


@dataclass(frozen=True, kw_only=True, slots=True)
class StackSettings:
    """A stack's checked configuration; a section that the configuration lacks is None.

    `private_subnets` are those that nodes may live in, in the configuration's order of zones.
    `warnings` are what is allowed but deserves a look.
    """

    name: str
    region: str
    common: CommonSettings
    network: NetworkSettings | None
    placement: Mapping[str, PlacementSettings]
    batch: BatchSettings | None
    private_subnets: tuple[PrivateSubnet, ...] = ()
    warnings: tuple[Problem, ...] = ()

    def tags(self, resource_name: str) -> dict[str, str]:
        """The tags of a resource: the configuration's, the stack that it belongs to, and its name.

        Batch and EC2 know nothing of stacks, so the tags are how people and programs find what is
        whose, in the console, on the bill and after an interrupted update.
        """
        return {
            **self.common.tags,
            f"{PROJECT}:stack": self.name,
            "Name": f"{self.name}-{resource_name}",
        }

    def placement_for(self, group: BatchGroupSettings) -> Placement:
        """Where the group's instances come from."""
        named = self.placement[group.placement] if group.placement else None
        return placement_of(group.placement, named)

    def zone_of(self, group: BatchGroupSettings) -> str:
        """The one Availability Zone that the group's nodes live in."""
        return (
            group.availability_zone
            or self.placement_for(group).availability_zone
            or self.private_subnets[0].availability_zone
        )

    def zone_of_placement(self, settings: PlacementSettings) -> str | None:
        """The zone of a named capacity, or None where neither it nor a network names one."""
        first = self.private_subnets[0].availability_zone if self.private_subnets else None
        return settings.availability_zone or first

    def nodes_of(self, group: BatchGroupSettings, job: JobSettings) -> int:
        """How many nodes a job runs on unless its submitter says otherwise."""
        return 1 if job.kind == "singleNode" else job.nodes or group.max_nodes

    def timeout_of(self, group: BatchGroupSettings, job: JobSettings) -> timedelta:
        """How long a job may run: what it says, else a default that fits its Capacity Block."""
        if job.timeout_minutes:
            return timedelta(minutes=job.timeout_minutes)
        default = timedelta(minutes=DEFAULT_TIMEOUT_MINUTES.get(job.kind, DAY_IN_MINUTES))
        capacity = self.placement_for(group).capacity
        block = longest_job(capacity) if isinstance(capacity, CapacityBlock) else None
        return min(default, block) if block else default

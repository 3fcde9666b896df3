"""The settings of a whole stack, and what follows from them for each group of nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from fabric.batch_jobs import BatchJob
from fabric.capacity import CapacityBlock, is_in_one_zone, longest_job
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

    def knows_placement_of(self, group: BatchGroupSettings) -> bool:
        """Whether the placement that the group names, if any, could be read."""
        return group.placement is None or group.placement in self.placement

    def placement_for(self, group: BatchGroupSettings) -> Placement:
        """Where the group's instances come from."""
        named = self.placement[group.placement] if group.placement else None
        return placement_of(group.placement, named, close_together=group.layout is not None)

    def zone_of(self, group: BatchGroupSettings) -> str:
        """The one Availability Zone that the group's nodes live in."""
        placed = self.zone_of_placement(group.placement) if group.placement else None
        return group.availability_zone or placed or self.private_subnets[0].availability_zone

    def zone_of_placement(self, name: str) -> str | None:
        """The zone of a named capacity: its own, or that of a group which needs it to be there.

        None where neither these nor a network names one.
        """
        settings = self.placement[name]
        first = self.private_subnets[0].availability_zone if self.private_subnets else None
        stated = self.stated_zones(name) if is_in_one_zone(settings.capacity) else ()
        return settings.availability_zone or next(iter(stated), first)

    def stated_zones(self, placement_name: str) -> tuple[str, ...]:
        """The zones that groups with this placement name themselves, each once."""
        groups = self.batch.groups if self.batch else ()
        zones = [each.availability_zone for each in groups if each.placement == placement_name]
        return tuple(dict.fromkeys(zone for zone in zones if zone))

    def nodes_of(self, group: BatchGroupSettings, job: JobSettings) -> int:
        """How many nodes a job runs on unless its submitter says otherwise."""
        return 1 if job.kind == "singleNode" else job.nodes or group.max_nodes

    def batch_job(self, group: BatchGroupSettings, job: JobSettings, image: str) -> BatchJob:
        """The job as the values that its definition is made of."""
        return BatchJob(
            name=job.name,
            kind=job.kind,
            nodes=self.nodes_of(group, job),
            image=image,
            command=job.words,
            environment=job.environment,
            timeout_seconds=int(self.timeout_of(group, job).total_seconds()),
            attempts=job.attempts,
            instance_type=group.type_facts,
            efa_interfaces=group.layout.efa_count if group.layout else 0,
            threads_per_core=group.threads_per_core,
        )

    def timeout_of(self, group: BatchGroupSettings, job: JobSettings) -> timedelta:
        """How long a job may run: what it says, else a default that fits its Capacity Block."""
        if job.timeout_minutes:
            return timedelta(minutes=job.timeout_minutes)
        default = timedelta(minutes=DEFAULT_TIMEOUT_MINUTES.get(job.kind, DAY_IN_MINUTES))
        capacity = self.placement_for(group).capacity
        block = longest_job(capacity) if isinstance(capacity, CapacityBlock) else None
        return min(default, block) if block else default

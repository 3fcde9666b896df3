"""`trainyard:batch`: AWS Batch groups for multi-node parallel jobs."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from fabric.batch_jobs import JobKind
from fabric.catalogue import InstanceType, find_instance_type
from fabric.interfaces import InterfaceLayout, IpBandwidth, efa_layout
from fabric.job_images import default_image
from settings.base import (
    AvailabilityZone,
    BucketArn,
    ImageId,
    InstanceProfileArn,
    InstanceTypeName,
    Minutes,
    Name,
    RoleArn,
    Section,
    ShareIdentifier,
)
from settings.errors import refusal

# https://docs.aws.amazon.com/batch/latest/userguide/multi-node-parallel-jobs.html
LARGEST_JOB_NODES = 1000


def _one_zone(value: object) -> object:
    if isinstance(value, list):
        raise refusal(
            "names several Availability Zones, and EFA traffic cannot leave a zone",
            "name one zone, or make a group for each",
        )
    return value


class JobSettings(Section):
    """One job definition of a group."""

    name: Name = Field(description="Name of the job, the group's own.")
    kind: JobKind = Field(default="torchrun", description="How the processes are started.")
    nodes: int | None = Field(
        default=None, ge=1, le=LARGEST_JOB_NODES, description="Nodes; absent: the group's maxNodes."
    )
    image: str | None = Field(
        default=None, min_length=1, description="Image with a fixed tag; absent: the default image."
    )
    repository_tag: str | None = Field(
        default=None, min_length=1, description="Tag of an image in the stack's own repository."
    )
    command: tuple[str, ...] | None = Field(
        default=None,
        description="Words after torchrun's own (absent: train.py), or the command of a single "
        "node (absent: the image's).",
    )
    timeout_minutes: Minutes | None = Field(
        default=None, description="Longest run; absent: a day, or what a Capacity Block leaves."
    )
    attempts: int = Field(
        default=3, ge=1, le=10, description="Tries, used up by failures of a host only."
    )
    environment: Mapping[str, str] = Field(
        default_factory=dict, description="Variables of the container; Batch expands none of them."
    )

    @model_validator(mode="after")
    def _one_image(self) -> "JobSettings":
        if self.image and self.repository_tag:
            raise refusal("has both image and repositoryTag", "keep one of them")
        if self.kind == "singleNode" and self.nodes not in (None, 1):
            raise refusal("is of kind singleNode with several nodes", "remove nodes")
        if self.kind == "collectiveBandwidth" and self.command:
            raise refusal("is of kind collectiveBandwidth with a command", "remove command")
        return self

    @property
    def words(self) -> tuple[str, ...]:
        """The command, or what its kind runs without one."""
        return self.command or (("train.py",) if self.kind == "torchrun" else ())


SHOW_NODE = "nvidia-smi || neuron-ls || lscpu; free -g; df -h"
DEFAULT_JOBS = (
    JobSettings(name="train", kind="torchrun"),
    JobSettings(name="bandwidth", kind="collectiveBandwidth"),
    JobSettings(name="node", kind="singleNode", command=("bash", "-c", SHOW_NODE)),
)


# https://docs.aws.amazon.com/batch/latest/APIReference/API_ShareAttributes.html
Weight = Annotated[float, Field(ge=0.0001, le=999.9999, strict=False)]


class FairShareSettings(Section):
    """Shares of a queue, so that several teams advance together."""

    shares: Mapping[ShareIdentifier, Weight] = Field(
        min_length=1, description="Weight of each share identifier; a smaller one gets more."
    )
    decay_seconds: int = Field(
        default=86400, ge=0, le=604800, description="How long past use of a share counts."
    )
    compute_reservation: int = Field(
        default=0, ge=0, le=99, description="Percentage kept free for shares that run nothing yet."
    )


class BatchGroupSettings(Section):
    """Nodes of one instance type in one zone: a compute environment, its queue and its jobs."""

    name: Name = Field(description="Name of the group, the stack's own.")
    instance_type: InstanceTypeName = Field(description="EC2 instance type of every node.")
    max_nodes: int = Field(ge=1, le=LARGEST_JOB_NODES, description="Most nodes at a time.")
    min_nodes: int = Field(default=0, ge=0, description="Nodes that run, and cost, even when idle.")
    placement: Name | None = Field(
        default=None, description="Name in trainyard:placement; absent: on demand."
    )
    availability_zone: Annotated[AvailabilityZone | None, BeforeValidator(_one_zone)] = Field(
        default=None, description="Absent: the placement's zone, else the network's first."
    )
    efa: bool = Field(default=True, description="Whether nodes have their EFA interfaces.")
    ip_bandwidth: IpBandwidth = Field(
        default="oneAddress",
        description="One IP address a node, or as many as carry all IP traffic.",
    )
    threads_per_core: Literal[1, 2] | None = Field(
        default=None, description="1 turns hyper-threading off; absent: the type's default."
    )
    image_id: ImageId | None = Field(default=None, description="Own machine image; absent: ECS's.")
    root_device_name: str = Field(
        default="/dev/xvda", min_length=1, description="Root device of the machine image."
    )
    root_volume_gib: int = Field(
        default=200, ge=30, le=16384, description="Size of the encrypted gp3 root volume."
    )
    runnable_limit_minutes: int = Field(
        default=1440, ge=10, le=1440, description="How long a job may wait for capacity."
    )
    fair_share: FairShareSettings | None = Field(
        default=None,
        description="Shares of the queue; absent: first in, first out. Batch adds none later.",
    )
    jobs: tuple[JobSettings, ...] = Field(
        default=DEFAULT_JOBS, min_length=1, description="Job definitions of the group."
    )

    @model_validator(mode="after")
    def _possible_group(self) -> "BatchGroupSettings":
        if self.ip_bandwidth == "maximum" and not self.efa:
            raise refusal(
                "has ipBandwidth: maximum without EFA, whose cards would carry it",
                "remove ipBandwidth, or efa: false",
            )
        if self.min_nodes > self.max_nodes:
            raise refusal("has more minNodes than maxNodes", "lower minNodes, or raise maxNodes")
        names = [job.name for job in self.jobs]
        if len(set(names)) < len(names):
            raise refusal("has two jobs of one name", "give each job its own name")
        return self

    @property
    def type_facts(self) -> InstanceType:
        """What the catalogue knows of the instance type."""
        return find_instance_type(self.instance_type)

    @property
    def layout(self) -> InterfaceLayout | None:
        """The network interfaces of a node, or None where Batch attaches its single plain one.

        A slot stays free for the interface of the job's task, which runs in awsvpc mode:
        https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html
        """
        if not self.efa or not self.type_facts.efa_cards:
            return None
        return efa_layout(
            instance_type=self.type_facts,
            ip_bandwidth=self.ip_bandwidth,
            keep_slot_on_card_0=True,
        )

    def image_of(self, job: JobSettings) -> str | None:
        """The image of a job without a repositoryTag; None: it has to name one."""
        return job.image or default_image(self.type_facts)

    @property
    def addresses_per_node(self) -> int:
        """Private addresses of a node's own interfaces and of the task that runs on it."""
        return (self.layout.private_addresses if self.layout else 1) + 1


class RoleSettings(Section):
    """Roles that exist, each in place of one that the stack would make."""

    instance_profile: InstanceProfileArn | None = Field(
        default=None, description="Instance profile of the hosts."
    )
    job: RoleArn | None = Field(default=None, description="Role of the jobs' own code.")
    service: RoleArn | None = Field(
        default=None,
        description="Role of Batch itself; with one, most changes replace a compute environment.",
    )


class BatchSettings(Section):
    """Every Batch group of the stack, and what they share."""

    groups: tuple[BatchGroupSettings, ...] = Field(
        min_length=1, description="Groups of nodes, each with its own queue."
    )
    keep_images: bool = Field(
        default=False, description="Whether destroy leaves the image repository as it is."
    )
    log_retention_days: Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 180, 365] = Field(
        default=30, description="How long logs of jobs are kept."
    )
    read_buckets: tuple[BucketArn, ...] = Field(default=(), description="Buckets that jobs read.")
    write_buckets: tuple[BucketArn, ...] = Field(
        default=(), description="Buckets that jobs read and write, such as for checkpoints."
    )
    roles: RoleSettings = Field(
        default=RoleSettings(), description="Roles that exist, in place of the stack's own."
    )

    @model_validator(mode="after")
    def _own_names(self) -> "BatchSettings":
        names = [group.name for group in self.groups]
        if len(set(names)) < len(names):
            raise refusal("has two groups of one name", "give each group its own name")
        return self

"""What a container may use of its node: devices, memory, vCPUs, GPUs, shared memory and limits.

A multi-node job owns its node alone, so each answer is "all of it" less what the host needs.
"""

from dataclasses import dataclass
from typing import Literal

from fabric.catalogue import InstanceType

DevicePermission = Literal["READ", "WRITE", "MKNOD"]

# The kernel, Docker and the ECS agent keep the rest; a job that asks for more stays RUNNABLE.
# https://github.com/meta-pytorch/torchx/blob/main/torchx/specs/named_resources_aws.py (MEM_TAX)
MEMORY_PERCENT = 96


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """One host device as the container sees it, under the same path."""

    path: str
    permissions: tuple[DevicePermission, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ulimit:
    """A process limit; -1 is unlimited."""

    name: str
    limit: int


ULIMITS = (
    # EFA pins the memory it sends from: https://docs.aws.amazon.com/batch/latest/userguide/efa.html
    Ulimit(name="memlock", limit=-1),
    # Open sockets grow with ranks; Docker's soft default of 1024 is used up at about 500 of them.
    Ulimit(name="nofile", limit=65536),
    # https://docs.nvidia.com/deeplearning/frameworks/user-guide/index.html#setincshmem
    Ulimit(name="stack", limit=67108864),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeResources:
    """What one container asks for when it has the node to itself. Memory is in MiB."""

    vcpus: int
    memory_mib: int
    gpus: int
    shared_memory_mib: int


def efa_devices(count: int) -> tuple[Device, ...]:
    """Return the verbs devices of `count` EFA interfaces, uverbs0 to uverbs(count - 1).

    One device too few costs bandwidth without any error, so `count` is the node's own number of
    EFA interfaces. https://docs.aws.amazon.com/batch/latest/userguide/efa.html
    """
    return tuple(
        Device(path=f"/dev/infiniband/uverbs{index}", permissions=("READ", "WRITE", "MKNOD"))
        for index in range(count)
    )


def neuron_devices(count: int) -> tuple[Device, ...]:
    """Return the `count` Neuron devices of a node, neuron0 to neuron(count - 1).

    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-inference.html
    """
    return tuple(
        Device(path=f"/dev/neuron{index}", permissions=("READ", "WRITE")) for index in range(count)
    )


def vcpu_request(instance_type: InstanceType, threads_per_core: int | None = None) -> int:
    """Return the vCPUs that a node registers with ECS: cores times threads per core.

    `threads_per_core` None means the type's default. Raises ValueError for a number of threads
    that the type cannot be launched with.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cpu-options-supported-instances-values.html
    """
    if threads_per_core is None or threads_per_core == instance_type.threads_per_core:
        return instance_type.vcpus
    if threads_per_core not in instance_type.valid_threads_per_core:
        raise ValueError(
            f"{instance_type.name} cannot run with {threads_per_core} threads per core; "
            f"leave threadsPerCore out or use one of {list(instance_type.valid_threads_per_core)}"
        )
    return instance_type.cores * threads_per_core


def memory_request_mib(memory_mib: int) -> int:
    """Return the memory in MiB that a job may ask for on a node that has `memory_mib`."""
    return memory_mib * MEMORY_PERCENT // 100


def shared_memory_mib(memory_request_mib: int) -> int:
    """Return the size in MiB of /dev/shm for a container that has `memory_request_mib`.

    Half, as Linux itself gives a tmpfs by default: NCCL and data loader workers fail on Docker's
    64 MiB, and pages used here count against the container's memory, so the size is a ceiling
    that still leaves the other half to the processes.
    https://www.kernel.org/doc/html/latest/filesystems/tmpfs.html
    https://docs.aws.amazon.com/batch/latest/APIReference/API_LinuxParameters.html
    """
    return memory_request_mib // 2


def node_resources(
    instance_type: InstanceType, threads_per_core: int | None = None
) -> NodeResources:
    """Return what a job that owns a whole node asks for.

    GPUs are counted only where ECS can hand them out, which is NVIDIA's; other accelerators are
    devices. https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-gpu.html
    Raises ValueError as vcpu_request does.
    """
    memory = memory_request_mib(instance_type.memory_mib)
    return NodeResources(
        vcpus=vcpu_request(instance_type, threads_per_core),
        memory_mib=memory,
        gpus=instance_type.nvidia_gpus,
        shared_memory_mib=shared_memory_mib(memory),
    )

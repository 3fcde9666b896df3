"""AWS Batch job definitions, as plain dictionaries in the words of the Batch API.

A job with kind "torchrun" or "collectiveBandwidth" is a multi-node job; "singleNode" runs the
user's command, unchanged, on one node.
https://docs.aws.amazon.com/batch/latest/APIReference/API_RegisterJobDefinition.html
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from fabric.catalogue import InstanceType
from fabric.conflict import Conflict
from fabric.containers import ULIMITS, Device, efa_devices, neuron_devices, node_resources
from fabric.job_images import entrypoint_evaluates_command

JobKind = Literal["torchrun", "collectiveBandwidth", "singleNode"]

# https://docs.aws.amazon.com/batch/latest/userguide/service_limits.html
MAXIMUM_DEFINITION_BYTES = 24 * 1024

# How long Batch may wait for jobs before an update ends them:
# https://docs.aws.amazon.com/batch/latest/APIReference/API_UpdatePolicy.html
SHORTEST_UPDATE_WAIT_MINUTES, LONGEST_UPDATE_WAIT_MINUTES = 30, 7200

_SCRIPTS = Path(__file__).parent / "job_scripts"

# In a multi-node job each task has its own interface, eth0, beside ecs-eth0, which leads to the
# agent only and which NCCL would otherwise pick: https://github.com/NVIDIA/nccl/issues/859
# NCCL_DEBUG: "NET/OFI Selected provider is efa" in the log is the one proof that EFA is used,
# https://github.com/aws/aws-ofi-nccl/blob/master/doc/efa-env-var.md
_MULTI_NODE_ENVIRONMENT = {
    "GLOO_SOCKET_IFNAME": "eth0",
    "NCCL_DEBUG": "INFO",
    "NCCL_SOCKET_IFNAME": "^lo,docker,ecs",
}

# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/setup-trn1-multi-node-execution.html
_NEURON_EFA_ENVIRONMENT = {"FI_EFA_USE_DEVICE_RDMA": "1", "FI_PROVIDER": "efa"}


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchJob:
    """One job definition on nodes of one instance type.

    `command` is what follows `torchrun` for kind "torchrun", the whole command for "singleNode",
    and unused for "collectiveBandwidth". `efa_interfaces` is the number on each node.
    """

    name: str
    kind: JobKind
    nodes: int = 1
    image: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout_seconds: int
    attempts: int = 1
    instance_type: InstanceType
    efa_interfaces: int
    threads_per_core: int | None = None

    @property
    def is_multi_node(self) -> bool:
        """Whether Batch runs the job on several nodes, each with a network interface of its own."""
        return self.kind != "singleNode"


def environment_conflicts(environment: Mapping[str, str]) -> dict[str, Conflict]:
    """Return what is wrong with the environment of a job, by variable.

    Batch does not expand variables in values and keeps names that start with AWS_BATCH.
    https://docs.aws.amazon.com/batch/latest/userguide/job_env_vars.html
    """
    conflicts: dict[str, Conflict] = {}
    for name, value in environment.items():
        if name.startswith("AWS_BATCH"):
            conflicts[name] = Conflict(
                reason="is set under a name that Batch keeps for itself",
                fix="choose one that does not start with AWS_BATCH",
            )
        elif re.search(r"\$[A-Za-z_{(]", value):
            conflicts[name] = Conflict(
                reason="stays as it is, since Batch expands no variables",
                fix="write the whole value, or set it in the image or in the command",
            )
    return conflicts


def processes_per_node(instance_type: InstanceType) -> int:
    """Return how many training processes a node runs: one per GPU or Neuron core, else one.

    https://docs.pytorch.org/docs/stable/elastic/run.html
    """
    return instance_type.nvidia_gpus or instance_type.neuron_cores or 1


def job_command(job: BatchJob) -> list[str]:
    """Return the command of the job's container.

    Batch replaces words that start with Ref:: and, for jobs on ECS, nothing else.
    https://docs.aws.amazon.com/batch/latest/userguide/job_definition_parameters.html#parameters
    """
    words = list(job.command)
    if job.kind == "collectiveBandwidth":
        words = ["--no-python", "python3", "-c", _read("collective_bandwidth.py")]
    if job.is_multi_node:
        words = ["bash", "-c", _read("torchrun.sh"), "torchrun-job", *words]
    if entrypoint_evaluates_command(job.image):
        return [shlex.quote(word) for word in words]
    return words


def job_environment(job: BatchJob) -> dict[str, str]:
    """Return the environment of the job's container; the job's own values win.

    Raises ValueError with everything that `environment_conflicts` finds.
    """
    conflicts = environment_conflicts(job.environment)
    if conflicts:
        raise ValueError(
            "\n".join(f"job {job.name}: {name} {each.reason}" for name, each in conflicts.items())
        )
    defaults: dict[str, str] = {}
    if job.is_multi_node:
        defaults |= _MULTI_NODE_ENVIRONMENT
        defaults["TRAINYARD_PROCESSES_PER_NODE"] = str(processes_per_node(job.instance_type))
        if job.instance_type.neuron_devices and job.efa_interfaces:
            defaults |= _NEURON_EFA_ENVIRONMENT
    return {**defaults, **job.environment}


def job_definition(job: BatchJob, *, log_group: str, job_role_arn: str) -> dict[str, Any]:
    """Return everything that RegisterJobDefinition takes except the name.

    `nodeProperties` has one range, "0:", without an end, so that `numNodes` can be overridden at
    submission. Raises ValueError as `job_environment` and `node_resources` do, and for a
    definition that is larger than Batch takes.
    """
    container = _container(job, log_group=log_group, job_role_arn=job_role_arn)
    definition: dict[str, Any] = {
        "type": "multinode" if job.is_multi_node else "container",
        "propagateTags": True,
        "retryStrategy": retry_strategy(job.attempts),
        "timeout": {"attemptDurationSeconds": job.timeout_seconds},
    }
    if job.is_multi_node:
        container["instanceType"] = job.instance_type.name
        definition["nodeProperties"] = {
            "numNodes": job.nodes,
            "mainNode": 0,
            "nodeRangeProperties": [{"targetNodes": "0:", "container": container}],
        }
    else:
        definition["containerProperties"] = container
    size = len(json.dumps(definition).encode())
    if size > MAXIMUM_DEFINITION_BYTES:
        raise ValueError(
            f"job {job.name}: its definition has {size} bytes, Batch takes at most "
            f"{MAXIMUM_DEFINITION_BYTES}; move the command's text into the image"
        )
    return definition


def retry_strategy(attempts: int) -> dict[str, Any]:
    """Return a strategy that tries again only when the host was lost, at most `attempts` times.

    Without the last rule Batch would also repeat what no rule matches.
    https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html
    """
    return {
        "attempts": attempts,
        "evaluateOnExit": [
            {"onStatusReason": "Host EC2*", "action": "RETRY"},
            {"onReason": "*", "action": "EXIT"},
        ],
    }


def _container(job: BatchJob, *, log_group: str, job_role_arn: str) -> dict[str, Any]:
    node = job.instance_type
    resources = node_resources(node, job.threads_per_core)
    requirements = {"VCPU": resources.vcpus, "MEMORY": resources.memory_mib, "GPU": resources.gpus}
    devices = neuron_devices(node.neuron_devices)
    if job.is_multi_node:
        devices += efa_devices(job.efa_interfaces)
    container: dict[str, Any] = {
        "image": job.image,
        "command": job_command(job),
        "jobRoleArn": job_role_arn,
        "environment": [
            {"name": name, "value": value} for name, value in sorted(job_environment(job).items())
        ],
        "resourceRequirements": [
            {"type": kind, "value": str(amount)} for kind, amount in requirements.items() if amount
        ],
        "ulimits": [
            {"name": ulimit.name, "softLimit": ulimit.limit, "hardLimit": ulimit.limit}
            for ulimit in ULIMITS
        ],
        "linuxParameters": {
            # An init hands the signal that ends a job to the command and reaps its orphans.
            "initProcessEnabled": True,
            "sharedMemorySize": resources.shared_memory_mib,
            **({"devices": [_device(device) for device in devices]} if devices else {}),
        },
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {"awslogs-group": log_group, "awslogs-stream-prefix": job.name},
        },
    }
    if node.instance_store_disks:
        container["volumes"] = [{"name": "scratch", "host": {"sourcePath": "/scratch"}}]
        container["mountPoints"] = [{"sourceVolume": "scratch", "containerPath": "/scratch"}]
    return container


def _device(device: Device) -> dict[str, Any]:
    return {
        "hostPath": device.path,
        "containerPath": device.path,
        "permissions": list(device.permissions),
    }


@cache
def _read(name: str) -> str:
    return (_SCRIPTS / name).read_text(encoding="ascii")

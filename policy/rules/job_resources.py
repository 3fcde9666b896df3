"""What the containers of AWS Batch jobs take of their node: EFA devices, vCPUs, memory, GPUs."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

from fabric.catalogue import InstanceType
from fabric.containers import (
    MEMORY_PERCENT,
    efa_devices,
    memory_request_mib,
    vcpu_request,
)
from fabric.rows import Row, inputs, mapping, mappings, number, text
from policy.batch import compute_resources, is_multi_node, kind, launch_template
from policy.batch_examples import multi_node_job, single_node_job, with_template
from policy.examples import resource
from policy.job_definitions import Container, containers
from policy.nodes import interfaces, known_types, launched_types
from policy.program import Program
from policy.rule import Finding, Option, Rule, Subject
from policy.tokens import BATCH_ENVIRONMENT, BATCH_JOB_DEFINITION, LAUNCH_TEMPLATE
from policy.values import UNKNOWN

EFA_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/efa.html"
MEMORY_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/memory-management.html"
CONTAINER_PAGE = (
    "https://docs.aws.amazon.com/batch/latest/APIReference/API_ResourceRequirement.html"
)
LINUX_PAGE = "https://docs.aws.amazon.com/batch/latest/APIReference/API_LinuxParameters.html"


def _whole_nodes(subject: Subject) -> Iterator[tuple[Container, InstanceType]]:
    """The containers that own a node of a known type."""
    for each in containers(subject.row):
        if each.owns_node and each.facts is not None:
            yield each, each.facts


def _efa_nodes(subject: Subject) -> Iterator[tuple[Container, InstanceType]]:
    """The containers of jobs on one node that open EFA devices, where the node's type is certain.

    Those that ask for a part of the GPUs share the node, and may share its EFA devices, too.
    """
    facts = subject.program.once(_only_type, partial(_only_type, subject.program))
    if facts is None or is_multi_node(subject.row):
        return
    for each in containers(subject.row):
        _, gpus = each.requirement("GPU")
        if each.uverbs and (gpus is None or gpus >= facts.nvidia_gpus):
            yield each, facts


def _only_type(program: Program) -> InstanceType | None:
    """The instance type of every node that the program's environments launch, if there is one."""
    environments = program.of_type(BATCH_ENVIRONMENT)
    nodes = [each for each in environments if not kind(each).startswith("FARGATE")]
    names = {name for each in nodes for name in launched_types(each) or [""]}
    return next(iter(known_types(names)), None) if len(names) == 1 else None


def _efa_devices(subject: Subject) -> Iterator[Finding]:
    for each, facts in chain(_whole_nodes(subject), _efa_nodes(subject)):
        counts = subject.program.once(
            (_efa_counts, facts.name), partial(_efa_counts, facts, subject.program)
        )
        mapped = each.uverbs
        if each.privileged or any(mapped == _paths(count) for count in counts):
            continue
        expected = max(counts)
        yield Finding(
            path=f"{each.path}.linuxParameters.devices",
            value=sorted(mapped) or None,
            message=f"{len(mapped & _paths(expected))} of {expected} EFA devices of "
            f"{facts.name} are mapped with READ, WRITE and MKNOD"
            + (", and some that it has not" if mapped - _paths(expected) else ""),
        )


def _efa_counts(facts: InstanceType, program: Program) -> set[int]:
    """EFA interfaces of a node: by the templates that launch the type, else as many as it takes."""
    found: set[int] = set()
    for environment in program.of_type(BATCH_ENVIRONMENT):
        if facts.name in launched_types(environment):
            template = launch_template(environment, program)
            named = bool(compute_resources(environment).get("launchTemplate"))
            count = _efa_count(template, named=named)
            found.add(facts.maximum_efa_interfaces if count is None else count)
    return found or {facts.maximum_efa_interfaces}


def _efa_count(template: Row | None, *, named: bool) -> int | None:
    """EFA interfaces of a launch template, 0 without one; None if the template is out of sight."""
    if template is None:
        return None if named else 0
    listed = interfaces(template)
    hidden = inputs(template).get("networkInterfaces") is UNKNOWN
    if hidden or any(each.kind == "unknown" for each in listed):
        return None
    return sum(each.is_efa for each in listed)


def _paths(count: int) -> set[str]:
    return {device.path for device in efa_devices(count)}


def _memlock(subject: Subject) -> Iterator[Finding]:
    for each in containers(subject.row):
        limits = mappings(each.settings.get("ulimits"))
        own = [one for one in limits if text(one.get("name")) == "memlock"]
        values = [one.get(key) for one in own for key in ("softLimit", "hardLimit")]
        if each.uverbs and not (values and all(value in (-1, "-1") for value in values)):
            yield Finding(
                path=f"{each.path}.ulimits",
                value=[value for value in values if isinstance(value, (int, str))] or None,
                message="EFA devices without an unlimited memlock, soft and hard",
            )


def _fits(subject: Subject) -> Iterator[Finding]:
    for each in containers(subject.row):
        facts = each.facts
        if facts is None:
            continue
        # the kernel keeps some memory, so that a node never has all of it to give
        most = {"VCPU": facts.vcpus, "MEMORY": facts.memory_mib - 1, "GPU": facts.nvidia_gpus}
        for what, limit in most.items():
            yield from _at_most(each, what, limit, facts.name)


def _at_most(container: Container, kind: str, limit: int, where: str) -> Iterator[Finding]:
    path, amount = container.requirement(kind)
    if amount is not None and amount > limit:
        unit = " MiB" if kind == "MEMORY" else ""
        yield Finding(
            path=path,
            value=int(amount),
            message=f"{kind} {amount:g}{unit}, {where} has {limit}{unit} to give",
        )


def _threads(subject: Subject) -> Iterator[Finding]:
    for each in containers(subject.row):
        facts = each.facts
        if facts is not None:
            limits = subject.program.once(
                (_registered_vcpus, facts.name), partial(_registered_vcpus, facts, subject.program)
            )
            if limits and max(limits) < facts.vcpus:
                where = f"{facts.name} with the template's cpuOptions"
                yield from _at_most(each, "VCPU", max(limits), where)


def _registered_vcpus(facts: InstanceType, program: Program) -> set[int]:
    """The vCPUs of nodes of a type, by each environment that launches it."""
    found: set[int] = set()
    for environment in program.of_type(BATCH_ENVIRONMENT):
        if facts.name not in launched_types(environment):
            continue
        template = launch_template(environment, program)
        options = mapping(inputs(template or {}).get("cpuOptions"))
        threads = number(options.get("threadsPerCore"))
        try:
            found.add(vcpu_request(facts, int(threads) if threads else None))
        except ValueError:  # such a template launches nothing, which other rules say
            found.add(facts.vcpus)
    return found


def _headroom(subject: Subject) -> Iterator[Finding]:
    for each in containers(subject.row):
        facts = each.facts
        path, amount = each.requirement("MEMORY")
        if facts is None or amount is None or amount >= facts.memory_mib:
            continue
        if amount > memory_request_mib(facts.memory_mib):
            yield Finding(
                path=path,
                value=int(amount),
                message=f"over {MEMORY_PERCENT} % of the {facts.memory_mib} MiB of {facts.name}",
            )


def _uses_memory(subject: Subject) -> Iterator[Finding]:
    least = number(subject.options.get("percent")) or 0
    for each, facts in _whole_nodes(subject):
        path, amount = each.requirement("MEMORY")
        if amount is not None and amount < facts.memory_mib * least / 100:
            yield Finding(
                path=path,
                value=int(amount),
                message=f"under {least:g} % of the {facts.memory_mib} MiB of {facts.name}",
            )


def _uses_gpus(subject: Subject) -> Iterator[Finding]:
    for each, facts in _whole_nodes(subject):
        path, amount = each.requirement("GPU")
        if (amount or 0) < facts.nvidia_gpus and not each.privileged:
            yield Finding(
                path=path,
                value=None if amount is None else int(amount),
                message=f"{amount or 0:g} of the {facts.nvidia_gpus} GPUs of {facts.name}",
            )


def _shared_memory(subject: Subject) -> Iterator[Finding]:
    for each in containers(subject.row):
        _, gpus = each.requirement("GPU")
        _, memory = each.requirement("MEMORY")
        size = number(each.linux.get("sharedMemorySize"))
        path = f"{each.path}.linuxParameters.sharedMemorySize"
        if (each.owns_node or gpus) and not size:
            yield Finding(path=path, value=None, message="shared memory is Docker's 64 MiB")
        elif size and memory and size >= memory:
            yield Finding(
                path=path, value=int(size), message=f"not less than MEMORY, {memory:g} MiB"
            )


def _devices(count: int) -> dict[str, Any]:
    return {"devices": [{"hostPath": device.path} for device in efa_devices(count)]}


def _asking(**amounts: int) -> dict[str, Any]:
    requirements = [{"type": kind, "value": str(amount)} for kind, amount in amounts.items()]
    return multi_node_job(resourceRequirements=requirements)


_UNLIMITED = [{"name": "memlock", "softLimit": -1, "hardLimit": -1}]
_ONE_THREAD = [
    resource(LAUNCH_TEMPLATE, "template", cpuOptions={"coreCount": 48, "threadsPerCore": 1}),
    with_template(),
]
_JOBS = frozenset({BATCH_JOB_DEFINITION})

RULES = (
    Rule(
        id="job-efa-devices",
        references=("R20",),
        family="jobs",
        level="mandatory",
        level_because="bandwidth is lost without any error",
        sentence="A multi-node job, and any other that uses EFA, opens every EFA device of a node.",
        why="EFA devices that are not mapped are not used: the job runs, slower, or over TCP.",
        fix="map /dev/infiniband/uverbs0 up to the number of the node's EFA interfaces less one, "
        "with READ, WRITE and MKNOD",
        url=EFA_PAGE,
        types=_JOBS,
        check=_efa_devices,
        whole_program=True,
        good=[multi_node_job(linuxParameters=_devices(4))],
        bad=[multi_node_job(linuxParameters=_devices(1))],
        decides_in_preview=False,
    ),
    Rule(
        id="job-memlock",
        references=("R21",),
        family="jobs",
        level="mandatory",
        level_because="EFA cannot be used",
        sentence="A container with EFA devices may lock any amount of memory.",
        why="EFA pins the memory it sends from, and registering it fails at Docker's limit.",
        fix="add the ulimit memlock with softLimit and hardLimit -1",
        url=EFA_PAGE,
        types=_JOBS,
        check=_memlock,
        good=[multi_node_job(linuxParameters=_devices(4), ulimits=_UNLIMITED)],
        bad=[multi_node_job(linuxParameters=_devices(4))],
        decides_in_preview=False,
    ),
    Rule(
        id="job-fits-node",
        references=("R68",),
        family="jobs",
        level="mandatory",
        level_because="the job never starts",
        sentence="A job asks for no more vCPUs, memory and GPUs than its instance type has.",
        why="No node ever fits, and the job stays RUNNABLE.",
        fix="lower resourceRequirements to what the type has; its memory is not all there to give",
        url=CONTAINER_PAGE,
        types=_JOBS,
        check=_fits,
        good=[_asking(VCPU=96, MEMORY=1132462, GPU=8)],
        bad=[_asking(VCPU=97, MEMORY=1132462, GPU=8)],
        decides_in_preview=False,
    ),
    Rule(
        id="job-fits-threads",
        references=("R68",),
        family="jobs",
        level="mandatory",
        level_because="the job never starts",
        sentence="A job asks for no more vCPUs than nodes have with the threads of their template.",
        why="With one thread per core a node has as many vCPUs as cores.",
        fix="ask for coreCount times threadsPerCore of the launch template",
        url=CONTAINER_PAGE,
        types=_JOBS,
        check=_threads,
        whole_program=True,
        good=[*_ONE_THREAD, _asking(VCPU=48)],
        bad=[*_ONE_THREAD, _asking(VCPU=96)],
        decides_in_preview=False,
    ),
    Rule(
        id="job-memory-headroom",
        references=("R68",),
        family="jobs",
        level="advisory",
        level_because="what the node keeps depends on its image, so the job may start",
        sentence=f"A job leaves {100 - MEMORY_PERCENT} % of its node's memory to the node.",
        why="Kernel, Docker and agent keep some of it; a job that asks for more stays RUNNABLE.",
        fix=f"ask for {MEMORY_PERCENT} % of the type's memory",
        url=MEMORY_PAGE,
        types=_JOBS,
        check=_headroom,
        good=[_asking(MEMORY=1132462)],
        bad=[_asking(MEMORY=1150000)],
        decides_in_preview=False,
    ),
    Rule(
        id="job-uses-memory",
        references=("R69",),
        family="jobs",
        level="advisory",
        level_because="the rest of the node is paid for and idle",
        sentence="A multi-node job asks for the better part of its nodes' memory.",
        why="It has the node alone, and MEMORY is a hard limit at which its processes are killed.",
        fix=f"ask for {MEMORY_PERCENT} % of the type's memory",
        url=MEMORY_PAGE,
        types=_JOBS,
        check=_uses_memory,
        good=[_asking(MEMORY=1132462)],
        bad=[_asking(MEMORY=16384)],
        decides_in_preview=False,
        options={"percent": Option(kind="number", default=50, description="the least share")},
    ),
    Rule(
        id="job-uses-gpus",
        references=("R68",),
        family="jobs",
        level="advisory",
        level_because="the rest of the node is paid for and idle",
        sentence="A multi-node job asks for all GPUs of its nodes.",
        why="It has the node alone, and sees only the GPUs that it asks for.",
        fix="set the GPU requirement to the number of the type's GPUs",
        url=CONTAINER_PAGE,
        types=_JOBS,
        check=_uses_gpus,
        good=[_asking(GPU=8)],
        bad=[_asking(GPU=1)],
        decides_in_preview=False,
    ),
    Rule(
        id="job-shared-memory",
        references=("R103",),
        family="jobs",
        level="advisory",
        level_because="jobs with little data between processes run",
        sentence="A multi-node or GPU job sets the size of /dev/shm, under its MEMORY.",
        why="NCCL and data loaders fail on Docker's 64 MiB, and what is used counts as memory.",
        fix="set linuxParameters.sharedMemorySize, in MiB, to half of MEMORY",
        url=LINUX_PAGE,
        types=_JOBS,
        check=_shared_memory,
        good=[multi_node_job(linuxParameters={"sharedMemorySize": 566231})],
        bad=[single_node_job(resourceRequirements=[{"type": "GPU", "value": "1"}])],
        decides_in_preview=False,
    ),
)

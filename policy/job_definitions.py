"""What an AWS Batch job definition says: its node ranges and its containers.

The properties are JSON texts, so a preview knows either all of one or nothing.
https://docs.aws.amazon.com/batch/latest/APIReference/API_RegisterJobDefinition.html
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fabric.catalogue import InstanceType
from fabric.rows import Row, inputs, mapping, mappings, number, text, texts, true
from policy.nodes import known_types

PROPERTIES = ("containerProperties", "ecsProperties", "nodeProperties")

_UVERBS = re.compile(r"/dev/infiniband/uverbs\d+")
_PERMISSIONS = {"READ", "WRITE", "MKNOD"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Container:
    """One container of a job.

    `task` holds what it shares with the other containers of its task, such as volumes; it is the
    container itself where the definition knows no tasks. `instance_type` is empty where none is
    named. `owns_node` is whether a node of a multi-node job runs nothing else.
    """

    path: str
    settings: Mapping[str, Any]
    task_path: str
    task: Mapping[str, Any]
    instance_type: str
    owns_node: bool

    @property
    def facts(self) -> InstanceType | None:
        """The facts of its instance type, where named and known."""
        return next(iter(known_types([self.instance_type])), None)

    @property
    def linux(self) -> Mapping[str, Any]:
        """Its `linuxParameters`."""
        return mapping(self.settings.get("linuxParameters"))

    @property
    def privileged(self) -> bool:
        """Whether it may do what the node's root may."""
        return true(self.settings.get("privileged"))

    @property
    def environment(self) -> list[tuple[str, str, str]]:
        """Path, name and value of each environment variable."""
        return [
            (f"{self.path}.environment[{index}]", text(one.get("name")), text(one.get("value")))
            for index, one in enumerate(mappings(self.settings.get("environment")))
        ]

    @property
    def volumes(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Path and settings of each volume."""
        return [
            (f"{self.task_path}.volumes[{index}]", one)
            for index, one in enumerate(mappings(self.task.get("volumes")))
        ]

    @property
    def role(self) -> str:
        """The role of its own code."""
        return text(self.task.get("taskRoleArn")) or text(self.task.get("jobRoleArn"))

    @property
    def uverbs(self) -> set[str]:
        """The EFA devices that it can open with all permissions, which is what no list means."""
        found: set[str] = set()
        for device in mappings(self.linux.get("devices")):
            host = text(device.get("hostPath"))
            allowed = {each.upper() for each in texts(device.get("permissions"))} or _PERMISSIONS
            inside = text(device.get("containerPath")) or host
            if _UVERBS.fullmatch(host) and inside == host and allowed >= _PERMISSIONS:
                found.add(host)
        return found

    def requirement(self, resource: str) -> tuple[str, float | None]:
        """Path and amount of a VCPU, MEMORY (MiB) or GPU requirement; no amount is None."""
        for index, one in enumerate(mappings(self.settings.get("resourceRequirements"))):
            if text(one.get("type")).upper() == resource:
                path = f"{self.path}.resourceRequirements[{index}].value"
                return path, number(one.get("value"))
        older = {"VCPU": "vcpus", "MEMORY": "memory"}.get(resource, "")
        amount = number(self.settings.get(older)) or None
        return f"{self.path}.{older if amount else 'resourceRequirements'}", amount


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeRange:
    """One range of nodes; `instance_types` are all that it and its container name."""

    path: str
    target: str
    settings: Mapping[str, Any]
    instance_types: tuple[str, ...]


def properties(definition: Row, key: str) -> Mapping[str, Any]:
    """One of `PROPERTIES`, read from its JSON; empty where absent or unknown."""
    value = inputs(definition).get(key)
    return mapping(_parsed(value) if isinstance(value, str) else value)


def node_ranges(definition: Row) -> list[NodeRange]:
    """The node ranges of a multi-node job definition."""
    ranges = mappings(properties(definition, "nodeProperties").get("nodeRangeProperties"))
    return [
        NodeRange(
            path=f"nodeProperties.nodeRangeProperties[{index}]",
            target=text(settings.get("targetNodes")),
            settings=settings,
            instance_types=_named(settings),
        )
        for index, settings in enumerate(ranges)
    ]


def instance_types(definition: Row) -> set[str]:
    """The instance types that the node ranges of a job definition name."""
    return {name for each in node_ranges(definition) for name in each.instance_types}


def is_for_fargate(definition: Row) -> bool:
    """Whether jobs of a definition run on Fargate alone; without any word they run on EC2."""
    platforms = texts(inputs(definition).get("platformCapabilities"))
    return {each.upper() for each in platforms} == {"FARGATE"}


def containers(definition: Row) -> Iterator[Container]:
    """Every container that the definition runs on ECS."""
    single = properties(definition, "containerProperties")
    if single:
        yield _container("containerProperties", single)
    yield from _tasks("ecsProperties", properties(definition, "ecsProperties"))
    for each in node_ranges(definition):
        name = next(iter(each.instance_types), "")
        container = mapping(each.settings.get("container"))
        if container:
            yield _container(f"{each.path}.container", container, name, owns_node=True)
        tasks = mapping(each.settings.get("ecsProperties"))
        yield from _tasks(f"{each.path}.ecsProperties", tasks, name, multi_node=True)


def covered_nodes(target: str, nodes: int) -> range | None:
    """The nodes of a range such as `0:`, `:3`, `1:3` or `2`; None where it is written otherwise."""
    match = re.fullmatch(r"(\d{0,6})(:?)(\d{0,6})", target, re.ASCII)
    if match is None or target in ("", ":"):
        return None
    first, colon, last = match.groups()
    start = int(first or 0)
    end = (int(last) if last else nodes - 1) if colon else start
    return range(start, min(end, nodes - 1) + 1)


def _named(settings: Mapping[str, Any]) -> tuple[str, ...]:
    container = text(mapping(settings.get("container")).get("instanceType"))
    names = [container, *texts(settings.get("instanceTypes"))]
    return tuple(dict.fromkeys(name for name in names if name))


def _container(
    path: str, settings: Mapping[str, Any], name: str = "", *, owns_node: bool = False
) -> Container:
    return Container(
        path=path,
        settings=settings,
        task_path=path,
        task=settings,
        instance_type=name,
        owns_node=owns_node,
    )


def _tasks(
    path: str, settings: Mapping[str, Any], name: str = "", *, multi_node: bool = False
) -> Iterator[Container]:
    for task_index, task in enumerate(mappings(settings.get("taskProperties"))):
        task_path = f"{path}.taskProperties[{task_index}]"
        each = mappings(task.get("containers"))
        for index, container in enumerate(each):
            yield Container(
                path=f"{task_path}.containers[{index}]",
                settings=container,
                task_path=task_path,
                task=task,
                instance_type=name,
                owns_node=multi_node and len(each) == 1,
            )


@lru_cache(maxsize=512)
def _parsed(value: str) -> Any:
    """JSON with keys as the API writes them; the provider takes `Image` for `image`, too."""
    try:
        return json.loads(value, object_pairs_hook=_camel_case)
    except (ValueError, RecursionError):
        return None


def _camel_case(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key[:1].lower() + key[1:]: value for key, value in pairs}

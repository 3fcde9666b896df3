"""How long a stack takes until it is ready: its longest chain of resources that wait.

Creation times are medians from published apply logs (`creation_times.json`); there is no API to
refresh them from. A type without a published time is named in `Ready.unknown` and adds nothing to
the path, so the answer reads as "at least these seconds, plus the creation of ...".
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from fabric.rows import Row, mapping, text, texts

# Resource tokens have a slash (aws:ec2/vpc:Vpc) and component tokens none; these break that habit.
_RESOURCES_WITHOUT_SLASH = ("aws-native:", "command:", "docker-build:", "pulumi-python:dynamic:")
_COMPONENTS_WITH_SLASH = ("kubernetes:helm.sh/v3:Chart", "kubernetes:helm.sh/v4:Chart")


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A resource on the critical path and the median seconds that AWS takes to create it."""

    urn: str
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """Predicted seconds until everything exists, and why.

    `seconds` is None when the program has resources and none of their types has a published time.
    `critical_path` lists, in order of creation, the resources whose seconds add up to `seconds`.
    `unknown` holds the sorted type tokens that add nothing for want of a published time.
    """

    seconds: float | None
    critical_path: tuple[Step, ...]
    unknown: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """`{"seconds", "criticalPath": [{"urn", "seconds"}], "unknown": [type]}`."""
        path = [{"urn": step.urn, "seconds": step.seconds} for step in self.critical_path]
        return {"seconds": self.seconds, "criticalPath": path, "unknown": list(self.unknown)}


def time_until_ready(rows: Sequence[Row]) -> Ready:
    """The longest path through what the rows wait for.

    A row waits for its dependencies, and for everything below a component that it depends on. It
    waits for nothing of its own ancestors. URNs that are not among the rows are ignored, as they
    exist already. Linear in rows and dependencies.

    Raises ValueError, naming the URNs in order, when rows wait for each other in a circle.
    """
    graph = _Graph(rows)
    order = graph.in_creation_order()
    finish = [0.0] * len(graph.seconds)
    waited_for: list[int | None] = [None] * len(finish)
    for node in order:
        finish[node] += graph.seconds[node]
        for waiting in graph.waiting[node]:
            if finish[node] > finish[waiting]:
                finish[waiting], waited_for[waiting] = finish[node], node

    known, types = creation_times(), {text(row.get("type")) for row in rows}
    unknown = tuple(sorted(t for t in types if t not in known and _is_created_resource(t)))
    if unknown and not types & known.keys():
        return Ready(seconds=None, critical_path=(), unknown=unknown)

    path: list[Step] = []
    node = max(order, key=finish.__getitem__, default=None)
    seconds = finish[node] if node is not None else 0.0
    while node is not None:
        if graph.seconds[node]:
            path.append(Step(urn=graph.urn(node), seconds=graph.seconds[node]))
        node = waited_for[node]
    return Ready(seconds=seconds, critical_path=tuple(reversed(path)), unknown=unknown)


@cache
def creation_times() -> Mapping[str, float]:
    """Median seconds until AWS has created a resource, by Pulumi type token."""
    file = Path(__file__).with_name("creation_times.json")
    times = json.loads(file.read_text())["times"]
    return {token: float(time["median"]) for time in times for token in time["types"]}


class _Graph:
    """Two nodes a row: the resource (its index), and it with all that is below it (index + n)."""

    def __init__(self, rows: Sequence[Row]) -> None:
        known = creation_times()
        self._urns = [text(row.get("urn")) for row in rows]
        index = {urn: i for i, urn in enumerate(self._urns) if urn}
        self._parents = [index.get(text(row.get("parent"))) for row in rows]
        count = len(rows)
        self.seconds = [known.get(text(row.get("type")), 0.0) for row in rows] + [0.0] * count
        self.waiting: list[list[int]] = [[] for _ in range(2 * count)]
        components = [_is_component(text(row.get("type"))) for row in rows]
        for i, row in enumerate(rows):
            self.waiting[i].append(i + count)
            parent = self._parents[i]
            if parent is not None and parent != i:
                self.waiting[i + count].append(parent + count)
            for urn in _dependencies(row):
                on = index.get(urn)
                if on is None:
                    continue
                if not components[on]:
                    self.waiting[on].append(i)
                elif not self._is_ancestor(on, of=i):
                    self.waiting[on + count].append(i)

    def urn(self, node: int) -> str:
        return self._urns[node % len(self._urns)]

    def in_creation_order(self) -> list[int]:
        """Every node after those that it waits for (Kahn's algorithm)."""
        open_waits = [0] * len(self.waiting)
        for node in chain.from_iterable(self.waiting):
            open_waits[node] += 1
        order = [node for node, waits in enumerate(open_waits) if not waits]
        for node in order:  # grows while it is read: a node enters when its last wait is over
            for waiting in self.waiting[node]:
                open_waits[waiting] -= 1
                if not open_waits[waiting]:
                    order.append(waiting)
        if len(order) < len(self.waiting):
            raise ValueError(f"resources wait for each other: {self._circle(open_waits)}")
        return order

    def _circle(self, open_waits: list[int]) -> str:
        """A circle among the nodes that never got their turn, as `a -> b -> a`."""
        stuck = {node for node, waits in enumerate(open_waits) if waits}
        waits_for = {to: node for node in stuck for to in self.waiting[node] if to in stuck}
        node, walk = min(stuck), dict[int, None]()
        while node not in walk:
            walk[node] = None
            node = waits_for[node]
        nodes = list(walk)
        urns = list(dict.fromkeys(self.urn(n) for n in nodes[nodes.index(node) :]))
        return " -> ".join([*urns, urns[0]])

    def _is_ancestor(self, ancestor: int, *, of: int) -> bool:
        seen: set[int] = set()
        node: int | None = of
        while node is not None and node not in seen:
            if node == ancestor:
                return True
            seen.add(node)
            node = self._parents[node]
        return False


def _is_component(token: str) -> bool:
    if token in _COMPONENTS_WITH_SLASH:
        return True
    return "/" not in token and not token.startswith(_RESOURCES_WITHOUT_SLASH)


def _is_created_resource(token: str) -> bool:
    """Neither a component nor Pulumi's own (the Stack, a provider, a reference to a stack)."""
    return not _is_component(token) and not token.startswith("pulumi:")


def _dependencies(row: Row) -> list[str]:
    lists = (row.get("dependencies"), *mapping(row.get("propertyDependencies")).values())
    return list(dict.fromkeys(urn for urns in lists for urn in texts(urns)))

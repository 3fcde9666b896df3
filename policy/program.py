"""The resources of a program and how they hang together."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

from fabric.rows import Row, dependencies, inputs, mapping, text, texts
from policy.tokens import (
    CAPACITY_RESERVATION,
    EKS_CLUSTER,
    LAUNCH_TEMPLATE,
    PLACEMENT_GROUP,
    RESOURCE_GROUP,
    SECURITY_GROUP,
    VPC,
)

T = TypeVar("T")

# What always has inputs, so that a resource without any is one that exists elsewhere and was read:
# a preview that does not know its id yet sends nothing of it, and the Analyzer protocol no mark.
_NEVER_EMPTY = frozenset(
    {
        CAPACITY_RESERVATION,
        EKS_CLUSTER,
        LAUNCH_TEMPLATE,
        PLACEMENT_GROUP,
        RESOURCE_GROUP,
        SECURITY_GROUP,
        VPC,
    }
)


def is_out_of_sight(row: Row) -> bool:
    """Whether nothing is known of a resource, so that no rule can judge it or build on it."""
    return row.get("type") in _NEVER_EMPTY and not inputs(row)


class Program:
    """Finds resources by URN and type, and follows where their inputs come from.

    Links come from property dependencies, which a preview knows even where values are unknown.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._by_urn: dict[str, Row] = {}
        self._by_type: defaultdict[str, list[Row]] = defaultdict(list)
        self._answers: dict[Hashable, Any] = {}
        self._users: defaultdict[str, list[tuple[str, Row]]] | None = None
        for row in rows:
            if is_out_of_sight(row):
                continue
            self._by_urn[text(row.get("urn"))] = row
            self._by_type[text(row.get("type"))].append(row)

    def once(self, question: Hashable, answer: Callable[[], T]) -> T:
        """What `answer` returns, asked once for each question about this program.

        A check that looks at every other resource asks so, else a program of a thousand resources
        is looked through a million times.
        """
        if question not in self._answers:
            self._answers[question] = answer()
        return self._answers[question]

    def rows(self) -> list[Row]:
        """Every resource, in the program's order."""
        return list(self._by_urn.values())

    def of_type(self, *types: str) -> Iterator[Row]:
        """Every resource of these types."""
        for type_ in types:
            yield from self._by_type.get(type_, ())

    def linked(self, row: Row, key: str, *types: str) -> list[Row]:
        """The resources of these types from which one input of a resource comes."""
        found = (self._by_urn.get(urn) for urn in dependencies(row, key))
        return [each for each in found if each is not None and each.get("type") in types]

    def users(self, row: Row, *types: str) -> list[Row]:
        """The resources of these types that take an input from this one."""
        if self._users is None:
            self._users = self._all_users()
        return [user for type_, user in self._users.get(text(row.get("urn")), ()) if type_ in types]

    def upstream(self, row: Row) -> set[str]:
        """URNs of everything that a resource depends on, directly or through others."""
        found: set[str] = set()
        ahead = texts(row.get("dependencies"))
        while ahead:
            urn = ahead.pop()
            if urn not in found:
                found.add(urn)
                ahead += texts(self._by_urn.get(urn, {}).get("dependencies"))
        return found

    def _all_users(self) -> defaultdict[str, list[tuple[str, Row]]]:
        users: defaultdict[str, list[tuple[str, Row]]] = defaultdict(list)
        for row in self._by_urn.values():
            by_property = mapping(row.get("propertyDependencies"))
            for urn in sorted({urn for key in by_property for urn in dependencies(row, key)}):
                users[urn].append((text(row.get("type")), row))
        return users

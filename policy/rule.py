"""What a rule is: data that says why it exists and what to do, and a check on plain values.

A check sees a resource as a row (`fabric.rows`), whatever program it comes from: keys may be
missing, and values may be of any type. A value that only an update will know is `UNKNOWN`; the
readers of `fabric.rows` take it for absent, so a check that would accuse somebody of leaving
something out asks `is_unknown` first.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fabric.rows import Row, at, inputs
from policy.program import Program

Level = Literal["mandatory", "advisory"]
Family = Literal[
    "interfaces", "security groups", "capacity", "batch", "jobs", "eks", "storage", "vpc",
    "security", "cost",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Where a resource breaks a rule: an input's path, its value, and what is wrong with it."""

    path: str
    value: object
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """A setting of a rule in the pack's configuration; `kind` is JSON Schema's word for it."""

    kind: Literal["number", "integer", "boolean", "array", "string"]
    default: Any
    description: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """One resource to judge, with the program around it where the rule asked for that.

    `program` is empty for a rule about one resource alone.
    """

    row: Row
    program: Program
    options: Mapping[str, Any]

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The resource's inputs."""
        return inputs(self.row)

    def at(self, path: str) -> Any:
        """The input at a path such as `computeResources.maxVcpus`, or None; not through lists."""
        return at(self.row, path)

    def linked(self, key: str, *types: str) -> list[Row]:
        """The resources of these types from which one input of this resource comes."""
        return self.program.linked(self.row, key, *types)


Check = Callable[[Subject], Iterator[Finding]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One rule of the pack.

    `sentence` says what holds; `why` what happens where it does not; `level_because` why it is
    mandatory or advisory. `types` are the resource types that the check is asked about.
    With `whole_program` it sees the other resources, too, and speaks in an update only after they
    exist. `decides_in_preview` is False where everything that it judges is a text which an update
    alone knows. `good` and `bad` are programs that keep and break it.
    """

    id: str
    references: tuple[str, ...]
    family: Family
    level: Level
    level_because: str
    sentence: str
    why: str
    fix: str
    url: str
    types: frozenset[str]
    check: Check
    good: Sequence[Row]
    bad: Sequence[Row]
    whole_program: bool = False
    decides_in_preview: bool = True
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])

    def defaults(self) -> dict[str, Any]:
        """The value of each option that no configuration sets."""
        return {name: option.default for name, option in self.options.items()}

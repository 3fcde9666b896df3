"""What a rehearsal answers, as frozen values that turn into JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = Any
"""A plain JSON value: mapping, list, text, number, boolean or None."""

UNPRICED: Mapping[str, Json] = {"idlePerHour": None, "fullPerHour": None, "lines": []}
UNTIMED: Mapping[str, Json] = {"seconds": None, "criticalPath": []}


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One error or warning: where it is, what is there, why it is wrong, what to do.

    `key` is the configuration key, or None when the text came from a log and says it all itself.
    """

    key: str | None
    value: Json
    reason: str
    fix: str | None

    def __str__(self) -> str:
        where = "" if self.key is None else f"{self.key}: "
        value = "" if self.value is None else f"{self.value!r} "
        fix = "" if self.fix is None else f"; {self.fix}"
        return f"{where}{value}{self.reason}{fix}"

    def to_json(self) -> dict[str, Json]:
        """`{"key", "value", "reason", "fix"}`; a value that JSON does not know becomes text."""
        plain = self.value is None or isinstance(self.value, str | int | float | bool)
        return {
            "key": self.key,
            "value": self.value if plain else str(self.value),
            "reason": self.reason,
            "fix": self.fix,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """One resource as the program registered it; field for field a row of the JSON.

    Attributes:
        urn: As an engine forms it,
            https://www.pulumi.com/docs/iac/concepts/resources/names/#urns.
        parent: URN of the parent, None directly below the stack, which is not a row itself.
        inputs: In Pulumi's camelCase, as an engine would receive them. A secret is `[secret]`, a
            resource is its id, an asset or archive is `{"asset": {...}}` or `{"archive": {...}}`.
        dependencies: URNs, sorted.
        property_dependencies: Input name to the URNs that its value comes from, sorted.
        external: Read and not created: a StackReference or the result of a `get`.
    """

    urn: str
    type: str
    name: str
    parent: str | None
    inputs: Mapping[str, Json]
    dependencies: tuple[str, ...]
    property_dependencies: Mapping[str, tuple[str, ...]]
    protect: bool
    retain_on_delete: bool
    external: bool = False

    def to_json(self) -> dict[str, Json]:
        """The row; `"external": true` is there only for what is read and not created."""
        row = {
            "urn": self.urn,
            "type": self.type,
            "name": self.name,
            "parent": self.parent,
            "inputs": self.inputs,
            "dependencies": list(self.dependencies),
            "propertyDependencies": {k: list(v) for k, v in self.property_dependencies.items()},
            "protect": self.protect,
            "retainOnDelete": self.retain_on_delete,
        }
        return row | {"external": True} if self.external else row


@dataclass(frozen=True, kw_only=True, slots=True)
class Rehearsal:
    """Everything that is known about a stack before anything of it exists.

    Attributes:
        resources: Parents before children, siblings by type and name.
        findings: The verdict of the policy rules, as JSON rows.
        price: `{"idlePerHour", "fullPerHour", "lines"}` in USD per hour, nulls after errors.
        ready: `{"seconds", "criticalPath": [{"urn", "seconds"}]}`, nulls after errors.
    """

    stack: str
    region: str | None = None
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    resources: tuple[Resource, ...] = ()
    outputs: Mapping[str, Json] = field(default_factory=dict[str, Json])
    findings: Sequence[Mapping[str, Json]] = ()
    price: Mapping[str, Json] = field(default_factory=lambda: UNPRICED)
    ready: Mapping[str, Json] = field(default_factory=lambda: UNTIMED)

    @property
    def failed(self) -> bool:
        """Whether there are errors or mandatory findings: exit status 1."""
        return bool(self.errors) or any(f.get("level") == "mandatory" for f in self.findings)

    def to_json(self) -> dict[str, Json]:
        """The object that `python -m rehearsal --json` prints."""
        return {
            "stack": self.stack,
            "errors": [problem.to_json() for problem in self.errors],
            "warnings": [problem.to_json() for problem in self.warnings],
            "resources": [resource.to_json() for resource in self.resources],
            "outputs": dict(self.outputs),
            "findings": [dict(finding) for finding in self.findings],
            "price": dict(self.price),
            "ready": dict(self.ready),
        }

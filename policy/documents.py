"""Reading IAM policy documents: JSON texts, or mappings where a program writes them so.

The grammar: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_grammar.html
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from fabric.rows import Row, inputs, mapping, mappings, text, texts

_EVERY_RESOURCE = re.compile(r"\*|arn:[^:]+(:\*){4}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """One statement of a document; `position` counts from 0, actions are in lower case.

    `principals` are accounts, ARNs, services and "*" alike; `conditional` if it has a Condition.
    """

    position: int
    allows: bool
    actions: tuple[str, ...]
    other_actions: tuple[str, ...]
    resources: tuple[str, ...]
    principals: tuple[str, ...]
    conditional: bool

    def grants(self, action: str) -> bool:
        """Whether it allows this action, such as `s3:GetObject`, on some resource."""
        return self.allows and any(_matches(action.lower(), each) for each in self.actions)

    def covers(self, resource: str) -> bool:
        """Whether its resources include this ARN."""
        return any(_matches(resource, each) for each in self.resources)

    @property
    def is_on_everything(self) -> bool:
        """Whether its resources are all there are: `*`, or an ARN of nothing but wildcards."""
        return any(_EVERY_RESOURCE.fullmatch(each) for each in self.resources)

    @property
    def is_for_anyone(self) -> bool:
        """Whether it allows anybody at all, without a condition."""
        return self.allows and "*" in self.principals and not self.conditional


def statements(document: object) -> list[Statement]:
    """The statements of a document; none where it is unknown or no document."""
    parsed = _parsed(document)
    listed = parsed.get("Statement")
    every = mappings(listed) or [one for one in [mapping(listed)] if one]
    return [_statement(position, each) for position, each in enumerate(every)]


def trusted_services(role: Row) -> set[str]:
    """The services that may assume a role, such as `ec2.amazonaws.com`."""
    return {
        principal
        for statement in statements(inputs(role).get("assumeRolePolicy"))
        if statement.allows
        for principal in statement.principals
        if ".amazonaws." in principal and not principal.startswith("arn:")
    }


def _parsed(document: object) -> Mapping[str, Any]:
    if not isinstance(document, str):
        return mapping(document)
    try:
        return mapping(json.loads(document))
    except (ValueError, RecursionError):
        return {}


def _statement(position: int, written: Mapping[str, Any]) -> Statement:
    return Statement(
        position=position,
        allows=written.get("Effect") == "Allow",
        actions=tuple(each.lower() for each in _texts(written.get("Action"))),
        other_actions=tuple(each.lower() for each in _texts(written.get("NotAction"))),
        resources=tuple(_texts(written.get("Resource"))),
        principals=tuple(_principals(written.get("Principal"))),
        conditional=bool(written.get("Condition")),
    )


def _principals(written: object) -> Iterator[str]:
    yield from _texts(written)
    for each in mapping(written).values():
        yield from _texts(each)


def _texts(written: object) -> list[str]:
    return [written] if isinstance(written, str) else texts(written)


def _matches(name: str, pattern: str) -> bool:
    """IAM's wildcards are `*` and `?`; a bracket is a plain character."""
    return fnmatchcase(name, text(pattern).replace("[", "[[]"))

"""What is wrong with a configuration, in the words of the person who wrote it."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, RootModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

PROJECT = "trainyard"

Path = tuple[int | str, ...]
Written = Callable[[Path], Path]


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing that is wrong, or that deserves a warning.

    `key` is the configuration key with its path, such as `trainyard:batch.groups[0].maxNodes`.
    """

    key: str
    value: object
    reason: str
    fix: str

    def __str__(self) -> str:
        shown = "" if self.value is None else f"{self.value!r} "
        return f"{self.key}: {shown}{self.reason}; {self.fix}"


class SettingsError(ValueError):
    """The configuration cannot be used; `problems` holds every reason, in the file's order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def refusal(reason: str, fix: str) -> PydanticCustomError:
    """The error that a validator of a settings model raises: `reason` follows the value."""
    # the texts go in as values, since pydantic reads braces in the message itself as a template
    return PydanticCustomError("refused", "{reason}", {"reason": reason, "fix": fix})


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like this one, if any is like it."""
    folded = {each.casefold(): each for each in known}
    close = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.5)
    return folded[close[0]] if close else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What pydantic found at a location of a section's value.

    `smallest_part` is the least that has to be taken out to read the rest; None: the section.
    """

    problem: Problem
    kind: str
    location: Path
    smallest_part: Path | None


def faults_of(
    error: ValidationError, *, section: str, model: type[BaseModel], value: object, written: Written
) -> list[Fault]:
    """Every fault of a section's `value`; `written` tells where its author wrote what is there."""
    every = error.errors(include_url=False)
    return [
        Fault(
            problem=_problem(details, section, model, value=value, written=written),
            kind=details["type"],
            location=details["loc"],
            smallest_part=_smallest_part(details, model),
        )
        for details in every
        if not _follows_from_entries(details, every)
    ]


def _follows_from_entries(details: ErrorDetails, every: list[ErrorDetails]) -> bool:
    """Whether a list is too short only because pydantic counts no entry that has faults."""
    depth = len(details["loc"])
    return details["type"] == "too_short" and any(
        other["loc"][:depth] == details["loc"] for other in every if other is not details
    )


def _smallest_part(details: ErrorDetails, model: type[BaseModel]) -> Path | None:
    location = details["loc"]
    in_free_map = len(location) > 1 and _model_at(model, location[:-1]) is None
    if details["type"] == "extra_forbidden" or (in_free_map and "[key]" not in location):
        return location
    entries = [depth for depth, part in enumerate(location, start=1) if isinstance(part, int)]
    if entries:
        return location[: entries[-1]]
    if issubclass(model, RootModel) or details["type"] != "missing":
        return location[:1] or None
    return None


def key_of(section: str, location: Iterable[int | str]) -> str:
    """The configuration key of a location inside a section: `trainyard:batch.groups[0].name`."""
    key = f"{PROJECT}:{section}"
    for part in location:
        key += f"[{part}]" if isinstance(part, int) else f".{part}"
    return key


# pydantic's error types, in the words of the page https://docs.pydantic.dev/latest/errors/validation_errors/
_REASONS: Mapping[str, tuple[str, str]] = {
    "missing": ("is required", "add it"),
    "string_type": ("is not a text", "write a text, in quotation marks if it looks like a number"),
    "int_type": ("is not a whole number", "write a whole number, without quotation marks"),
    "int_from_float": ("is not a whole number", "write a whole number"),
    "bool_type": ("is neither true nor false", "write true or false"),
    "tuple_type": ("is not a list", "write a list"),
    "dict_type": ("is not a map", "write a map of keys and values"),
    "model_type": ("is not a map", "write a map of keys and values"),
    "greater_than_equal": ("is less than {ge}", "write {ge} or more"),
    "less_than_equal": ("is more than {le}", "write {le} or less"),
    "literal_error": ("is not one of {expected}", "write one of {expected}"),
    "string_pattern_mismatch": ("does not have the form {pattern}", "write it in that form"),
    "too_short": ("has fewer than {min_length} entries", "give at least {min_length}"),
    "too_long": ("has more than {max_length} entries", "give at most {max_length}"),
    "string_too_short": ("is empty", "write a text, or remove the key"),
    "string_too_long": ("is longer than {max_length} characters", "shorten it"),
    "timezone_aware": ("has no time zone", "add Z for UTC, as in 2026-12-31T00:00:00Z"),
}


def _problem(
    details: ErrorDetails,
    section: str,
    model: type[BaseModel],
    *,
    value: object,
    written: Written,
) -> Problem:
    location, context = details["loc"], details.get("ctx", {})
    if details["type"] == "refused":
        reason, fix = context["reason"], context["fix"]
    elif details["type"] == "extra_forbidden":
        reason, fix = _unknown_key(model, location)
    else:
        reason, fix = _REASONS.get(details["type"], (details["msg"], "see docs/settings.md"))
        reason, fix = reason.format(**context), fix.format(**context)
    if details["type"] == "missing":
        return Problem(key=key_of(section, written(location)), value=None, reason=reason, fix=fix)
    shown = None if isinstance(details["input"], dict | list | tuple) else details["input"]
    key = key_of(section, written(_as_written(value, location)))
    return Problem(key=key, value=shown, reason=reason, fix=fix)


def _as_written(written: Any, location: Path) -> Path:
    """The location as far as the author wrote it: a text may stand for a map with one key."""
    for depth, part in enumerate(location):
        try:
            written = written[part]
        except (LookupError, TypeError):
            return location[:depth]
    return location


def _unknown_key(model: type[BaseModel], location: Path) -> tuple[str, str]:
    around = _model_at(model, location[:-1])
    known = [field.alias or name for name, field in around.model_fields.items()] if around else []
    close = nearest(str(location[-1]), known)
    reason = "is not a key of this section"
    return reason, f"write {close}" if close else f"use one of {', '.join(sorted(known))}"


def _model_at(model: type[BaseModel], location: Path) -> type[BaseModel] | None:
    """The model of the map at a location, or None where a map has keys of its author's own."""
    here: type[BaseModel] | None = model
    for part in location:
        if here is None or isinstance(part, int):
            continue
        if issubclass(here, RootModel):
            here = _model_in(here.model_fields["root"].annotation)
            continue
        fields = {field.alias or name: field for name, field in here.model_fields.items()}
        here = _model_in(fields[part].annotation) if part in fields else None
    return here


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _model_in(annotation: Any) -> Any:
    """The model that an annotation such as `tuple[Group, ...] | None` speaks of."""
    if _is_model(annotation):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _model_in(argument)
        if found is not None:
            return found
    return None

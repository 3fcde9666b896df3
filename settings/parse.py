"""Reads one section, and goes on reading where something in it is wrong."""

import json
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from settings.errors import Fault, Path, Problem, faults_of

Model = TypeVar("Model", bound=BaseModel)


def parse(section: str, model: type[Model], value: object) -> tuple[Model | None, list[Problem]]:
    """Read a section; None where too much of it is wrong to go on, and every problem with it.

    What is wrong is taken out and the rest is read again, since pydantic looks at rules between
    fields only where each field is right, and the rules between sections need something to judge.
    """
    rest = _Rest(value)
    found: dict[Problem, None] = {}
    while rest.value is not None:
        try:
            # JSON is where pydantic's strict mode takes lists for tuples and texts for dates
            return model.model_validate_json(json.dumps(rest.value)), list(found)
        except ValidationError as error:
            for fault in faults_of(
                error, section=section, model=model, value=rest.value, written=rest.written
            ):
                if not rest.explains(fault):
                    found[fault.problem] = None
                rest.note(fault)
            rest.remove_noted()
    return None, list(found)


class _Rest:
    """What is left of a section's value, which remembers where each entry stood at first."""

    def __init__(self, value: object) -> None:
        self.value: Any = json.loads(json.dumps(value, default=str))
        self._to_remove: list[Path | None] = []
        self._removed: set[Path] = set()
        self._positions: dict[Path, list[int]] = {}

    def written(self, location: Path) -> Path:
        """Where the author wrote what stands at a location now."""
        path: Path = ()
        for part in location:
            if isinstance(part, int) and path in self._positions:
                part = self._positions[path][part]
            path = (*path, part)
        return path

    def explains(self, fault: Fault) -> bool:
        """Whether a fault is there only because of what was taken out, and told before."""
        path = self.written(fault.location)
        if fault.kind == "missing":
            return path in self._removed
        if fault.kind == "too_short":
            return path in self._positions
        return fault.kind == "refused" and any(each[:-1] == path for each in self._removed)

    def note(self, fault: Fault) -> None:
        """Note what a fault makes it necessary to take out."""
        part = fault.smallest_part
        self._to_remove.append(part)
        if part and isinstance(part[-1], str) and fault.kind != "extra_forbidden":
            self._removed.add(self.written(part))

    def remove_noted(self) -> None:
        """Take out everything that was noted, the deepest and the last first."""
        noted, self._to_remove = self._to_remove, []
        if None in noted:
            self.value = None
            return
        paths = {path for path in noted if path}
        for path in sorted(paths, key=lambda path: [str(part).zfill(6) for part in path])[::-1]:
            self._remove(path)

    def _remove(self, location: Path) -> None:
        *way, last = location
        holder = self.value
        for part in way:
            holder = holder[part]
        if isinstance(last, int):
            place = self.written(tuple(way))
            count = len(cast("list[Any]", holder))
            self._positions.setdefault(place, list(range(count))).pop(last)
        del holder[last]

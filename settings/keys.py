"""Where an entry stands in the configuration that its author wrote."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from settings.batch import BatchGroupSettings, JobSettings
from settings.errors import PROJECT


class Keys:
    """Finds the configuration key of an entry by its name, even where others were unreadable."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._groups: dict[str, str] = {}
        self._jobs: dict[tuple[str, str], str] = {}
        batch = values.get("batch")
        self.sections = frozenset(values)
        self.placement_names = frozenset(_map(values.get("placement")))
        for index, group in _entries(batch, "groups"):
            group_key = f"{PROJECT}:batch.groups[{index}]"
            name = str(group.get("name"))
            self._groups.setdefault(name, group_key)
            for job_index, job in _entries(group, "jobs"):
                self._jobs[name, str(job.get("name"))] = f"{group_key}.jobs[{job_index}]"

    def group(self, group: BatchGroupSettings, *path: str) -> str:
        """The key of a Batch group, or of an entry in it."""
        return ".".join((self._groups[group.name], *path))

    def job(self, group: BatchGroupSettings, job: JobSettings, *path: str) -> str:
        """The key of a job, or of an entry in it; `jobs` of its group for one made by default."""
        key = self._jobs.get((group.name, job.name))
        return ".".join((key, *path)) if key else self.group(group, "jobs")


def _entries(value: object, key: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    entries = _map(value).get(key)
    if isinstance(entries, list):
        for index, entry in enumerate(cast("list[object]", entries)):
            yield index, _map(entry)


def _map(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

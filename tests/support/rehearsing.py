"""Rehearsals as tests ask for them: of an example, or of a configuration in the test itself."""

import contextlib
import json
import os
import tempfile
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from pulumi.runtime.proto import resource_pb2

from rehearsal.model import Resource
from rehearsal.monitor import RecordingMonitor
from rehearsal.report import short_type
from rehearsal.run import REPOSITORY, rehearse

STACKS = ("dev", *sorted(f"examples/{path.name}" for path in REPOSITORY.glob("examples/*.yaml")))
NOW = "1795219200"  # 2026-11-21T00:00:00Z, a day on which no example has expired


@contextlib.contextmanager
def fixed_clock() -> Generator[None]:
    """Let every program that is rehearsed think that it is NOW."""
    with mock.patch.dict(os.environ, SOURCE_DATE_EPOCH=NOW):
        yield


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What a row of a rehearsal leaves out of a registration.

    `made_up` are the id and the outputs that the pretend AWS answered with.
    """

    ignore_changes: tuple[str, ...]
    replace_on_changes: tuple[str, ...]
    delete_before_replace: bool
    made_up: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rehearsed:
    """A rehearsal that went well; resource types are written short, such as `ec2.Vpc`."""

    resources: tuple[Resource, ...]
    outputs: Mapping[str, Any]
    options: Mapping[str, Options]

    def all(self, short: str) -> list[Resource]:
        """Every resource of a type."""
        return [each for each in self.resources if short_type(each.type) == short]

    def one(self, short: str, name: str | None = None) -> Resource:
        """The only resource of a type, or the one of this name among them."""
        (found,) = [each for each in self.all(short) if name in (None, each.name)]
        return found

    def id_of(self, resource: Resource) -> str:
        """The id that the pretend AWS gave the resource."""
        return self.options[resource.urn].made_up["id"]

    def arn_of(self, resource: Resource) -> str:
        """The ARN that the pretend AWS gave the resource."""
        return self.options[resource.urn].made_up["arn"]


class _ListeningMonitor(RecordingMonitor):
    """Keeps the options and the answer of each registration, too."""

    heard: dict[str, Options]

    def RegisterResource(  # noqa: N802 - the service's name
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        response = super().RegisterResource(request)
        self.heard[response.urn] = Options(
            ignore_changes=tuple(request.ignoreChanges),
            replace_on_changes=tuple(request.replaceOnChanges),
            delete_before_replace=request.deleteBeforeReplace,
            made_up={**dict(response.object.items()), "id": response.id},
        )
        return response


@cache
def rehearsed_stack(stack_or_file: str) -> Rehearsed:
    """The rehearsal of `dev` or of an example, which must have no error."""
    heard: dict[str, Options] = {}
    monitor = type("Monitor", (_ListeningMonitor,), {"heard": heard})
    with mock.patch("rehearsal.monitor.RecordingMonitor", monitor), fixed_clock():
        rehearsal = rehearse(stack_or_file)
    assert not rehearsal.errors, "\n".join(map(str, rehearsal.errors))
    return Rehearsed(resources=rehearsal.resources, outputs=rehearsal.outputs, options=heard)


def rehearsed(**sections: Any) -> Rehearsed:
    """The rehearsal of a stack in us-west-2 with these sections, such as `network={...}`."""
    keys = {f"trainyard:{name}": section for name, section in sections.items()}
    return _rehearsed_text(json.dumps({"config": {"aws:region": "us-west-2", **keys}}))


@cache
def _rehearsed_text(stack_file: str) -> Rehearsed:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "Pulumi.test.yaml")
        path.write_text(stack_file)
        return rehearsed_stack(str(path))

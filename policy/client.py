"""A policy pack in a process of its own, talked to as Pulumi's engine does.

The order of the calls is the engine's:
https://github.com/pulumi/pulumi/blob/master/pkg/resource/plugin/analyzer_plugin.go
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from fabric.rows import Row, mapping, text, texts
from policy.configuration import Configuration, read_configuration
from policy.report import PackRule, Violation
from policy.sdk_policies import DECIDES_IN_PREVIEW

LARGEST_MESSAGE = 400 * 1024 * 1024  # bytes, as the engine allows


class PackDidNotStart(RuntimeError):
    """The process of a pack ended before it said its port."""


class Pack:
    """A running policy pack; a context manager that ends its process.

    Raises PackDidNotStart on entry where the directory holds no pack that runs.
    """

    def __init__(self, directory: Path, *, environment: Mapping[str, str] | None = None) -> None:
        self._directory = directory.resolve()
        self._environment = os.environ if environment is None else environment

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:1", str(self._directory)],
            cwd=self._directory,
            env=dict(self._environment),
            stdout=subprocess.PIPE,
            text=True,
        )
        said = self._process.stdout
        port = said.readline().strip() if said else ""
        if not port.isdigit():
            self._process.communicate()
            raise PackDidNotStart(f"the pack in {self._directory} did not start")
        self._channel = grpc.insecure_channel(
            f"127.0.0.1:{port}", options=[("grpc.max_send_message_length", LARGEST_MESSAGE)]
        )
        self._stub: Any = analyzer_pb2_grpc.AnalyzerStub(self._channel)
        self._shake_hands()
        self._info: analyzer_pb2.AnalyzerInfo = self._stub.GetAnalyzerInfo(empty_pb2.Empty())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()
        self._process.kill()
        self._process.communicate()

    def configuration(self, json_text: str = "") -> Configuration:
        """The levels and options of all rules; raises `configuration.ConfigurationError`."""
        return read_configuration(json_text, self._info.policies)

    def rules(self, configuration: Configuration) -> list[PackRule]:
        """What the pack says of its rules, with their configured levels."""
        return [
            PackRule(
                id=rule.name,
                level=_level(configuration[rule.name].enforcementLevel),
                sentence=rule.description,
                fix=rule.remediation_steps,
                url=rule.url,
                decides_in_preview=DECIDES_IN_PREVIEW in rule.tags,
            )
            for rule in self._info.policies
        ]

    def judge(
        self, rows: Sequence[Row], configuration: Configuration, *, stack: str = "dev"
    ) -> list[Violation]:
        """What the pack says of a program's rows.

        One call at a time: a pack knows one stack. A row may have `outputs`, which the rules about
        the whole program see in place of `inputs`, as they do after an update.
        """
        self._stub.ConfigureStack(
            analyzer_pb2.AnalyzerStackConfigureRequest(
                stack=stack, project="trainyard", organization="organization", dry_run=True
            )
        )
        self._stub.Configure(analyzer_pb2.ConfigureAnalyzerRequest(policyConfig=configuration))
        return [*self._resources(rows), *self._stack(rows)]

    def _shake_hands(self) -> None:
        try:
            self._stub.Handshake(
                analyzer_pb2.AnalyzerHandshakeRequest(
                    engine_address="127.0.0.1:1",
                    root_directory=str(self._directory),
                    program_directory=str(self._directory),
                )
            )
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNIMPLEMENTED:  # as Python's packs answer
                raise

    def _resources(self, rows: Iterable[Row]) -> Iterator[Violation]:
        for row in rows:
            request = resource_request(row)
            self._stub.Remediate(request)
            yield from map(_violation(request.urn), self._stub.Analyze(request).diagnostics)

    def _stack(self, rows: Iterable[Row]) -> Iterator[Violation]:
        yield from map(_violation(""), self._stub.AnalyzeStack(stack_request(rows)).diagnostics)


def resource_request(row: Row) -> analyzer_pb2.AnalyzeRequest:
    """A resource with its inputs, as the engine sends it before it is created."""
    request = analyzer_pb2.AnalyzeRequest(
        urn=text(row.get("urn")),
        type=text(row.get("type")),
        name=text(row.get("name")),
        options=_options(row),
    )
    request.properties.update(mapping(row.get("inputs")))
    return request


def stack_request(rows: Iterable[Row]) -> analyzer_pb2.AnalyzeStackRequest:
    """All resources with their outputs, where they have any, as the engine sends them last."""
    request = analyzer_pb2.AnalyzeStackRequest()
    for row in rows:
        resource = request.resources.add(
            urn=text(row.get("urn")),
            type=text(row.get("type")),
            name=text(row.get("name")),
            parent=text(row.get("parent")),
            dependencies=texts(row.get("dependencies")),
            options=_options(row),
        )
        resource.properties.update(mapping(row.get("outputs")) or mapping(row.get("inputs")))
        for key, urns in mapping(row.get("propertyDependencies")).items():
            if linked := texts(urns):  # the engine leaves the others out
                resource.propertyDependencies[key].urns.extend(linked)
    return request


def _options(row: Row) -> analyzer_pb2.AnalyzerResourceOptions:
    return analyzer_pb2.AnalyzerResourceOptions(
        protect=row.get("protect") is True, parent=text(row.get("parent"))
    )


def _violation(urn: str) -> Any:
    def of(diagnostic: analyzer_pb2.AnalyzeDiagnostic) -> Violation:
        return Violation(
            rule=diagnostic.policyName,
            level=_level(diagnostic.enforcementLevel),
            urn=diagnostic.urn or urn,
            line=diagnostic.message.removeprefix(f"{diagnostic.description}\n"),
        )

    return of


def _level(number: analyzer_pb2.EnforcementLevel.ValueType) -> str:
    return analyzer_pb2.EnforcementLevel.Name(number).lower()

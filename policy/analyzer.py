"""The pack as a server of Pulumi's Analyzer protocol, faster than the SDK's own.

The SDK's server reads a resource anew for each policy and asks every policy about every resource.
This one reads it once and asks only the rules that name its type; levels, options and metadata
stay the SDK's. Protocol:
https://github.com/pulumi/pulumi/blob/master/proto/pulumi/analyzer.proto
"""

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc
from pulumi_policy import EnforcementLevel, Policy
from pulumi_policy.policy import _PolicyAnalyzerServicer  # pyright: ignore[reportPrivateUsage]

from fabric.rows import Row, name
from policy.judge import findings, rules_by_type
from policy.program import Program
from policy.rule import Rule
from policy.sdk_policies import configured_options, rows_to_judge, sdk_policy, violation_line
from policy.wire import Secrets, received_row

PACK_NAME = "trainyard"
SDK_VERSION = "0.0.1"  # as the SDK says; the one that counts is in PulumiPolicy.yaml
LARGEST_MESSAGE = 400 * 1024 * 1024  # bytes, as the SDK allows: a stack comes as one message


class Analyzer(_PolicyAnalyzerServicer):
    """The rules as a service; answers exactly as a stock `PolicyPack` of `sdk_policy`s does.

    With two exceptions. A value that came as a secret is never shown. And a rule that raises does
    not end the deployment, which a mistake of ours should not: it is reported as advisory.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._policy_of: Mapping[str, Policy] = {rule.id: sdk_policy(rule) for rule in rules}
        self._about_resources = [rule for rule in rules if not rule.whole_program]
        self._about_programs = [rule for rule in rules if rule.whole_program]
        self._by_type = rules_by_type(self._about_resources)
        super().__init__(
            PACK_NAME, SDK_VERSION, list(self._policy_of.values()), EnforcementLevel.ADVISORY
        )

    def Analyze(  # noqa: N802 - the service's name
        self, request: analyzer_pb2.AnalyzeRequest, _context: object
    ) -> analyzer_pb2.AnalyzeResponse:
        """Judge one resource by its inputs, before it is created."""
        response = analyzer_pb2.AnalyzeResponse()
        if rules := self._enabled(self._by_type.get(request.type, ())):
            secrets = Secrets()
            row = received_row(request, secrets)
            for rule in rules:
                self._judge(rule, [row], Program(), secrets={request.urn: secrets}, to=response)
        return response

    def AnalyzeStack(  # noqa: N802 - the service's name
        self, request: analyzer_pb2.AnalyzeStackRequest, _context: object
    ) -> analyzer_pb2.AnalyzeResponse:
        """Judge all resources together: planned inputs in a preview, outputs after an update."""
        response = analyzer_pb2.AnalyzeResponse()
        if rules := self._enabled(self._about_programs):
            secrets = {sent.urn: Secrets() for sent in request.resources}
            program = Program(
                received_row(
                    sent,
                    secrets[sent.urn],
                    dependencies=sent.dependencies,
                    property_dependencies={
                        key: linked.urns for key, linked in sent.propertyDependencies.items()
                    },
                )
                for sent in request.resources
            )
            for rule in rules:
                self._judge(
                    rule, rows_to_judge(rule, program), program, secrets=secrets, to=response
                )
        return response

    def Remediate(  # noqa: N802 - the service's name
        self, request: analyzer_pb2.AnalyzeRequest, _context: object
    ) -> analyzer_pb2.RemediateResponse:
        """Change nothing: no rule knows better than the program what was meant."""
        del request
        response = analyzer_pb2.RemediateResponse()
        for rule in self._about_resources:
            if self._level(rule) == EnforcementLevel.REMEDIATE:
                response.not_applicable.add(
                    policy_name=rule.id, reason="Policy does not implement remediate"
                )
        return response

    def _level(self, rule: Rule) -> EnforcementLevel:
        return self._get_enforcement_level(self._policy_of[rule.id])

    def _enabled(self, rules: Iterable[Rule]) -> list[Rule]:
        return [rule for rule in rules if self._level(rule) != EnforcementLevel.DISABLED]

    def _judge(
        self,
        rule: Rule,
        rows: Iterable[Row],
        program: Program,
        *,
        secrets: Mapping[str, Secrets],
        to: analyzer_pb2.AnalyzeResponse,
    ) -> None:
        policy, level = self._policy_of[rule.id], self._level(rule)
        if level == EnforcementLevel.REMEDIATE:
            level = EnforcementLevel.MANDATORY  # nothing was remedied

        def say(line: str, urn: str, level: EnforcementLevel) -> None:
            for each in secrets.values():
                line = each.blotted(line)
            report: Any = self._create_report_violation(
                to, policy.name, policy.description, level, policy.severity
            )
            report(line, urn if rule.whole_program else None)

        options = configured_options(rule, self._get_policy_config(rule.id))
        for row in rows:
            try:
                for finding in findings(rule, row, program, options):
                    shown = secrets[row["urn"]].hidden(finding, instead=rule.sentence)
                    say(violation_line(rule, row, shown), row["urn"], level)
            except Exception as error:
                line = f"{name(row)}: {rule.id} could not judge it ({_place(error)}): report this"
                say(line, row["urn"], EnforcementLevel.ADVISORY)


def _place(error: Exception) -> str:
    """The kind of error and the lines it came through; not its text, which may hold a secret."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    lines = " > ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    return f"{type(error).__name__} at {lines}"


def serve(rules: Sequence[Rule]) -> None:
    """Print the port, as the engine expects, and answer for as long as the engine lives."""
    engine = os.getppid()
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=4),
        options=[("grpc.max_receive_message_length", LARGEST_MESSAGE)],
    )
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Analyzer(rules), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        while os.getppid() == engine:  # a killed engine would leave the pack behind for ever
            time.sleep(1)
    server.stop(0)

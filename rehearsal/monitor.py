"""The two services that a Pulumi program speaks to, played in this process.

The SDK's own `MockMonitor` turns requests back into SDK objects on a worker thread, which races
with the event loop as soon as an input is a resource (pulumi/pulumi pull request 6479). This one
reads the protobuf message itself and never touches an event loop.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.mocks import MockMonitor, Mocks
from pulumi.runtime.proto import engine_pb2, resource_pb2

from rehearsal.model import Json, Problem, Resource
from rehearsal.pretend_aws import PretendAws, UnknownLookUpError

SECRET = "[secret]"  # noqa: S105 - what is shown in place of one
STACK = "pulumi:pulumi:Stack"

# A value of a kind that JSON does not have is a struct with this key,
# https://github.com/pulumi/pulumi/blob/master/sdk/go/common/resource/sig/sig.go
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_ASSET = "c44067f5952c0a294b673a41bacd8c17"
_ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a tag, not a secret
_REFERENCE = "5cf8f73096256a8f31e491e813e4eb8e"


class RefusedError(Exception):
    """The engine would not accept a request; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


class NoMocks(Mocks):
    """What `MockMonitor` asks for and this monitor, which answers itself, never calls."""

    def call(self, args: Any) -> NoReturn:
        """Never called."""
        raise NotImplementedError(args)

    def new_resource(self, args: Any) -> NoReturn:
        """Never called."""
        raise NotImplementedError(args)


class RecordingMonitor(MockMonitor):
    """Answers as an engine with a pretend AWS behind it, and keeps every registration.

    Attributes:
        rows: What was registered or read, by URN.
        outputs: The stack's outputs, once the program has ended.
        problems: Every request that was refused.
    """

    def __init__(self, *, stack: str, project: str, aws: PretendAws) -> None:
        super().__init__(NoMocks())
        self._prefix = f"urn:pulumi:{stack}::{project}::"
        self._aws = aws
        self._stack_urn = ""
        self._ids: dict[str, str] = {}
        self._provider_regions: dict[str, str] = {}
        self.rows: dict[str, Resource] = {}
        self.outputs: Mapping[str, Json] = {}
        self.problems: list[Problem] = []

    def RegisterResource(  # noqa: N802 - the service's name
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        """Record a new resource; answer with its URN, id and outputs."""
        urn = self._urn_of(request)
        if request.type == STACK:
            self._stack_urn = urn
            return resource_pb2.RegisterResourceResponse(urn=urn)
        inputs = plain_fields(request.object)
        edges = sorted(request.propertyDependencies.items())
        self._record(
            request,
            urn,
            inputs,
            edges=[(key, tuple(sorted(value.urns))) for key, value in edges if value.urns],
            protect=request.protect,
            retain=request.retainOnDelete,
        )
        response = resource_pb2.RegisterResourceResponse(urn=urn)
        if request.custom:
            response.id, outputs = self._aws.create(
                type_=request.type,
                name=request.name,
                inputs=inputs,
                region=self._region_of(request.provider),
            )
            if request.importId:
                response.id = request.importId
            response.object.update(outputs)
            self._ids[urn] = response.id
            if isinstance(inputs.get("region"), str):
                self._provider_regions[urn] = inputs["region"]
        return response

    def ReadResource(  # noqa: N802 - the service's name
        self, request: resource_pb2.ReadResourceRequest
    ) -> resource_pb2.ReadResourceResponse:
        """Record something that exists already; answer with its outputs."""
        urn = self._urn_of(request)
        state = plain_fields(request.properties)
        self._record(request, urn, state, external=True)
        self._ids[urn] = request.id
        response = resource_pb2.ReadResourceResponse(urn=urn, id=request.id)
        response.properties.update(
            self._aws.read(
                type_=request.type,
                name=request.name,
                id_=request.id,
                state=state,
                region=self._region_of(request.provider),
            )
        )
        return response

    def Invoke(  # noqa: N802 - the service's name
        self, request: resource_pb2.ResourceInvokeRequest
    ) -> resource_pb2.ResourceInvokeResponse:
        """Answer a look-up."""
        arguments = plain_fields(request.args)
        try:
            region = self._region_of(request.provider)
            answer = self._aws.look_up(request.tok, arguments, region=region)
        except UnknownLookUpError:
            self._refuse(
                key="program",
                value=request.tok,
                reason="is a look-up that the pretend AWS has no answer to",
                fix="teach it one in rehearsal/pretend_aws.py",
            )
        message = struct_pb2.Struct()
        message.update(answer)
        fields: dict[str, Any] = {"return": message}  # a keyword of Python, so not an argument
        return resource_pb2.ResourceInvokeResponse(**fields)

    def RegisterResourceOutputs(  # noqa: N802 - the service's name
        self, request: resource_pb2.RegisterResourceOutputsRequest
    ) -> empty_pb2.Empty:
        """Keep the stack's outputs; those of components are in their resources."""
        if request.urn == self._stack_urn:
            self.outputs = plain_fields(request.outputs)
        return empty_pb2.Empty()

    def RegisterStackTransform(self, request: Any) -> NoReturn:  # noqa: ARG002, N802
        """Refuse: inputs that a transform would still change must not be shown as final."""
        self._refuse(
            key="program",
            value=None,
            reason="registers a transform, which only an engine can run",
            fix="set the inputs where the resources are made",
        )

    def _urn_of(self, request: Any) -> str:
        parents = ""
        if request.parent and request.parent != self._stack_urn:
            if request.parent not in self.rows:
                self._refuse(
                    key="program",
                    value=request.parent,
                    reason=f"is the parent of {request.name} and is not registered",
                    fix="make the parent first, in this program",
                )
            parents = request.parent.split("::")[2] + "$"
        return f"{self._prefix}{parents}{request.type}::{request.name}"

    def _record(
        self,
        request: Any,
        urn: str,
        inputs: Mapping[str, Json],
        *,
        edges: Iterable[tuple[str, tuple[str, ...]]] = (),
        protect: bool = False,
        retain: bool = False,
        external: bool = False,
    ) -> None:
        if urn in self.rows:
            self._refuse(
                key="program",
                value=urn,
                reason="is a duplicate resource URN",
                fix=f"give one of the two resources called {request.name} another name",
            )
        self.rows[urn] = Resource(
            urn=urn,
            type=request.type,
            name=request.name,
            parent=request.parent if request.parent in self.rows else None,
            inputs=inputs,
            dependencies=tuple(sorted(request.dependencies)),
            property_dependencies=dict(edges),
            protect=protect,
            retain_on_delete=retain,
            external=external,
        )

    def _region_of(self, provider: str) -> str | None:
        """The region of a provider reference, which is its URN, two colons, and its id."""
        return self._provider_regions.get(provider.rpartition("::")[0])

    def _refuse(self, *, key: str, value: Json, reason: str, fix: str) -> NoReturn:
        problem = Problem(key=key, value=value, reason=reason, fix=fix)
        self.problems.append(problem)
        raise RefusedError(problem)


class RecordingEngine:
    """Keeps what the program logs, as `pulumi.log` sends it."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.errors: list[str] = []

    def Log(self, request: engine_pb2.LogRequest) -> None:  # noqa: N802 - the service's name
        """Keep warnings and errors once each; information goes to stderr, debugging nowhere."""
        kept = {engine_pb2.WARNING: self.warnings, engine_pb2.ERROR: self.errors}
        if request.severity == engine_pb2.INFO:
            print(request.message, file=sys.stderr)
        elif request.message not in kept.get(request.severity, [request.message]):
            kept[request.severity].append(request.message)

    def RequirePulumiVersion(self, request: Any) -> None:  # noqa: N802
        """Any version will do."""


def plain_fields(message: struct_pb2.Struct) -> dict[str, Json]:
    """A protobuf struct as plain JSON: whole numbers as ints, secrets hidden, resources as ids."""
    return {key: _plain(value) for key, value in sorted(message.fields.items())}


def _plain(value: struct_pb2.Value) -> Json:
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() else number
        case "bool_value":
            return value.bool_value
        case "list_value":
            return [_plain(each) for each in value.list_value.values]
        case "struct_value":
            fields = plain_fields(value.struct_value)
            return _unwrapped(fields) if _SIGNATURE in fields else fields
        case _:
            return None


def _unwrapped(fields: dict[str, Json]) -> Json:
    kind = fields.pop(_SIGNATURE)
    if kind == _SECRET:
        return SECRET
    if kind == _REFERENCE:
        return fields.get("id") or fields["urn"]
    if kind in (_ASSET, _ARCHIVE):
        return {"asset" if kind == _ASSET else "archive": fields}
    raise ValueError(f"a value of the unknown kind {kind}")

"""Resources that the CLI wrote down: `pulumi stack export` and `pulumi preview --json`."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from fabric.rows import Row, mapping, mappings, text
from policy.wire import SECRET, SIGNATURE

# https://github.com/pulumi/pulumi/blob/master/sdk/go/common/resource/plugin/rpc.go
_UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


class NoState(ValueError):
    """A file holds neither a stack's state nor a preview."""


def rows_of_state(json_text: str) -> list[Row]:
    """The rows of an exported state or of a preview, each with `outputs` beside its `inputs`.

    A preview must have been made with `--show-sames`, for it else leaves out what does not change.
    A secret that the file has encrypted is unknown. The form of both files:
    https://github.com/pulumi/pulumi/blob/master/sdk/go/common/apitype/core.go

    Raises:
        NoState: The text is neither.
    """
    try:
        read = json.loads(json_text)
    except ValueError as error:
        raise NoState(f"it is no JSON: {error}") from None
    file = mapping(read)
    if "deployment" in file:
        states = mappings(mapping(file["deployment"]).get("resources"))
    elif "steps" in file:
        states = [mapping(step.get("newState")) for step in mappings(file["steps"])]
    else:
        raise NoState("it is neither of `pulumi stack export` nor of `pulumi preview --json`")
    rows = [_row(state) for state in states if state.get("urn") and not state.get("delete")]
    return list({row["urn"]: row for row in rows}.values())  # a replacement takes several steps


def _row(state: Mapping[str, Any]) -> Row:
    urn = text(state.get("urn"))
    return {
        "urn": urn,
        "type": text(state.get("type")),
        "name": urn.split("::", 3)[-1],
        "parent": text(state.get("parent")) or None,
        "inputs": _readable(mapping(state.get("inputs"))),
        "outputs": _readable(mapping(state.get("outputs"))),
        "dependencies": state.get("dependencies"),
        "propertyDependencies": state.get("propertyDependencies"),
        "protect": state.get("protect") is True,
        "retainOnDelete": state.get("retainOnDelete") is True,
    }


def _readable(value: Any) -> Any:
    """The value with secrets in the form in which an engine, which decrypts them, sends them."""
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value)
        if entries.get(SIGNATURE) == SECRET:
            plain = entries.get("plaintext")
            return {
                SIGNATURE: SECRET,
                "value": json.loads(plain) if isinstance(plain, str) else _UNKNOWN_TEXT,
            }
        return {key: _readable(each) for key, each in entries.items()}
    if isinstance(value, list):
        return [_readable(each) for each in cast("Iterable[Any]", value)]
    return value

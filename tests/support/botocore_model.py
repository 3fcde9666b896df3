"""Checks values against the request shapes of AWS's own service models, which botocore carries."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

import botocore.session
from botocore import validate

# botocore comes without types
SESSION: Any = cast("Any", botocore.session).get_session()
VALIDATOR: Any = validate.ParamValidator()


def wrong_in_request(service: str, shape: str, value: Mapping[str, Any]) -> list[str]:
    """Say what AWS would refuse of `value` as the shape, such as `RegisterJobDefinitionRequest`.

    Beside keys, types and what is compulsory: enumerations, patterns and ranges, which botocore
    leaves to the service.
    """
    wanted = _model(service).shape_for(shape)
    report: str = VALIDATOR.validate(value, wanted).generate_report()
    return [*report.splitlines(), *([] if report else _outside_limits(value, wanted, ""))]


@cache
def _model(service: str) -> Any:
    return SESSION.get_service_model(service)


def _outside_limits(value: Any, shape: Any, path: str) -> Iterator[str]:
    match shape.type_name:
        case "structure":
            for name, member in value.items():
                yield from _outside_limits(member, shape.members[name], f"{path}.{name}")
        case "map":
            for name, member in value.items():
                yield from _outside_limits(member, shape.value, f"{path}.{name}")
        case "list":
            yield from _outside_range(len(value), shape, path)
            for index, member in enumerate(value):
                yield from _outside_limits(member, shape.member, f"{path}[{index}]")
        case "string":
            yield from _outside_range(len(value), shape, path)
            if shape.enum and value not in shape.enum:
                yield f"{path}: {value} is not one of {', '.join(shape.enum)}"
            # PlacementGroupArn's pattern has a stray anchor in its middle
            pattern = shape.metadata.get("pattern", ".*").replace("/^", "/")
            if not re.search(f"^(?:{pattern})$", value, re.DOTALL):
                yield f"{path}: {value} does not match {pattern}"
        case "integer" | "long" | "float" | "double":
            yield from _outside_range(value, shape, path)
        case _:
            pass


def _outside_range(value: float, shape: Any, path: str) -> Iterator[str]:
    low, high = shape.metadata.get("min", value), shape.metadata.get("max", value)
    if not low <= value <= high:
        yield f"{path}: {value} is not between {low} and {high}"

"""Checks the inputs of a resource against the argument classes of Pulumi's AWS SDK.

Python's dictionaries take any key, and the mocks pass it on; the provider then refuses it, or
ignores it. The SDK's own classes know every key, its type and whether it may be left out.
"""

import importlib
import inspect
import json
import re
import typing
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, cast

import pulumi
import pulumi_aws
from pulumi import _types as sdk_types  # pyright: ignore[reportPrivateUsage]

SCALARS: Mapping[type, tuple[type, ...]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float: (int, float),
}


def wrong_inputs(token: str, inputs: Mapping[str, Any]) -> Iterator[str]:
    """Say what the SDK's class for the resource type `token` does not know, as `path: reason`."""
    yield from _wrong_map(arguments_class(token), dict(inputs), "")


@cache
def arguments_class(token: str) -> Any:
    """The class `VpcArgs` for `aws:ec2/vpc:Vpc`."""
    module, name = _classes()[token]
    resource = getattr(importlib.import_module(module), name)
    return getattr(importlib.import_module(resource.__module__), f"{name}Args")


@cache
def _classes() -> Mapping[str, tuple[str, str]]:
    source = Path(pulumi_aws.__file__).read_text()
    (modules,) = re.findall(r'resource_modules="""(.*?)"""', source, re.DOTALL)
    return {
        token: (module["fqn"], name)
        for module in json.loads(modules)
        for token, name in module["classes"].items()
    }


@cache
def _members(arguments: Any) -> tuple[Mapping[str, Any], frozenset[str]]:
    """The type of each input by its name in Pulumi's camelCase, and the compulsory ones."""
    camel = sdk_types.input_type_py_to_pulumi_names(arguments)
    parameters = inspect.signature(arguments.__init__).parameters.values()
    needed = {each.name for each in parameters if each.default is inspect.Parameter.empty}
    return (
        sdk_types.input_type_types(arguments),
        frozenset(camel[name] for name in needed if name in camel),
    )


def _wrong_map(arguments: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: is not a map"
        return
    given = cast("dict[str, Any]", value)
    types, needed = _members(arguments)
    for name in sorted(needed - set(given)):
        yield f"{_below(path, name)}: is missing"
    for name, member in given.items():
        if name not in types:
            yield f"{_below(path, name)}: is not an input of {arguments.__name__}"
        else:
            yield from _wrong_value(types[name], member, _below(path, name))


def _wrong_value(declared: Any, value: Any, path: str) -> Iterator[str]:
    alternatives = list(_alternatives(declared))
    complaints = [list(_wrong_plain(each, value, path)) for each in alternatives]
    if all(complaints):
        yield from min(complaints, key=len)


def _alternatives(declared: Any) -> Iterator[Any]:
    """The plain types behind `Optional[Input[Union[str, Strategy]]]` and the like."""
    if typing.get_origin(declared) not in (typing.Union, UnionType):
        if declared is not type(None) and typing.get_origin(declared) is not pulumi.Output:
            yield declared
        return
    members = typing.get_args(declared)
    # a class of arguments comes with the mapping that may stand for it, which would take any key
    mapped = any(_is_arguments(each) for each in members)
    for each in members:
        if typing.get_origin(each) is not Awaitable and not (mapped and _is_mapping(each)):
            yield from _alternatives(each)


def _wrong_plain(declared: Any, value: Any, path: str) -> Iterator[str]:
    parameters = typing.get_args(declared)
    if _is_arguments(declared):
        yield from _wrong_map(declared, value, path)
    elif typing.get_origin(declared) in (list, Sequence):
        if not isinstance(value, list):
            yield f"{path}: is not a list"
            return
        for index, member in enumerate(cast("list[Any]", value)):
            yield from _wrong_value(parameters[0], member, f"{path}[{index}]")
    elif _is_mapping(declared):
        if not isinstance(value, dict):
            yield f"{path}: is not a map"
            return
        for name, member in cast("dict[str, Any]", value).items():
            yield from _wrong_value(parameters[1], member, _below(path, name))
    elif inspect.isclass(declared) and issubclass(declared, Enum):
        if value not in [each.value for each in declared]:
            yield f"{path}: {value!r} is not a {declared.__name__}"
    elif declared in SCALARS:
        if type(value) not in SCALARS[declared]:
            yield f"{path}: {value!r} is not a {declared.__name__}"
    else:
        yield f"{path}: this checker does not know the type {declared}"


def _is_arguments(declared: Any) -> bool:
    return inspect.isclass(declared) and sdk_types.is_input_type(declared)


def _is_mapping(declared: Any) -> bool:
    return typing.get_origin(declared) in (dict, Mapping)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name

"""A plain Pulumi program under stock mocks, to compare a rehearsal with.

`python -m tests.bench.plain_program ROWS` reads the JSON of a rehearsal and creates the same
resources with the SDK's classes, inputs and parents. References between resources are not needed:
their values are in the recorded inputs, which makes this program if anything a little faster.
"""

import asyncio
import importlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws
from pulumi.runtime.mocks import MockCallArgs, MockResourceArgs, Mocks, set_mocks
from pulumi.runtime.stack import run_pulumi_func

STOCK_MODULES: list[dict[str, Any]] = json.loads(
    # the list that the SDK registers its modules from
    re.findall(r'resource_modules="""(.*?)"""', Path(pulumi_aws.__file__).read_text(), re.DOTALL)[0]
)


class StockMocks(Mocks):
    """The mocks of https://www.pulumi.com/docs/iac/guides/testing/unit/."""

    def new_resource(self, args: MockResourceArgs) -> tuple[str, dict[Any, Any]]:
        return f"{args.name}_id", vars(args)["inputs"]

    def call(self, args: MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        return vars(args)["args"], None


def create(rows: list[Mapping[str, Any]]) -> None:
    """Create every row's resource, parents first, as the rows are ordered."""
    places = {
        token: (module["fqn"], name)
        for module in STOCK_MODULES
        for token, name in module["classes"].items()
    }
    created: dict[str | None, pulumi.Resource] = {}
    for row in rows:
        options = pulumi.ResourceOptions(parent=created.get(row["parent"]), protect=row["protect"])
        place = places.get(row["type"])
        if place is None:
            created[row["urn"]] = pulumi.ComponentResource(row["type"], row["name"], None, options)
            continue
        module, name = place
        class_ = getattr(importlib.import_module(module), name)
        inputs = {_snake_case(key): value for key, value in row["inputs"].items()}
        created[row["urn"]] = class_(row["name"], **inputs, opts=options)


def _snake_case(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()


def main() -> None:
    """Run the program to its end."""
    rows = json.loads(Path(sys.argv[1]).read_text())["resources"]

    async def program() -> None:
        set_mocks(StockMocks(), preview=False)
        await run_pulumi_func(lambda: create(rows))

    asyncio.run(program())


if __name__ == "__main__":
    main()

"""A small Pulumi project in a temporary directory, for tests of the rehearsal."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import yaml

PULUMI_YAML = {"name": "toy", "runtime": "python"}


def write_project(
    directory: Path,
    program: str,
    *,
    config: Mapping[str, object] | None = None,
    schema: Mapping[str, object] | None = None,
) -> Path:
    """Write a project with one stack, `dev`, and return its directory."""
    about = {**PULUMI_YAML, "config": dict(schema)} if schema else PULUMI_YAML
    stack = {"config": {"aws:region": "us-west-2", **(config or {})}}
    (directory / "Pulumi.yaml").write_text(yaml.safe_dump(about))
    (directory / "Pulumi.dev.yaml").write_text(yaml.safe_dump(stack))
    (directory / "__main__.py").write_text(dedent(program))
    return directory

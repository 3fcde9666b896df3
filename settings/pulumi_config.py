"""What Pulumi knows of a stack before anything is checked: its configuration and the time."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pulumi.runtime import config

from settings.errors import PROJECT, Problem, SettingsError


def configured_sections() -> Mapping[str, Any]:
    """Every value of the project's own configuration, by section name, unknown ones included.

    `pulumi.Config` answers only for keys that are asked for, and a misspelt one must be found.
    Raises SettingsError for secrets.
    """
    values = {**config.get_config_env(), **config.CONFIG.get()}
    secrets = [key for key in values if config.is_config_secret(key) and key.startswith(PROJECT)]
    if secrets:
        raise SettingsError(
            Problem(
                key=key,
                value=None,
                reason="is a secret, and settings end up in job definitions and outputs",
                fix="write it without --secret, and let jobs read secrets by their ARN at run time",
            )
            for key in secrets
        )
    return {
        key.removeprefix(f"{PROJECT}:"): _decoded(value)
        for key, value in values.items()
        if key.startswith(f"{PROJECT}:")
    }


def clock() -> datetime:
    """Now, or the moment in SOURCE_DATE_EPOCH, with which a rehearsal says the same every day.

    Source: https://reproducible-builds.org/docs/source-date-epoch/
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)


def _decoded(value: Any) -> Any:
    """Pulumi hands maps and lists over as JSON texts, and everything else as plain texts."""
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value

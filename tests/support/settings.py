"""Loads settings from YAML texts, without a program and without an account."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from settings.errors import Problem, SettingsError
from settings.load import load_settings
from settings.network import ExistingNetwork, PrivateSubnet
from settings.stack import StackSettings

NOW = datetime(2026, 11, 21, tzinfo=UTC)

NETWORK = """
network: {cidr: 10.40.0.0/16, availabilityZones: [us-west-2a]}
"""
GROUP = """
batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2}]}
"""


EXISTING = """
network:
  existing: {vpcId: vpc-0123456789abcdef0, privateSubnetIds: [subnet-0123456789abcdef0]}
"""


def look_up(existing: ExistingNetwork) -> tuple[PrivateSubnet, ...]:
    """A look-up that believes the configuration; every subnet has 100 free addresses."""
    zones = existing.availability_zones or ("us-west-2a",) * len(existing.private_subnet_ids)
    return tuple(
        PrivateSubnet(availability_zone=zone, subnet_id=subnet, free_addresses=100)
        for zone, subnet in zip(zones, existing.private_subnet_ids, strict=True)
    )


def load(
    *texts: str, region: str | None = "us-west-2", look_up_subnets: Any = look_up
) -> StackSettings:
    values: Mapping[str, Any] = yaml.safe_load("".join(texts)) or {}
    return load_settings(
        values, stack_name="test", region=region, now=NOW, look_up_subnets=look_up_subnets
    )


def problems(*texts: str, **arguments: Any) -> tuple[Problem, ...]:
    with pytest.raises(SettingsError) as caught:
        load(*texts, **arguments)
    return caught.value.problems


def problem(*texts: str, **arguments: Any) -> Problem:
    found = problems(*texts, **arguments)
    assert len(found) == 1, [str(each) for each in found]
    return found[0]


def warnings(*texts: str) -> dict[str, str]:
    return {each.key: each.reason for each in load(*texts).warnings}

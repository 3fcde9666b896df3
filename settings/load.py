"""From a configuration's values to checked settings, or to everything that is wrong with them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from fabric.addresses import CidrDoesNotFit, plan_subnets, usable_addresses
from settings.batch import BatchSettings
from settings.check_batch import batch_problems, batch_warnings
from settings.check_capacity import capacity_problems, capacity_warnings
from settings.check_network import network_problems, network_warnings
from settings.check_region import region_problems, region_warnings
from settings.common import CommonSettings
from settings.errors import PROJECT, Problem, SettingsError, nearest
from settings.keys import Keys
from settings.network import ExistingNetwork, NetworkSettings, PrivateSubnet
from settings.parse import parse
from settings.placement import PlacementSection
from settings.stack import StackSettings

SECTIONS: Mapping[str, type[BaseModel]] = {
    "common": CommonSettings,
    "network": NetworkSettings,
    "placement": PlacementSection,
    "batch": BatchSettings,
}

LookUpSubnets = Callable[[ExistingNetwork], tuple[PrivateSubnet, ...]]


def load_settings(
    values: Mapping[str, Any],
    *,
    stack_name: str,
    region: str | None,
    now: datetime,
    look_up_subnets: LookUpSubnets,
) -> StackSettings:
    """Check a stack's configuration and give it types.

    `values` holds each section's value under its name, such as `network`. `look_up_subnets` asks
    AWS about the subnets of a network that exists. `now` only decides about warnings.

    Raises SettingsError with every problem of the configuration.
    """
    found: list[Problem] = [*_unknown_sections(values)]
    parsed: dict[str, Any] = {}
    for section, model in SECTIONS.items():
        if values.get(section):  # Pulumi.yaml's default, an empty map, is no section
            parsed[section], problems = parse(section, model, values[section])
            found += problems
    if not region or region.startswith("cn-"):
        raise SettingsError([*found, _region_problem(region)])
    stack = StackSettings(
        name=stack_name,
        region=region,
        common=parsed.get("common") or CommonSettings(),
        network=parsed.get("network"),
        placement=parsed["placement"].root if parsed.get("placement") else {},
        batch=parsed.get("batch"),
    )
    try:
        stack = replace(stack, private_subnets=_private_subnets(stack.network, look_up_subnets))
    except CidrDoesNotFit as error:
        found.append(
            Problem(
                key=f"{PROJECT}:network.cidr",
                value=str(stack.network.cidr) if stack.network else None,
                reason=f"does not fit: {error}",
                fix="choose another block, or fewer availabilityZones",
            )
        )
    keys = Keys({name: value for name, value in values.items() if value})
    for check in (region_problems, network_problems, capacity_problems, batch_problems):
        found += check(stack, keys)
    if found:
        raise SettingsError(dict.fromkeys(found))  # one line where several jobs share a fault
    warnings = (
        *region_warnings(stack),
        *network_warnings(stack),
        *capacity_warnings(stack, keys, now),
        *batch_warnings(stack, keys),
    )
    return replace(stack, warnings=warnings)


def _region_problem(region: str | None) -> Problem:
    return Problem(
        key="aws:region",
        value=region,
        # https://docs.amazonaws.cn/en_us/vpc/latest/privatelink/aws-services-cn-privatelink-support.html
        reason="is in China, where services have other endpoint names" if region else "is required",
        fix="choose a region like us-west-2",
    )


def _unknown_sections(values: Mapping[str, Any]) -> Iterator[Problem]:
    for name in values:
        if name not in SECTIONS:
            close = nearest(name, SECTIONS)
            yield Problem(
                key=f"{PROJECT}:{name}",
                value=None,
                reason="is not a section",
                fix=f"write {PROJECT}:{close}" if close else f"use one of {', '.join(SECTIONS)}",
            )


def _private_subnets(
    network: NetworkSettings | None, look_up_subnets: LookUpSubnets
) -> tuple[PrivateSubnet, ...]:
    if network is None:
        return ()
    if network.existing:
        return look_up_subnets(network.existing)
    if network.stack:
        return tuple(PrivateSubnet(availability_zone=zone) for zone in network.availability_zones)
    plan = plan_subnets(cidr=network.cidr, availability_zones=network.availability_zones)
    return tuple(
        PrivateSubnet(
            availability_zone=zone.availability_zone, addresses=usable_addresses(zone.private)
        )
        for zone in plan
    )

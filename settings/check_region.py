"""Rules between the stack's region and everything that is named with one."""

from collections.abc import Iterator

from fabric.catalogue import region_zones
from settings.errors import PROJECT, Problem
from settings.keys import Keys
from settings.stack import StackSettings


def region_problems(stack: StackSettings, keys: Keys) -> Iterator[Problem]:
    """ARNs of another region, which AWS takes nowhere that this stack uses them."""
    del keys  # an ARN's key follows from its name
    for key, arn in _regional_arns(stack):
        region = arn.split(":")[3]
        if region != stack.region:
            yield Problem(
                key=key,
                value=arn,
                reason=f"is of the region {region}, and the stack lives in {stack.region}",
                fix="name one of the stack's region",
            )


def region_warnings(stack: StackSettings) -> Iterator[Problem]:
    """A region that the catalogue knows nothing of, so that no offer can be checked."""
    if not region_zones(stack.region):
        yield Problem(
            key="aws:region",
            value=stack.region,
            reason="is not in the catalogue, so nobody looked whether it offers these types",
            fix="correct it, or refresh the catalogue with make catalog",
        )


def _regional_arns(stack: StackSettings) -> Iterator[tuple[str, str]]:
    arns = {"kmsKey": stack.common.kms_key, "alarmTopic": stack.common.alarm_topic}
    yield from ((f"{PROJECT}:common.{key}", arn) for key, arn in arns.items() if arn)
    for name, placement in stack.placement.items():
        group, block = placement.reservation_group, placement.capacity_block
        if group and group.arn:
            yield f"{PROJECT}:placement.{name}.reservationGroup", group.arn
        if block and block.resource_group:
            yield f"{PROJECT}:placement.{name}.capacityBlock.resourceGroup", block.resource_group

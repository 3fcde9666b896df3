"""Whole programs that several rules show, small ones."""

from collections.abc import Mapping
from typing import Any

from policy.examples import resource
from policy.reservations import SPECIFICATION
from policy.tokens import (
    BATCH_ENVIRONMENT,
    CAPACITY_RESERVATION,
    LAUNCH_TEMPLATE,
    PLACEMENT_GROUP,
    SUBNET,
)


def reserved_nodes(
    *,
    reserved: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
    within: bool = False,
) -> list[dict[str, Any]]:
    """Four reserved p4d.24xlarge, and a compute environment that launches into them.

    `within` puts both into one placement group; the mappings change single inputs.
    """
    group = {"placementGroupArn": "arn:aws:ec2:us-west-2:123456789012:placement-group/training"}
    reservation: dict[str, Any] = {
        "availabilityZone": "us-west-2b",
        "instanceCount": 4,
        "instancePlatform": "Linux/UNIX",
        "instanceType": "p4d.24xlarge",
        **(group if within else {}),
        **(reserved or {}),
    }
    computing: dict[str, Any] = {
        "type": "EC2",
        "ec2Configurations": [{"imageType": "ECS_AL2023_NVIDIA"}],
        "instanceTypes": ["p4d.24xlarge"],
        "launchTemplate": {"launchTemplateId": "lt-0123456789abcdef0", "version": "1"},
        "maxVcpus": 384,
        "subnets": ["subnet-0123456789abcdef0"],
        **({"placementGroup": "training"} if within else {}),
        **(environment or {}),
    }
    grouped = ["group"] if "placementGroup" in computing else []
    return [
        resource(PLACEMENT_GROUP, "group", strategy="cluster"),
        resource(SUBNET, "private", availabilityZone="us-west-2b"),
        resource(
            CAPACITY_RESERVATION,
            "reserved",
            links={"placementGroupArn": ["group"]} if within else {},
            **reservation,
        ),
        resource(
            LAUNCH_TEMPLATE,
            "nodes",
            links={SPECIFICATION: ["reserved"]},
            capacityReservationSpecification={
                "capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}
            },
        ),
        resource(
            BATCH_ENVIRONMENT,
            "computing",
            links={"computeResources": ["nodes", "private", *grouped]},
            computeResources=computing,
        ),
    ]

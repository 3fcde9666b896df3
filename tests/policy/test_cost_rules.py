"""What the rules on cost and on what is paid for in advance count, and what they leave alone."""

from typing import Any

import pytest

from policy.catalogue import RULES
from policy.example_programs import reserved_nodes
from policy.examples import resource
from policy.judge import findings
from policy.program import Program
from policy.rule import Finding
from policy.tokens import (
    AUTO_SCALING_GROUP,
    BATCH_ENVIRONMENT,
    LAUNCH_TEMPLATE,
    LOG_GROUP,
    NAT_GATEWAY,
    NODE_GROUP,
)
from policy.values import UNKNOWN

BY_ID = {rule.id: rule for rule in RULES}


def found(rule: str, *rows: dict[str, Any], **options: object) -> list[Finding]:
    """What a rule finds in a program."""
    asked, program = BY_ID[rule], Program(rows)
    settings = asked.defaults() | options
    return [
        finding
        for row in rows
        if row["type"] in asked.types
        for finding in findings(asked, row, program, settings)
    ]


def environment(name: str = "it", **settings: Any) -> dict[str, Any]:
    resources = {"type": "EC2", "instanceTypes": ["p4d.24xlarge"], "minVcpus": 0, **settings}
    return resource(BATCH_ENVIRONMENT, name, computeResources=resources)


def test_the_price_of_the_whole_program_is_judged_once_at_its_dearest_resource() -> None:
    rows = [environment("small", maxVcpus=96), environment("large", maxVcpus=192)]
    (finding,) = found("stack-price-ceiling", *rows, maximumUsdPerHour=60)
    assert (finding.path, finding.value) == ("computeResources.maxVcpus", 192)
    assert finding.message.startswith("at full size 65.87 USD per hour of 60")
    assert not found("stack-price-ceiling", *rows, maximumUsdPerHour=66)


def test_no_ceiling_is_a_ceiling_of_zero() -> None:
    assert not found("stack-price-ceiling", environment(maxVcpus=10**9), maximumUsdPerHour=0)


def test_a_charge_without_a_known_price_breaks_the_ceiling_only_where_that_was_asked_for() -> None:
    rows = [environment(maxVcpus=96), resource("aws:lb/loadBalancer:LoadBalancer", "balancer")]
    assert not found("stack-price-ceiling", *rows)
    (finding,) = found("stack-price-ceiling", *rows, unknownIsOver=True)
    assert "not counting 1 unknown: balancer" in finding.message


def test_sixty_four_large_nodes_are_no_runaway() -> None:
    assert not found("node-ceiling", environment(maxVcpus=64 * 96))
    assert found("node-ceiling", environment(maxVcpus=65 * 96))


def test_small_cpu_nodes_are_counted_in_vcpus() -> None:
    assert not found("node-ceiling", environment(instanceTypes=["c7i.large"], maxVcpus=10_000))
    assert found("node-ceiling", environment(instanceTypes=["optimal"], maxVcpus=100_000))


def test_nodes_that_a_reservation_pays_for_may_run_all_the_time() -> None:
    assert not found("no-idle-accelerators", *reserved_nodes(environment={"minVcpus": 384}))


def test_nodes_of_a_reservation_that_is_still_unknown_are_not_accused() -> None:
    rows = reserved_nodes(environment={"minVcpus": 384})
    for row in rows:
        if row["type"] == LAUNCH_TEMPLATE:
            row["inputs"]["capacityReservationSpecification"] = UNKNOWN
    assert not found("no-idle-accelerators", *rows)


@pytest.mark.parametrize(("wanted", "paths"), [(4, []), (5, ["scalingConfig.desiredSize"])])
def test_nodes_that_are_only_wished_for_need_a_place(wanted: int, paths: list[str]) -> None:
    *rows, _ = reserved_nodes()
    group = resource(
        NODE_GROUP,
        links={"launchTemplate": ["nodes"]},
        launchTemplate={"id": "lt-0123456789abcdef0", "version": "1"},
        instanceTypes=["p4d.24xlarge"],
        scalingConfig={"minSize": 0, "desiredSize": wanted, "maxSize": 8},
    )
    assert [one.path for one in found("reservation-holds-running-nodes", *rows, group)] == paths


@pytest.mark.parametrize(
    ("template", "market", "speaks"),
    [
        ({"version": "1"}, "capacity-block", False),
        ({"version": UNKNOWN}, "capacity-block", False),
        ({}, "capacity-block", True),
        ({}, "spot", False),
    ],
)
def test_a_group_on_a_capacity_block_that_names_no_template_version_takes_the_default(
    template: dict[str, Any], market: str, speaks: bool
) -> None:
    rows = [
        resource(LAUNCH_TEMPLATE, "nodes", instanceMarketOptions={"marketType": market}),
        resource(
            AUTO_SCALING_GROUP,
            links={"launchTemplate": ["nodes"]},
            launchTemplate={"id": "lt-0123456789abcdef0", **template},
        ),
    ]
    assert bool(found("capacity-block-scaling", *rows)) == speaks


def test_a_nat_gateway_is_left_alone_where_nodes_may_be_anywhere() -> None:
    assert not found("nat-gateway-in-use", resource(NAT_GATEWAY, subnetId="subnet-0"))


def test_a_log_group_of_the_delivery_class_needs_no_retention() -> None:
    """https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html"""
    assert not found("log-retention", resource(LOG_GROUP, logGroupClass="DELIVERY"))
    assert not found("log-retention", resource(LOG_GROUP, retentionInDays=UNKNOWN))
    assert found("log-retention", resource(LOG_GROUP, retentionInDays=0))

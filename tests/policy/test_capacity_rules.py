"""What the rules on placement and capacity say where it is not obvious, and where they do not."""

from collections.abc import Mapping
from typing import Any

from policy.catalogue import RULES
from policy.example_programs import reserved_nodes
from policy.examples import interface, resource
from policy.judge import findings
from policy.program import Program
from policy.tokens import (
    AUTO_SCALING_GROUP,
    CAPACITY_RESERVATION,
    INSTANCE,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
    PLACEMENT_GROUP,
    SUBNET,
)
from policy.values import UNKNOWN

BY_ID = {rule.id: rule for rule in RULES}
GROUP = {
    "capacityReservationResourceGroupArn": (
        "arn:aws:resource-groups:us-west-2:123456789012:group/pool"
    )
}
ID = {"capacityReservationId": "cr-0123456789abcdef0"}


def said(rule: str, *rows: dict[str, Any], **options: object) -> list[str]:
    """The paths that a rule finds in a program."""
    asked, program = BY_ID[rule], Program(rows)
    settings = asked.defaults() | options
    return [
        finding.path
        for row in rows
        if row["type"] in asked.types
        for finding in findings(asked, row, program, settings)
    ]


def template(*, links: Mapping[str, list[str]] | None = None, **settings: Any) -> dict[str, Any]:
    return resource(
        LAUNCH_TEMPLATE,
        "nodes",
        links=dict(links or {}),
        networkInterfaces=[interface(0, 0, "interface"), interface(0, 1)],
        **settings,
    )


def nodes(*links: str, **settings: Any) -> dict[str, Any]:
    return resource(
        NODE_GROUP,
        "group",
        links={"launchTemplate": ["nodes"], "subnetIds": list(links)},
        launchTemplate={"id": "lt-0123456789abcdef0", "version": "1"},
        **settings,
    )


def subnet(zone: object, name: str) -> dict[str, Any]:
    return resource(SUBNET, name, availabilityZone=zone)


def test_two_subnets_of_one_zone_are_one_zone() -> None:
    rows = [subnet("us-west-2a", "a"), subnet("us-west-2a", "b"), template()]
    assert not said("efa-one-zone", *rows, nodes("a", "b", subnetIds=["subnet-1", "subnet-2"]))


def test_subnets_whose_zones_are_unknown_or_elsewhere_accuse_nobody() -> None:
    assert not said("efa-one-zone", template(), nodes(subnetIds=["subnet-1", "subnet-2"]))
    rows = [subnet(UNKNOWN, "a"), subnet("us-west-2a", "b"), template()]
    assert not said("efa-one-zone", *rows, nodes("a", "b", subnetIds=[UNKNOWN, UNKNOWN]))


def test_one_subnet_chosen_from_those_of_two_zones_is_one_zone() -> None:
    rows = [subnet("us-west-2a", "a"), subnet("us-west-2b", "b"), template()]
    assert not said("efa-one-zone", *rows, nodes("a", "b", subnetIds=[UNKNOWN]))
    assert not said("efa-one-zone", *rows, nodes("a", "b", subnetIds=UNKNOWN))


def test_nodes_without_efa_may_spread_over_zones() -> None:
    rows = [subnet("us-west-2a", "a"), subnet("us-west-2b", "b")]
    plain = resource(LAUNCH_TEMPLATE, "nodes", networkInterfaces=[interface(0, 0, "interface")])
    launcher = nodes("a", "b", subnetIds=["subnet-1", "subnet-2"])
    assert not said("efa-one-zone", *rows, plain, launcher)


def test_a_placement_group_is_not_missed_where_it_may_come_yet() -> None:
    on_demand = {"capacityType": "ON_DEMAND", "instanceTypes": ["g6.12xlarge"]}
    assert said("efa-placement-group", template(), nodes(**on_demand)) == ["launchTemplate"]
    assert not said("efa-placement-group", template(placement=UNKNOWN), nodes(**on_demand))
    unknown = template(capacityReservationSpecification=UNKNOWN)
    assert not said("efa-placement-group", unknown, nodes(**on_demand))


def test_a_single_node_needs_no_placement_group() -> None:
    single = nodes(capacityType="ON_DEMAND", scalingConfig={"maxSize": 1})
    assert not said("efa-placement-group", template(), single)


def test_an_id_and_a_group_that_are_both_to_come_are_two_targets() -> None:
    target = dict.fromkeys((*ID, *GROUP), UNKNOWN)
    row = template(capacityReservationSpecification={"capacityReservationTarget": target})
    assert said("reservation-target-is-one", row)


def test_what_a_provider_answers_for_an_instance_without_a_target_is_fine() -> None:
    answer = {"capacityReservationPreference": "open", "capacityReservationTarget": None}
    row = resource(INSTANCE, capacityReservationSpecification=answer)
    assert not said("reservation-target-is-named", row)
    assert not said("reservation-preference-fits-target", row)


def test_a_block_in_a_resource_group_needs_no_preference() -> None:
    """A Capacity Block launch that finds no place fails anyway."""
    row = template(
        instanceMarketOptions={"marketType": "capacity-block"},
        capacityReservationSpecification={"capacityReservationTarget": GROUP},
    )
    assert not said("reservation-group-only", row)


def test_an_auto_scaling_group_may_say_that_it_falls_back_to_on_demand() -> None:
    row = resource(
        AUTO_SCALING_GROUP,
        capacityReservationSpecification={
            "capacityReservationPreference": "capacity-reservations-first",
            "capacityReservationTarget": {
                "capacityReservationResourceGroupArns": list(GROUP.values())
            },
        },
    )
    assert not said("reservation-group-only", row)


def test_an_end_date_that_is_still_unknown_is_no_missing_one() -> None:
    assert not said(
        "reservation-end-is-consistent",
        resource(CAPACITY_RESERVATION, endDateType="limited", endDate=UNKNOWN),
    )
    assert not said(
        "reservation-end-is-consistent",
        resource(CAPACITY_RESERVATION, endDateType="unlimited", endDate=""),
    )


def test_a_reservation_without_end_can_be_allowed() -> None:
    row = resource(CAPACITY_RESERVATION, endDateType="unlimited")
    assert said("reservation-ends", row)
    assert not said("reservation-ends", row, allowUnlimited=True)


def test_a_reservation_fits_the_group_it_names_by_arn() -> None:
    rows = [
        resource(
            CAPACITY_RESERVATION,
            "reserved",
            placementGroupArn="arn:aws:ec2:us-west-2:123456789012:placement-group/training",
        ),
        template(
            links={"capacityReservationSpecification": ["reserved"]},
            capacityReservationSpecification={"capacityReservationTarget": ID},
        ),
    ]
    for group, expected in (("training", []), ("other", ["placementGroup"])):
        launcher = resource(
            AUTO_SCALING_GROUP,
            links={"launchTemplate": ["nodes"]},
            launchTemplate={"id": "lt-0123456789abcdef0", "version": "1"},
            placementGroup=group,
        )
        assert said("reservation-placement-group", *rows, launcher) == expected


def test_a_reservation_outside_groups_serves_a_partition_group() -> None:
    rows = reserved_nodes(environment={"placementGroup": "apart"})
    for row in rows:
        if row["type"] == PLACEMENT_GROUP:
            row["inputs"]["strategy"] = "partition"
    assert not said("reservation-placement-group", *rows)


def test_a_batch_family_is_not_taken_for_another_type_than_the_reserved_one() -> None:
    assert not said(
        "reservation-instance-type", *reserved_nodes(environment={"instanceTypes": ["p4d"]})
    )


def test_as_many_nodes_as_places_fit() -> None:
    exact, more = ({"minVcpus": 96 * count, "maxVcpus": 96 * count} for count in (4, 5))
    rule = "reservation-holds-running-nodes"
    assert not said(rule, *reserved_nodes(environment=exact))
    assert said(rule, *reserved_nodes(environment=more)) == ["computeResources.minVcpus"]


def test_batch_ignores_the_spot_market_of_a_template() -> None:
    """https://docs.aws.amazon.com/batch/latest/userguide/launch-templates.html"""
    rows = reserved_nodes(environment={"instanceTypes": ["hpc7a.96xlarge"]})
    for row in rows:
        if row["type"] == LAUNCH_TEMPLATE:
            row["inputs"]["instanceMarketOptions"] = {"marketType": "spot"}
    assert not said("purchase-option-offered", *rows)


def instance(name: str, zone: object) -> dict[str, Any]:
    """An instance with EFA in a cluster placement group."""
    return resource(
        INSTANCE,
        name,
        links={"launchTemplate": ["nodes"], "placementGroup": ["together"]},
        launchTemplate={"version": "1"},
        placementGroup=UNKNOWN,
        availabilityZone=zone,
    )


def test_instances_of_one_cluster_group_share_a_zone() -> None:
    rows = [
        resource(PLACEMENT_GROUP, "together", strategy="cluster"),
        template(),
        instance("first", "us-west-2a"),
    ]
    second = {zone: instance("second", zone) for zone in ("us-west-2a", "us-west-2b", UNKNOWN)}
    assert said("efa-one-zone", *rows, second["us-west-2b"]) == ["availabilityZone"] * 2
    assert not said("efa-one-zone", *rows, second["us-west-2a"], second[UNKNOWN])


def test_an_instance_that_names_another_zone_misses_its_reservation() -> None:
    rows = [
        resource(CAPACITY_RESERVATION, "held", availabilityZone="us-west-2a"),
        template(
            links={"capacityReservationSpecification": ["held"]},
            capacityReservationSpecification={"capacityReservationTarget": ID},
        ),
        resource(PLACEMENT_GROUP, "together", strategy="cluster"),
    ]
    assert said("reservation-zone", *rows, instance("one", "us-west-2b")) == ["availabilityZone"]
    assert not said("reservation-zone", *rows, instance("one", "us-west-2a"))

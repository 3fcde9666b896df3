"""PlacementAndODCR: what each kind of capacity makes, and what a node's launch is told of it."""

from typing import Any

import pytest

from tests.support.rehearsing import STACKS, Rehearsed, rehearsed, rehearsed_stack

ZONE = "us-west-2a"
POOL = "arn:aws:resource-groups:us-west-2:123456789012:group/pool"
CR, OTHER_CR = "cr-0123456789abcdef0", "cr-0123456789abcdef1"
END = "2026-12-31T00:00:00Z"
RESERVE = {"instanceType": "p5.48xlarge", "count": 4, "endDate": END}
GROUPED = {"reservationGroup": {"reservations": [CR, OTHER_CR]}}
ELSEWHERE = {"reservation": {"stack": "organization/trainyard/capacity", "name": "held"}}
UNNAMED = object()


def with_group(capacity: Any = UNNAMED, **common: Any) -> Rehearsed:
    """A group of p5 nodes in this capacity, or in none that has a name."""
    group = {"name": "p5", "instanceType": "p5.48xlarge", "maxNodes": 4}
    sections: dict[str, Any] = {"network": {"availabilityZones": [ZONE]}, "common": common}
    if capacity is not UNNAMED:
        group["placement"] = "held"
        sections["placement"] = {"held": capacity}
    return rehearsed(**sections, batch={"groups": [group]})


def alone(capacity: Any, **common: Any) -> Rehearsed:
    """The capacity without anything that uses it."""
    placement = {"held": {"availabilityZone": ZONE, **capacity}}
    return rehearsed(placement=placement, common=common)


def template_of(run: Rehearsed) -> Any:
    return run.one("ec2.LaunchTemplate").inputs


def target_of(run: Rehearsed) -> Any:
    specification = template_of(run).get("capacityReservationSpecification")
    if specification is None:
        return None
    assert specification["capacityReservationPreference"] == "capacity-reservations-only"
    return specification["capacityReservationTarget"]


def placement_group_of(run: Rehearsed) -> str | None:
    return run.one("batch.ComputeEnvironment").inputs["computeResources"].get("placementGroup")


def name_of(run: Rehearsed, group: Any) -> str:
    return run.options[group.urn].made_up["name"]


class TestLaunches:
    @pytest.mark.parametrize(
        ("capacity", "target"),
        [
            (UNNAMED, None),
            ({"onDemand": {}}, None),
            ({"reservation": CR}, {"capacityReservationId": CR}),
            ({"reservationGroup": POOL}, {"capacityReservationResourceGroupArn": POOL}),
            ({"capacityBlock": CR}, {"capacityReservationId": CR}),
            (
                {"capacityBlock": {"resourceGroup": POOL}},
                {"capacityReservationResourceGroupArn": POOL},
            ),
        ],
    )
    def test_they_target_reserved_capacity_and_take_no_other(
        self, capacity: Any, target: Any
    ) -> None:
        assert target_of(with_group(capacity)) == target

    @pytest.mark.parametrize(
        ("capacity", "market"),
        [
            (UNNAMED, None),
            ({"reservation": CR}, None),
            ({"reserve": RESERVE}, None),
            ({"capacityBlock": CR}, {"marketType": "capacity-block"}),
        ],
    )
    def test_only_a_capacity_block_has_a_market_of_its_own(
        self, capacity: Any, market: Any
    ) -> None:
        assert template_of(with_group(capacity)).get("instanceMarketOptions") == market

    @pytest.mark.parametrize("capacity", [UNNAMED, {"onDemand": {}}, {"reserve": RESERVE}])
    def test_capacity_that_the_stack_asks_for_is_in_a_cluster_placement_group(
        self, capacity: Any
    ) -> None:
        run = with_group(capacity)
        group = run.one("ec2.PlacementGroup")
        assert group.inputs["strategy"] == "cluster"
        assert placement_group_of(run) == name_of(run, group)

    @pytest.mark.parametrize(
        "capacity",
        [
            {"reservation": CR},
            {"reservationGroup": POOL},
            {"reservationGroup": {"reservations": [CR]}},
            {"capacityBlock": CR},
            {"onDemand": {}, "placementGroup": False},
            {"reserve": RESERVE, "placementGroup": False},
        ],
    )
    def test_any_other_capacity_has_no_placement_group(self, capacity: Any) -> None:
        run = with_group(capacity)
        assert run.all("ec2.PlacementGroup") == []
        assert placement_group_of(run) is None

    @pytest.mark.parametrize(
        "capacity", [{"reservation": CR}, {"reservationGroup": POOL}, {"onDemand": {}}]
    )
    def test_a_group_that_exists_is_used_and_not_made(self, capacity: Any) -> None:
        run = with_group({**capacity, "placementGroup": "near"})
        assert run.all("ec2.PlacementGroup") == []
        assert placement_group_of(run) == "near"

    def test_groups_on_demand_do_not_share_a_placement_group(self) -> None:
        run = rehearsed(
            network={"availabilityZones": [ZONE]},
            placement={"plain": {"onDemand": {}}},
            batch={
                "groups": [
                    {
                        "name": name,
                        "instanceType": "g4dn.8xlarge",
                        "maxNodes": 1,
                        "placement": "plain",
                    }
                    for name in ("left", "right")
                ]
            },
        )
        used = {
            each.inputs["computeResources"]["placementGroup"]
            for each in run.all("batch.ComputeEnvironment")
        }
        assert used == {name_of(run, each) for each in run.all("ec2.PlacementGroup")}
        assert len(used) == 2


class TestReservationOfThisStack:
    def test_it_is_made_in_the_placement_group_that_launches_use(self) -> None:
        run = with_group({"reserve": RESERVE})
        group = run.one("ec2.PlacementGroup")
        reservation = run.one("ec2.CapacityReservation")
        assert reservation.inputs["placementGroupArn"] == run.arn_of(group)
        assert placement_group_of(run) == name_of(run, group)

    def test_without_a_placement_group_it_is_in_none(self) -> None:
        run = with_group({"reserve": RESERVE, "placementGroup": False})
        assert "placementGroupArn" not in run.one("ec2.CapacityReservation").inputs

    def test_it_can_be_made_in_a_placement_group_that_exists(self) -> None:
        run = with_group({"reserve": RESERVE, "placementGroup": "near"})
        assert run.one("ec2.CapacityReservation").inputs["placementGroupArn"] == (
            "arn:aws:ec2:us-west-2:123456789012:placement-group/near"
        )
        assert placement_group_of(run) == "near"

    def test_launches_target_it(self) -> None:
        run = with_group({"reserve": RESERVE})
        reservation = run.id_of(run.one("ec2.CapacityReservation"))
        assert target_of(run) == {"capacityReservationId": reservation}

    def test_nodes_launch_after_it_is_there(self) -> None:
        run = with_group({"reserve": RESERVE})
        reservation = run.one("ec2.CapacityReservation")
        assert reservation.urn in run.one("batch.ComputeEnvironment").dependencies

    def test_it_reserves_what_is_asked_for_and_nobody_else_uses_it_up(self) -> None:
        reservation = alone({"reserve": RESERVE}).one("ec2.CapacityReservation").inputs
        assert (reservation["instanceType"], reservation["instanceCount"]) == ("p5.48xlarge", 4)
        assert reservation["availabilityZone"] == ZONE
        assert reservation["instanceMatchCriteria"] == "targeted"
        assert reservation["instancePlatform"] == "Linux/UNIX"

    def test_it_ends_on_its_date(self) -> None:
        reservation = alone({"reserve": RESERVE}).one("ec2.CapacityReservation").inputs
        assert (reservation["endDateType"], reservation["endDate"]) == ("limited", END)

    def test_an_end_in_another_time_zone_is_the_same_moment_in_utc(self) -> None:
        reserve = {**RESERVE, "endDate": "2026-12-31T01:00:00+01:00"}
        assert alone({"reserve": reserve}).one("ec2.CapacityReservation").inputs["endDate"] == END

    def test_without_an_end_it_says_so_and_has_no_date(self) -> None:
        reserve = {"instanceType": "p5.48xlarge", "count": 4, "unlimited": True}
        reservation = alone({"reserve": reserve}).one("ec2.CapacityReservation").inputs
        assert reservation["endDateType"] == "unlimited"
        assert "endDate" not in reservation


class TestResourceGroup:
    def test_it_is_one_that_launches_can_target(self) -> None:
        configurations = alone(GROUPED).one("resourcegroups.Group").inputs["configurations"]
        assert configurations == [
            {"type": "AWS::EC2::CapacityReservationPool"},
            {
                "type": "AWS::ResourceGroups::Generic",
                "parameters": [
                    {
                        "name": "allowed-resource-types",
                        "values": ["AWS::EC2::CapacityReservation"],
                    }
                ],
            },
        ]

    def test_the_reservations_are_its_members(self) -> None:
        run = alone(GROUPED)
        group = run.arn_of(run.one("resourcegroups.Group"))
        prefix = "arn:aws:ec2:us-west-2:123456789012:capacity-reservation"
        assert [each.inputs for each in run.all("resourcegroups.Resource")] == [
            {"groupArn": group, "resourceArn": f"{prefix}/{CR}"},
            {"groupArn": group, "resourceArn": f"{prefix}/{OTHER_CR}"},
        ]

    def test_launches_target_it_once_it_has_its_members(self) -> None:
        run = with_group(GROUPED)
        members = {each.urn for each in run.all("resourcegroups.Resource")}
        assert target_of(run) == {
            "capacityReservationResourceGroupArn": run.arn_of(run.one("resourcegroups.Group"))
        }
        assert members <= set(run.one("batch.ComputeEnvironment").dependencies)


class TestReservationOfAnotherStack:
    def test_launches_target_it_and_nothing_is_made(self) -> None:
        run = with_group(ELSEWHERE)
        assert target_of(run)["capacityReservationId"].startswith("cr-")
        assert run.all("ec2.CapacityReservation") == run.all("ec2.PlacementGroup") == []

    def test_the_placement_group_is_the_one_that_it_was_made_in(self) -> None:
        # the pretend AWS has made every reservation of another stack in a group
        assert str(placement_group_of(with_group(ELSEWHERE))).endswith("-group")


class TestCapacityBlock:
    def test_it_needs_nothing_of_the_stacks_own(self) -> None:
        run = alone({"capacityBlock": CR})
        assert [each.type for each in run.resources if each.type.startswith("aws:")] == []

    @pytest.mark.parametrize("stack", STACKS)
    def test_none_is_ever_bought(self, stack: str) -> None:
        bought = {"CapacityBlockReservation", "CapacityBlockExtension"}
        made = {each.type.rpartition(":")[2] for each in rehearsed_stack(stack).resources}
        assert made.isdisjoint(bought)


class TestAlarms:
    @pytest.mark.parametrize("capacity", [{"reservation": CR}, {"reserve": RESERVE}])
    def test_an_alarm_watches_the_idle_instances_of_a_reservation(self, capacity: Any) -> None:
        run = alone(capacity)
        alarm = run.one("cloudwatch.MetricAlarm").inputs
        made = run.all("ec2.CapacityReservation")
        reservation = run.id_of(made[0]) if made else CR
        assert alarm["namespace"] == "AWS/EC2CapacityReservations"
        assert alarm["metricName"] == "AvailableInstanceCount"
        assert alarm["dimensions"] == {"CapacityReservationId": reservation}

    def test_it_tells_when_an_instance_was_idle_for_hours_on_end(self) -> None:
        alarm = alone({"reservation": CR}).one("cloudwatch.MetricAlarm").inputs
        assert (alarm["statistic"], alarm["comparisonOperator"], alarm["threshold"]) == (
            "Minimum",
            "GreaterThanThreshold",
            0,
        )
        assert (alarm["period"], alarm["evaluationPeriods"]) == (3600, 3)

    def test_a_reservation_that_has_ended_raises_none(self) -> None:
        alarm = alone({"reservation": CR}).one("cloudwatch.MetricAlarm").inputs
        assert alarm["treatMissingData"] == "notBreaching"

    def test_every_reservation_of_a_group_has_one(self) -> None:
        run = alone(GROUPED)
        watched = [each.inputs["dimensions"] for each in run.all("cloudwatch.MetricAlarm")]
        assert [each["CapacityReservationId"] for each in watched] == [CR, OTHER_CR]

    def test_they_notify_the_topic_of_the_settings(self) -> None:
        topic = "arn:aws:sns:us-west-2:123456789012:alarms"
        run = alone({"reservation": CR}, alarmTopic=topic)
        assert run.one("cloudwatch.MetricAlarm").inputs["alarmActions"] == [topic]

    def test_without_a_topic_they_only_show(self) -> None:
        alarm = alone({"reservation": CR}).one("cloudwatch.MetricAlarm").inputs
        assert "alarmActions" not in alarm


class TestOutputs:
    @pytest.mark.parametrize(
        ("capacity", "wanted"),
        [
            ({"reservation": CR}, {"capacityReservationId": CR}),
            ({"capacityBlock": CR}, {"capacityReservationId": CR}),
            ({"reservationGroup": POOL}, {"resourceGroupArn": POOL}),
            (
                {"reservation": CR, "placementGroup": "near"},
                {"capacityReservationId": CR, "placementGroup": "near"},
            ),
            ({"onDemand": {}}, {}),
        ],
    )
    def test_they_say_for_each_name_what_is_targeted_and_where(
        self, capacity: Any, wanted: Any
    ) -> None:
        said = alone(capacity).outputs["placement"]["held"]
        assert {key: value for key, value in said.items() if value is not None} == {
            "availabilityZone": ZONE,
            **wanted,
        }

    def test_another_stack_finds_the_reservation_and_its_group(self) -> None:
        run = alone({"reserve": RESERVE})
        said = run.outputs["placement"]["held"]
        assert said["capacityReservationId"] == run.id_of(run.one("ec2.CapacityReservation"))
        assert said["placementGroup"] == name_of(run, run.one("ec2.PlacementGroup"))

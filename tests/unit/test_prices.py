"""Prices per hour, against sums done by hand from the price files' figures of us-east-1."""

import re
from collections.abc import Sequence
from typing import Any

import pulumi_aws
import pytest

from fabric.prices import BILLED_WITHOUT_A_PRICE, PRICED, Price, PriceLine, price_of

COMPUTE_ENVIRONMENT = "aws:batch/computeEnvironment:ComputeEnvironment"
LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
AUTO_SCALING = "aws:autoscaling/group:Group"
INSTANCE = "aws:ec2/instance:Instance"
RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
RESERVATION_GROUP = "aws:resourcegroups/group:Group"
GROUP_MEMBER = "aws:resourcegroups/resource:Resource"
ALARM = "aws:cloudwatch/metricAlarm:MetricAlarm"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"

Row = dict[str, Any]


def row(token: str, name: str, inputs: Any = None, **sources: Sequence[Row]) -> Row:
    """A resource whose inputs named in `sources` came from other resources."""
    by_property = {key: [source["urn"] for source in rows] for key, rows in sources.items()}
    return {
        "urn": f"urn:pulumi:dev::trainyard::{token}::{name}",
        "type": token,
        "name": name,
        "inputs": inputs or {},
        "dependencies": [urn for urns in by_property.values() for urn in urns],
        "propertyDependencies": by_property,
    }


def environment(*types: str, template: Row | None = None, **resources: Any) -> Row:
    compute = {"type": "EC2", "instanceTypes": list(types), "minVcpus": 0, **resources}
    if template is None:
        return row(COMPUTE_ENVIRONMENT, "nodes", {"computeResources": compute})
    compute["launchTemplate"] = {"launchTemplateId": "lt-0abc"}
    return row(
        COMPUTE_ENVIRONMENT, "nodes", {"computeResources": compute}, computeResources=[template]
    )


def template(inputs: Row, **sources: Sequence[Row]) -> Row:
    return row(LAUNCH_TEMPLATE, "template", inputs, **sources)


def price(*rows: Row, region: str = "us-east-1") -> Price:
    return price_of(rows, region=region)


def only_line(*rows: Row) -> PriceLine:
    (line,) = price(*rows).lines
    return line


def amounts(*rows: Row) -> tuple[float | None, float | None]:
    result = price(*rows)
    return result.idle_per_hour, result.full_per_hour


FIXED_SIZES: list[tuple[str, Row, float | None]] = [
    ("aws:ec2/natGateway:NatGateway", {}, 0.045),
    ("aws:ec2/eip:Eip", {}, 0.005),
    (ENDPOINT, {"vpcEndpointType": "Interface", "subnetIds": ["subnet-0a", "subnet-0b"]}, 0.02),
    (ENDPOINT, {"vpcEndpointType": "Gateway"}, 0.0),
    (ENDPOINT, {}, 0.0),
    ("aws:eks/cluster:Cluster", {}, 0.1),
    (INSTANCE, {"instanceType": "m5.large"}, 0.096),
    (INSTANCE, {"instanceType": "m5.large", "associatePublicIpAddress": True}, 0.101),
    (RESERVATION, {"instanceType": "p4d.24xlarge", "instanceCount": 4}, 87.8306),
    (RESERVATION, {"instanceType": "p4d.24xlarge", "instanceCount": "4"}, 87.8306),
    ("aws:ebs/volume:Volume", {"type": "gp3", "size": 730}, 0.08),
    ("aws:ebs/volume:Volume", {"size": 730}, 0.1),
    ("aws:ebs/volume:Volume", {"type": "gp3", "size": 730, "iops": 3730}, 0.085),
    ("aws:ebs/volume:Volume", {"type": "gp3", "size": 730, "throughput": 855}, 0.12),
    ("aws:ebs/volume:Volume", {"type": "io2", "size": 730}, None),
    ("aws:efs/fileSystem:FileSystem", {}, 0.0),
    ("aws:efs/fileSystem:FileSystem", {"provisionedThroughputInMibps": 64}, None),
    (LUSTRE, {"deploymentType": "SCRATCH_2", "storageCapacity": 7300}, 1.4),
    (
        LUSTRE,
        {
            "deploymentType": "PERSISTENT_2",
            "storageCapacity": 7300,
            "perUnitStorageThroughput": 125,
        },
        1.45,
    ),
    (
        LUSTRE,
        {
            "deploymentType": "PERSISTENT_2",
            "storageCapacity": 7300,
            "perUnitStorageThroughput": 250,
        },
        None,
    ),
    (ALARM, {"period": 300}, 0.0001),
    (ALARM, {"period": 10}, 0.0004),
    (ALARM, {"metricQueries": [{"metric": {"period": 60}}] * 4 + [{"expression": "m1"}]}, 5e-4),
    (ALARM, {"thresholdMetricId": "band", "metricQueries": [{"metric": {}}]}, None),
    ("aws:kms/key:Key", {}, 0.0014),
    ("aws:ec2/capacityBlockReservation:CapacityBlockReservation", {}, None),
    ("aws:rds/instance:Instance", {"instanceClass": "db.m5.large"}, None),
    ("aws:ec2/subnet:Subnet", {"cidrBlock": "10.0.0.0/24"}, 0.0),
    ("random:index/randomId:RandomId", {}, 0.0),
]


@pytest.mark.parametrize(("token", "inputs", "per_hour"), FIXED_SIZES)
def test_a_resource_of_fixed_size_costs_the_same_idle_and_at_full_size(
    token: str, inputs: Row, per_hour: float | None
) -> None:
    assert amounts(row(token, "one", inputs)) == (per_hour, per_hour)


def test_a_compute_environment_costs_nothing_idle_and_its_node_count_at_full_size() -> None:
    line = only_line(environment("g4dn.8xlarge", maxVcpus=64))  # 32 vCPUs a node
    assert (line.idle_count, line.full_count, line.unit_usd) == (0, 2, 2.176)
    assert (line.idle_per_hour, line.full_per_hour) == (0, 2 * 2.176)


def test_min_vcpus_keep_nodes_running_idle() -> None:
    assert amounts(environment("g4dn.8xlarge", minVcpus=32, maxVcpus=64)) == (2.176, 4.352)


def test_of_several_instance_types_the_dearest_is_counted_and_named() -> None:
    line = only_line(environment("m5.large", "p4d.24xlarge", maxVcpus=192))  # 96 x 0.096, 2 x 21.96
    assert line.full_per_hour == 43.915284
    assert "the dearest of m5.large, p4d.24xlarge" in line.note


@pytest.mark.parametrize("name", ["optimal", "p5", "hpc6a.48xlarge", "no.such"])
def test_a_type_without_a_price_is_free_while_idle_and_unknown_at_full_size(name: str) -> None:
    result = price(environment(name, maxVcpus=192))
    assert (result.idle_per_hour, result.full_per_hour) == (0.0, None)
    assert result.unknown == (f"nodes: {name} instance (no price known here)",)


@pytest.mark.parametrize(
    ("kind", "why"), [("SPOT", "Spot"), ("FARGATE", "Fargate"), ("FARGATE_SPOT", "Fargate")]
)
def test_what_is_not_bought_on_demand_has_no_price_at_full_size(kind: str, why: str) -> None:
    result = price(environment("g4dn.8xlarge", type=kind, maxVcpus=64))
    assert (result.idle_per_hour, result.full_per_hour) == (0.0, None)
    assert why in result.unknown[0]


def test_an_unmanaged_compute_environment_has_no_nodes_of_its_own() -> None:
    assert price(row(COMPUTE_ENVIRONMENT, "own", {"type": "UNMANAGED"})).lines == ()


def test_volumes_of_the_launch_template_come_with_every_node() -> None:
    ebs = {"volumeSize": 200, "volumeType": "gp3", "iops": 4000, "throughput": 1000}
    lt = template(
        {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": ebs}, {"noDevice": ""}]}
    )
    lines = price(lt, environment("g4dn.8xlarge", template=lt, maxVcpus=64)).lines
    # 200 GB x 0.08 + 1000 IOPS x 0.005 + 875 MiB/s x 0.04 = 16 + 5 + 35 USD a month and node
    assert [line.full_per_hour for line in lines] == [4.352, 0.153425]  # 2 x 56 / 730
    assert [line.idle_per_hour for line in lines] == [0.0, 0.0]


def test_public_addresses_of_the_launch_template_come_with_every_node() -> None:
    lt = template({"networkInterfaces": [{"associatePublicIpAddress": "true"}, {}]})
    lines = price(lt, environment("g4dn.8xlarge", template=lt, maxVcpus=64)).lines
    assert lines[1].full_per_hour == 2 * 0.005


def test_a_launch_template_from_elsewhere_leaves_the_price_unknown() -> None:
    other = template({})
    result = price(environment("g4dn.8xlarge", template=other, maxVcpus=64))
    assert result.full_per_hour is None
    assert "launch template is not in this program" in result.unknown[0]


def test_nodes_in_dedicated_tenancy_have_no_known_price() -> None:
    lt = template({"placement": {"tenancy": "dedicated"}})
    assert amounts(lt, environment("g4dn.8xlarge", template=lt, maxVcpus=64)) == (0.0, None)


BLOCK = {
    "instanceMarketOptions": {"marketType": "capacity-block"},
    "capacityReservationSpecification": {
        "capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}
    },
}


def test_a_capacity_block_is_paid_up_front_and_unknown_even_while_no_node_runs() -> None:
    lt = template(BLOCK)
    result = price(lt, environment("p5.48xlarge", template=lt, maxVcpus=768))
    assert (result.idle_per_hour, result.full_per_hour) == (None, None)
    assert result.unknown == ("nodes: p5.48xlarge instance (Capacity Block, paid up front)",)


def reserved(key: str, value: Any, preference: str | None = None) -> Row:
    spec: Row = {"capacityReservationTarget": {key: value}}
    if preference:
        spec["capacityReservationPreference"] = preference
    return {"capacityReservationSpecification": spec}


def test_a_reservation_from_elsewhere_is_known_in_use_and_unknown_while_idle() -> None:
    lt = template(reserved("capacityReservationId", "cr-0123456789abcdef0"))
    line = only_line(lt, environment("p4d.24xlarge", template=lt, maxVcpus=192))
    assert (line.idle_per_hour, line.full_per_hour) == (None, 43.915284)  # 2 x 21.957642
    assert "reservation cr-0123456789abcdef0 billed while it exists, size not known" in line.note


HELD = row(RESERVATION, "held", {"instanceType": "p4d.24xlarge", "instanceCount": 4})


def test_nodes_in_a_reservation_of_the_same_program_are_billed_once() -> None:
    spec = reserved("capacityReservationId", "cr-0123456789abcdef0")
    lt = template(spec, capacityReservationSpecification=[HELD])
    # 4 x 21.957642, whether the nodes run or not
    assert amounts(HELD, lt, environment("p4d.24xlarge", template=lt, maxVcpus=384)) == (
        87.8306,
        87.8306,
    )


GROUP = row(RESERVATION_GROUP, "pool")
MEMBER = row(GROUP_MEMBER, "member", {}, groupArn=[GROUP], resourceArn=[HELD])


@pytest.mark.parametrize(
    ("preference", "outside"), [("capacity-reservations-only", 0), ("open", 2), (None, 2)]
)
def test_nodes_that_find_no_place_in_a_reservation_group_may_run_on_demand(
    preference: str | None, outside: int
) -> None:
    arn = "arn:aws:resource-groups:us-east-1:123456789012:group/pool"
    spec = reserved("capacityReservationResourceGroupArn", arn, preference)
    lt = template(spec, capacityReservationSpecification=[GROUP])
    nodes = environment("p4d.24xlarge", template=lt, maxVcpus=6 * 96)
    result = price(HELD, GROUP, MEMBER, lt, nodes)
    assert [line.full_count for line in result.lines] == [4, outside]
    assert result.idle_per_hour == 87.8306


def test_a_reservation_by_id_does_not_stand_for_the_others_of_its_group() -> None:
    other = row(RESERVATION, "other", {"instanceType": "p4d.24xlarge", "instanceCount": 1})
    also = row(GROUP_MEMBER, "also", {}, groupArn=[GROUP], resourceArn=[other])
    spec = reserved("capacityReservationId", "cr-0123456789abcdef0")
    lt = template(spec, capacityReservationSpecification=[HELD])
    nodes = environment("p4d.24xlarge", template=lt, maxVcpus=96)
    notes = [line.note for line in price(HELD, other, GROUP, MEMBER, also, lt, nodes).lines]
    assert notes[2] == "runs in the reservation held, billed there"


def test_a_reservation_that_the_nodes_do_not_target_is_billed_beside_them() -> None:
    assert amounts(HELD, environment("p4d.24xlarge", maxVcpus=96)) == (87.8306, 109.7882)


@pytest.mark.parametrize("extra", [{"tenancy": "dedicated"}, {"instancePlatform": "Windows"}])
def test_a_reservation_of_another_kind_than_the_prices_is_unknown(extra: Row) -> None:
    inputs = {"instanceType": "p4d.24xlarge", "instanceCount": 4, **extra}
    assert amounts(row(RESERVATION, "held", inputs)) == (None, None)


SCALING = {"minSize": 1, "maxSize": 3, "desiredSize": 2}


def test_a_node_group_runs_from_its_minimum_to_its_maximum_size() -> None:
    inputs = {"instanceTypes": ["g5.8xlarge"], "scalingConfig": SCALING}
    assert amounts(row(NODE_GROUP, "gpu", inputs)) == (2.448, 7.344)


def test_a_maximum_below_the_minimum_is_read_as_the_minimum() -> None:
    inputs = {"instanceTypes": ["g5.8xlarge"], "scalingConfig": {"minSize": 3, "maxSize": 1}}
    assert amounts(row(NODE_GROUP, "gpu", inputs)) == (7.344, 7.344)


@pytest.mark.parametrize("count", [-1, "nan", "1e400", 10**400, 1e300, True, "many", None, [4]])
def test_a_count_that_makes_no_sense_is_unknown(count: object) -> None:
    inputs = {"instanceType": "p4d.24xlarge", "instanceCount": count}
    assert amounts(row(RESERVATION, "held", inputs)) == (None, None)


def test_a_node_group_takes_its_type_and_volumes_from_its_launch_template() -> None:
    ebs = {"volumeSize": 730, "volumeType": "gp3"}
    lt = template({"instanceType": "g5.8xlarge", "blockDeviceMappings": [{"ebs": ebs}]})
    inputs = {"scalingConfig": SCALING, "launchTemplate": {"id": "lt-0abc"}}
    group = row(NODE_GROUP, "gpu", inputs, launchTemplate=[lt])
    assert amounts(lt, group) == (2.528, 7.584)  # (2.448 + 0.08) x 1 and x 3


@pytest.mark.parametrize("capacity", ["SPOT", "CAPACITY_BLOCK"])
def test_a_node_group_that_is_not_on_demand_has_no_price(capacity: str) -> None:
    inputs = {"instanceTypes": ["g5.8xlarge"], "scalingConfig": SCALING, "capacityType": capacity}
    assert amounts(row(NODE_GROUP, "gpu", inputs)) == (None, None)


def test_an_auto_scaling_group_runs_from_its_minimum_to_its_maximum_size() -> None:
    lt = template({"instanceType": "m5.xlarge"})
    inputs = {"minSize": "1", "maxSize": "4", "launchTemplate": {"id": "lt-0abc"}}
    group = row(AUTO_SCALING, "workers", inputs, launchTemplate=[lt])
    assert amounts(lt, group) == (0.192, 0.768)


@pytest.mark.parametrize(
    ("policy", "full"),
    [
        ({}, 4 * 0.768),
        ({"instancesDistribution": {"onDemandPercentageAboveBaseCapacity": 100}}, 4 * 0.768),
        ({"instancesDistribution": {"onDemandPercentageAboveBaseCapacity": 0}}, None),
    ],
)
def test_a_mixed_instances_policy_counts_its_dearest_type_unless_it_buys_spot(
    policy: Row, full: float | None
) -> None:
    lt = template({"instanceType": "m5.large"})
    types = [{"instanceType": "m5.xlarge"}, {"instanceType": "m5.4xlarge"}]
    mixed = {"launchTemplate": {"overrides": types}, **policy}
    inputs = {"minSize": 0, "maxSize": 4, "mixedInstancesPolicy": mixed}
    group = row(AUTO_SCALING, "workers", inputs, mixedInstancesPolicy=[lt])
    assert amounts(lt, group) == (0.0, full)


def test_an_instance_pays_for_its_volumes() -> None:
    inputs = {
        "instanceType": "m5.large",
        "rootBlockDevice": {"volumeSize": 365, "volumeType": "gp3"},
        "ebsBlockDevices": [{"volumeSize": 365, "volumeType": "gp3"}],
    }
    assert amounts(row(INSTANCE, "head", inputs)) == (0.176, 0.176)  # 0.096 + 730 GB x 0.08 / 730


def test_one_unknown_line_makes_the_total_unknown_and_leaves_the_known_part() -> None:
    result = price(row("aws:ec2/natGateway:NatGateway", "nat"), environment("p5", maxVcpus=192))
    assert (result.full_per_hour, result.known_full_per_hour) == (None, 0.045)


def test_a_region_without_prices_of_its_own_is_told_apart_on_every_line() -> None:
    nat = row("aws:ec2/natGateway:NatGateway", "nat")
    elsewhere = price(nat, environment("g4dn.8xlarge", maxVcpus=64), region="eu-west-1")
    assert [line.note for line in elsewhere.lines] == ["us-east-1 price", "us-east-1 price"]
    assert price(nat).lines[0].note == ""


def test_the_json_has_the_totals_and_lines_in_camel_case() -> None:
    result = price(row("aws:ec2/natGateway:NatGateway", "nat")).to_json()
    (line,) = result.pop("lines")
    assert result == {
        "idlePerHour": 0.045,
        "fullPerHour": 0.045,
        "knownIdlePerHour": 0.045,
        "knownFullPerHour": 0.045,
        "unknown": [],
    }
    assert line.keys() == {
        "urn",
        "what",
        "unitUsd",
        "idleCount",
        "fullCount",
        "idlePerHour",
        "fullPerHour",
        "source",
        "note",
    }


def test_sums_carry_no_noise_of_floating_point() -> None:
    gateways = [row("aws:ec2/natGateway:NatGateway", f"nat{i}") for i in range(3)]
    assert str(price(*gateways).full_per_hour) == "0.135"


def test_every_known_line_names_its_source() -> None:
    lt = template({"blockDeviceMappings": [{"ebs": {"volumeSize": 9, "volumeType": "gp3"}}]})
    rows = [lt, HELD, environment("g4dn.8xlarge", template=lt, maxVcpus=64)]
    assert all(line.source for line in price(*rows).lines)


@pytest.mark.parametrize("token", [*PRICED, *sorted(BILLED_WITHOUT_A_PRICE)])
def test_every_priced_type_is_a_resource_of_the_pulumi_sdk(token: str) -> None:
    _, module, name = re.split("[:/]", token, maxsplit=2)
    resource = getattr(getattr(pulumi_aws, module), name.partition(":")[2])
    assert resource.pulumi_type == token

"""Bad input: each ends in one error with key, value, reason and what to do."""

import pytest

from settings.network import ExistingNetwork, PrivateSubnet
from tests.support.settings import EXISTING, GROUP, NETWORK, load, problem

P5_IN = (
    "\nbatch: {{groups: [{{name: p5, instanceType: p5.48xlarge, maxNodes: 2, placement: {0}}}]}}"
)


@pytest.mark.parametrize(
    ("text", "key", "reason", "fix"),
    [
        pytest.param(
            "batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2, efaa: true}]}",
            "trainyard:batch.groups[0].efaa",
            "is not a key",
            "write efa",
            id="unknown key",
        ),
        pytest.param(
            "batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2,"
            " jobs: [{name: train, imagge: x:1}]}]}",
            "trainyard:batch.groups[0].jobs[0].imagge",
            "is not a key",
            "write image",
            id="unknown key deep inside",
        ),
        pytest.param(
            GROUP + "netwrok: {}",
            "trainyard:netwrok",
            "is not a section",
            "write trainyard:network",
            id="unknown section",
        ),
        pytest.param(
            "batch: {groups: [{name: p5, instanceType: p5.48xlrage, maxNodes: 2}]}",
            "trainyard:batch.groups[0].instanceType",
            "is not an instance type",
            "p5.48xlarge",
            id="unknown instance type",
        ),
        pytest.param(
            "batch: {groups: [{name: g5, instanceType: g5.xlarge, maxNodes: 2}]}",
            "trainyard:batch.groups[0].instanceType",
            "has no EFA",
            "efa: false",
            id="a type without EFA where EFA is asked for",
        ),
        pytest.param(
            "placement: {week: {capacityBlock: cr-0123456789abcdef0}}"
            "\nbatch: {groups: [{name: g6, instanceType: g6.12xlarge, maxNodes: 2,"
            " placement: week}]}",
            "trainyard:batch.groups[0].instanceType",
            "is not sold as capacity-block",
            "choose another",
            id="R46 a type that the purchase option does not have",
        ),
        pytest.param(
            "placement: {x: {reservation: cr-0123456789abcdef0, reservationGroup:"
            ' "arn:aws:resource-groups:us-west-2:123456789012:group/pool"}}' + P5_IN.format("x"),
            "trainyard:placement.x",
            "has reservation and reservationGroup",
            "keep exactly one",
            id="R33 reservation id and group",
        ),
        pytest.param(
            "placement: {x: {}}" + P5_IN.format("x"),
            "trainyard:placement.x",
            "does not say where instances come from",
            "keep exactly one of onDemand",
            id="R33 no target at all",
        ),
        pytest.param(
            "placement: {x: {reservation: {}}}" + P5_IN.format("x"),
            "trainyard:placement.x.reservation",
            "does not say which reservation",
            "give an id",
            id="R33 an empty target",
        ),
        pytest.param(
            'placement: {x: {reservation: ""}}' + P5_IN.format("x"),
            "trainyard:placement.x.reservation",
            "is not the id of a reservation",
            "cr-",
            id="R33 an empty id",
        ),
        pytest.param(
            "placement: {x: {capacityBlock: cr-0123456789abcdef0, placementGroup: true}}"
            + P5_IN.format("x"),
            "trainyard:placement.x",
            "cannot be launched into a placement group",
            "remove placementGroup",
            id="R32 Capacity Block with a placement group",
        ),
        pytest.param(
            "placement: {x: {capacityBlock: cr-0123456789abcdef0, placementGroup: mine}}"
            + P5_IN.format("x"),
            "trainyard:placement.x",
            "cannot be launched into a placement group",
            "remove placementGroup",
            id="R32 Capacity Block with a named placement group",
        ),
        pytest.param(
            "placement: {x: {capacityBlock: {}}}" + P5_IN.format("x"),
            "trainyard:placement.x.capacityBlock",
            "does not say which block",
            "give its id",
            id="R30 Capacity Block without an id",
        ),
        pytest.param(
            "placement: {x: {spot: {}}}" + P5_IN.format("x"),
            "trainyard:batch.groups[0].placement",
            "is Spot",
            "use on demand",
            id="R50 Spot with multi-node jobs",
        ),
        pytest.param(
            "placement: {x: {reservation: cr-0123456789abcdef0, placementGroup: true}}"
            + P5_IN.format("x"),
            "trainyard:placement.x",
            "cannot be the one that the reservation was made in",
            "NAME",
            id="R34 placementGroup true beside a reservation",
        ),
        pytest.param(
            "placement: {x: {reservationGroup: {reservations: [cr-0123456789abcdef0]},"
            " placementGroup: true}}" + P5_IN.format("x"),
            "trainyard:placement.x",
            "cannot be the one that the reservation was made in",
            "NAME",
            id="R35 placementGroup true beside a reservation group",
        ),
        pytest.param(
            "batch: {groups: [{name: p5, instanceType: p5.48xlarge, maxNodes: 2,"
            " availabilityZone: [us-west-2a, us-west-2b]}]}",
            "trainyard:batch.groups[0].availabilityZone",
            "EFA traffic cannot leave a zone",
            "name one zone",
            id="R17 several zones for one EFA group",
        ),
        pytest.param(
            "batch: {groups: [{name: p4d, instanceType: p4d.24xlarge, maxNodes: 2,"
            " jobs: [{name: train, nodes: 3}]}]}",
            "trainyard:batch.groups[0].jobs[0].nodes",
            "more than the group's maxNodes, which is 2",
            "raise maxNodes",
            id="R53 more nodes than the group has",
        ),
        pytest.param(
            "batch: {groups: [{name: g5, instanceType: g5.8xlarge, maxNodes: 2,"
            " threadsPerCore: 1}]}",
            "trainyard:batch.groups[0].threadsPerCore",
            "is not possible on g5.8xlarge",
            "remove it",
            id="R77 one thread where the type takes no CPU options",
        ),
        pytest.param(
            "batch: {groups: [{name: hpc, instanceType: c6gn.16xlarge, maxNodes: 2,"
            " threadsPerCore: 1, jobs: [{name: a, image: a:1}]}]}",
            "trainyard:batch.groups[0].threadsPerCore",
            "is how this type runs anyway",
            "remove it",
            id="R77 one thread where the type has one",
        ),
        pytest.param(
            "batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 0}]}",
            "trainyard:batch.groups[0].maxNodes",
            "is less than 1",
            "write 1 or more",
            id="no nodes",
        ),
        pytest.param(
            'batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: "2"}]}',
            "trainyard:batch.groups[0].maxNodes",
            "is not a whole number",
            "without quotation marks",
            id="a number in quotation marks",
        ),
        pytest.param(
            "batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2,"
            " placement: x}]}",
            "trainyard:batch.groups[0].placement",
            "is not in trainyard:placement",
            "add it",
            id="a placement that is not there",
        ),
        pytest.param(
            "placement: {x: {reserve: {instanceType: p5.48xlarge, count: 2}}}" + P5_IN.format("x"),
            "trainyard:placement.x.reserve",
            "has no end",
            "unlimited: true",
            id="R40 a reservation without an end",
        ),
        pytest.param(
            "placement: {x: {reserve: {instanceType: p5.48xlarge, count: 1, unlimited: true}}}"
            + P5_IN.format("x"),
            "trainyard:batch.groups[0].maxNodes",
            "more than the 1 instances that x reserves",
            "lower maxNodes to 1",
            id="R38 more nodes than the reservation has",
        ),
        pytest.param(
            "placement: {x: {reserve: {instanceType: p4d.24xlarge, count: 2, unlimited: true}}}"
            + P5_IN.format("x"),
            "trainyard:batch.groups[0].instanceType",
            "is not what x reserves",
            "write p4d.24xlarge",
            id="R37 another type than the reservation's",
        ),
        pytest.param(
            "placement: {x: {reservation: cr-0123456789abcdef0, availabilityZone: us-west-2b}}"
            + P5_IN.format("x"),
            "trainyard:batch.groups[0].availabilityZone",
            "has no private subnet",
            "choose one of us-west-2a",
            id="R37 a reservation in a zone without a subnet",
        ),
        pytest.param(
            "placement: {x: {capacityBlock: {id: cr-0123456789abcdef0,"
            ' start: "2026-12-01T11:30:00Z", end: "2026-12-02T11:30:00Z"}}}'
            "\nbatch: {groups: [{name: p5, instanceType: p5.48xlarge, maxNodes: 2, placement: x,"
            " jobs: [{name: train, timeoutMinutes: 1401}]}]}",
            "trainyard:batch.groups[0].jobs[0].timeoutMinutes",
            "longer than the 1400 minutes",
            "write 1400 or less",
            id="R42 a job that outlives its Capacity Block",
        ),
        pytest.param(
            'batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2,'
            ' jobs: [{name: train, environment: {PATH: "$PATH:/opt"}}]}]}',
            "trainyard:batch.groups[0].jobs[0].environment.PATH",
            "expands no variables",
            "write the whole value",
            id="R24 an environment value that looks expanded",
        ),
        pytest.param(
            "batch: {groups: [{name: hpc, instanceType: hpc7g.16xlarge, maxNodes: 2,"
            " jobs: [{name: a, image: a:1}]}]}",
            "trainyard:batch.groups[0].instanceType",
            "is not offered in us-west-2",
            "choose another region",
            id="R18 a type that the region does not have",
        ),
        pytest.param(
            "batch: {groups: [{name: c7i, instanceType: c7i.48xlarge, maxNodes: 2,"
            " jobs: [{name: a}]}]}",
            "trainyard:batch.groups[0].jobs[0].image",
            "there is no default image",
            "name an image",
            id="no image for CPU jobs",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_named_with_reason_and_fix(text: str, key: str, reason: str, fix: str) -> None:
    found = problem(NETWORK, text)
    assert found.key == key
    assert reason in found.reason
    assert fix in found.fix


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        pytest.param(
            "network: {cidr: 10.40.0.1/16, availabilityZones: [us-west-2a]}",
            "trainyard:network.cidr",
            "host bits",
            id="host bits",
        ),
        pytest.param(
            "network: {cidr: 10.40.0.0/26, availabilityZones: [us-west-2a]}",
            "trainyard:network.cidr",
            "does not fit",
            id="too small for its zones",
        ),
        pytest.param(
            "network: {cidr: 10.0.0.0/8, availabilityZones: [us-west-2a]}",
            "trainyard:network.cidr",
            "does not fit",
            id="larger than a VPC",
        ),
        pytest.param(
            "network: {availabilityZones: [us-east-1a]}",
            "trainyard:network.availabilityZones[0]",
            "is not in the region us-west-2",
            id="zone of another region",
        ),
        pytest.param(
            "network: {nat: none}",
            "trainyard:network",
            "names no availabilityZones",
            id="no zone",
        ),
        pytest.param(
            "network: {stack: a/trainyard/b, cidr: 10.0.0.0/16, availabilityZones: [us-west-2a]}",
            "trainyard:network",
            "has stack beside cidr",
            id="another stack's network with a block of its own",
        ),
    ],
)  # fmt: skip
def test_a_network_that_cannot_be_is_refused(text: str, key: str, reason: str) -> None:
    found = problem(text)
    assert found.key == key
    assert reason in found.reason


def test_a_batch_section_needs_a_network() -> None:
    found = problem(GROUP)
    assert (found.key, found.value) == ("trainyard:network", None)
    assert "trainyard:batch needs it" in found.reason


def test_a_region_is_required() -> None:
    assert problem(NETWORK, region=None).key == "aws:region"


def test_a_subnet_has_room_for_every_interface_and_every_task() -> None:
    # p5 in one-address layout: 1 address for the node, 1 for the task; /26 has 64 - 5
    network = "network: {cidr: 10.40.0.0/24, availabilityZones: [us-west-2a]}\n"
    batch = "batch: {{groups: [{{name: p5, instanceType: p5.48xlarge, maxNodes: {0}}}]}}"
    assert load(network, batch.format(29)).batch
    found = problem(network, batch.format(30))
    assert found.key == "trainyard:batch.groups[0].maxNodes"
    assert "take 60 addresses" in found.reason
    assert "59 are free" in found.reason


def test_maximum_ip_bandwidth_takes_more_addresses() -> None:
    found = problem(
        "network: {cidr: 10.40.0.0/24, availabilityZones: [us-west-2a]}\n",
        "batch: {groups: [{name: p5, instanceType: p5.48xlarge, maxNodes: 8,"
        " ipBandwidth: maximum}]}",
    )
    assert "take 72 addresses" in found.reason  # 8 x (8 + 1)


def test_several_interfaces_need_a_subnet_without_public_addresses() -> None:
    def public(existing: ExistingNetwork) -> tuple[PrivateSubnet, ...]:
        (subnet,) = existing.private_subnet_ids
        return (
            PrivateSubnet(
                availability_zone="us-west-2a", subnet_id=subnet, assigns_public_addresses=True
            ),
        )

    found = problem(EXISTING, GROUP, look_up_subnets=public)
    assert found.key == "trainyard:batch.groups[0].instanceType"
    assert "assigns public addresses" in found.reason


def test_a_subnet_cannot_be_private_and_public() -> None:
    found = problem(
        "network: {existing: {vpcId: vpc-0123456789abcdef0,"
        " privateSubnetIds: [subnet-0123456789abcdef0],"
        " publicSubnetIds: [subnet-0123456789abcdef0]}}"
    )
    assert found.key == "trainyard:network.existing.privateSubnetIds[0]"


def test_stated_zones_are_held_against_the_account() -> None:
    def elsewhere(existing: ExistingNetwork) -> tuple[PrivateSubnet, ...]:
        (subnet,) = existing.private_subnet_ids
        return (PrivateSubnet(availability_zone="us-west-2c", subnet_id=subnet),)

    found = problem(
        "network: {existing: {vpcId: vpc-0123456789abcdef0,"
        " privateSubnetIds: [subnet-0123456789abcdef0], availabilityZones: [us-west-2a]}}",
        look_up_subnets=elsewhere,
    )
    assert found.value == "us-west-2a"
    assert "write us-west-2c" in found.fix


def test_without_a_nat_gateway_images_come_from_the_regions_private_registry() -> None:
    network = "network: {availabilityZones: [us-west-2a], nat: none}\n"
    batch = (
        "batch: {{groups: [{{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2,"
        " jobs: [{{name: train, {0}}}]}}]}}"
    )
    ours = "123456789012.dkr.ecr.us-west-2.amazonaws.com/train:1"
    assert load(network, batch.format(f'image: "{ours}"')).batch
    assert load(network, batch.format("repositoryTag: v1")).batch
    for image in ("public.ecr.aws/a/b:1", ours.replace("us-west-2", "us-east-1")):
        found = problem(network, batch.format(f'image: "{image}"'))
        assert found.key == "trainyard:batch.groups[0].jobs[0].image"


def test_a_default_image_needs_a_way_to_the_internet_too() -> None:
    found = problem("network: {availabilityZones: [us-west-2a], nat: none}\n", GROUP)
    assert found.key == "trainyard:batch.groups[0]"


def test_regions_with_other_endpoint_names_are_refused() -> None:
    found = problem(NETWORK, region="cn-north-1")
    assert (found.key, found.value) == ("aws:region", "cn-north-1")

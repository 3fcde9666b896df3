"""Networks that cannot be, and nodes that do not fit in theirs."""

import pytest

from settings.network import ExistingNetwork, PrivateSubnet
from tests.support.settings import EXISTING, GROUP, NETWORK, load, problem


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
    assert "and it has 59" in found.reason


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
    assert found.key == "trainyard:batch.groups[0].jobs"


def test_regions_with_other_endpoint_names_are_refused() -> None:
    found = problem(NETWORK, region="cn-north-1")
    assert (found.key, found.value) == ("aws:region", "cn-north-1")


def test_a_subnet_of_another_vpc_is_refused() -> None:
    def elsewhere(existing: ExistingNetwork) -> tuple[PrivateSubnet, ...]:
        (subnet,) = existing.private_subnet_ids
        return (PrivateSubnet(availability_zone="us-west-2a", subnet_id=subnet, vpc_id="vpc-1"),)

    assert "another VPC" in problem(EXISTING, look_up_subnets=elsewhere).reason


def test_nodes_that_run_already_do_not_forbid_an_update() -> None:
    def crowded(existing: ExistingNetwork) -> tuple[PrivateSubnet, ...]:
        (subnet,) = existing.private_subnet_ids
        return (
            PrivateSubnet(
                availability_zone="us-west-2a", subnet_id=subnet, addresses=251, free_addresses=1
            ),
        )

    stack = load(EXISTING, GROUP, look_up_subnets=crowded)
    assert any("1 of 251 addresses free" in each.reason for each in stack.warnings)

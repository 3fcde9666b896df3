"""What a configuration may say, and what is said about one that says too much or too little."""

import contextlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fabric.capacity import NoPlacementGroup
from settings.errors import Problem, SettingsError
from settings.load import load_settings
from settings.network import ExistingNetwork, PrivateSubnet
from settings.stack import StackSettings

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))

NETWORK = """
network: {cidr: 10.40.0.0/16, availabilityZones: [us-west-2a]}
"""
GROUP = """
batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2}]}
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


# --- what is accepted -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_accepted(path: Path) -> None:
    config = yaml.safe_load(path.read_text())["config"]
    sections = {key.partition(":")[2]: value for key, value in config.items() if key[0] == "t"}
    assert load(json.dumps(sections), region=config["aws:region"]).batch


def test_an_empty_section_is_no_section() -> None:
    assert load("batch: {}\nnetwork: {}").batch is None


def test_a_stack_may_hold_capacity_alone() -> None:
    stack = load(
        "placement: {held: {reserve: {instanceType: p4d.24xlarge, count: 2, unlimited: true},"
        " availabilityZone: us-west-2b}}"
    )
    assert stack.zone_of_placement("held") == "us-west-2b"


def test_a_group_lives_in_the_zone_of_its_placement() -> None:
    stack = load(
        "network: {availabilityZones: [us-west-2a, us-west-2b]}",
        "\nplacement: {ours: {reservation: cr-0123456789abcdef0, availabilityZone: us-west-2b}}",
        "\nbatch: {groups: [{name: p4d, instanceType: p4d.24xlarge, maxNodes: 1,"
        " placement: ours}]}",
    )
    assert stack.batch is not None
    assert stack.zone_of(stack.batch.groups[0]) == "us-west-2b"


def test_a_reservation_is_made_where_the_group_that_uses_it_lives() -> None:
    stack = load(
        "network: {availabilityZones: [us-west-2a, us-west-2b]}",
        "\nplacement: {held: {reserve: {instanceType: p4d.24xlarge, count: 1, unlimited: true}}}",
        "\nbatch: {groups: [{name: p4d, instanceType: p4d.24xlarge, maxNodes: 1, placement: held,"
        " availabilityZone: us-west-2b}]}",
    )
    assert stack.zone_of_placement("held") == "us-west-2b"


def test_one_reservation_serves_no_two_zones() -> None:
    found = problem(
        "network: {availabilityZones: [us-west-2a, us-west-2b]}",
        "\nplacement: {ours: {reservation: cr-0123456789abcdef0}}",
        "\nbatch: {groups: ["
        "{name: a, instanceType: p4d.24xlarge, maxNodes: 1, placement: ours,"
        " availabilityZone: us-west-2a},"
        "{name: b, instanceType: p4d.24xlarge, maxNodes: 1, placement: ours,"
        " availabilityZone: us-west-2b}]}",
    )
    assert found.key == "trainyard:batch.groups[1].availabilityZone"
    assert "which is us-west-2a" in found.reason


def test_a_group_without_efa_gets_no_placement_group_unasked() -> None:
    stack = load(
        NETWORK,
        "batch: {groups: [{name: m7i, instanceType: m7i.8xlarge, efa: false, maxNodes: 1,"
        " jobs: [{name: a, kind: singleNode, image: 'a:1'}]}]}",
    )
    assert stack.batch is not None
    assert stack.placement_for(stack.batch.groups[0]).placement_group == NoPlacementGroup()


def test_a_job_without_a_timeout_fits_into_its_capacity_block() -> None:
    stack = load(
        NETWORK,
        "placement: {block: {capacityBlock: {id: cr-0123456789abcdef0,"
        ' start: "2026-12-01T11:30:00Z", end: "2026-12-01T23:30:00Z"}}}',
        "\nbatch: {groups: [{name: p5, instanceType: p5.48xlarge, maxNodes: 2, placement: block}]}",
    )
    assert stack.batch is not None
    group = stack.batch.groups[0]
    (train, *_) = group.jobs
    # twelve hours less the forty minutes before which AWS asks to be done
    assert stack.timeout_of(group, train).total_seconds() == (12 * 60 - 40) * 60


# --- what is refused, one key at a time -----------------------------------------------------------

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


EXISTING = """
network:
  existing: {vpcId: vpc-0123456789abcdef0, privateSubnetIds: [subnet-0123456789abcdef0]}
"""


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


# --- all at once ----------------------------------------------------------------------------------


def test_every_problem_of_the_file_is_reported_at_once() -> None:
    found = problems(
        """
network: {cidr: 10.40.0.0/16, availabilityZones: [us-west-2a], natt: single}
placement:
  broken: {reservation: nonsense}
  week: {capacityBlock: cr-0123456789abcdef0, placementGroup: true}
batch:
  groups:
    - {name: one, instanceType: p5.48xlarge, maxNodes: 0}
    - {name: two, instanceType: g5.xlarge, maxNodes: 2, placement: broken}
    - {name: three, instanceType: g5.8xlarge, maxNodes: 2, threadsPerCore: 1,
       jobs: [{name: train, nodes: 5}, {name: other, attempts: 11}]}
  keepImage: true
"""
    )
    assert [each.key for each in found] == [
        "trainyard:network.natt",
        "trainyard:placement.broken.reservation",
        "trainyard:placement.week",
        "trainyard:batch.groups[0].maxNodes",
        "trainyard:batch.groups[2].jobs[1].attempts",
        "trainyard:batch.keepImage",
        "trainyard:batch.groups[1].instanceType",
        "trainyard:batch.groups[2].threadsPerCore",
        "trainyard:batch.groups[2].jobs[0].nodes",
    ]


def test_a_problem_reads_as_key_value_reason_and_fix() -> None:
    found = problem(
        NETWORK, "batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 0}]}"
    )
    assert str(found) == "trainyard:batch.groups[0].maxNodes: 0 is less than 1; write 1 or more"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["groups", "name", "jobs", "existing", "reserve", "x", "cidr"]), inner
        )
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(["network", "placement", "batch", "common", "bacth"]), json_values
    )
)
def test_any_values_give_settings_or_problems_and_never_a_crash(values: dict[str, Any]) -> None:
    with contextlib.suppress(SettingsError):
        load(json.dumps(values))


# --- what is allowed but said ---------------------------------------------------------------------


def test_an_existing_network_is_warned_of_its_default_security_group() -> None:
    assert "trainyard:network.existing.vpcId" in warnings(EXISTING, GROUP)


def test_the_calendar_only_warns() -> None:
    found = warnings(
        NETWORK,
        "placement: {old: {reserve: {instanceType: p5.48xlarge, count: 2,"
        ' endDate: "2026-01-01T00:00:00Z"}},'
        ' past: {capacityBlock: {id: cr-0123456789abcdef0, end: "2026-01-01T00:00:00Z"}},'
        ' soon: {capacityBlock: {id: cr-0123456789abcdef0, start: "2027-01-01T00:00:00Z"}}}',
    )
    assert list(found) == [
        "trainyard:placement.old.reserve.endDate",
        "trainyard:placement.past.capacityBlock.end",
        "trainyard:placement.soon.capacityBlock.start",
    ]


def test_groups_that_share_a_reservation_are_warned_when_they_may_ask_for_more() -> None:
    found = warnings(
        NETWORK,
        "placement: {held: {reserve: {instanceType: p4d.24xlarge, count: 2,"
        ' endDate: "2027-01-01T00:00:00Z"}}}\n',
        "batch: {groups: ["
        "{name: a, instanceType: p4d.24xlarge, maxNodes: 2, placement: held},"
        "{name: b, instanceType: p4d.24xlarge, maxNodes: 2, placement: held}]}",
    )
    assert "4 nodes that 2 groups" in found["trainyard:placement.held.reserve.count"]


def test_a_zone_whose_name_does_not_offer_the_type_is_only_a_warning() -> None:
    found = warnings(
        "network: {availabilityZones: [us-west-2d]}\n",
        "batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2}]}",
    )
    assert (
        "zone names differ from account to account"
        in found["trainyard:batch.groups[0].availabilityZone"]
    )


def test_a_type_whose_cards_have_no_slot_for_the_task_is_warned_of() -> None:
    stack = load(
        "network: {availabilityZones: [us-east-2b]}\n",
        "batch: {groups: [{name: hpc, instanceType: hpc6id.32xlarge, maxNodes: 2,"
        " jobs: [{name: a, image: 'a:1'}]}]}",
        region="us-east-2",
    )
    assert any("may find none" in each.reason for each in stack.warnings)


def test_a_moving_tag_and_a_service_role_are_warned_of() -> None:
    found = warnings(
        NETWORK,
        "batch: {roles: {service: 'arn:aws:iam::123456789012:role/batch'},"
        " groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2,"
        " jobs: [{name: a, image: 'x:latest'}]}]}",
    )
    assert list(found) == [
        "trainyard:batch.roles.service",
        "trainyard:batch.groups[0].jobs[0].image",
    ]

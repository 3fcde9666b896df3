"""What a configuration may say, what is said all at once, and what only deserves a look."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fabric.capacity import NoPlacementGroup
from settings.errors import SettingsError
from tests.support.settings import EXISTING, GROUP, NETWORK, load, problem, problems, warnings

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))

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


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        pytest.param(
            "network: {availabilityZones: [us-west-2a, us-west-2a], natt: x}",
            ["trainyard:network.natt", "trainyard:network"],
            id="an unknown key and a rule between fields",
        ),
        pytest.param(
            NETWORK + "batch: {groups: ["
            "{name: 5, instanceType: g4dn.8xlarge, maxNodes: 1},"
            "{name: a, instanceType: g4dn.8xlarge, maxNodes: 1},"
            "{name: a, instanceType: g4dn.8xlarge, maxNodes: 1}]}",
            ["trainyard:batch.groups[0].name", "trainyard:batch"],
            id="an entry that cannot be read and a rule between entries",
        ),
        pytest.param(
            NETWORK + "batch: {groups: ["
            "{name: a, instanceType: nothing, maxNodes: 1},"
            "{name: b, instanceType: g4dn.8xlarge, maxNodes: 1, minNodes: 2}]}",
            ["trainyard:batch.groups[0].instanceType", "trainyard:batch.groups[1]"],
            id="entries keep their places",
        ),
        pytest.param(
            NETWORK + "batch: {groups: [{name: a, instanceType: g4dn.8xlarge, maxNodes: 1,"
            ' jobs: [{name: j, environment: {N: 5, PATH: "$HOME"}}]}]}',
            [
                "trainyard:batch.groups[0].jobs[0].environment.N",
                "trainyard:batch.groups[0].jobs[0].environment.PATH",
            ],
            id="a variable that is no text and one that looks expanded",
        ),
        pytest.param(
            "network: {availabilityZones: us-west-2a}",
            ["trainyard:network.availabilityZones"],
            id="nothing is said of what only follows",
        ),
    ],
)
def test_faults_of_different_kinds_are_all_told_and_once(text: str, keys: list[str]) -> None:
    assert [each.key for each in problems(text)] == keys


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

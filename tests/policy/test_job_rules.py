"""What the rules on job definitions leave in peace, and where exactly they begin to speak."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.catalogue import find_instance_type
from fabric.rows import Row
from policy.batch_examples import environment, multi_node_job, single_node_job, with_template
from policy.examples import interface, resource
from policy.job_definitions import containers, covered_nodes
from policy.program import Program
from policy.rule import Subject
from policy.rules import job_resources, job_settings, jobs
from policy.tokens import BATCH_JOB_DEFINITION, LAUNCH_TEMPLATE
from policy.values import UNKNOWN

RULES = {rule.id: rule for module in (jobs, job_resources, job_settings) for rule in module.RULES}


def found(rule_id: str, *rows: Row) -> list[str]:
    """The messages of one rule on a program."""
    rule, program = RULES[rule_id], Program(rows)
    return [
        finding.message
        for row in rows
        if row["type"] in rule.types
        for finding in rule.check(Subject(row=row, program=program, options=rule.defaults()))
    ]


def in_range(target: str) -> dict[str, Any]:
    return {"targetNodes": target, "container": {"image": "example:1"}}


def with_devices(count: int, **more: Any) -> Row:
    devices = [{"hostPath": f"/dev/infiniband/uverbs{index}"} for index in range(count)]
    return multi_node_job(linuxParameters={"devices": devices}, **more)


def with_variable(name: str, value: str) -> Row:
    return multi_node_job(environment=[{"name": name, "value": value}])


@given(st.integers(1, 1000), st.integers(0, 999))
def test_two_open_ranges_cover_all_nodes(nodes: int, cut: int) -> None:
    lower, upper = covered_nodes(f":{cut}", nodes), covered_nodes(f"{cut}:", nodes)
    assert lower is not None
    assert upper is not None
    assert {*lower, *upper} == set(range(nodes))


@pytest.mark.parametrize("target", ["", ":", "all", "1-3", "-1:", "0:3:5", "٣:"])
def test_what_is_no_range_covers_nothing(target: str) -> None:
    assert covered_nodes(target, 4) is None


@pytest.mark.parametrize(
    "targets", [["0:"], [":3"], ["0:3", "1:2"], ["0", "1:"], ["0:0", "1:1", "2:2", "3:3"]]
)
def test_ranges_may_nest_and_stay_open(targets: list[str]) -> None:
    assert not found("job-node-ranges", multi_node_job(nodes=4, ranges=[*map(in_range, targets)]))


def test_a_job_maps_the_devices_of_its_own_template() -> None:
    two = resource(
        LAUNCH_TEMPLATE, "template", networkInterfaces=[interface(0, 0, "efa"), interface(1, 1)]
    )
    assert not found("job-efa-devices", two, with_template(), with_devices(2))
    assert found("job-efa-devices", two, with_template(), with_devices(4))


def test_a_job_on_nodes_without_efa_needs_no_device() -> None:
    assert not found("job-efa-devices", environment(), multi_node_job())


def test_a_job_whose_template_is_out_of_sight_maps_what_the_type_has() -> None:
    hidden = environment(launchTemplate={"launchTemplateId": "lt-0123456789abcdef0"})
    assert found("job-efa-devices", hidden, multi_node_job())
    assert not found("job-efa-devices", hidden, with_devices(4))


def test_a_job_on_a_type_without_efa_needs_no_device() -> None:
    assert not found("job-efa-devices", multi_node_job(instanceType="c7i.large"))


def test_a_privileged_container_sees_every_device() -> None:
    assert not found("job-efa-devices", multi_node_job(privileged=True))


def test_a_helper_beside_the_training_container_needs_no_device() -> None:
    task = {"containers": [{"image": "training:1"}, {"image": "logs:1"}]}
    ranges = [
        {
            "targetNodes": "0:",
            "instanceTypes": ["p4d.24xlarge"],
            "ecsProperties": {"taskProperties": [task]},
        }
    ]
    assert not found("job-efa-devices", multi_node_job(ranges=ranges))


def test_a_device_under_another_path_is_not_found_by_libfabric() -> None:
    device = {"hostPath": "/dev/infiniband/uverbs0", "containerPath": "/dev/efa0"}
    one = multi_node_job(
        instanceType="c5n.18xlarge",
        linuxParameters={"devices": [device]},
    )
    assert found("job-efa-devices", one)


def one_node(mapped: int, gpus: int = 8) -> Row:
    devices = [{"hostPath": f"/dev/infiniband/uverbs{index}"} for index in range(mapped)]
    asked = [{"type": "GPU", "value": str(gpus)}]
    return single_node_job(linuxParameters={"devices": devices}, resourceRequirements=asked)


FOUR_CARDS = [
    resource(LAUNCH_TEMPLATE, "template", networkInterfaces=[interface(n, 0) for n in range(4)]),
    with_template(),
]


@pytest.mark.parametrize(("mapped", "speaks"), [(0, False), (1, True), (3, True), (4, False)])
def test_a_job_on_one_whole_node_opens_no_efa_device_or_all(mapped: int, speaks: bool) -> None:
    assert bool(found("job-efa-devices", *FOUR_CARDS, one_node(mapped))) == speaks


def test_a_job_on_one_node_of_which_it_takes_a_part_may_open_some_efa_devices() -> None:
    assert not found("job-efa-devices", *FOUR_CARDS, one_node(1, gpus=2))


@pytest.mark.parametrize("type_", ["p5.48xlarge", "p4d", UNKNOWN])
def test_a_job_on_one_node_may_run_on_any_of_several_types(type_: object) -> None:
    other = environment("other", instanceTypes=[type_])
    assert not found("job-efa-devices", *FOUR_CARDS, other, one_node(1))


MEMORY = find_instance_type("p4d.24xlarge").memory_mib


@pytest.mark.parametrize(
    ("share", "speaking"),
    [(0.49, "job-uses-memory"), (0.96, None), (0.97, "job-memory-headroom"), (1, "job-fits-node")],
)
def test_memory_is_judged_by_one_rule_at_most(share: float, speaking: str | None) -> None:
    asked = multi_node_job(
        resourceRequirements=[{"type": "MEMORY", "value": str(int(MEMORY * share))}]
    )
    rules = ("job-fits-node", "job-memory-headroom", "job-uses-memory")
    assert [rule for rule in rules if found(rule, asked)] == [speaking] * bool(speaking)


def test_the_older_fields_for_vcpus_count() -> None:
    assert found("job-fits-node", multi_node_job(vcpus=97))


@pytest.mark.parametrize("value", ["eth0", "eth", "^lo,docker,ecs", "^ecs", "=eth0"])
def test_an_interface_that_is_not_the_agents_is_fine(value: str) -> None:
    assert not found("job-socket-interface", with_variable("NCCL_SOCKET_IFNAME", value))


@pytest.mark.parametrize("value", ["", "^lo,docker", "ecs", "e"])
def test_an_interface_that_may_be_the_agents_is_found(value: str) -> None:
    assert found("job-socket-interface", with_variable("NCCL_SOCKET_IFNAME", value))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false"),
        ("PAD_TOKEN", "0"),
        ("DB_SECRET", "arn:aws:secretsmanager:us-east-1:123456789012:secret:db"),
        ("HF_TOKEN", ""),
        ("CHECKPOINT", "/fsx/token"),
        ("HF_TOKEN", "Ref::token"),
        ("HF_TOKEN", "<your token>"),
        ("DB_PASSWORD", "change-me"),
        ("WANDB_API_KEY", "${WANDB_API_KEY}"),
    ],
)
def test_what_only_sounds_like_a_secret_is_fine(name: str, value: str) -> None:
    assert not found("job-secrets", with_variable(name, value))


def test_a_finding_about_a_secret_does_not_repeat_it() -> None:
    rule = RULES["job-secrets"]
    row = with_variable("HF_TOKEN", "hf_very_private")
    subject = Subject(row=row, program=Program([row]), options={})
    assert "private" not in str(list(rule.check(subject)))


def test_unknown_properties_are_not_accused() -> None:
    job = resource(
        BATCH_JOB_DEFINITION,
        type="multinode",
        nodeProperties=UNKNOWN,
        timeout={"attemptDurationSeconds": UNKNOWN},
        retryStrategy={"attempts": 3, "evaluateOnExits": UNKNOWN},
    )
    assert [rule for rule in RULES if found(rule, job, environment())] == []


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '"text"', '{"numNodes": null}'])
def test_properties_that_are_no_definition_have_no_containers(text: str) -> None:
    row = resource(BATCH_JOB_DEFINITION, nodeProperties=text, containerProperties=text)
    assert [one for one in containers(row) if one.path != "containerProperties"] == []


def test_properties_in_capitals_are_read_as_the_provider_reads_them() -> None:
    row = resource(BATCH_JOB_DEFINITION, containerProperties=json.dumps({"Image": "example"}))
    assert found("job-fixed-image", row)


def test_a_single_node_job_may_take_part_of_its_node() -> None:
    small = single_node_job(resourceRequirements=[{"type": "MEMORY", "value": "512"}])
    rules = ("job-uses-memory", "job-uses-gpus", "job-shared-memory", "job-efa-devices")
    assert [rule for rule in rules if found(rule, small)] == []

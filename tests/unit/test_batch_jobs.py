"""Job definitions of AWS Batch, checked against the service's own model."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import botocore.session
import pytest
from botocore import validate

from fabric.batch_jobs import (
    BatchJob,
    JobKind,
    environment_conflicts,
    job_command,
    job_definition,
    job_environment,
    processes_per_node,
    retry_strategy,
)
from fabric.catalogue import find_instance_type
from fabric.job_images import (
    default_image,
    entrypoint_evaluates_command,
    has_fixed_tag,
    is_private_ecr,
)

KINDS: tuple[JobKind, ...] = ("torchrun", "collectiveBandwidth", "singleNode")
NEURON_IMAGE = "public.ecr.aws/neuron/pytorch-training-neuronx:2.9.0"

P5 = BatchJob(
    name="pretrain",
    kind="torchrun",
    nodes=4,
    image="public.ecr.aws/deep-learning-containers/pytorch:2.14-cu133-amzn2023",
    command=("train.py", "--name", "it's two words"),
    timeout_seconds=3600,
    attempts=3,
    instance_type=find_instance_type("p5.48xlarge"),
    efa_interfaces=32,
)
TRN1 = replace(
    P5, instance_type=find_instance_type("trn1.32xlarge"), efa_interfaces=8, image=NEURON_IMAGE
)
HPC7A = replace(P5, instance_type=find_instance_type("hpc7a.96xlarge"), efa_interfaces=2)


def definition_of(job: BatchJob) -> dict[str, Any]:
    role = "arn:aws:iam::123456789012:role/job"
    return job_definition(job, log_group="/trainyard/dev", job_role_arn=role)


def container_of(job: BatchJob) -> dict[str, Any]:
    definition = definition_of(job)
    if "containerProperties" in definition:
        return definition["containerProperties"]
    (nodes,) = definition["nodeProperties"]["nodeRangeProperties"]
    return nodes["container"]


# botocore comes without types.
SERVICE: Any = cast("Any", botocore.session).get_session().get_service_model("batch")
REQUEST: Any = SERVICE.shape_for("RegisterJobDefinitionRequest")
VALIDATOR: Any = validate.ParamValidator()


def values_outside_enums(value: Any, shape: Any) -> Iterator[str]:
    """Yield what botocore's validator leaves unchecked: strings that their enum does not list."""
    if shape.type_name == "structure":
        for name, member in value.items():
            yield from values_outside_enums(member, shape.members[name])
    elif shape.type_name == "list":
        for member in value:
            yield from values_outside_enums(member, shape.member)
    elif shape.type_name == "string" and shape.enum and value not in shape.enum:
        yield f"{shape.name}: {value}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("job", [P5, TRN1, HPC7A], ids=["p5", "trn1", "hpc7a"])
def test_batch_takes_the_definition(job: BatchJob, kind: JobKind) -> None:
    request = {"jobDefinitionName": job.name, **definition_of(replace(job, kind=kind))}
    assert VALIDATOR.validate(request, REQUEST).generate_report() == ""
    assert list(values_outside_enums(request, REQUEST)) == []


def test_the_node_range_is_open_so_that_a_submission_can_change_the_number_of_nodes() -> None:
    nodes = definition_of(P5)["nodeProperties"]
    assert (nodes["numNodes"], nodes["mainNode"]) == (4, 0)
    assert [each["targetNodes"] for each in nodes["nodeRangeProperties"]] == ["0:"]


def test_only_multi_node_jobs_name_their_instance_type() -> None:
    assert container_of(P5)["instanceType"] == "p5.48xlarge"
    assert "instanceType" not in container_of(replace(P5, kind="singleNode"))


def test_a_node_is_asked_for_whole() -> None:
    requirements = {
        each["type"]: each["value"] for each in container_of(P5)["resourceRequirements"]
    }
    assert requirements == {"VCPU": "192", "MEMORY": "2013265", "GPU": "8"}


def test_with_one_thread_per_core_a_vcpu_is_a_core() -> None:
    requirements = container_of(replace(P5, threads_per_core=1))["resourceRequirements"]
    assert {"type": "VCPU", "value": "96"} in requirements


@pytest.mark.parametrize(("job", "gpus"), [(TRN1, 0), (HPC7A, 0), (P5, 1)])
def test_gpus_are_requested_only_where_there_are_gpus(job: BatchJob, gpus: int) -> None:
    kinds = [each["type"] for each in container_of(job)["resourceRequirements"]]
    assert kinds.count("GPU") == gpus


def devices_of(job: BatchJob) -> list[str]:
    return [each["hostPath"] for each in container_of(job)["linuxParameters"].get("devices", [])]


def test_a_multi_node_job_gets_all_efa_and_neuron_devices() -> None:
    assert sum("uverbs" in path for path in devices_of(P5)) == 32
    assert sum("uverbs" in path for path in devices_of(TRN1)) == 8
    assert sum("neuron" in path for path in devices_of(TRN1)) == 16


def test_one_node_alone_needs_its_neuron_devices_but_no_efa() -> None:
    assert sum("neuron" in path for path in devices_of(replace(TRN1, kind="singleNode"))) == 16
    assert sum("uverbs" in path for path in devices_of(replace(TRN1, kind="singleNode"))) == 0


def test_shared_memory_is_set_and_smaller_than_the_memory() -> None:
    container = container_of(P5)
    memory = {each["type"]: int(each["value"]) for each in container["resourceRequirements"]}
    assert 0 < container["linuxParameters"]["sharedMemorySize"] < memory["MEMORY"]


def test_no_job_is_privileged() -> None:
    assert "privileged" not in container_of(P5)


def test_scratch_is_mounted_where_the_node_has_it() -> None:
    (volume,) = container_of(P5)["volumes"]
    (mount,) = container_of(P5)["mountPoints"]
    assert volume["host"]["sourcePath"] == mount["containerPath"] == "/scratch"
    assert volume["name"] == mount["sourceVolume"]
    assert "volumes" not in container_of(HPC7A)


def test_logs_go_to_the_group_under_the_name_of_the_job() -> None:
    options = container_of(P5)["logConfiguration"]["options"]
    assert options == {"awslogs-group": "/trainyard/dev", "awslogs-stream-prefix": "pretrain"}


def test_a_job_is_repeated_only_when_its_host_was_lost() -> None:
    strategy = retry_strategy(3)
    assert strategy["attempts"] == 3
    assert strategy["evaluateOnExit"][0] == {"onStatusReason": "Host EC2*", "action": "RETRY"}
    assert strategy["evaluateOnExit"][-1] == {"onReason": "*", "action": "EXIT"}


def test_a_definition_that_batch_does_not_take_is_refused_with_its_size() -> None:
    with pytest.raises(ValueError, match=r"pretrain: its definition has 3\d{4} bytes"):
        definition_of(replace(P5, command=("x" * 30_000,)))


def test_collectives_find_the_interface_of_the_task() -> None:
    environment = job_environment(P5)
    assert environment["NCCL_SOCKET_IFNAME"] == "^lo,docker,ecs"
    assert environment["GLOO_SOCKET_IFNAME"] == "eth0"


def test_one_node_alone_gets_only_the_environment_it_was_given() -> None:
    job = replace(P5, kind="singleNode", environment={"SEED": "7"})
    assert job_environment(job) == {"SEED": "7"}


def test_the_user_has_the_last_word_on_the_environment() -> None:
    assert job_environment(replace(P5, environment={"NCCL_DEBUG": "WARN"}))["NCCL_DEBUG"] == "WARN"


def test_neuron_is_told_to_use_efa_and_nvidia_finds_out_itself() -> None:
    assert job_environment(TRN1)["FI_PROVIDER"] == "efa"
    assert not any(name.startswith("FI_") for name in job_environment(P5))


@pytest.mark.parametrize(
    "stale", ["FI_EFA_FORK_SAFE", "RDMAV_FORK_SAFE", "NCCL_PROTO", "NCCL_MIN_CHANNELS"]
)
def test_advice_of_former_years_is_not_in_the_environment(stale: str) -> None:
    assert stale not in job_environment(P5) | job_environment(TRN1)


def test_processes_are_counted_by_accelerator() -> None:
    counts = [processes_per_node(job.instance_type) for job in (P5, TRN1, HPC7A)]
    assert counts == [8, 32, 1]
    assert job_environment(P5)["TRAINYARD_PROCESSES_PER_NODE"] == "8"


@pytest.mark.parametrize("value", ["$PATH:/opt/bin", "${HOME}/x", "/data/$(hostname)"])
def test_a_value_that_looks_expanded_is_a_problem(value: str) -> None:
    (conflict,) = environment_conflicts({"PATH": value}).values()
    assert "expands no variables" in conflict.reason


def test_a_name_of_batch_itself_is_a_problem() -> None:
    assert list(environment_conflicts({"AWS_BATCH_JOB_ID": "1"})) == ["AWS_BATCH_JOB_ID"]


def test_a_plain_value_is_no_problem() -> None:
    assert environment_conflicts({"PRICE": "5$", "PATTERN": "^a$"}) == {}


def test_all_problems_of_an_environment_are_reported_at_once() -> None:
    job = replace(P5, environment={"AWS_BATCH_X": "1", "PATH": "$PATH"})
    with pytest.raises(ValueError, match=r"(?s)job pretrain: AWS_BATCH_X .*job pretrain: PATH "):
        job_environment(job)


def test_the_words_of_the_user_follow_the_script_unchanged() -> None:
    command = job_command(P5)
    assert command[:2] == ["bash", "-c"]
    assert command[3:] == ["torchrun-job", *P5.command]
    assert job_command(replace(P5, kind="singleNode")) == list(P5.command)


@pytest.mark.parametrize("kind", KINDS)
def test_an_entrypoint_that_evaluates_its_command_gets_the_same_words(kind: JobKind) -> None:
    words = job_command(replace(P5, kind=kind))
    quoted = job_command(replace(P5, kind=kind, image=NEURON_IMAGE))
    entrypoint = 'printf() { builtin printf "%s\\0" "$@"; }; eval printf "$@"'
    seen = subprocess.check_output(["bash", "-c", entrypoint, "entrypoint", *quoted], text=True)
    assert seen.split("\0")[:-1] == words


@pytest.mark.parametrize("image", [P5.image, NEURON_IMAGE])
@pytest.mark.parametrize("kind", ["torchrun", "collectiveBandwidth"])
def test_a_command_is_short_enough_to_be_overridden_at_submission(
    kind: JobKind, image: str
) -> None:
    # ECS: "Container Overrides length must be at most 8192", of command and environment as JSON.
    container = container_of(replace(P5, kind=kind, image=image))
    overrides = json.dumps([container["command"], container["environment"]])
    assert len(overrides) < 8192 - 1024


@pytest.mark.parametrize("kind", ["torchrun", "collectiveBandwidth"])
def test_batch_finds_nothing_to_substitute_in_a_script(kind: JobKind) -> None:
    assert not any("Ref::" in word for word in job_command(replace(P5, kind=kind)))


@pytest.mark.parametrize("name", ["p5.48xlarge", "g4dn.8xlarge", "trn1.32xlarge", "trn2.48xlarge"])
def test_a_default_image_is_pinned(name: str) -> None:
    image = default_image(find_instance_type(name))
    assert image is not None
    assert has_fixed_tag(image)


@pytest.mark.parametrize(
    "name",
    ["hpc7a.96xlarge", "hpc7g.16xlarge", "p6e-gb200.36xlarge", "inf1.24xlarge", "p3dn.24xlarge"],
)
def test_there_is_no_default_image_where_none_would_run_with_efa(name: str) -> None:
    assert default_image(find_instance_type(name)) is None


def test_the_default_image_for_neuron_evaluates_its_command() -> None:
    image = default_image(find_instance_type("trn1.32xlarge"))
    assert image is not None
    assert entrypoint_evaluates_command(image)


@pytest.mark.parametrize(
    ("image", "fixed"),
    [
        ("ubuntu", False),
        ("ubuntu:latest", False),
        ("registry:5000/team/train", False),
        ("registry:5000/team/train:1.2", True),
        ("train@sha256:" + "0" * 64, True),
        ("train:latest@sha256:" + "0" * 64, True),
    ],
)
def test_a_tag_is_fixed_when_it_is_not_latest(image: str, fixed: bool) -> None:
    assert has_fixed_tag(image) is fixed


@pytest.mark.parametrize(
    ("image", "private"),
    [
        ("123456789012.dkr.ecr.us-west-2.amazonaws.com/train:1", True),
        ("123456789012.dkr-ecr.us-west-2.on.aws/train:1", True),
        ("123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1", False),
        ("public.ecr.aws/deep-learning-containers/pytorch:2.14-cu133-amzn2023", False),
        ("123456789012.dkr.ecr.us-west-2.amazonaws.com.example.org/train:1", False),
        ("ubuntu:24.04", False),
    ],
)
def test_only_private_ecr_of_the_region_is_reachable_without_a_nat(
    image: str, private: bool
) -> None:
    assert is_private_ecr(image, "us-west-2") is private

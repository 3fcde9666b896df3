"""What a container may use of its node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.catalogue import find_instance_type
from fabric.containers import (
    ULIMITS,
    efa_devices,
    memory_request_mib,
    neuron_devices,
    node_resources,
    shared_memory_mib,
    vcpu_request,
)


@pytest.mark.parametrize("count", [0, 1, 4, 32])
def test_every_efa_interface_has_its_verbs_device(count: int) -> None:
    paths = [device.path for device in efa_devices(count)]
    assert paths == [f"/dev/infiniband/uverbs{index}" for index in range(count)]


def test_a_verbs_device_can_be_read_written_and_made() -> None:
    (device,) = efa_devices(1)
    assert set(device.permissions) == {"READ", "WRITE", "MKNOD"}


def test_every_neuron_device_is_mapped() -> None:
    assert [device.path for device in neuron_devices(2)] == ["/dev/neuron0", "/dev/neuron1"]


@given(st.integers(min_value=1024, max_value=32 * 1024 * 1024))
def test_a_job_leaves_at_least_four_percent_of_memory_to_the_host(memory_mib: int) -> None:
    request = memory_request_mib(memory_mib)
    assert request <= 0.96 * memory_mib < request + 1


@given(st.integers(min_value=4, max_value=32 * 1024 * 1024))
def test_shared_memory_is_less_than_the_memory_of_the_container(memory_mib: int) -> None:
    assert 0 < shared_memory_mib(memory_mib) < memory_mib


def test_memory_can_be_locked_without_limit() -> None:
    assert {ulimit.name: ulimit.limit for ulimit in ULIMITS}["memlock"] == -1


@pytest.mark.parametrize(
    ("name", "threads_per_core", "vcpus"),
    [
        ("p4d.24xlarge", None, 96),
        ("p4d.24xlarge", 2, 96),
        ("p4d.24xlarge", 1, 48),
        ("hpc7a.96xlarge", None, 192),
        ("hpc7a.96xlarge", 1, 192),
    ],
)
def test_vcpus_are_what_the_node_registers(
    name: str, threads_per_core: int | None, vcpus: int
) -> None:
    assert vcpu_request(find_instance_type(name), threads_per_core) == vcpus


def test_threads_that_the_type_cannot_run_with_are_refused() -> None:
    with pytest.raises(ValueError, match=r"g5\.12xlarge cannot run with 1 threads per core"):
        vcpu_request(find_instance_type("g5.12xlarge"), 1)


def test_a_p5_job_asks_for_the_whole_node() -> None:
    resources = node_resources(find_instance_type("p5.48xlarge"))
    assert (resources.vcpus, resources.memory_mib, resources.gpus) == (192, 2013265, 8)


def test_accelerators_that_ecs_does_not_count_are_not_requested_as_gpus() -> None:
    assert node_resources(find_instance_type("trn1.32xlarge")).gpus == 0

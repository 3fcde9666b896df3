"""The scripts of multi-node jobs, run for real with a torchrun that only plays its part."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "fabric" / "job_scripts"
TORCHRUN_JOB = (SCRIPTS / "torchrun.sh").read_text()

# Writes down its words; on the main node it listens as torchrun's store does; then it ends.
TORCHRUN = f"""#!{sys.executable}
import json, os, pathlib, signal, socket, sys, time

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--"))
record = pathlib.Path(os.environ["RECORDS"], options["node-rank"])
if options["node-rank"] == "0":
    store = socket.create_server(("", int(options["master-port"])))
record.with_suffix(".new").write_text(json.dumps([os.getpid(), sys.argv[1:]]))
record.with_suffix(".new").rename(record)
time.sleep(float(os.environ["SECONDS_TO_RUN"]))
sys.exit(int(os.environ["STATUS"]))
"""

# of the same environment as Python, whether or not that is on PATH
SHELLCHECK = Path(sys.executable).with_name("shellcheck")


class Cluster:
    """Nodes of one job as processes on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nodes: list[subprocess.Popen[str]] = []
        (folder / "bin").mkdir()
        (folder / "devices").mkdir()
        self.tool("torchrun", TORCHRUN)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])

    def tool(self, name: str, text: str) -> None:
        (self.folder / "bin" / name).write_text(text)
        (self.folder / "bin" / name).chmod(0o755)

    def start(
        self, index: int, *words: str, runs: float = 0.0, status: int = 0, **more: str
    ) -> subprocess.Popen[str]:
        main_address = {"AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS": "127.0.0.1"}
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "AWS_BATCH_JOB_NODE_INDEX": str(index),
            "AWS_BATCH_JOB_MAIN_NODE_INDEX": "0",
            "AWS_BATCH_JOB_NUM_NODES": "2",
            "MASTER_PORT": self.port,
            "TRAINYARD_EFA_DIRECTORY": str(self.folder / "devices"),
            "TRAINYARD_PROBE_SECONDS": "0.1",
            "TRAINYARD_GRACE_SECONDS": "2",
            "RECORDS": str(self.folder),
            "SECONDS_TO_RUN": str(runs),
            "STATUS": str(status),
            **(main_address if index else {}),
            **more,
        }
        node = subprocess.Popen(
            ["bash", "-c", TORCHRUN_JOB, "torchrun-job", *words],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.nodes.append(node)
        return node

    def torchrun(self, index: int) -> tuple[int, list[str]]:
        """Return the process id and the words of a node's torchrun once it runs."""
        deadline = time.monotonic() + 10
        while not (self.folder / str(index)).exists():
            assert time.monotonic() < deadline, f"torchrun of node {index} did not start"
            time.sleep(0.02)
        process, words = json.loads((self.folder / str(index)).read_text())
        return process, words


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    for node in cluster.nodes:
        node.kill()
        node.communicate()


def end_of(node: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = node.communicate(timeout=20)
    return node.returncode, errors


@pytest.mark.parametrize("name", ["torchrun.sh", "ecs_agent.sh", "scratch.sh"])
def test_shellcheck_finds_nothing(name: str) -> None:
    check = subprocess.run(
        [SHELLCHECK, SCRIPTS / name], capture_output=True, text=True, check=False
    )
    assert check.stdout == ""


def test_the_main_node_does_without_an_address_from_batch(cluster: Cluster) -> None:
    assert end_of(cluster.start(0, "train.py", "two words"))[0] == 0
    _, words = cluster.torchrun(0)
    assert words[:3] == ["--nnodes=2", "--node-rank=0", "--nproc-per-node=1"]
    assert f"--master-port={cluster.port}" in words
    assert words[-2:] == ["train.py", "two words"]


def test_the_main_node_gives_its_trainers_an_ip_address(cluster: Cluster) -> None:
    end_of(cluster.start(0))
    _, words = cluster.torchrun(0)
    (address,) = [word.split("=")[1] for word in words if word.startswith("--master-addr")]
    assert socket.inet_aton(address)


def test_without_any_route_the_main_node_is_on_loopback(cluster: Cluster) -> None:
    cluster.tool("python3", "#!/bin/bash\nexit 1\n")
    end_of(cluster.start(0))
    assert "--master-addr=127.0.0.1" in cluster.torchrun(0)[1]


def test_a_worker_joins_the_main_node_and_both_end_well(cluster: Cluster) -> None:
    worker = cluster.start(1, "train.py")
    main = cluster.start(0, "train.py", runs=2)
    assert "--node-rank=1" in cluster.torchrun(1)[1]
    assert "--master-addr=127.0.0.1" in cluster.torchrun(1)[1]
    assert (end_of(main)[0], end_of(worker)[0]) == (0, 0)


def test_the_number_of_nodes_is_the_one_of_the_submission(cluster: Cluster) -> None:
    end_of(cluster.start(0, AWS_BATCH_JOB_NUM_NODES="7", TRAINYARD_PROCESSES_PER_NODE="8"))
    assert cluster.torchrun(0)[1][:3] == ["--nnodes=7", "--node-rank=0", "--nproc-per-node=8"]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failure_keeps_its_exit_status(cluster: Cluster, failing: int) -> None:
    main = cluster.start(0, runs=1, status=3 if failing == 0 else 0)
    cluster.torchrun(0)
    worker = cluster.start(1, status=3 if failing == 1 else 0)
    assert end_of((main, worker)[failing])[0] == 3


def test_a_worker_leaves_when_the_main_node_is_gone(cluster: Cluster) -> None:
    main = cluster.start(0, runs=60)
    cluster.torchrun(0)
    worker = cluster.start(1, runs=60)
    process, _ = cluster.torchrun(1)
    main.kill()
    status, errors = end_of(worker)
    assert status == 75
    assert "main node 127.0.0.1 is gone" in errors
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_worker_that_outlives_a_finished_main_node_ends_well(cluster: Cluster) -> None:
    main = cluster.start(0, runs=1)
    cluster.torchrun(0)
    worker = cluster.start(1, runs=2)
    assert (end_of(main)[0], end_of(worker)[0]) == (0, 0)


def test_a_worker_does_not_wait_for_ever(cluster: Cluster) -> None:
    status, errors = end_of(cluster.start(1, TRAINYARD_WAIT_SECONDS="1"))
    assert status == 74
    assert f"main node 127.0.0.1:{cluster.port} did not answer in 1 s" in errors


def test_the_end_of_a_job_reaches_the_torchrun_of_a_worker(cluster: Cluster) -> None:
    cluster.start(0, runs=60)
    cluster.torchrun(0)
    worker = cluster.start(1, runs=60)
    cluster.torchrun(1)
    worker.send_signal(signal.SIGTERM)
    assert end_of(worker)[0] == 143


def test_efa_devices_without_a_provider_stop_the_job(cluster: Cluster) -> None:
    (cluster.folder / "devices" / "uverbs0").touch()
    status, errors = end_of(cluster.start(0))
    assert status == 69
    assert "no efa provider in this image" in errors
    assert "efa_installer.sh" in errors


def test_efa_devices_with_a_provider_are_fine(cluster: Cluster) -> None:
    (cluster.folder / "devices" / "uverbs0").touch()
    cluster.tool("fi_info", '#!/bin/bash\n[[ $* == "-p efa" ]]\n')
    assert end_of(cluster.start(0))[0] == 0


def test_outside_of_batch_the_script_says_where_it_belongs(cluster: Cluster) -> None:
    status, errors = end_of(cluster.start(0, AWS_BATCH_JOB_NODE_INDEX=""))
    assert status == 64
    assert "not in an AWS Batch multi-node job" in errors


def test_an_image_without_torchrun_is_told_so(cluster: Cluster) -> None:
    (cluster.folder / "bin" / "torchrun").unlink()
    status, errors = end_of(cluster.start(0, PATH="/usr/bin:/bin"))
    assert status == 127
    assert "no torchrun in this image" in errors


# Four processes of which each all-reduce takes a hundredth of a second.
TORCH = """
class device:
    def __init__(self, *kind): pass
class cuda:
    is_available = staticmethod(lambda: False)
def zeros(length, device): return None
"""
TORCH_DISTRIBUTED = """
import os, time
def init_process_group(backend): assert backend == "gloo"
def destroy_process_group(): pass
def get_world_size(): return 4
def get_rank(): return int(os.environ["RANK"])
def all_reduce(tensor): time.sleep(0.01)
"""


def measure(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text(TORCH)
    (folder / "torch" / "distributed.py").write_text(TORCH_DISTRIBUTED)
    return subprocess.run(
        [sys.executable, "-c", (SCRIPTS / "collective_bandwidth.py").read_text()],
        env={"PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_bus_bandwidth_counts_what_each_link_carries(tmp_path: Path) -> None:
    result = json.loads(measure(tmp_path, RANK="0").stdout.splitlines()[-1])
    ideal = 2 * 3 / 4 * 16 * 2**20 / 0.01 / 1e9
    assert result["processes"] == 4
    assert 0.5 * ideal < result["busGBps"] < ideal


def test_gloo_is_said_not_to_use_efa(tmp_path: Path) -> None:
    assert "never uses EFA" in measure(tmp_path, RANK="0").stdout.splitlines()[0]


@pytest.mark.parametrize(("minimum", "status"), [("1", 0), ("1000", 1)])
def test_less_than_the_minimum_fails_the_job(tmp_path: Path, minimum: str, status: int) -> None:
    assert measure(tmp_path, RANK="0", TRAINYARD_MINIMUM_BUS_GBPS=minimum).returncode == status


def test_only_the_first_process_reports(tmp_path: Path) -> None:
    assert measure(tmp_path, RANK="1", TRAINYARD_MINIMUM_BUS_GBPS="1000").stdout == ""

"""The user data of nodes: its form, and what its scripts do."""

import base64
import email
import os
import subprocess
import sys
from email.message import Message
from pathlib import Path

import pytest

from fabric.user_data import (
    MAXIMUM_BYTES,
    Part,
    ecs_agent_part,
    launch_template_user_data,
    node_user_data,
    scratch_part,
)

# of the same environment as Python, whether or not that is on PATH
SHELLCHECK = Path(sys.executable).with_name("shellcheck")


def parts_of(user_data: str) -> list[Message]:
    document = email.message_from_string(user_data)
    assert document.is_multipart()
    return [part for part in document.walk() if not part.is_multipart()]


def test_each_boundary_is_followed_at_once_by_the_content_type() -> None:
    lines = node_user_data(instance_store_disks=8).splitlines()
    after = [lines[n + 1] for n, line in enumerate(lines) if line == "--==trainyard=="]
    assert after == ['Content-Type: text/x-shellscript; charset="us-ascii"'] * 2


def test_headers_of_a_part_end_with_a_blank_line_before_the_script() -> None:
    assert "\n\n#!/bin/bash\n" in node_user_data(instance_store_disks=0)


def test_a_mail_parser_gets_back_every_script_unchanged() -> None:
    expected = [ecs_agent_part(), scratch_part(4)]
    found = parts_of(node_user_data(instance_store_disks=4))
    assert [part.get_payload() for part in found] == [part.script for part in expected]
    assert [part.get_filename() for part in found] == [part.file_name for part in expected]


def test_scripts_are_in_the_order_in_which_cloud_init_runs_them() -> None:
    more = Part(file_name="30-lustre.sh", script="#!/bin/bash\n")
    user_data = node_user_data(instance_store_disks=1, further_parts=[more])
    names = [str(part.get_filename()) for part in parts_of(user_data)]
    assert names == sorted(names) == ["10-ecs-agent.sh", "20-scratch.sh", "30-lustre.sh"]


def test_a_node_without_instance_store_has_no_scratch() -> None:
    assert "/scratch" not in node_user_data(instance_store_disks=0)


def test_the_same_node_always_has_the_same_user_data() -> None:
    assert node_user_data(instance_store_disks=8) == node_user_data(instance_store_disks=8)


def test_what_batch_sets_itself_is_left_alone() -> None:
    assignments = [
        line for line in node_user_data(instance_store_disks=8).splitlines() if "ECS_" in line
    ]
    assert [line for line in assignments if not line.startswith("#")] == [
        "ECS_AWSVPC_BLOCK_IMDS=true"
    ]


def test_user_data_that_ec2_does_not_take_is_refused_with_its_size() -> None:
    large = Part(file_name="30-large.sh", script="#" * MAXIMUM_BYTES)
    with pytest.raises(ValueError, match=r"user data has \d{5} bytes, EC2 takes at most 16384"):
        node_user_data(instance_store_disks=0, further_parts=[large])


def test_a_launch_template_gets_base64() -> None:
    user_data = node_user_data(instance_store_disks=0)
    assert base64.b64decode(launch_template_user_data(user_data)).decode() == user_data


@pytest.mark.parametrize("part", [ecs_agent_part(), scratch_part(1), scratch_part(8)])
def test_shellcheck_finds_nothing_in_the_rendered_scripts(part: Part) -> None:
    check = subprocess.run(
        [SHELLCHECK, "-"], input=part.script, capture_output=True, text=True, check=False
    )
    assert check.stdout == ""


class Node:
    """A machine whose paths are under a folder and whose disk tools only write down their words."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls = root / "calls"
        for folder in ("bin", "by-id", "etc/ecs"):
            (root / folder).mkdir(parents=True)
        (root / "fstab").touch()
        for tool in ("chattr", "mdadm", "mkfs.xfs", "mount", "udevadm", "dnf"):
            self.tool(tool)
        self.tool("mountpoint", status=1)
        self.tool("blkid", status=2)

    def tool(self, name: str, status: int = 0) -> None:
        path = self.root / "bin" / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>{self.calls}\nexit {status}\n')
        path.chmod(0o755)

    def attach(self, *models: str) -> None:
        for number, model in enumerate(models):
            device = self.root / f"nvme{number}n1"
            device.touch()
            for suffix in ("", "_1"):
                (self.root / "by-id" / f"nvme-{model}_{number}{suffix}").symlink_to(device)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        moved = {
            "/dev/disk/by-id": "by-id",
            "/dev/md/scratch": "md-scratch",
            "/dev/console": "console",
            "/etc/fstab": "fstab",
            "/etc/ecs": "etc/ecs",
            "=/scratch": "scratch",
        }
        for path, place in moved.items():
            prefix = "=" if path.startswith("=") else ""
            script = script.replace(path, f"{prefix}{self.root / place}")
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-c", script],
            env={"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    def used(self, tool: str) -> list[str]:
        calls = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [call for call in calls if call.split()[0] == tool]


INSTANCE_STORE = "Amazon_EC2_NVMe_Instance_Storage_AWS0123"
EBS = "Amazon_Elastic_Block_Store_vol0123"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_instance_store_disks_are_joined_and_ebs_volumes_are_not_touched(node: Node) -> None:
    node.attach(EBS, INSTANCE_STORE, INSTANCE_STORE)
    assert node.run(scratch_part(2).script).returncode == 0
    (create,) = node.used("mdadm")
    assert create.endswith(f"--raid-devices=2 {node.root}/nvme1n1 {node.root}/nvme2n1")
    assert "--level=0" in create
    assert "nvme0n1" not in node.calls.read_text()


def test_one_disk_needs_no_array(node: Node) -> None:
    node.attach(INSTANCE_STORE)
    assert node.run(scratch_part(1).script).returncode == 0
    assert node.used("mdadm") == []
    assert node.used("mkfs.xfs")[0].endswith(f"{node.root}/nvme0n1")


def test_everybody_may_write_to_scratch(node: Node) -> None:
    node.attach(INSTANCE_STORE)
    node.run(scratch_part(1).script)
    assert (node.root / "scratch").stat().st_mode & 0o7777 == 0o1777


def test_scratch_is_mounted_again_at_the_next_boot(node: Node) -> None:
    node.attach(INSTANCE_STORE)
    node.run(scratch_part(1).script)
    node.run(scratch_part(1).script)
    line = f"LABEL=scratch {node.root}/scratch xfs noatime,nofail 0 0\n"
    assert (node.root / "fstab").read_text() == line


def test_a_file_system_that_exists_is_kept(node: Node) -> None:
    node.attach(INSTANCE_STORE, INSTANCE_STORE)
    (node.root / "md-scratch").touch()
    node.tool("blkid")
    assert node.run(scratch_part(2).script).returncode == 0
    assert node.used("mdadm") == node.used("mkfs.xfs") == []
    assert len(node.used("mount")) == 1


def test_a_mounted_scratch_is_left_alone(node: Node) -> None:
    node.tool("mountpoint")
    assert node.run(scratch_part(2).script).returncode == 0
    assert node.used("mount") == node.used("chattr") == []


def test_a_missing_disk_stops_the_script_and_is_said_on_the_console(node: Node) -> None:
    node.attach(INSTANCE_STORE)
    assert node.run(scratch_part(2).script).returncode == 1
    assert "found 1 instance store disks" in (node.root / "console").read_text()
    assert node.used("mkfs.xfs") == node.used("mount") == []


def test_a_tool_that_fails_is_said_on_the_console(node: Node) -> None:
    node.attach(INSTANCE_STORE)
    node.tool("mkfs.xfs", status=1)
    assert node.run(scratch_part(1).script).returncode == 1
    assert "mkfs.xfs -q" in (node.root / "console").read_text()
    assert node.used("mount") == []


def test_without_a_file_system_scratch_takes_no_file(node: Node) -> None:
    node.run(scratch_part(1).script)
    assert node.used("chattr") == [f"chattr +i {node.root}/scratch"]


def test_ecs_settings_are_added_once_to_what_batch_wrote(node: Node) -> None:
    config = node.root / "etc/ecs/ecs.config"
    config.write_text("ECS_CLUSTER=batch\n")
    for _ in range(2):
        assert node.run(ecs_agent_part().script).returncode == 0
    assert config.read_text() == "ECS_CLUSTER=batch\nECS_AWSVPC_BLOCK_IMDS=true\n"

"""The user data of a node: shell scripts in one MIME multi-part document.

Later parts (file systems to mount) are further `Part` values.
https://docs.aws.amazon.com/batch/latest/userguide/launch-templates.html
"""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import Path

# Before base64: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html
MAXIMUM_BYTES = 16 * 1024

# Fixed, so that the same node always has the same user data and its launch template no new version.
_BOUNDARY = "==trainyard=="

_SCRIPTS = Path(__file__).parent / "job_scripts"


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One shell script that cloud-init runs once, as root, before the ECS agent starts.

    cloud-init runs scripts in the order of their file names, hence "10-ecs-agent.sh".
    """

    file_name: str
    script: str


def ecs_agent_part() -> Part:
    """Return the script that tells the ECS agent to keep tasks from the instance's credentials.

    ECS_AWSVPC_BLOCK_IMDS covers tasks that have their own interface, as multi-node jobs do.
    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-agent-config.html
    """
    return Part(file_name="10-ecs-agent.sh", script=_read("ecs_agent.sh"))


def scratch_part(instance_store_disks: int) -> Part:
    """Return the script that puts the node's `instance_store_disks` NVMe disks on /scratch.

    Several disks become a RAID 0, one is used as it is; a number of disks other than expected
    stops the script, says so on the instance's console and leaves /scratch unwritable.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ssd-instance-store.html
    """
    script = _read("scratch.sh").replace("@INSTANCE_STORE_DISKS@", str(instance_store_disks))
    return Part(file_name="20-scratch.sh", script=script)


def node_user_data(*, instance_store_disks: int, further_parts: Iterable[Part] = ()) -> str:
    """Return a node's user data as MIME text; `launch_template_user_data` encodes it.

    Raises ValueError, with the size, when it is longer than EC2 takes.
    """
    parts = [ecs_agent_part()]
    if instance_store_disks:
        parts.append(scratch_part(instance_store_disks))
    return _mime([*parts, *further_parts])


def launch_template_user_data(user_data: str) -> str:
    """Return user data in base64, the form that a launch template wants.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestLaunchTemplateData.html
    """
    return base64.b64encode(user_data.encode("ascii")).decode("ascii")


def _mime(parts: Iterable[Part]) -> str:
    document = MIMEMultipart(boundary=_BOUNDARY)
    for part in parts:
        attachment = MIMEText(part.script, "x-shellscript", "us-ascii")
        attachment.add_header("Content-Disposition", "attachment", filename=part.file_name)
        document.attach(attachment)
    text = document.as_string()
    if len(text) > MAXIMUM_BYTES:
        raise ValueError(
            f"user data has {len(text)} bytes, EC2 takes at most {MAXIMUM_BYTES}; "
            f"move scripts into the machine image"
        )
    return text


def _read(name: str) -> str:
    return (_SCRIPTS / name).read_text(encoding="ascii")

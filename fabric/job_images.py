"""Container images of jobs: the defaults, and what can be told from an image's name alone."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

from fabric.catalogue import InstanceType

Accelerator = Literal["nvidia", "neuron", "cpu"]

# https://docs.aws.amazon.com/AmazonECR/latest/userguide/Registries.html
_PRIVATE_ECR = re.compile(
    r"(?P<account>\d{12})\.dkr[.-]ecr(-fips)?\.(?P<region>[a-z0-9-]+)\."
    r"(amazonaws\.com(\.cn)?|on\.aws)/.+"
)


def default_image(instance_type: InstanceType) -> str | None:
    """Return AWS's training image for jobs on an instance type.

    Each default carries libfabric with the efa provider and the plug-in that brings collectives
    to it; job_images.json names the sources. None means that no such image is known, so that a
    job there has to name its own: AWS's CPU images, for one, come without EFA.
    https://aws.github.io/deep-learning-containers/pytorch/
    """
    accelerator: Accelerator = (
        "nvidia"
        if instance_type.nvidia_gpus
        else "neuron"
        if instance_type.neuron_devices
        else "cpu"
    )
    entry = _data()["defaults"][accelerator].get(instance_type.architecture)
    if entry is None or instance_type.family in entry.get("notForFamilies", ()):
        return None
    return entry["image"]


def is_private_ecr(image: str, region: str) -> bool:
    """Return whether `image` is in a private ECR registry of `region`.

    Only those are reachable by interface endpoints, hence from a network without a NAT.
    https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html
    """
    match = _PRIVATE_ECR.fullmatch(image)
    return match is not None and match["region"] == region


def has_fixed_tag(image: str) -> bool:
    """Return whether `image` names a digest, or a tag other than "latest".

    https://docs.docker.com/reference/cli/docker/image/tag/
    """
    name, _, digest = image.partition("@")
    _, _, tag = name.rpartition("/")[2].partition(":")
    return bool(digest) or tag not in ("", "latest")


def entrypoint_evaluates_command(image: str) -> bool:
    """Return whether the image's entrypoint runs `eval "$@"` instead of `exec "$@"`.

    Such an entrypoint parses the words of a command once more, so they have to be quoted for it.
    It is known by the last part of the repository's name, so copies of the image are found, too.
    """
    name = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return name in _data()["entrypointsThatEvaluate"]


@cache
def _data() -> dict[str, Any]:
    return json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))

"""Machine images of AWS Batch compute environments."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fabric.catalogue import InstanceType
from fabric.rows import mappings, text
from policy.batch import compute_resources, kind
from policy.batch_examples import environment
from policy.nodes import known_types, launched_types
from policy.rule import Finding, Rule, Subject
from policy.tokens import BATCH_ENVIRONMENT
from policy.values import is_unknown

EC2_CONFIGURATION_PAGE = (
    "https://docs.aws.amazon.com/batch/latest/APIReference/API_Ec2Configuration.html"
)
COMPUTE_RESOURCE_PAGE = (
    "https://docs.aws.amazon.com/batch/latest/APIReference/API_ComputeResource.html"
)
# no longer served by the driver in ECS_AL2023_NVIDIA, by EC2_CONFIGURATION_PAGE: p3 and g3
_GPUS_WITHOUT_AL2023 = ("V100", "M60")
_IMAGE_ID = re.compile(r"ami-([0-9a-f]{8}|[0-9a-f]{17})")


def _configurations(subject: Subject) -> list[tuple[str, Mapping[str, Any]]]:
    listed = mappings(subject.at("computeResources.ec2Configurations"))
    return [
        (f"computeResources.ec2Configurations[{index}]", one) for index, one in enumerate(listed)
    ]


def _from_batch(subject: Subject) -> Iterator[tuple[str, str]]:
    """Path and name of each image type for which Batch chooses the image."""
    if compute_resources(subject.row).get("imageId"):
        return
    for path, one in _configurations(subject):
        if not one.get("imageIdOverride"):
            yield f"{path}.imageType", text(one.get("imageType")).upper()


def _supported(subject: Subject) -> Iterator[Finding]:
    for path, name in _from_batch(subject):
        if re.fullmatch(r"E[CK]S_AL(1|2)(_NVIDIA)?", name):
            yield Finding(
                path=path, value=name, message="Amazon Linux 2 images are no longer offered"
            )


def _explicit(subject: Subject) -> Iterator[Finding]:
    resources = compute_resources(subject.row)
    listed = resources.get("ec2Configurations")
    if kind(subject.row) not in ("EC2", "SPOT") or resources.get("imageId") or is_unknown(listed):
        return
    if not mappings(listed):
        yield Finding(
            path="computeResources.ec2Configurations", value=None, message="no image type is set"
        )
    for path, name in _from_batch(subject):
        if not name:
            yield Finding(path=path, value=None, message="no image type is set")


def _fits(subject: Subject) -> Iterator[Finding]:
    types = known_types(launched_types(subject.row))
    for path, name in _from_batch(subject):
        for facts in types:
            problem = _problem(name, facts)
            if problem:
                yield Finding(path=path, value=name, message=f"{facts.name} {problem}")
                break


def _problem(image_type: str, facts: InstanceType) -> str | None:
    if not image_type:
        return None
    if not image_type.endswith("_NVIDIA"):
        return "has NVIDIA GPUs, this image no driver for them" if facts.nvidia_gpus else None
    if facts.neuron_devices:
        return "has Neuron devices, this image no driver for them"
    if facts.architecture == "arm64" and not facts.nvidia_gpus:
        return "is arm64 without a GPU, for which this image is not made"
    if image_type == "ECS_AL2023_NVIDIA" and facts.gpu_name in _GPUS_WITHOUT_AL2023:
        return f"has {facts.gpu_name} GPUs, which this image does not support"
    return None


def _image_id(subject: Subject) -> Iterator[Finding]:
    given = [(f"{path}.imageIdOverride", one) for path, one in _configurations(subject)]
    values = [(path, text(one.get("imageIdOverride"))) for path, one in given]
    values.append(("computeResources.imageId", text(subject.at("computeResources.imageId"))))
    for path, value in values:
        if value and not _IMAGE_ID.fullmatch(value):
            yield Finding(path=path, value=value, message="is not the id of an image")


def _deprecated(subject: Subject) -> Iterator[Finding]:
    image = subject.at("computeResources.imageId")
    if image:
        yield Finding(
            path="computeResources.imageId",
            value=None if is_unknown(image) else image,
            message="is deprecated",
        )


def _with_image(**configuration: str) -> dict[str, Any]:
    return environment(ec2Configurations=[configuration])


RULES = (
    Rule(
        id="batch-image-type-supported",
        references=("R61",),
        family="batch",
        level="mandatory",
        level_because="Batch refuses the environment",
        sentence="No image that Batch chooses is Amazon Linux 2.",
        why="Batch creates no environment with its own Amazon Linux 2 images since 2026-06-30.",
        fix="set imageType ECS_AL2023, or ECS_AL2023_NVIDIA for NVIDIA GPUs",
        url=EC2_CONFIGURATION_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_supported,
        good=[_with_image(imageType="ECS_AL2023_NVIDIA")],
        bad=[_with_image(imageType="ECS_AL2_NVIDIA")],
    ),
    Rule(
        id="batch-image-type-explicit",
        references=("R61",),
        family="batch",
        level="advisory",
        level_because="today's default works",
        sentence="An environment of EC2 nodes says its image type.",
        why="The default changes: on 2026-01-12 it went from Amazon Linux 2 to Amazon Linux 2023.",
        fix="set ec2Configurations with one imageType",
        url=EC2_CONFIGURATION_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_explicit,
        good=[_with_image(imageType="ECS_AL2023")],
        bad=[environment()],
    ),
    Rule(
        id="batch-image-fits-instance",
        references=("R63",),
        family="batch",
        level="mandatory",
        level_because="the node does not boot, or jobs see no accelerator",
        sentence="The image type suits the architecture and the accelerators of the nodes.",
        why="Without its driver a GPU is not offered to jobs, which then stay RUNNABLE.",
        fix="set ECS_AL2023_NVIDIA for NVIDIA GPUs, else ECS_AL2023; for Neuron devices add "
        "imageIdOverride with ECS's Neuron image",
        url=EC2_CONFIGURATION_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_fits,
        good=[_with_image(imageType="ECS_AL2023_NVIDIA")],
        bad=[_with_image(imageType="ECS_AL2023")],
    ),
    Rule(
        id="batch-image-id",
        references=("R62",),
        family="batch",
        level="mandatory",
        level_because="no node launches",
        sentence="An image of one's own is given by its id.",
        why="Batch resolves no parameter: neither an SSM path nor `resolve:ssm:` becomes an image.",
        fix="read the parameter in the program (aws.ssm.get_parameter) and pass the ami- id",
        url="https://github.com/aws/containers-roadmap/issues/2295",
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_image_id,
        good=[_with_image(imageType="ECS_AL2023", imageIdOverride="ami-0123456789abcdef0")],
        bad=[_with_image(imageType="ECS_AL2023", imageIdOverride="resolve:ssm:/my/image")],
    ),
    Rule(
        id="batch-image-id-place",
        references=("R62",),
        family="batch",
        level="advisory",
        level_because="the deprecated input still works",
        sentence="An image of one's own is in ec2Configurations.",
        why="computeResources.imageId is deprecated and overrules the image of each image type.",
        fix="move it to ec2Configurations[0].imageIdOverride",
        url=COMPUTE_RESOURCE_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_deprecated,
        good=[_with_image(imageType="ECS_AL2023", imageIdOverride="ami-0123456789abcdef0")],
        bad=[environment(imageId="ami-0123456789abcdef0")],
    ),
)

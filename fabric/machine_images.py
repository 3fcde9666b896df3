"""Which machine image AWS Batch gives a node that brings none of its own."""

from fabric.catalogue import InstanceType

# "isn't supported for P3 and G3", nor for Graviton, which G5g instances have:
# https://docs.aws.amazon.com/batch/latest/APIReference/API_Ec2Configuration.html
_WITHOUT_AN_NVIDIA_IMAGE = frozenset({"g3", "g3s", "g5g", "p3", "p3dn"})

# https://docs.aws.amazon.com/AmazonECS/latest/developerguide/retrieve-ecs-optimized_AMI.html
NEURON_IMAGE_PARAMETER = (
    "/aws/service/ecs/optimized-ami/amazon-linux-2023/neuron/recommended/image_id"
)


def batch_image_type(instance_type: InstanceType) -> str | None:
    """Batch's `imageType` for an instance type, or None where nodes need an image of their own.

    Batch has none for Neuron: nodes with Neuron devices run `ECS_AL2023` with the image that
    `NEURON_IMAGE_PARAMETER`, an SSM parameter, names.
    Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_Ec2Configuration.html
    """
    if instance_type.family in _WITHOUT_AN_NVIDIA_IMAGE:
        return None
    return "ECS_AL2023_NVIDIA" if instance_type.nvidia_gpus else "ECS_AL2023"

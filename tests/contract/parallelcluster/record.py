"""Record which network interfaces AWS ParallelCluster gives a node of every type with EFA.

ParallelCluster's own `add_network_interfaces` runs on its own configuration classes. Only the
answer of EC2 is put in its way: what moto carries of DescribeInstanceTypes, and for a type that
moto lacks what the catalogue knows. README.md says how to run it.
"""

# ParallelCluster lives in an environment of its own, where pyright does not look:
# pyright: basic, reportMissingImports=false

import gzip
import json
import os
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")  # pcluster asks for one on import

from pcluster.aws.aws_api import AWSApi
from pcluster.aws.aws_resources import InstanceTypeInfo
from pcluster.config.cluster_config import (
    Efa,
    SlurmComputeResource,
    SlurmQueue,
    SlurmQueueNetworking,
)
from pcluster.templates.queues_stack import add_network_interfaces

from fabric.catalogue import InstanceType, instance_types
from fabric.refresh.catalogue import render

RECORDING = Path(__file__).with_name("interfaces.json")


def main() -> None:
    """Write the recording, one instance type a line."""
    packed = files("moto").joinpath("ec2/resources/instance_types.json.gz").read_bytes()
    answers = json.loads(gzip.decompress(packed))
    names = {name for name, said in answers.items() if said["NetworkInfo"]["EfaSupported"]}
    beyond_moto = {
        name: described(each)
        for name, each in instance_types().items()
        if each.supports_efa and name not in answers
    }
    known = {name: InstanceTypeInfo(said) for name, said in (answers | beyond_moto).items()}
    AWSApi.instance().ec2.get_instance_type_info = known.__getitem__
    recording = {
        "source": f"aws-parallelcluster {version('aws-parallelcluster')}, "
        "pcluster.templates.queues_stack.add_network_interfaces",
        "instanceTypesFrom": f"moto {version('moto')}; the catalogue: {', '.join(beyond_moto)}",
        "date": datetime.now(UTC).date().isoformat(),
        "layouts": {name: layout(name) for name in names | beyond_moto.keys()},
    }
    RECORDING.write_text(render(recording), encoding="utf-8")


def layout(name: str) -> list[tuple[int, int, str]]:
    """ParallelCluster's network card, device and interface type of each interface."""
    resource = SlurmComputeResource(instance_type=name, name="compute", efa=Efa(enabled=True))
    networking = SlurmQueueNetworking(subnet_ids=["subnet-0123456789abcdef0"])
    queue = SlurmQueue(name="queue", networking=networking, compute_resources=[resource])
    return [
        # ParallelCluster leaves out the type of an ENA interface, which is the API's default
        (each.network_card_index, each.device_index, each.interface_type or "interface")
        for each in add_network_interfaces(queue, resource, ["sg-0123456789abcdef0"])
    ]


def described(instance_type: InstanceType) -> dict[str, Any]:
    """What ParallelCluster reads of DescribeInstanceTypes, as the catalogue knows it."""
    cards = [
        {"NetworkCardIndex": card.index, "MaximumNetworkInterfaces": card.maximum_interfaces}
        for card in instance_type.network_cards
    ]
    efa = {"MaximumEfaInterfaces": instance_type.maximum_efa_interfaces}
    return {
        "InstanceType": instance_type.name,
        "NetworkInfo": {"EfaSupported": True, "EfaInfo": efa, "NetworkCards": cards},
    }


if __name__ == "__main__":
    main()

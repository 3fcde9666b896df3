"""Stacks with one Batch group, and what tests read of them."""

import base64
import json
from typing import Any

from tests.support.rehearsing import Rehearsed, rehearsed

TRAIN: dict[str, Any] = {"name": "train", "repositoryTag": "v1"}
WITHOUT_EFA: dict[str, Any] = {"instanceType": "m7i.8xlarge", "efa": False, "jobs": [TRAIN]}


def batch(
    *, common: dict[str, Any] | None = None, section: dict[str, Any] | None = None, **group: Any
) -> Rehearsed:
    """A stack with one group, of g4dn.8xlarge unless it says otherwise."""
    whole = {"name": "nodes", "instanceType": "g4dn.8xlarge", "maxNodes": 2, **group}
    return rehearsed(
        common=common or {},
        network={"availabilityZones": ["us-west-2a"]},
        batch={**(section or {}), "groups": [whole]},
    )


def compute_of(run: Rehearsed) -> dict[str, Any]:
    """The computeResources of the compute environment."""
    return run.one("batch.ComputeEnvironment").inputs["computeResources"]


def template_of(run: Rehearsed) -> dict[str, Any]:
    """The inputs of the launch template."""
    return dict(run.one("ec2.LaunchTemplate").inputs)


def user_data_of(run: Rehearsed) -> str:
    """The user data of the launch template, decoded."""
    return base64.b64decode(template_of(run)["userData"]).decode()


def container_of(run: Rehearsed, job: str) -> dict[str, Any]:
    """The container of a job definition, in the words of the Batch API."""
    inputs = run.one("batch.JobDefinition", f"batch-nodes_{job}").inputs
    if "containerProperties" in inputs:
        return json.loads(inputs["containerProperties"])
    (nodes,) = json.loads(inputs["nodeProperties"])["nodeRangeProperties"]
    return nodes["container"]


def requests_of(run: Rehearsed, job: str) -> dict[str, str]:
    """What a job asks of its node, such as `{"VCPU": "32"}`."""
    return {each["type"]: each["value"] for each in container_of(run, job)["resourceRequirements"]}

"""Compute environments and job definitions for the examples of rules, as small as they can be."""

import json
from typing import Any

from policy.examples import resource
from policy.tokens import BATCH_ENVIRONMENT, BATCH_JOB_DEFINITION


def environment(
    name: str = "environment",
    *,
    links: dict[str, list[str]] | None = None,
    settings: dict[str, Any] | None = None,
    **resources: Any,
) -> dict[str, Any]:
    """A managed environment of p4d nodes, with more `computeResources` and other `settings`."""
    nodes = {"type": "EC2", "instanceTypes": ["p4d.24xlarge"], "maxVcpus": 384, **resources}
    row = resource(BATCH_ENVIRONMENT, name, links=links, type="MANAGED", computeResources=nodes)
    row["inputs"] |= settings or {}
    return row


def with_template(name: str = "environment", **more: Any) -> dict[str, Any]:
    """An environment whose nodes come from the launch template named `template`."""
    template = {"launchTemplateId": "lt-0123456789abcdef0", "version": "1"}
    return environment(
        name, links={"computeResources": ["template"]}, launchTemplate=template, **more
    )


def multi_node_job(
    *,
    nodes: int = 2,
    ranges: list[dict[str, Any]] | None = None,
    settings: dict[str, Any] | None = None,
    **container: Any,
) -> dict[str, Any]:
    """A multi-node job definition on p4d nodes with more of a `container`, or with its ranges."""
    only = {"image": "example:1", "instanceType": "p4d.24xlarge", **container}
    properties = {
        "numNodes": nodes,
        "mainNode": 0,
        "nodeRangeProperties": ranges or [{"targetNodes": "0:", "container": only}],
    }
    encoded = json.dumps(properties)
    row = resource(BATCH_JOB_DEFINITION, "job", type="multinode", nodeProperties=encoded)
    row["inputs"] |= settings or {}
    return row


def single_node_job(**container: Any) -> dict[str, Any]:
    """A job definition for one node."""
    text = json.dumps({"image": "example:1", **container})
    return resource(BATCH_JOB_DEFINITION, "job", type="container", containerProperties=text)

"""What the provider would send to AWS, checked against AWS's own service models.

Pulumi's inputs have the names of the Terraform provider's arguments. The tables below say where
these differ from the API's.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from tests.support.botocore_model import wrong_in_request
from tests.support.rehearsing import STACKS, rehearsed_stack

BATCH_NAMES = {
    "computeEnvironmentOrders": "computeEnvironmentOrder",
    "ec2Configurations": "ec2Configuration",
    "evaluateOnExits": "evaluateOnExit",
    "fairSharePolicy": "fairsharePolicy",
    "maxVcpus": "maxvCpus",
    "minVcpus": "minvCpus",
    "shareDistributions": "shareDistribution",
}
EC2_NAMES = {"securityGroups": "Groups"}
# for Pulumi a flag that may be left out is a text
EC2_FLAGS = {"encrypted", "deleteOnTermination"}
# what Pulumi does with a resource, or sends in another call
NOT_IN_TEMPLATE = {"name", "tags", "updateDefaultVersion"}


def with_names(value: Any, names: Mapping[str, str]) -> Any:
    """The value with its keys renamed at every depth."""
    if isinstance(value, list):
        return [with_names(each, names) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {names.get(key, key): with_names(each, names) for key, each in fields.items()}
    return value


def in_ec2s_words(value: Any) -> Any:
    """The value with EC2's PascalCase names, tags as lists, and flags that are true or false."""
    if isinstance(value, list):
        return [in_ec2s_words(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    translated: dict[str, Any] = {}
    for key, each in cast("dict[str, Any]", value).items():
        name = EC2_NAMES.get(key, key[0].upper() + key[1:])
        if key == "tags":
            translated[name] = [{"Key": tag, "Value": text} for tag, text in each.items()]
        elif key in EC2_FLAGS:
            translated[name] = {"true": True, "false": False}[each]
        else:
            translated[name] = in_ec2s_words(each)
    return translated


def inputs_of(stack: str, short: str) -> list[dict[str, Any]]:
    return [dict(each.inputs) for each in rehearsed_stack(stack).all(short)]


def without(inputs: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in inputs.items() if key not in names}


@pytest.mark.parametrize("stack", STACKS)
class TestEveryStack:
    def test_batch_takes_its_compute_environments(self, stack: str) -> None:
        environments = inputs_of(stack, "batch.ComputeEnvironment")
        assert environments
        for each in environments:
            request = with_names(without(each, "updatePolicy"), BATCH_NAMES)
            request["computeEnvironmentName"] = "x"
            assert wrong_in_request("batch", "CreateComputeEnvironmentRequest", request) == []
            assert wrong_in_request("batch", "UpdatePolicy", each["updatePolicy"]) == []

    def test_batch_takes_its_job_queues(self, stack: str) -> None:
        queues = inputs_of(stack, "batch.JobQueue")
        assert queues
        for each in queues:
            request = {"jobQueueName": "x", **with_names(each, BATCH_NAMES)}
            assert wrong_in_request("batch", "CreateJobQueueRequest", request) == []

    def test_batch_takes_its_scheduling_policies(self, stack: str) -> None:
        for each in inputs_of(stack, "batch.SchedulingPolicy"):
            request = {"name": "x", **with_names(each, BATCH_NAMES)}
            assert wrong_in_request("batch", "CreateSchedulingPolicyRequest", request) == []

    def test_batch_takes_its_job_definitions(self, stack: str) -> None:
        definitions = inputs_of(stack, "batch.JobDefinition")
        assert definitions
        for each in definitions:
            texts = {
                key: json.loads(each[key])
                for key in ("containerProperties", "nodeProperties")
                if key in each
            }
            request = {"jobDefinitionName": "x", **with_names(each, BATCH_NAMES), **texts}
            assert len(texts) == 1
            assert wrong_in_request("batch", "RegisterJobDefinitionRequest", request) == []

    def test_ec2_takes_its_launch_templates(self, stack: str) -> None:
        templates = inputs_of(stack, "ec2.LaunchTemplate")
        assert templates
        for each in templates:
            data = in_ec2s_words(without(each, *NOT_IN_TEMPLATE))
            assert wrong_in_request("ec2", "RequestLaunchTemplateData", data) == []

    def test_ec2_takes_its_capacity_reservations(self, stack: str) -> None:
        for each in inputs_of(stack, "ec2.CapacityReservation"):
            request = in_ec2s_words(without(each, "tags"))
            assert wrong_in_request("ec2", "CreateCapacityReservationRequest", request) == []

    def test_ec2_takes_its_placement_groups(self, stack: str) -> None:
        for each in inputs_of(stack, "ec2.PlacementGroup"):
            request = in_ec2s_words(without(each, "tags"))
            assert wrong_in_request("ec2", "CreatePlacementGroupRequest", request) == []

    def test_cloudwatch_takes_its_alarms(self, stack: str) -> None:
        for each in inputs_of(stack, "cloudwatch.MetricAlarm"):
            request = in_ec2s_words({"alarmName": "x", **each})
            request["Dimensions"] = [
                {"Name": name, "Value": value} for name, value in each["dimensions"].items()
            ]
            assert wrong_in_request("cloudwatch", "PutMetricAlarmInput", request) == []


@pytest.mark.parametrize(
    ("shape", "request_", "reason"),
    [
        (
            "RegisterJobDefinitionRequest",
            {"jobDefinitionName": "x", "type": "multi"},
            ".type: multi is not one of container, multinode",
        ),
        (
            "RegisterJobDefinitionRequest",
            {"jobDefinitionName": "x", "type": "multinode", "nodes": 1},
            'Unknown parameter in input: "nodes"',
        ),
        (
            "UpdatePolicy",
            {"jobExecutionTimeoutMinutes": 9000},
            ".jobExecutionTimeoutMinutes: 9000 is not between 1 and 7200",
        ),
    ],
)
def test_a_request_that_aws_would_refuse_is_found(
    shape: str, request_: dict[str, Any], reason: str
) -> None:
    (found,) = wrong_in_request("batch", shape, request_)
    assert found.startswith(reason)

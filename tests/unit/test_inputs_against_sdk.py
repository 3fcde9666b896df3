"""Every input of every stack, checked against the argument classes of Pulumi's AWS SDK."""

import pytest

from tests.support.input_checker import wrong_inputs
from tests.support.rehearsing import STACKS, rehearsed_stack

ENVIRONMENT = "aws:batch/computeEnvironment:ComputeEnvironment"


@pytest.mark.parametrize("stack", STACKS)
def test_the_sdk_knows_every_input(stack: str) -> None:
    of_aws = [each for each in rehearsed_stack(stack).resources if each.type.startswith("aws:")]
    wrong = [
        f"{each.name}: {reason}"
        for each in of_aws
        for reason in wrong_inputs(each.type, each.inputs)
    ]
    assert of_aws
    assert wrong == []


def test_a_misspelt_key_is_found_at_any_depth() -> None:
    inputs = {
        "type": "MANAGED",
        "computeResources": {
            "type": "EC2",
            "maxVcpus": 8,
            "subnets": [],
            "launchTemplate": {"launchTemplateIdd": "lt-0123456789abcdef0"},
            "ec2Configurations": [{"image_type": "ECS_AL2023"}],
        },
    }
    found = [reason.partition(": ")[0] for reason in wrong_inputs(ENVIRONMENT, inputs)]
    assert found == [
        "computeResources.launchTemplate.launchTemplateIdd",
        "computeResources.ec2Configurations[0].image_type",
    ]


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({}, "type: is missing"),
        (
            {"type": "MANAGED", "computeResources": {"type": "EC2", "subnets": []}},
            "computeResources.maxVcpus: is missing",
        ),
        ({"type": "MANAGED", "computeResources": []}, "computeResources: is not a map"),
        ({"type": "MANAGED", "tags": ["x"]}, "tags: is not a map"),
        ({"type": "MANAGED", "tags": {"x": 1}}, "tags.x: 1 is not a str"),
        ({"type": True}, "type: True is not a str"),
    ],
)
def test_what_is_missing_or_of_another_form_is_found(
    inputs: dict[str, object], reason: str
) -> None:
    assert list(wrong_inputs(ENVIRONMENT, inputs)) == [reason]

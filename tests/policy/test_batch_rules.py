"""What the Batch rules leave in peace, and where exactly they begin to speak."""

import base64
from typing import Any

import pytest

from fabric.rows import Row
from policy.batch_examples import environment, multi_node_job, with_template
from policy.examples import interface, resource
from policy.program import Program
from policy.rule import Subject
from policy.rules import (
    batch_environments,
    batch_images,
    batch_queues,
    batch_templates,
    batch_updates,
)
from policy.tokens import (
    BATCH_ENVIRONMENT,
    BATCH_JOB_DEFINITION,
    BATCH_JOB_QUEUE,
    LAUNCH_TEMPLATE,
)
from policy.values import UNKNOWN

RULES = {
    rule.id: rule
    for module in (
        batch_environments,
        batch_images,
        batch_queues,
        batch_templates,
        batch_updates,
    )
    for rule in module.RULES
}


def found(rule_id: str, *rows: Row) -> list[str]:
    """The messages of one rule on a program."""
    rule, program = RULES[rule_id], Program(rows)
    return [
        finding.message
        for row in rows
        if row["type"] in rule.types
        for finding in rule.check(Subject(row=row, program=program, options=rule.defaults()))
    ]


def template(**settings: Any) -> Row:
    return resource(LAUNCH_TEMPLATE, "template", **settings)


def with_user_data(text: str) -> Row:
    return template(userData=base64.b64encode(text.encode()).decode())


EFA = template(networkInterfaces=[interface(0, 0, "efa")])
ON_FARGATE = resource(
    BATCH_JOB_DEFINITION,
    "small-job",
    type="container",
    platformCapabilities=["FARGATE"],
    timeout={"attemptDurationSeconds": 86400},
)
SPOT = environment("spot", type="SPOT", instanceTypes=["c7i.large", "m7i.large"])


def queue(*environments: str, name: str = "queue") -> Row:
    """A queue that leads to these environments of the program."""
    key = "computeEnvironmentOrders"
    orders = [
        {"order": place, "computeEnvironment": UNKNOWN} for place, _ in enumerate(environments)
    ]
    return resource(BATCH_JOB_QUEUE, name, links={key: list(environments)}, **{key: orders})


def test_spot_beside_on_demand_nodes_is_for_other_jobs() -> None:
    assert not found("batch-multi-node-on-demand", multi_node_job(), environment(), SPOT)


def test_spot_behind_every_queue_cannot_run_the_programs_multi_node_job() -> None:
    rows = [multi_node_job(), SPOT, queue("spot")]
    assert found("batch-multi-node-on-demand", *rows)
    assert not found("batch-multi-node-on-demand", *rows, environment(), queue("environment"))


def test_a_multi_node_job_may_be_for_a_queue_that_is_out_of_sight() -> None:
    elsewhere = resource(
        BATCH_JOB_QUEUE, "other", computeEnvironmentOrders=[{"computeEnvironment": "arn:aws:batch"}]
    )
    assert not found("batch-multi-node-on-demand", multi_node_job(), SPOT)
    assert not found("batch-multi-node-on-demand", multi_node_job(), SPOT, queue("spot"), elsewhere)


def test_a_queue_on_fargate_is_for_the_programs_jobs_on_fargate() -> None:
    rows = [multi_node_job(), environment("small", type="FARGATE"), queue("small")]
    assert found("batch-multi-node-on-demand", *rows)
    assert not found("batch-multi-node-on-demand", *rows, ON_FARGATE)


def test_efa_on_spot_is_fine_for_jobs_on_one_node() -> None:
    rows = [EFA, with_template(type="SPOT")]
    assert not found("batch-multi-node-on-demand", *rows)
    assert found("batch-multi-node-on-demand", *rows, multi_node_job())


def test_efa_nodes_of_two_types_are_fine_for_jobs_on_one_node() -> None:
    rows = [EFA, with_template(instanceTypes=["c5n.18xlarge", "c5n.metal"])]
    assert not found("batch-one-instance-type", *rows)
    assert found("batch-one-instance-type", *rows, multi_node_job())


def test_several_types_are_fine_for_jobs_on_one_node() -> None:
    assert not found("batch-one-instance-type", SPOT, environment())


def test_the_only_environment_of_a_multi_node_job_has_one_type() -> None:
    optimal = environment(instanceTypes=["optimal"])
    assert found("batch-one-instance-type", multi_node_job(), optimal)


def test_unknown_instance_types_are_not_accused() -> None:
    assert not found("batch-one-instance-type", EFA, with_template(instanceTypes=UNKNOWN))


def test_a_template_out_of_sight_may_bring_security_groups() -> None:
    hidden = environment(launchTemplate={"launchTemplateId": "lt-0123456789abcdef0"})
    assert not found("batch-interfaces-or-security-groups", hidden)


def test_security_groups_of_a_template_without_interfaces_are_enough() -> None:
    groups = template(vpcSecurityGroupIds=["sg-0123456789abcdef0"])
    assert not found("batch-interfaces-or-security-groups", groups, with_template())


def test_unknown_security_groups_in_a_list_are_there() -> None:
    both = with_template(securityGroupIds=[UNKNOWN])
    assert found("batch-interfaces-or-security-groups", EFA, both)


@pytest.mark.parametrize("version", ["$Latest", "$Default", "", None])
def test_a_version_that_moves_is_found(version: str | None) -> None:
    named = {"launchTemplateId": "lt-0123456789abcdef0", "version": version}
    assert found("batch-template-version", environment(launchTemplate=named))


def test_an_override_of_the_template_has_a_version_by_number_too() -> None:
    own = {"launchTemplateId": "lt-0123456789abcdef0", "version": "1"}
    moving = environment(launchTemplate={**own, "overrides": [own, {**own, "version": "$Latest"}]})
    assert found("batch-template-version", moving)
    assert not found(
        "batch-template-version", environment(launchTemplate=own | {"overrides": [own]})
    )


@pytest.mark.parametrize("version", ["7", 7, UNKNOWN])
def test_a_version_by_number_is_fine_before_it_is_known(version: object) -> None:
    named = {"launchTemplateId": UNKNOWN, "version": version}
    assert not found("batch-template-version", environment(launchTemplate=named))


def test_an_nvidia_image_suits_x86_nodes_without_a_gpu() -> None:
    image = [{"imageType": "ECS_AL2023_NVIDIA"}]
    nodes = environment(instanceTypes=["c7i.48xlarge"], ec2Configurations=image)
    assert not found("batch-image-fits-instance", nodes)


def test_v100_gpus_have_no_driver_in_the_al2023_image() -> None:
    image = [{"imageType": "ECS_AL2023_NVIDIA"}]
    nodes = environment(instanceTypes=["p3dn.24xlarge"], ec2Configurations=image)
    assert found("batch-image-fits-instance", nodes)


def test_an_image_of_ones_own_may_have_any_driver() -> None:
    image = [{"imageType": "ECS_AL2023", "imageIdOverride": UNKNOWN}]
    assert not found("batch-image-fits-instance", environment(ec2Configurations=image))


MIME = 'Content-Type: multipart/mixed; boundary="=="\n\n--==\n{}--==--\n'


@pytest.mark.parametrize(
    ("part", "problems"),
    [
        ("Content-Type: text/x-shellscript\n\n#!/bin/sh\n", []),
        (
            "\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n",
            ["part 1 has no Content-Type in the line after its boundary"],
        ),
        (
            "Content-Type: text/x-shellscript\n#!/bin/sh\n",
            ["part 1 has no blank line between its headers and its text"],
        ),
    ],
)
def test_a_part_of_user_data_is_headers_a_blank_line_and_text(
    part: str, problems: list[str]
) -> None:
    data = with_user_data(MIME.format(part))
    assert found("batch-user-data-mime", data, with_template()) == problems


def test_user_data_of_other_launchers_is_theirs() -> None:
    assert not found("batch-user-data-mime", with_user_data("#!/bin/sh\n"))


def test_a_comment_about_the_cluster_sets_nothing() -> None:
    script = "Content-Type: text/x-shellscript\n\n#!/bin/sh\n# ECS_CLUSTER=mine is not allowed\n"
    data = with_user_data(MIME.format(script))
    assert not found("batch-user-data-cluster", data, with_template())


def lasting(minutes: int) -> Row:
    return multi_node_job(settings={"timeout": {"attemptDurationSeconds": minutes * 60}})


def waiting(minutes: int, **more: Any) -> Row:
    return environment(
        allocationStrategy="BEST_FIT_PROGRESSIVE",
        settings={"updatePolicy": {"jobExecutionTimeoutMinutes": minutes}},
        **more,
    )


@pytest.mark.parametrize(("job", "waits", "speaks"), [(60, 60, False), (61, 60, True)])
def test_an_update_waits_at_least_as_long_as_a_job(job: int, waits: int, speaks: bool) -> None:
    assert bool(found("batch-jobs-outlive-updates", lasting(job), waiting(waits))) == speaks


def test_no_update_waits_longer_than_batch_lets_it() -> None:
    assert not found("batch-jobs-outlive-updates", lasting(20000), waiting(7200))


def test_a_job_on_fargate_outlives_any_update() -> None:
    assert not found("batch-jobs-outlive-updates", ON_FARGATE, waiting(30))


def test_a_job_for_other_nodes_does_not_count() -> None:
    other = environment("other", instanceTypes=["p5.48xlarge"])
    nodes = waiting(30, instanceTypes=["c7i.large"])
    assert not found("batch-jobs-outlive-updates", lasting(600), nodes, other)


def test_what_cannot_be_updated_in_place_ends_no_jobs() -> None:
    assert not found("batch-jobs-outlive-updates", lasting(600), environment())


@pytest.mark.parametrize("type_", [BATCH_ENVIRONMENT, BATCH_JOB_QUEUE])
@pytest.mark.parametrize("name", ["training-367defe", "training20261121103000123400000001", ""])
def test_a_name_that_was_made_up_can_be_replaced(type_: str, name: str) -> None:
    row = resource(type_)
    row["inputs"]["name"] = name
    assert not found("batch-replaceable-name", row)


def test_a_policy_that_is_waited_for_through_another_resource_is_waited_for() -> None:
    *others, last = RULES["batch-waits-for-policies"].bad
    between = resource("example:index:Ready", "ready", links={"after": ["policy"]})
    waits = {**last, "dependencies": [*last["dependencies"], between["urn"]]}
    assert not found("batch-waits-for-policies", *others, between, waits)

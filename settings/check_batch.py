"""Rules inside a Batch group: its instance type, its jobs and their images."""

from collections.abc import Iterator

from fabric.batch_jobs import LONGEST_UPDATE_WAIT_MINUTES, environment_conflicts, job_definition
from fabric.interfaces import task_interface_fits
from fabric.job_images import has_fixed_tag, is_private_ecr
from fabric.machine_images import batch_image_type
from settings.batch import BatchGroupSettings, JobSettings
from settings.errors import PROJECT, Problem
from settings.keys import Keys
from settings.stack import StackSettings


def batch_problems(stack: StackSettings, keys: Keys) -> Iterator[Problem]:
    """What Batch or EC2 would refuse, or what would never run."""
    for group in stack.batch.groups if stack.batch else ():
        yield from _without_efa(keys, group)
        yield from _without_machine_image(keys, group)
        yield from _threads(keys, group)
        for job in group.jobs:
            yield from _too_many_nodes(keys, group, job)
            yield from _image(stack, keys, group, job)
            yield from _environment(keys, group, job)
            if stack.knows_placement_of(group):
                yield from _definition_too_large(stack, keys, group, job)


def batch_warnings(stack: StackSettings, keys: Keys) -> Iterator[Problem]:
    """What works, but costs more, or less than it could."""
    if stack.batch is None:
        return
    if stack.batch.roles.service:
        yield Problem(
            key=f"{PROJECT}:batch.roles.service",
            value=stack.batch.roles.service,
            reason="means that most changes replace compute environments and queues, since Batch "
            "updates in place with its service-linked role only",
            fix="remove it to let Batch use AWSServiceRoleForBatch",
        )
    if stack.common.kms_key:
        yield Problem(
            key=f"{PROJECT}:common.kmsKey",
            value=stack.common.kms_key,
            reason="encrypts volumes of instances that Auto Scaling launches for Batch, and logs",
            fix="let its policy admit AWSServiceRoleForAutoScaling and logs.REGION.amazonaws.com, "
            "else nodes end as soon as they start",
        )
    for group in stack.batch.groups:
        yield from _no_slot_for_task(keys, group)
        for job in group.jobs:
            yield from _moving_image(keys, group, job)
            yield from _longer_than_update(keys, group, job)


def _without_efa(keys: Keys, group: BatchGroupSettings) -> Iterator[Problem]:
    if group.efa and not group.type_facts.efa_cards:
        yield Problem(
            key=keys.group(group, "instanceType"),
            value=group.instance_type,
            reason="has no EFA",
            fix="choose a type with EFA "
            "(https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html), or add efa: false",
        )


def _without_machine_image(keys: Keys, group: BatchGroupSettings) -> Iterator[Problem]:
    if group.image_id is None and batch_image_type(group.type_facts) is None:
        yield Problem(
            key=keys.group(group, "instanceType"),
            value=group.instance_type,
            reason="has no machine image from ECS that Batch would start",
            fix="give imageId, an image of your own with the ECS agent",
        )


def _threads(keys: Keys, group: BatchGroupSettings) -> Iterator[Problem]:
    facts, wanted = group.type_facts, group.threads_per_core
    if wanted is None or wanted == facts.threads_per_core == 2:
        return
    if facts.threads_per_core == wanted:
        reason, fix = "is how this type runs anyway, and it takes no CPU options", "remove it"
    elif wanted in facts.valid_threads_per_core:
        return
    else:
        reason, fix = f"is not possible on {facts.name}", "remove it for the type's default"
    yield Problem(key=keys.group(group, "threadsPerCore"), value=wanted, reason=reason, fix=fix)


def _too_many_nodes(keys: Keys, group: BatchGroupSettings, job: JobSettings) -> Iterator[Problem]:
    if job.nodes and job.nodes > group.max_nodes:
        yield Problem(
            key=keys.job(group, job, "nodes"),
            value=job.nodes,
            reason=f"is more than the group's maxNodes, which is {group.max_nodes}; the job would "
            "wait for ever",
            fix="lower it, or raise maxNodes",
        )


def _image(
    stack: StackSettings, keys: Keys, group: BatchGroupSettings, job: JobSettings
) -> Iterator[Problem]:
    if job.repository_tag:
        return
    image, key = group.image_of(job), keys.job(group, job, "image")
    if image is None:
        yield Problem(
            key=key,
            value=None,
            reason=f"is required: there is no default image for {group.instance_type}",
            fix="name an image with libfabric and what the job runs",
        )
    elif stack.network and stack.network.nat == "none" and not is_private_ecr(image, stack.region):
        yield Problem(
            key=key,
            value=image,
            reason=f"cannot be pulled with nat: none, only images in {stack.region}'s private ECR",
            fix="push it to the stack's repository and use repositoryTag, or set nat: single",
        )


def _environment(keys: Keys, group: BatchGroupSettings, job: JobSettings) -> Iterator[Problem]:
    for name, conflict in environment_conflicts(job.environment).items():
        yield Problem(
            key=keys.job(group, job, "environment", name),
            value=job.environment[name],
            reason=conflict.reason,
            fix=conflict.fix,
        )


def _definition_too_large(
    stack: StackSettings, keys: Keys, group: BatchGroupSettings, job: JobSettings
) -> Iterator[Problem]:
    threads = group.threads_per_core
    if environment_conflicts(job.environment) or threads not in (
        None,
        group.type_facts.threads_per_core,
        *group.type_facts.valid_threads_per_core,
    ):
        return  # these have errors of their own
    image = group.image_of(job) or "repository:tag"
    # stand-ins as long as the names that AWS and Pulumi give
    log_group, role = "l" * 64, "r" * 128
    try:
        job_definition(stack.batch_job(group, job, image), log_group=log_group, job_role_arn=role)
    except ValueError as error:
        yield Problem(
            key=keys.job(group, job),
            value=None,
            reason=f"cannot be registered: {error}",
            fix="shorten its command and environment",
        )


def _no_slot_for_task(keys: Keys, group: BatchGroupSettings) -> Iterator[Problem]:
    layout = group.layout
    if layout and not task_interface_fits(instance_type=group.type_facts, layout=layout):
        yield Problem(
            key=keys.group(group, "instanceType"),
            value=group.instance_type,
            reason="has one interface slot a card, all taken by EFA: the interface of a job's task "
            "may find none",
            fix="run one job before you count on it, or use ParallelCluster for this type",
        )


def _moving_image(keys: Keys, group: BatchGroupSettings, job: JobSettings) -> Iterator[Problem]:
    if job.image and not has_fixed_tag(job.image):
        yield Problem(
            key=keys.job(group, job, "image"),
            value=job.image,
            reason="may be another image tomorrow",
            fix="name a version's tag, or a digest",
        )


def _longer_than_update(
    keys: Keys, group: BatchGroupSettings, job: JobSettings
) -> Iterator[Problem]:
    if job.timeout_minutes and job.timeout_minutes > LONGEST_UPDATE_WAIT_MINUTES:
        yield Problem(
            key=keys.job(group, job, "timeoutMinutes"),
            value=job.timeout_minutes,
            reason=f"is longer than Batch waits for jobs when a compute environment changes "
            f"({LONGEST_UPDATE_WAIT_MINUTES} minutes)",
            fix="leave the group's nodes as they are while such a job runs",
        )

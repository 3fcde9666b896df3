"""BatchGroup: nodes of one instance type, the queue that leads to them, and their jobs."""

import json
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi import Output, ResourceOptions

from components.batch_roles import BatchRoles
from components.launch_template import node_launch_template
from components.network import Network
from components.placement_and_odcr import LaunchPlacement, PlacementAndODCR
from fabric.batch_jobs import (
    LONGEST_UPDATE_WAIT_MINUTES,
    SHORTEST_UPDATE_WAIT_MINUTES,
    job_definition,
    retry_strategy,
)
from fabric.machine_images import NEURON_IMAGE_PARAMETER, batch_image_type
from fabric.user_data import launch_template_user_data, node_user_data
from settings.batch import BatchGroupSettings, JobSettings
from settings.stack import StackSettings

NO_CAPACITY = "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"
MISCONFIGURATIONS = (
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
)
# the least that Batch takes, since no waiting mends a misconfiguration; reasons and limits:
# https://docs.aws.amazon.com/batch/latest/APIReference/API_JobStateTimeLimitAction.html
MISCONFIGURED_SECONDS = 600


@dataclass(frozen=True, kw_only=True)
class SharedByGroups:
    """What the groups of one BatchMNP have in common."""

    stack: StackSettings
    network: Network
    placement: PlacementAndODCR
    roles: BatchRoles
    log_group: Output[str]
    repository_url: Output[str]


class BatchGroup(pulumi.ComponentResource):
    """A launch template, a compute environment, its job queue and its job definitions.

    Outputs: `compute_environment`, `job_queue` and `job_definitions` (by job name), all ARNs.
    """

    compute_environment: Output[str]
    job_queue: Output[str]
    job_definitions: dict[str, Output[str]]

    def __init__(
        self,
        name: str,
        group: BatchGroupSettings,
        shared: SharedByGroups,
        opts: ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:index:BatchGroup", name, None, opts)
        self._name, self._group, self._shared = name, group, shared
        self._own = ResourceOptions(parent=self)
        self._tags = shared.stack.tags(name)
        placement = shared.placement.for_group(name, shared.stack.placement_for(group))
        environment = self._compute_environment(placement)
        queue = self._job_queue(environment)
        self.compute_environment = environment.arn
        self.job_queue = queue.arn
        self.job_definitions = {job.name: self._job_definition(job).arn for job in group.jobs}
        self.register_outputs(self.outputs)

    @property
    def outputs(self) -> dict[str, Any]:
        """This group's part of the stack output `batch`; `submit` has a command for each job."""
        return {
            "availabilityZone": self._shared.stack.zone_of(self._group),
            "computeEnvironment": self.compute_environment,
            "jobQueue": self.job_queue,
            "jobDefinitions": self.job_definitions,
            "submit": {
                name: self._submit(name, definition)
                for name, definition in self.job_definitions.items()
            },
        }

    def _submit(self, job: str, definition: Output[str]) -> Output[str]:
        fair_share = self._group.fair_share
        share = f" --share-identifier {next(iter(fair_share.shares))}" if fair_share else ""
        return Output.concat(
            f"aws batch submit-job --region {self._shared.stack.region} --job-name {job}{share}",
            " --job-queue ",
            self.job_queue,
            " --job-definition ",
            definition,
        )

    def _launch_template(self, placement: LaunchPlacement) -> aws.ec2.LaunchTemplate:
        facts, common = self._group.type_facts, self._shared.stack.common
        user_data = node_user_data(instance_store_disks=facts.instance_store_disks)
        return node_launch_template(
            self._name,
            instance_type=facts,
            layout=self._group.layout,
            security_group_id=self._shared.network.efa_security_group_id,
            placement=placement,
            threads_per_core=self._group.threads_per_core,
            root_device_name=self._group.root_device_name,
            root_volume_gib=self._group.root_volume_gib,
            kms_key=common.kms_key,
            user_data=launch_template_user_data(user_data),
            tags=self._tags,
            opts=self._own,
        )

    def _compute_environment(self, placement: LaunchPlacement) -> aws.batch.ComputeEnvironment:
        group, stack, network = self._group, self._shared.stack, self._shared.network
        template = self._launch_template(placement)
        return aws.batch.ComputeEnvironment(
            self._name,
            type="MANAGED",
            service_role=stack.batch.roles.service if stack.batch else None,
            compute_resources=aws.batch.ComputeEnvironmentComputeResourcesArgs(
                type="EC2",
                # any strategy but BEST_FIT lets Batch update in place
                # https://docs.aws.amazon.com/batch/latest/userguide/infrastructure-updates.html
                allocation_strategy="BEST_FIT_PROGRESSIVE",
                min_vcpus=group.min_nodes * group.type_facts.vcpus,
                max_vcpus=group.max_nodes * group.type_facts.vcpus,
                instance_types=[group.instance_type],
                instance_role=self._shared.roles.instance_profile,
                subnets=[network.private_subnet_ids[stack.zone_of(group)]],
                # Batch takes these or a template with interfaces, never both
                # https://docs.aws.amazon.com/batch/latest/APIReference/API_ComputeResource.html
                security_group_ids=None if group.layout else [network.efa_security_group_id],
                placement_group=placement.placement_group,
                ec2_key_pair=stack.common.key_pair,
                ec2_configurations=[self._machine_image()],
                launch_template=aws.batch.ComputeEnvironmentComputeResourcesLaunchTemplateArgs(
                    launch_template_id=template.id,
                    # a number: Batch would read $Latest once and never again
                    version=template.latest_version.apply(str),
                ),
            ),
            update_policy=aws.batch.ComputeEnvironmentUpdatePolicyArgs(
                terminate_jobs_on_update=False,
                job_execution_timeout_minutes=self._longest_job_minutes(),
            ),
            tags=self._tags,
            opts=ResourceOptions.merge(
                self._own,
                ResourceOptions(
                    depends_on=[
                        *self._shared.roles.attachments,
                        *network.ready,
                        *placement.waits_for,
                    ],
                    # Batch itself scales between the limits
                    ignore_changes=["computeResources.desiredVcpus"],
                ),
            ),
        )

    def _machine_image(self) -> aws.batch.ComputeEnvironmentComputeResourcesEc2ConfigurationArgs:
        """ECS's image for the accelerator, or the group's own.

        Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_Ec2Configuration.html
        """
        facts = self._group.type_facts
        image = self._group.image_id
        if image is None and facts.neuron_devices:
            # Batch resolves no parameter by itself
            image = aws.ssm.get_parameter_output(
                name=NEURON_IMAGE_PARAMETER, opts=pulumi.InvokeOutputOptions(parent=self)
            ).value
        return aws.batch.ComputeEnvironmentComputeResourcesEc2ConfigurationArgs(
            # with an image of its own, the type tells Batch only whose settings it has
            image_type=batch_image_type(facts) or "ECS_AL2023",
            image_id_override=image,
        )

    def _longest_job_minutes(self) -> int:
        stack = self._shared.stack
        longest = max(stack.timeout_of(self._group, job) for job in self._group.jobs)
        minutes = -(-int(longest.total_seconds()) // 60)
        return min(max(minutes, SHORTEST_UPDATE_WAIT_MINUTES), LONGEST_UPDATE_WAIT_MINUTES)

    def _job_queue(self, environment: aws.batch.ComputeEnvironment) -> aws.batch.JobQueue:
        """A queue for this environment alone: Batch moves no multi-node job on to a second one.

        Source: https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html
        """
        limits = {
            NO_CAPACITY: self._group.runnable_limit_minutes * 60,
            **dict.fromkeys(MISCONFIGURATIONS, MISCONFIGURED_SECONDS),
        }
        return aws.batch.JobQueue(
            self._name,
            state="ENABLED",
            priority=1,
            compute_environment_orders=[
                aws.batch.JobQueueComputeEnvironmentOrderArgs(
                    order=1, compute_environment=environment.arn
                )
            ],
            scheduling_policy_arn=self._scheduling_policy(),
            job_state_time_limit_actions=[
                aws.batch.JobQueueJobStateTimeLimitActionArgs(
                    state="RUNNABLE", action="CANCEL", reason=reason, max_time_seconds=seconds
                )
                for reason, seconds in limits.items()
            ],
            tags=self._tags,
            # a queue that still names the old environment would keep it from being deleted
            # https://github.com/pulumi/pulumi-aws/issues/6233
            opts=ResourceOptions.merge(
                self._own,
                # nor can a queue change between having a scheduling policy and having none
                ResourceOptions(
                    replace_on_changes=["computeEnvironmentOrders", "schedulingPolicyArn"]
                ),
            ),
        )

    def _scheduling_policy(self) -> Output[str] | None:
        fair_share = self._group.fair_share
        if fair_share is None:
            return None
        policy = aws.batch.SchedulingPolicy(
            self._name,
            fair_share_policy=aws.batch.SchedulingPolicyFairSharePolicyArgs(
                compute_reservation=fair_share.compute_reservation,
                share_decay_seconds=fair_share.decay_seconds,
                share_distributions=[
                    aws.batch.SchedulingPolicyFairSharePolicyShareDistributionArgs(
                        share_identifier=share, weight_factor=weight
                    )
                    for share, weight in sorted(fair_share.shares.items())
                ],
            ),
            tags=self._tags,
            opts=self._own,
        )
        return policy.arn

    def _job_definition(self, job: JobSettings) -> aws.batch.JobDefinition:
        stack, shared = self._shared.stack, self._shared

        def properties(values: list[str]) -> str:
            image, log_group, role = values
            batch_job = stack.batch_job(self._group, job, image)
            definition = job_definition(batch_job, log_group=log_group, job_role_arn=role)
            return json.dumps(definition.get("nodeProperties") or definition["containerProperties"])

        rendered = Output.all(self._image(job), shared.log_group, shared.roles.job).apply(
            properties
        )
        single = job.kind == "singleNode"
        return aws.batch.JobDefinition(
            f"{self._name}_{job.name}",
            type="container" if single else "multinode",
            container_properties=rendered if single else None,
            node_properties=None if single else rendered,
            timeout=aws.batch.JobDefinitionTimeoutArgs(
                attempt_duration_seconds=int(stack.timeout_of(self._group, job).total_seconds())
            ),
            retry_strategy=_retry_strategy(job),
            propagate_tags=True,
            tags=shared.stack.tags(f"{self._name}_{job.name}"),
            opts=self._own,
        )

    def _image(self, job: JobSettings) -> pulumi.Input[str]:
        if job.repository_tag:
            return Output.concat(self._shared.repository_url, ":", job.repository_tag)
        image = self._group.image_of(job)
        if image is None:
            raise ValueError(f"job {job.name} has no image")  # settings refuse it already
        return image


def _retry_strategy(job: JobSettings) -> aws.batch.JobDefinitionRetryStrategyArgs:
    strategy = retry_strategy(job.attempts)
    return aws.batch.JobDefinitionRetryStrategyArgs(
        attempts=strategy["attempts"],
        evaluate_on_exits=[
            aws.batch.JobDefinitionRetryStrategyEvaluateOnExitArgs(
                action=rule["action"],
                on_reason=rule.get("onReason"),
                on_status_reason=rule.get("onStatusReason"),
            )
            for rule in strategy["evaluateOnExit"]
        ],
    )

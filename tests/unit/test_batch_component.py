"""BatchMNP: the nodes of a group and the queue that leads to them."""

import email
from typing import Any

import pytest

from fabric.catalogue import find_instance_type
from fabric.interfaces import efa_layout
from tests.support.batch_stack import (
    TRAIN,
    WITHOUT_EFA,
    batch,
    compute_of,
    container_of,
    template_of,
    user_data_of,
)
from tests.support.rehearsing import rehearsed

OWN_IMAGE = "ami-0123456789abcdef0"


class TestComputeEnvironment:
    def test_it_is_managed_ec2_as_multi_node_jobs_need(self) -> None:
        run = batch()
        assert run.one("batch.ComputeEnvironment").inputs["type"] == "MANAGED"
        assert compute_of(run)["type"] == "EC2"

    def test_it_has_one_instance_type_which_its_jobs_name_too(self) -> None:
        run = batch()
        assert compute_of(run)["instanceTypes"] == ["g4dn.8xlarge"]
        assert container_of(run, "train")["instanceType"] == "g4dn.8xlarge"

    def test_it_is_in_one_subnet_and_so_in_one_zone(self) -> None:
        run = rehearsed(
            network={"availabilityZones": ["us-west-2a", "us-west-2b"]},
            batch={
                "groups": [
                    {
                        "name": "nodes",
                        "instanceType": "g4dn.8xlarge",
                        "maxNodes": 2,
                        "availabilityZone": "us-west-2b",
                    }
                ]
            },
        )
        subnet = run.one("ec2.Subnet", "network-private-us-west-2b")
        assert compute_of(run)["subnets"] == [run.id_of(subnet)]

    @pytest.mark.parametrize(("minimum", "maximum"), [(0, 1), (0, 2), (2, 5)])
    def test_its_size_in_vcpus_is_its_size_in_nodes(self, minimum: int, maximum: int) -> None:
        compute = compute_of(batch(minNodes=minimum, maxNodes=maximum))
        assert (compute["minVcpus"], compute["maxVcpus"]) == (32 * minimum, 32 * maximum)

    def test_it_costs_nothing_while_idle_unless_asked_to(self) -> None:
        assert compute_of(batch())["minVcpus"] == 0

    def test_batch_alone_decides_how_many_nodes_are_wanted(self) -> None:
        run = batch()
        assert "desiredVcpus" not in compute_of(run)
        options = run.options[run.one("batch.ComputeEnvironment").urn]
        assert options.ignore_changes == ("computeResources.desiredVcpus",)

    def test_it_can_be_updated_in_place(self) -> None:
        run = batch()
        assert "serviceRole" not in run.one("batch.ComputeEnvironment").inputs
        assert compute_of(run)["allocationStrategy"] == "BEST_FIT_PROGRESSIVE"

    def test_a_service_role_is_used_when_the_settings_name_one(self) -> None:
        role = "arn:aws:iam::123456789012:role/batch-service"
        run = batch(section={"roles": {"service": role}})
        assert run.one("batch.ComputeEnvironment").inputs["serviceRole"] == role

    @pytest.mark.parametrize(
        ("minutes", "waits"), [([20], 30), ([600, 90], 600), ([7200], 7200), ([9000], 7200)]
    )
    def test_an_update_waits_for_the_longest_job_within_what_batch_takes(
        self, minutes: list[int], waits: int
    ) -> None:
        jobs = [{**TRAIN, "name": f"train-{each}", "timeoutMinutes": each} for each in minutes]
        policy = batch(jobs=jobs).one("batch.ComputeEnvironment").inputs["updatePolicy"]
        assert policy == {"terminateJobsOnUpdate": False, "jobExecutionTimeoutMinutes": waits}

    def test_the_version_of_its_template_is_a_number_as_text(self) -> None:
        run = batch()
        assert compute_of(run)["launchTemplate"] == {
            "launchTemplateId": run.id_of(run.one("ec2.LaunchTemplate")),
            "version": "1",
        }

    def test_it_waits_for_the_policies_of_its_hosts(self) -> None:
        run = batch()
        attachments = {each.urn for each in run.all("iam.RolePolicyAttachment")}
        assert len(attachments) == 2
        assert attachments <= set(run.one("batch.ComputeEnvironment").dependencies)

    def test_no_key_pair_opens_its_hosts(self) -> None:
        assert "ec2KeyPair" not in compute_of(batch())

    def test_a_key_pair_is_used_when_asked_for(self) -> None:
        assert compute_of(batch(common={"keyPair": "ops"}))["ec2KeyPair"] == "ops"


class TestMachineImage:
    @pytest.mark.parametrize(
        ("group", "image_type"),
        [
            ({"instanceType": "g4dn.8xlarge"}, "ECS_AL2023_NVIDIA"),
            ({"instanceType": "c7gn.16xlarge", "jobs": [TRAIN]}, "ECS_AL2023"),
            (WITHOUT_EFA, "ECS_AL2023"),
        ],
    )
    def test_it_is_amazon_linux_2023_for_the_accelerator(
        self, group: dict[str, Any], image_type: str
    ) -> None:
        assert compute_of(batch(**group))["ec2Configurations"] == [{"imageType": image_type}]

    def test_neurons_is_looked_up_since_batch_has_no_type_for_it(self) -> None:
        (image,) = compute_of(batch(instanceType="trn1.32xlarge"))["ec2Configurations"]
        assert image["imageType"] == "ECS_AL2023"
        assert image["imageIdOverride"].startswith("ami-")

    @pytest.mark.parametrize("instance_type", ["g4dn.8xlarge", "trn1.32xlarge"])
    def test_a_groups_own_comes_first(self, instance_type: str) -> None:
        run = batch(instanceType=instance_type, imageId=OWN_IMAGE)
        (image,) = compute_of(run)["ec2Configurations"]
        assert image["imageIdOverride"] == OWN_IMAGE


class TestLaunchTemplate:
    @pytest.mark.parametrize(
        "instance_type",
        ["g4dn.8xlarge", "p4d.24xlarge", "p5.48xlarge", "p6-b300.48xlarge", "trn1.32xlarge"],
    )
    def test_its_interfaces_are_the_layout_of_the_type(self, instance_type: str) -> None:
        run = batch(instanceType=instance_type)
        layout = efa_layout(
            instance_type=find_instance_type(instance_type), keep_slot_on_card_0=True
        )
        assert [
            (each["networkCardIndex"], each["deviceIndex"], each["interfaceType"])
            for each in template_of(run)["networkInterfaces"]
        ] == [
            (each.network_card_index, each.device_index, each.interface_type)
            for each in layout.interfaces
        ]

    @pytest.mark.parametrize(("wanted", "addresses"), [("oneAddress", 1), ("maximum", 8)])
    def test_more_ip_bandwidth_is_more_interfaces_with_an_address(
        self, wanted: str, addresses: int
    ) -> None:
        run = batch(instanceType="p5.48xlarge", ipBandwidth=wanted)
        kinds = [each["interfaceType"] for each in template_of(run)["networkInterfaces"]]
        assert len(kinds) - kinds.count("efa-only") == addresses

    def test_every_interface_is_in_the_efa_group_and_has_no_public_address(self) -> None:
        run = batch(instanceType="p5.48xlarge")
        group = run.id_of(run.one("ec2.SecurityGroup"))
        interfaces = template_of(run)["networkInterfaces"]
        assert {tuple(each["securityGroups"]) for each in interfaces} == {(group,)}
        assert all("associatePublicIpAddress" not in each for each in interfaces)

    def test_security_groups_are_either_in_its_interfaces_or_in_the_environment(self) -> None:
        run = batch()
        assert "securityGroupIds" not in compute_of(run)
        assert {"vpcSecurityGroupIds", "securityGroupNames"}.isdisjoint(template_of(run))

    def test_without_efa_batch_makes_the_interface_in_the_environments_group(self) -> None:
        run = batch(**WITHOUT_EFA)
        assert "networkInterfaces" not in template_of(run)
        assert compute_of(run)["securityGroupIds"] == [run.id_of(run.one("ec2.SecurityGroup"))]

    def test_hyper_threading_is_turned_off_with_every_core_kept(self) -> None:
        run = batch(threadsPerCore=1)
        assert template_of(run)["cpuOptions"] == {"coreCount": 16, "threadsPerCore": 1}

    @pytest.mark.parametrize("threads", [None, 2])
    def test_the_types_own_threads_need_no_cpu_options(self, threads: int | None) -> None:
        group: dict[str, Any] = {"threadsPerCore": threads} if threads else {}
        assert "cpuOptions" not in template_of(batch(**group))

    def test_only_hosts_read_instance_metadata_and_only_with_a_token(self) -> None:
        options = template_of(batch())["metadataOptions"]
        assert (options["httpTokens"], options["httpPutResponseHopLimit"]) == ("required", 1)

    def test_its_disk_is_encrypted_and_goes_with_the_node(self) -> None:
        (disk,) = template_of(batch(rootVolumeGib=500))["blockDeviceMappings"]
        assert disk["deviceName"] == "/dev/xvda"
        assert disk["ebs"] == {
            "volumeType": "gp3",
            "volumeSize": 500,
            "encrypted": "true",
            "deleteOnTermination": "true",
        }

    @pytest.mark.parametrize(
        ("group", "files"),
        [
            ({}, ["10-ecs-agent.sh", "20-scratch.sh"]),
            (WITHOUT_EFA, ["10-ecs-agent.sh"]),
        ],
    )
    def test_its_user_data_is_mime_with_a_scratch_part_where_there_are_disks(
        self, group: dict[str, Any], files: list[str]
    ) -> None:
        document = email.message_from_string(user_data_of(batch(**group)))
        assert document.get_content_type() == "multipart/mixed"
        assert [part.get_filename() for part in document.walk()][1:] == files

    def test_its_user_data_leaves_the_cluster_to_batch_and_credentials_to_jobs(self) -> None:
        text = user_data_of(batch())
        assert "ECS_CLUSTER=" not in text
        assert "ECS_AWSVPC_BLOCK_IMDS=true" in text


class TestJobQueue:
    def test_it_leads_to_one_environment(self) -> None:
        run = batch()
        environment = run.one("batch.ComputeEnvironment")
        queue = run.one("batch.JobQueue")
        assert queue.inputs["computeEnvironmentOrders"] == [
            {"order": 1, "computeEnvironment": run.arn_of(environment)}
        ]
        assert environment.urn in queue.dependencies

    def test_it_is_replaced_with_its_environment_and_neither_has_a_fixed_name(self) -> None:
        run = batch()
        queue, environment = run.one("batch.JobQueue"), run.one("batch.ComputeEnvironment")
        assert "computeEnvironmentOrders" in run.options[queue.urn].replace_on_changes
        for each in (queue, environment):
            assert {"name", "namePrefix"}.isdisjoint(each.inputs)
            assert not run.options[each.urn].delete_before_replace

    def test_a_job_that_can_never_run_does_not_wait_for_ever(self) -> None:
        actions = (
            batch(runnableLimitMinutes=60).one("batch.JobQueue").inputs["jobStateTimeLimitActions"]
        )
        assert {each["reason"]: each["maxTimeSeconds"] for each in actions} == {
            "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY": 3600,
            "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE": 600,
            "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT": 600,
        }
        assert {(each["state"], each["action"]) for each in actions} == {("RUNNABLE", "CANCEL")}

    def test_it_is_first_in_first_out_by_default(self) -> None:
        run = batch()
        assert "schedulingPolicyArn" not in run.one("batch.JobQueue").inputs
        assert run.all("batch.SchedulingPolicy") == []

    def test_shares_become_its_scheduling_policy(self) -> None:
        run = batch(fairShare={"shares": {"research": 0.5, "evaluation": 1}})
        policy = run.one("batch.SchedulingPolicy")
        assert run.one("batch.JobQueue").inputs["schedulingPolicyArn"] == run.arn_of(policy)
        assert policy.inputs["fairSharePolicy"]["shareDistributions"] == [
            {"shareIdentifier": "evaluation", "weightFactor": 1},
            {"shareIdentifier": "research", "weightFactor": 0.5},
        ]

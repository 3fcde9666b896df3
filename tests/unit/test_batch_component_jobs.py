"""BatchMNP: job definitions, and what the groups of a stack share."""

import json
from typing import Any

import pytest

from tests.support.batch_stack import (
    TRAIN,
    WITHOUT_EFA,
    batch,
    compute_of,
    container_of,
    requests_of,
    template_of,
)
from tests.support.rehearsing import STACKS, rehearsed, rehearsed_stack

BOUNDARY = "arn:aws:iam::123456789012:policy/training-boundary"
KEY = "arn:aws:kms:us-west-2:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"
PROFILE = "arn:aws:iam::123456789012:instance-profile/training-hosts"
JOB_ROLE = "arn:aws:iam::123456789012:role/training-jobs"
SHOW = {"name": "show", "kind": "singleNode", "repositoryTag": "v1", "command": ["lscpu"]}


def statements_of(text: str) -> list[dict[str, Any]]:
    return json.loads(text)["Statement"]


class TestJobDefinitions:
    def test_without_jobs_of_its_own_a_group_has_one_of_each_kind(self) -> None:
        kinds = {each.name: each.inputs["type"] for each in batch().all("batch.JobDefinition")}
        assert kinds == {
            "batch-nodes_train": "multinode",
            "batch-nodes_bandwidth": "multinode",
            "batch-nodes_node": "container",
        }

    def test_a_multi_node_job_runs_on_all_nodes_of_its_group(self) -> None:
        run = batch(maxNodes=3)
        inputs = run.one("batch.JobDefinition", "batch-nodes_train").inputs
        assert json.loads(inputs["nodeProperties"])["numNodes"] == 3

    @pytest.mark.parametrize(
        ("instance_type", "interfaces"), [("g4dn.8xlarge", 1), ("p5.48xlarge", 32)]
    )
    def test_it_has_every_efa_device_of_its_node(self, instance_type: str, interfaces: int) -> None:
        devices = container_of(batch(instanceType=instance_type), "train")["linuxParameters"][
            "devices"
        ]
        assert [each["hostPath"] for each in devices] == [
            f"/dev/infiniband/uverbs{index}" for index in range(interfaces)
        ]
        assert {tuple(each["permissions"]) for each in devices} == {("READ", "WRITE", "MKNOD")}

    def test_without_efa_it_has_no_devices(self) -> None:
        parameters = container_of(batch(**WITHOUT_EFA), "train")["linuxParameters"]
        assert "devices" not in parameters

    def test_on_neuron_it_has_the_accelerators_too(self) -> None:
        container = container_of(batch(instanceType="trn1.32xlarge"), "train")
        paths = [each["hostPath"] for each in container["linuxParameters"]["devices"]]
        assert [each for each in paths if "neuron" in each] == [
            f"/dev/neuron{index}" for index in range(16)
        ]

    def test_it_asks_for_the_whole_node_and_a_little_less_memory(self) -> None:
        assert requests_of(batch(), "train") == {
            "VCPU": "32",
            "MEMORY": str(128 * 1024 * 96 // 100),
            "GPU": "1",
        }

    def test_with_hyper_threading_off_it_asks_for_cores(self) -> None:
        assert requests_of(batch(threadsPerCore=1), "train")["VCPU"] == "16"

    def test_it_may_pin_all_memory(self) -> None:
        limits = {each["name"]: each for each in container_of(batch(), "train")["ulimits"]}
        assert (limits["memlock"]["softLimit"], limits["memlock"]["hardLimit"]) == (-1, -1)

    @pytest.mark.parametrize("job", ["train", "bandwidth", "node"])
    def test_every_job_ends_some_day(self, job: str) -> None:
        timeout = batch().one("batch.JobDefinition", f"batch-nodes_{job}").inputs["timeout"]
        assert timeout["attemptDurationSeconds"] >= 60

    def test_a_jobs_own_timeout_counts(self) -> None:
        run = batch(jobs=[{**TRAIN, "timeoutMinutes": 90}])
        assert run.one("batch.JobDefinition").inputs["timeout"] == {"attemptDurationSeconds": 5400}

    def test_only_the_loss_of_a_host_is_tried_again(self) -> None:
        strategy = (
            batch(jobs=[{**TRAIN, "attempts": 5}])
            .one("batch.JobDefinition")
            .inputs["retryStrategy"]
        )
        assert strategy == {
            "attempts": 5,
            "evaluateOnExits": [
                {"action": "RETRY", "onStatusReason": "Host EC2*"},
                {"action": "EXIT", "onReason": "*"},
            ],
        }

    def test_its_logs_go_to_the_group_of_the_stack(self) -> None:
        run = batch()
        options = container_of(run, "train")["logConfiguration"]["options"]
        group = run.one("cloudwatch.LogGroup", "batch-jobs")
        assert options["awslogs-group"] == run.options[group.urn].made_up["name"]

    def test_a_tag_means_an_image_in_the_repository_of_the_stack(self) -> None:
        run = batch(jobs=[TRAIN])
        url = run.options[run.one("ecr.Repository").urn].made_up["repositoryUrl"]
        assert container_of(run, "train")["image"] == f"{url}:v1"

    @pytest.mark.parametrize("job", ["train", "bandwidth", "node"])
    def test_the_default_image_has_a_fixed_tag(self, job: str) -> None:
        _, _, tag = container_of(batch(), job)["image"].rpartition(":")
        assert any(each.isdigit() for each in tag)


class TestLogs:
    def test_they_are_kept_as_long_as_asked(self) -> None:
        run = batch(section={"logRetentionDays": 7})
        assert run.one("cloudwatch.LogGroup", "batch-jobs").inputs["retentionInDays"] == 7


class TestImageRepository:
    def test_it_scans_and_a_tag_keeps_its_meaning(self) -> None:
        repository = batch().one("ecr.Repository").inputs
        assert repository["imageScanningConfiguration"] == {"scanOnPush": True}
        assert repository["imageTagMutability"] == "IMMUTABLE"

    def test_only_images_without_a_tag_are_dropped(self) -> None:
        (rule,) = json.loads(batch().one("ecr.LifecyclePolicy").inputs["policy"])["rules"]
        assert rule["selection"]["tagStatus"] == "untagged"
        assert rule["action"] == {"type": "expire"}

    @pytest.mark.parametrize("keep", [False, True])
    def test_destroy_deletes_what_was_pushed_unless_it_is_to_be_kept(self, *, keep: bool) -> None:
        run = batch(section={"keepImages": keep})
        repository, lifecycle = run.one("ecr.Repository"), run.one("ecr.LifecyclePolicy")
        assert repository.inputs["forceDelete"] is not keep
        assert (repository.retain_on_delete, lifecycle.retain_on_delete) == (keep, keep)


class TestRoles:
    def test_hosts_may_run_tasks_and_be_reached_by_session_manager(self) -> None:
        policies = {each.inputs["policyArn"] for each in batch().all("iam.RolePolicyAttachment")}
        assert {each.rpartition("/")[2] for each in policies} == {
            "AmazonEC2ContainerServiceforEC2Role",
            "AmazonSSMManagedInstanceCore",
        }

    def test_session_manager_can_be_left_out(self) -> None:
        run = batch(common={"sessionManager": False})
        (attachment,) = run.all("iam.RolePolicyAttachment")
        assert attachment.inputs["policyArn"].endswith("AmazonEC2ContainerServiceforEC2Role")

    def test_a_job_may_do_nothing_when_no_bucket_is_named(self) -> None:
        run = batch()
        role = run.options[run.one("iam.Role", "batch-job").urn].made_up["name"]
        assert [
            each
            for each in run.all("iam.RolePolicy") + run.all("iam.RolePolicyAttachment")
            if each.inputs["role"] == role
        ] == []

    def test_a_job_reaches_the_named_buckets_only(self) -> None:
        run = batch(
            section={"readBuckets": ["arn:aws:s3:::data"], "writeBuckets": ["arn:aws:s3:::out"]}
        )
        policy = run.one("iam.RolePolicy", "batch-job-buckets").inputs["policy"]
        reachable = {
            action: set(each["Resource"])
            for each in statements_of(policy)
            for action in each["Action"]
        }
        assert reachable["s3:ListBucket"] == {"arn:aws:s3:::data", "arn:aws:s3:::out"}
        assert reachable["s3:GetObject"] == {"arn:aws:s3:::data/*", "arn:aws:s3:::out/*"}
        assert reachable["s3:PutObject"] == {"arn:aws:s3:::out/*"}

    def test_roles_that_exist_are_used_in_place_of_own_ones(self) -> None:
        run = batch(section={"roles": {"instanceProfile": PROFILE, "job": JOB_ROLE}})
        assert [each.name for each in run.all("iam.Role")] == ["network-flow"]
        assert compute_of(run)["instanceRole"] == PROFILE
        assert container_of(run, "train")["jobRoleArn"] == JOB_ROLE

    def test_a_boundary_holds_every_role(self) -> None:
        roles = batch(common={"permissionsBoundary": BOUNDARY}).all("iam.Role")
        assert [each.name for each in roles] == ["batch-host", "batch-job", "network-flow"]
        assert {each.inputs["permissionsBoundary"] for each in roles} == {BOUNDARY}

    @pytest.mark.parametrize("stack", STACKS)
    def test_no_policy_allows_everything(self, stack: str) -> None:
        for each in rehearsed_stack(stack).all("iam.RolePolicy"):
            for statement in statements_of(each.inputs["policy"]):
                assert all(not action.endswith(":*") for action in statement["Action"])
                assert "*" not in statement["Action"]


class TestCommonSettings:
    def test_a_key_encrypts_volumes_logs_and_images(self) -> None:
        run = batch(common={"kmsKey": KEY})
        (disk,) = template_of(run)["blockDeviceMappings"]
        (images,) = run.one("ecr.Repository").inputs["encryptionConfigurations"]
        logs = run.all("cloudwatch.LogGroup")
        assert disk["ebs"]["kmsKeyId"] == KEY
        assert images == {"encryptionType": "KMS", "kmsKey": KEY}
        assert [each.inputs["kmsKeyId"] for each in logs] == [KEY, KEY]

    def test_tags_are_on_every_resource_that_takes_any(self) -> None:
        run = rehearsed(
            common={"tags": {"team": "research"}},
            network={"availabilityZones": ["us-west-2a"], "nat": "none", "dynamodbEndpoint": True},
            placement={
                "held": {"reserve": {"instanceType": "g6.12xlarge", "count": 1, "unlimited": True}},
                "pool": {"reservationGroup": {"reservations": ["cr-0123456789abcdef0"]}},
            },
            batch={
                "groups": [
                    {
                        "name": "nodes",
                        "instanceType": "g6.12xlarge",
                        "maxNodes": 1,
                        "placement": "held",
                        "fairShare": {"shares": {"one": 1}},
                        "jobs": [TRAIN],
                    }
                ]
            },
        )
        takes_no_tags = {
            "ecr.LifecyclePolicy",
            "ec2.RouteTableAssociation",
            "iam.RolePolicy",
            "iam.RolePolicyAttachment",
            "resourcegroups.Resource",
        }
        of_aws = {
            kind: run.all(kind)
            for kind in {
                f"{each.type.split(':')[1].split('/')[0]}.{each.type.rpartition(':')[2]}"
                for each in run.resources
                if each.type.startswith("aws:")
            }
        }
        untagged = {
            kind
            for kind, resources in of_aws.items()
            if any(each.inputs.get("tags", {}).get("team") != "research" for each in resources)
        }
        assert untagged == takes_no_tags

    def test_nodes_have_the_tags_their_volumes_and_their_interfaces_too(self) -> None:
        run = batch(common={"tags": {"team": "research"}})
        specified = template_of(run)["tagSpecifications"]
        assert {each["resourceType"]: each["tags"]["team"] for each in specified} == {
            "instance": "research",
            "volume": "research",
            "network-interface": "research",
        }

    def test_jobs_pass_their_tags_on(self) -> None:
        definitions = batch().all("batch.JobDefinition")
        assert {each.inputs["propagateTags"] for each in definitions} == {True}


class TestOutputs:
    def test_they_say_where_to_push_images_and_where_logs_are(self) -> None:
        run = batch()
        said = run.outputs["batch"]
        repository, logs = run.one("ecr.Repository"), run.one("cloudwatch.LogGroup", "batch-jobs")
        assert set(said) == {"imageRepository", "logGroup", "groups"}
        assert said["imageRepository"] == run.options[repository.urn].made_up["repositoryUrl"]
        assert said["logGroup"] == run.options[logs.urn].made_up["name"]

    def test_each_group_says_its_zone_its_queue_and_its_jobs(self) -> None:
        run = batch(jobs=[TRAIN, SHOW])
        group = run.outputs["batch"]["groups"]["nodes"]
        assert group["availabilityZone"] == "us-west-2a"
        assert group["computeEnvironment"] == run.arn_of(run.one("batch.ComputeEnvironment"))
        assert group["jobQueue"] == run.arn_of(run.one("batch.JobQueue"))
        assert group["jobDefinitions"] == {
            name: run.arn_of(run.one("batch.JobDefinition", f"batch-nodes_{name}"))
            for name in ("train", "show")
        }

    @pytest.mark.parametrize(
        ("group", "share"),
        [({}, ""), ({"fairShare": {"shares": {"one": 1}}}, " --share-identifier one")],
    )
    def test_each_job_has_the_command_that_submits_it(
        self, group: dict[str, Any], share: str
    ) -> None:
        said = batch(jobs=[TRAIN], **group).outputs["batch"]["groups"]["nodes"]
        assert said["submit"]["train"] == (
            f"aws batch submit-job --region us-west-2 --job-name train{share}"
            f" --job-queue {said['jobQueue']} --job-definition {said['jobDefinitions']['train']}"
        )

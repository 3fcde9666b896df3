"""Ways to break compute environments, their launch templates and job queues."""

import base64
from collections.abc import Callable
from typing import Any

from tests.policy.mutations import Mutation, Rows, first, of_type

OURS, RAW = "batch-p4d-odcr", "raw_batch"
Breaks = Callable[[Rows], None]


def named(rows: Rows, short: str, name: str) -> dict[str, Any]:
    return next(row for row in of_type(rows, short) if row["name"] == name)


def resources(name: str | None = None, **values: Any) -> Breaks:
    """Sets `computeResources` of the first environment, or of the one with this name."""

    def breaks(rows: Rows) -> None:
        short = "ComputeEnvironment"
        row = named(rows, short, name) if name else first(rows, short)
        row["inputs"]["computeResources"] |= values

    return breaks


def settings(short: str, **values: Any) -> Breaks:
    return lambda rows: first(rows, short)["inputs"].update(values)


def user_data(change: Callable[[str], str]) -> Breaks:
    def breaks(rows: Rows) -> None:
        inputs = first(rows, "LaunchTemplate")["inputs"]
        text = base64.b64decode(inputs["userData"]).decode()
        inputs["userData"] = base64.b64encode(change(text).encode()).decode()

    return breaks


def without_policies(count: int) -> Breaks:
    """The environment forgets this many of the attachments that it depends on."""

    def breaks(rows: Rows) -> None:
        row = first(rows, "ComputeEnvironment")
        policies = [each["urn"] for each in of_type(rows, "RolePolicyAttachment")][:count]
        row["dependencies"] = [urn for urn in row["dependencies"] if urn not in policies]

    return breaks


def public_route(rows: Rows) -> None:
    route = next(row for row in of_type(rows, "Route") if "private" in row["name"])
    gateway = first(rows, "InternetGateway")["urn"]
    route["inputs"] = {"destinationCidrBlock": "0.0.0.0/0", "gatewayId": "igw-0123456789abcdef0"}
    route["propertyDependencies"]["gatewayId"] = [gateway]


def public_addresses(rows: Rows) -> None:
    subnet = next(row for row in of_type(rows, "Subnet") if "private" in row["name"])
    subnet["inputs"]["mapPublicIpOnLaunch"] = True


def no_interfaces(rows: Rows) -> None:
    del first(rows, "LaunchTemplate")["inputs"]["networkInterfaces"]


def interface_in_subnet(rows: Rows) -> None:
    interfaces = first(rows, "LaunchTemplate")["inputs"]["networkInterfaces"]
    interfaces[0]["subnetId"] = "subnet-0123456789abcdef0"


def longer_job(rows: Rows) -> None:
    for row in of_type(rows, "JobDefinition"):
        row["inputs"]["timeout"] = {"attemptDurationSeconds": 5 * 86400}


def second_order(rows: Rows) -> None:
    orders = first(rows, "JobQueue")["inputs"]["computeEnvironmentOrders"]
    orders.append({**orders[0], "order": 2})


def fallback_for_training(rows: Rows) -> None:
    queue, other = named(rows, "JobQueue", "training"), named(rows, "JobQueue", "chores")
    queue["inputs"]["computeEnvironmentOrders"] += other["inputs"]["computeEnvironmentOrders"][1:]
    queue["propertyDependencies"]["computeEnvironmentOrders"].append(
        named(rows, "ComputeEnvironment", "fallback")["urn"]
    )


def many_orders(rows: Rows) -> None:
    orders = first(rows, "JobQueue")["inputs"]["computeEnvironmentOrders"]
    orders[:] = [{**orders[0], "order": place} for place in range(4)]


def same_order(rows: Rows) -> None:
    orders = first(rows, "JobQueue")["inputs"]["computeEnvironmentOrders"]
    orders.append(dict(orders[0]))


def limit(**values: Any) -> Breaks:
    def breaks(rows: Rows) -> None:
        first(rows, "JobQueue")["inputs"]["jobStateTimeLimitActions"][0] |= values

    return breaks


def fewer_limits(rows: Rows) -> None:
    first(rows, "JobQueue")["inputs"]["jobStateTimeLimitActions"].pop()


ENVIRONMENT, QUEUE, TEMPLATE = "ComputeEnvironment", "JobQueue", "LaunchTemplate"
IMAGE = "ami-0123456789abcdef0"
NVIDIA = [{"imageType": "ECS_AL2023_NVIDIA"}]

WAYS: tuple[tuple[str, str, str, Breaks], ...] = (
    ("batch-multi-node-on-demand", OURS, "Spot", resources(type="SPOT")),
    ("batch-multi-node-on-demand", OURS, "unmanaged", settings(ENVIRONMENT, type="UNMANAGED")),
    ("batch-multi-node-on-demand", RAW, "Fargate", resources("trainer", type="FARGATE")),
    ("batch-one-instance-type", OURS, "a family", resources(instanceTypes=["p4d"])),
    ("batch-one-instance-type", OURS, "optimal", resources(instanceTypes=["optimal"])),
    (
        "batch-one-instance-type",
        RAW,
        "two",
        resources(instanceTypes=["p4d.24xlarge", "p4de.24xlarge"]),
    ),
    ("batch-vcpu-limits", OURS, "minimum over maximum", resources(minVcpus=10**6)),
    ("batch-vcpu-limits", RAW, "wish over maximum", resources(desiredVcpus="769")),
    (
        "batch-spot-settings",
        OURS,
        "Spot strategy on EC2",
        resources(allocationStrategy="SPOT_CAPACITY_OPTIMIZED"),
    ),
    ("batch-spot-settings", RAW, "no fleet role", resources("spot", allocationStrategy="")),
    (
        "batch-interfaces-or-security-groups",
        OURS,
        "both",
        resources(securityGroupIds=["sg-0123456789abcdef0"]),
    ),
    ("batch-interfaces-or-security-groups", OURS, "neither", no_interfaces),
    (
        "batch-interfaces-or-security-groups",
        RAW,
        "none without a template",
        resources("spot", securityGroupIds=[]),
    ),
    ("batch-private-subnets", OURS, "route to the internet gateway", public_route),
    ("batch-private-subnets", OURS, "public addresses", public_addresses),
    (
        "batch-image-type-supported",
        OURS,
        "AL2 with GPU",
        resources(ec2Configurations=[{"imageType": "ECS_AL2_NVIDIA"}]),
    ),
    (
        "batch-image-type-supported",
        RAW,
        "AL2",
        resources("fallback", ec2Configurations=[{"imageType": "ECS_AL2"}]),
    ),
    ("batch-image-type-explicit", OURS, "nothing", resources(ec2Configurations=[])),
    ("batch-image-type-explicit", RAW, "empty", resources(ec2Configurations=[{"imageType": ""}])),
    (
        "batch-image-fits-instance",
        OURS,
        "GPU without driver",
        resources(ec2Configurations=[{"imageType": "ECS_AL2023"}]),
    ),
    (
        "batch-image-fits-instance",
        "batch-hpc7a",
        "NVIDIA on Graviton",
        resources(instanceTypes=["hpc7g.16xlarge"], ec2Configurations=NVIDIA),
    ),
    (
        "batch-image-fits-instance",
        OURS,
        "NVIDIA on Trainium",
        resources(instanceTypes=["trn1.32xlarge"]),
    ),
    (
        "batch-image-id",
        OURS,
        "a parameter's path",
        resources(ec2Configurations=[{"imageIdOverride": "/aws/service/ecs/recommended"}]),
    ),
    ("batch-image-id", RAW, "a reference", resources(imageId="resolve:ssm:/my/image")),
    ("batch-image-id-place", OURS, "deprecated input", resources(imageId=IMAGE)),
    ("batch-image-id-place", RAW, "deprecated on Spot", resources("spot", imageId=IMAGE)),
    (
        "batch-template-version",
        OURS,
        "$Latest",
        resources(launchTemplate={"launchTemplateId": "lt-1", "version": "$Latest"}),
    ),
    (
        "batch-template-version",
        RAW,
        "$Latest for some types",
        resources(
            "trainer",
            launchTemplate={
                "launchTemplateId": "lt-1",
                "version": "1",
                "overrides": [{"launchTemplateId": "lt-2", "version": "$Latest"}],
            },
        ),
    ),
    (
        "batch-template-version",
        RAW,
        "none",
        resources("trainer", launchTemplate={"launchTemplateId": "lt-1", "version": ""}),
    ),
    (
        "batch-user-data-mime",
        OURS,
        "blank line after a boundary",
        user_data(lambda text: text.replace("==\nContent-Type", "==\n\nContent-Type")),
    ),
    ("batch-user-data-mime", RAW, "a plain script", user_data(lambda _: "#!/bin/bash\ntrue\n")),
    ("batch-user-data-mime", RAW, "not encoded", settings(TEMPLATE, userData="#!/bin/bash\n")),
    ("batch-user-data-size", OURS, "one byte over", user_data(lambda text: text.ljust(16385))),
    ("batch-user-data-size", RAW, "twice", user_data(lambda text: text + "#" * 32768)),
    (
        "batch-user-data-cluster",
        OURS,
        "cluster",
        user_data(lambda text: text + "\necho ECS_CLUSTER=mine >> /etc/ecs/ecs.config"),
    ),
    (
        "batch-user-data-cluster",
        RAW,
        "attributes",
        user_data(lambda text: text + '\nECS_INSTANCE_ATTRIBUTES={"a": "b"}'),
    ),
    ("batch-template-ignored", OURS, "type", settings(TEMPLATE, instanceType="p4d.24xlarge")),
    ("batch-template-ignored", OURS, "subnet", interface_in_subnet),
    (
        "batch-template-ignored",
        RAW,
        "Spot",
        settings(TEMPLATE, instanceMarketOptions={"marketType": "spot"}),
    ),
    ("batch-updates-in-place", OURS, "BEST_FIT", resources(allocationStrategy="BEST_FIT")),
    (
        "batch-updates-in-place",
        RAW,
        "own service role",
        settings(ENVIRONMENT, serviceRole="arn:aws:iam::123456789012:role/batch"),
    ),
    (
        "batch-jobs-outlive-updates",
        OURS,
        "half an hour",
        settings(ENVIRONMENT, updatePolicy={"jobExecutionTimeoutMinutes": 30}),
    ),
    ("batch-jobs-outlive-updates", OURS, "default", settings(ENVIRONMENT, updatePolicy=None)),
    ("batch-jobs-outlive-updates", RAW, "a longer job", longer_job),
    ("batch-replaceable-name", OURS, "environment", settings(ENVIRONMENT, name="training")),
    ("batch-replaceable-name", RAW, "queue", settings(QUEUE, name="training")),
    ("batch-waits-for-policies", OURS, "one forgotten", without_policies(1)),
    ("batch-waits-for-policies", RAW, "all forgotten", without_policies(9)),
    ("batch-one-environment-per-queue", OURS, "another", second_order),
    ("batch-one-environment-per-queue", RAW, "a small one to fall back on", fallback_for_training),
    ("batch-queue-environments", OURS, "four", many_orders),
    ("batch-queue-environments", RAW, "one order twice", same_order),
    ("batch-queue-one-kind", RAW, "Fargate beside Spot", resources("fallback", type="FARGATE")),
    (
        "batch-queue-one-kind",
        RAW,
        "Graviton beside x86",
        resources("fallback", instanceTypes=["m7g.xlarge"]),
    ),
    ("batch-time-limit-values", OURS, "a minute", limit(maxTimeSeconds=60)),
    ("batch-time-limit-values", RAW, "another reason", limit(reason="CAPACITY")),
    ("batch-time-limits", OURS, "none", settings(QUEUE, jobStateTimeLimitActions=[])),
    ("batch-time-limits", RAW, "two of three", fewer_limits),
)

MUTATIONS = tuple(
    Mutation(rule=rule, stack=stack, what=what, breaks=breaks) for rule, stack, what, breaks in WAYS
)

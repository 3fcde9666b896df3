"""Ways to break job definitions."""

from collections.abc import Callable
from typing import Any

from tests.policy.mutations import Mutation, Rows, edit_json, first, of_type

OURS, RAW = "batch-p4d-odcr", "raw_batch"
Breaks = Callable[[Rows], None]
Change = Callable[[Any], object]


def multi_node(rows: Rows) -> dict[str, Any]:
    return next(
        row for row in of_type(rows, "JobDefinition") if row["inputs"]["type"] != "container"
    )


def single_node(rows: Rows) -> dict[str, Any]:
    return next(
        row for row in of_type(rows, "JobDefinition") if row["inputs"]["type"] == "container"
    )


def inputs(**values: Any) -> Breaks:
    return lambda rows: multi_node(rows)["inputs"].update(values)


def nodes(change: Change) -> Breaks:
    """Changes `nodeProperties` of the first multi-node definition."""

    def breaks(rows: Rows) -> None:
        edit_json(multi_node(rows), "nodeProperties", change)

    return breaks


def container(change: Change) -> Breaks:
    """Changes the container of its last range, wherever the definition keeps it."""

    def breaks(properties: Any) -> None:
        last = properties["nodeRangeProperties"][-1]
        change(last.get("container") or last["ecsProperties"]["taskProperties"][0]["containers"][0])

    return nodes(breaks)


def task(change: Change) -> Breaks:
    return nodes(
        lambda value: change(value["nodeRangeProperties"][-1]["ecsProperties"]["taskProperties"][0])
    )


def single(**values: Any) -> Breaks:
    """Sets values in the container of the first definition for one node."""

    def breaks(rows: Rows) -> None:
        edit_json(single_node(rows), "containerProperties", lambda value: value.update(values))

    return breaks


def variable(name: str, value: str) -> Breaks:
    def change(settings: Any) -> None:
        others = [one for one in settings["environment"] if one["name"] != name]
        settings["environment"] = [*others, {"name": name, "value": value}]

    return container(change)


def no_variables(settings: Any) -> None:
    settings["environment"] = []


def asks(kind: str, amount: int | None) -> Breaks:
    def change(settings: Any) -> None:
        others = [one for one in settings["resourceRequirements"] if one["type"] != kind]
        asked = [] if amount is None else [{"type": kind, "value": str(amount)}]
        settings["resourceRequirements"] = [*others, *asked]

    return container(change)


def linux(**values: Any) -> Breaks:
    return container(lambda settings: settings["linuxParameters"].update(values))


def no_mknod(settings: Any) -> None:
    settings["linuxParameters"]["devices"][0]["permissions"] = ["READ", "WRITE"]


def one_device_less(settings: Any) -> None:
    settings["linuxParameters"]["devices"].pop()


def soft_memlock(settings: Any) -> None:
    for limit in settings["ulimits"]:
        if limit["name"] == "memlock":
            limit["softLimit"] = 65536


def one_thread(rows: Rows) -> None:
    template = first(rows, "LaunchTemplate")["inputs"]
    template["cpuOptions"] = {"coreCount": 48, "threadsPerCore": 1}


def environment(**values: Any) -> Breaks:
    def breaks(rows: Rows) -> None:
        first(rows, "ComputeEnvironment")["inputs"]["computeResources"] |= values

    return breaks


def another_type(properties: Any) -> None:
    extra = {"targetNodes": "1:1", "container": {"instanceType": "p4de.24xlarge"}}
    properties["nodeRangeProperties"].append(extra)


def all_of_type(name: str) -> Change:
    def change(properties: Any) -> None:
        for one in properties["nodeRangeProperties"]:
            one["container"]["instanceType"] = name

    return change


def efs(**values: Any) -> Breaks:
    return task(lambda settings: settings["volumes"][0]["efsVolumeConfiguration"].update(values))


def without_role(settings: Any) -> None:
    del settings["taskRoleArn"]


def volume(key: str) -> Breaks:
    return single(volumes=[{"name": "data", key: {}}])


PLAIN_EFS = [{"name": "home", "efsVolumeConfiguration": {"fileSystemId": "fs-0a1b2c3d"}}]
LOST_HOST = {"onStatusReason": "Host EC2*", "action": "RETRY"}
OTHERS = {"onReason": "*", "action": "EXIT"}


def retries(*rules: dict[str, str]) -> Breaks:
    return inputs(retryStrategy={"attempts": 3, "evaluateOnExits": list(rules)})


WAYS: tuple[tuple[str, str, str, Breaks], ...] = (
    ("job-node-ranges", OURS, "main beyond", nodes(lambda value: value.update(mainNode=99))),
    ("job-node-ranges", OURS, "too many", nodes(lambda value: value.update(numNodes=1001))),
    (
        "job-node-ranges",
        RAW,
        "a gap",
        nodes(lambda value: value["nodeRangeProperties"][1].update(targetNodes="2:")),
    ),
    (
        "job-node-ranges",
        RAW,
        "six ranges",
        nodes(lambda value: value["nodeRangeProperties"].extend([{"targetNodes": "0:"}] * 4)),
    ),
    ("job-one-instance-type", OURS, "a range more", nodes(another_type)),
    (
        "job-one-instance-type",
        RAW,
        "the second range",
        nodes(lambda value: value["nodeRangeProperties"][1].update(instanceTypes=["c7i.large"])),
    ),
    ("job-instance-type-launchable", OURS, "job", nodes(all_of_type("p4de.24xlarge"))),
    ("job-instance-type-launchable", RAW, "nodes", environment(instanceTypes=["p5.48xlarge"])),
    ("job-nodes-fit-limit", OURS, "more nodes", nodes(lambda value: value.update(numNodes=100))),
    ("job-nodes-fit-limit", RAW, "less room", environment(maxVcpus=767)),
    ("job-platform", OURS, "Fargate", inputs(platformCapabilities=["FARGATE"])),
    ("job-platform", RAW, "either", inputs(platformCapabilities=["EC2", "FARGATE"])),
    (
        "job-definition-size",
        OURS,
        "long command",
        container(lambda one: one.update(command=["#" * 24576])),
    ),
    ("job-definition-size", RAW, "long environment", variable("SCRIPT", "x" * 30000)),
    ("job-timeout", OURS, "none", inputs(timeout=None)),
    ("job-timeout", RAW, "empty", inputs(timeout={})),
    ("job-timeout-minimum", OURS, "59 s", inputs(timeout={"attemptDurationSeconds": 59})),
    ("job-timeout-minimum", RAW, "as text", inputs(timeout={"attemptDurationSeconds": "30"})),
    ("job-retries", OURS, "no rules", retries()),
    ("job-retries", OURS, "nothing for others", retries(LOST_HOST)),
    ("job-retries", RAW, "nothing for hosts", retries(OTHERS)),
    ("job-efa-devices", OURS, "one less", container(one_device_less)),
    ("job-efa-devices", OURS, "none", linux(devices=[])),
    ("job-efa-devices", RAW, "no MKNOD", container(no_mknod)),
    ("job-memlock", OURS, "soft limit", container(soft_memlock)),
    ("job-memlock", RAW, "none", container(lambda one: one.update(ulimits=[]))),
    ("job-fits-node", OURS, "vCPUs", asks("VCPU", 97)),
    ("job-fits-node", OURS, "memory", asks("MEMORY", 1152 * 1024)),
    ("job-fits-node", RAW, "GPUs", asks("GPU", 9)),
    ("job-fits-threads", OURS, "one thread per core", one_thread),
    ("job-fits-threads", RAW, "one thread per core", one_thread),
    ("job-memory-headroom", OURS, "97 %", asks("MEMORY", 1144258)),
    ("job-memory-headroom", RAW, "all but 1 MiB", asks("MEMORY", 1152 * 1024 - 1)),
    ("job-uses-memory", OURS, "16 GiB", asks("MEMORY", 16384)),
    ("job-uses-memory", RAW, "under a half", asks("MEMORY", 589823)),
    ("job-uses-gpus", OURS, "one", asks("GPU", 1)),
    ("job-uses-gpus", RAW, "none", asks("GPU", None)),
    ("job-shared-memory", OURS, "not set", linux(sharedMemorySize=None)),
    ("job-shared-memory", RAW, "as much as memory", linux(sharedMemorySize=1100000)),
    ("job-socket-interface", OURS, "not set", container(no_variables)),
    ("job-socket-interface", RAW, "no ecs", variable("NCCL_SOCKET_IFNAME", "^lo,docker")),
    ("job-stale-variables", OURS, "fork safety", variable("RDMAV_FORK_SAFE", "1")),
    ("job-stale-variables", RAW, "protocol", variable("NCCL_PROTO", "simple")),
    ("job-search-paths", OURS, "PATH", variable("PATH", "$PATH:/opt/amazon/efa/bin")),
    ("job-search-paths", RAW, "braces", variable("LD_LIBRARY_PATH", "/lib:${LD_LIBRARY_PATH}")),
    ("job-unexpanded-variables", OURS, "name", variable("RUN", "run-$AWS_BATCH_JOB_ID")),
    ("job-unexpanded-variables", RAW, "command", variable("STARTED", "$(date)")),
    ("job-reserved-variables", OURS, "job id", variable("AWS_BATCH_JOB_ID", "1")),
    ("job-reserved-variables", RAW, "a name of one's own", variable("AWS_BATCH_MINE", "1")),
    ("job-secrets", OURS, "token", variable("HF_TOKEN", "example")),
    ("job-secrets", RAW, "access key", variable("KEY", "AKIAIOSFODNN7EXAMPLE")),
    ("job-fixed-image", OURS, "latest", container(lambda one: one.update(image="mine:latest"))),
    ("job-fixed-image", RAW, "no tag", single(Image="registry.example.com:5000/mine")),
    ("job-volume-kinds", OURS, "FSx", volume("fsxLustreVolumeConfiguration")),
    ("job-volume-kinds", RAW, "Docker", volume("DockerVolumeConfiguration")),
    ("job-efs-access", RAW, "in the clear", efs(transitEncryption="DISABLED")),
    ("job-efs-access", RAW, "another root", efs(rootDirectory="/home")),
    ("job-efs-access", RAW, "no role", task(without_role)),
    ("job-efs-encryption", OURS, "default", single(volumes=PLAIN_EFS)),
    ("job-efs-encryption", RAW, "off", efs(transitEncryption="DISABLED")),
    ("job-privileged", OURS, "multi-node", container(lambda one: one.update(privileged=True))),
    ("job-privileged", RAW, "one node", single(Privileged=True)),
    ("job-logs", OURS, "none", container(lambda one: one.pop("logConfiguration"))),
    ("job-logs", RAW, "empty", single(LogConfiguration={})),
)

MUTATIONS = tuple(
    Mutation(rule=rule, stack=stack, what=what, breaks=breaks) for rule, stack, what, breaks in WAYS
)

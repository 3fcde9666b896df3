"""What AWS Batch jobs run with: image, environment, volumes, logs, privileges."""

import re
from collections.abc import Iterator
from typing import Any

from fabric.batch_jobs import environment_conflicts
from fabric.job_images import has_fixed_tag
from fabric.rows import mapping, text, texts
from policy.batch_examples import multi_node_job, single_node_job
from policy.job_definitions import containers
from policy.rule import Finding, Option, Rule, Subject
from policy.tokens import BATCH_JOB_DEFINITION

ENVIRONMENT_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/job_env_vars.html"
CONTAINER_PAGE = (
    "https://docs.aws.amazon.com/batch/latest/APIReference/API_ContainerProperties.html"
)
VOLUME_PAGE = "https://docs.aws.amazon.com/batch/latest/APIReference/API_Volume.html"
EFS_PAGE = "https://docs.aws.amazon.com/batch/latest/APIReference/API_EFSVolumeConfiguration.html"
SECRETS_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/specifying-sensitive-data.html"
SETTINGS_PAGE = "https://github.com/aws/aws-ofi-nccl/blob/master/doc/efa-env-var.md"

_INTERFACE_VARIABLE = "NCCL_SOCKET_IFNAME"
_AGENT_INTERFACE = "ecs-eth0"  # https://github.com/NVIDIA/nccl/issues/859
_SEARCH_PATHS = {"LD_LIBRARY_PATH", "PATH", "PYTHONPATH"}
_SECRET_NAME = re.compile(
    r"(.*_)?(PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|PRIVATE_KEY|ACCESS_KEY)", re.IGNORECASE
)
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-prefixes
_ACCESS_KEY = re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b")
_NOT_A_SECRET = re.compile(r"arn:.*|/.*|[\d.]*|true|false|Ref::\w+|\$\{?\w+\}?", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"<.*>|x{3,}|\*+|your[-_ ].*|(change|replace)[-_ ]?me|placeholder|dummy|todo|none|null",
    re.IGNORECASE,
)


def _socket_interface(subject: Subject) -> Iterator[Finding]:
    for each in containers(subject.row):
        if not each.owns_node or each.facts is None or not each.facts.nvidia_gpus:
            continue
        found = {name: (path, value) for path, name, value in each.environment}
        path, value = found.get(_INTERFACE_VARIABLE, (f"{each.path}.environment", ""))
        if not value or _takes_agents(value):
            yield Finding(
                path=path,
                value=value or None,
                message=f"NCCL may choose {_AGENT_INTERFACE}, which leads to the ECS agent only",
            )


def _takes_agents(value: str) -> bool:
    """Whether a list of prefixes, those to leave out if `^` is in front, lets in the agent's."""
    prefixes = [part.strip() for part in value.lstrip("^=").split(",")]
    matches = any(part and _AGENT_INTERFACE.startswith(part) for part in prefixes)
    return matches != value.startswith("^")


def _stale(subject: Subject) -> Iterator[Finding]:
    stale = texts(subject.options.get("variables"))
    for each in containers(subject.row):
        for path, name, value in each.environment:
            if name in stale:
                yield Finding(path=path, value=f"{name}={value}", message=f"{name} is out of date")


def _environment(subject: Subject) -> Iterator[tuple[str, str, str]]:
    for each in containers(subject.row):
        yield from each.environment


def _reserved(subject: Subject) -> Iterator[Finding]:
    for path, name, _ in _environment(subject):
        if name.startswith("AWS_BATCH"):
            yield Finding(path=path, value=name, message="Batch keeps such names for itself")


def _search_paths(subject: Subject) -> Iterator[Finding]:
    for path, name, value in _environment(subject):
        if name in _SEARCH_PATHS and environment_conflicts({name: value}):
            yield Finding(path=path, value=f"{name}={value}", message="Batch expands no variables")


def _unexpanded(subject: Subject) -> Iterator[Finding]:
    for path, name, value in _environment(subject):
        judged_elsewhere = name in _SEARCH_PATHS or name.startswith("AWS_BATCH")
        if not judged_elsewhere and environment_conflicts({name: value}):
            yield Finding(path=path, value=f"{name}={value}", message="Batch expands no variables")


def _secrets(subject: Subject) -> Iterator[Finding]:
    for path, name, value in _environment(subject):
        harmless = _NOT_A_SECRET.fullmatch(value) or _PLACEHOLDER.fullmatch(value)
        if (_SECRET_NAME.fullmatch(name) and not harmless) or _ACCESS_KEY.search(value):
            yield Finding(
                path=path, value=name, message="whoever may describe the definition can read it"
            )


def _fixed_image(subject: Subject) -> Iterator[Finding]:
    for each in containers(subject.row):
        image = text(each.settings.get("image"))
        if image and not has_fixed_tag(image):
            yield Finding(path=f"{each.path}.image", value=image, message="no fixed tag or digest")


def _volume_kinds(subject: Subject) -> Iterator[Finding]:
    for each in containers(subject.row):
        for path, volume in each.volumes:
            for key in sorted(volume):
                if re.match(r"fsx|lustre|docker", key, re.IGNORECASE):
                    yield Finding(
                        path=f"{path}.{key}", value=key, message="Batch knows no such one"
                    )


def _efs_access(subject: Subject) -> Iterator[Finding]:
    for each in containers(subject.row):
        for path, volume in each.volumes:
            efs = mapping(volume.get("efsVolumeConfiguration"))
            access = mapping(efs.get("authorizationConfig"))
            with_role = text(access.get("iam")).upper() == "ENABLED"
            point, root = text(access.get("accessPointId")), text(efs.get("rootDirectory"))
            where = f"{path}.efsVolumeConfiguration"
            if (with_role or point) and not _is_encrypted(efs):
                yield Finding(
                    path=f"{where}.transitEncryption",
                    value=text(efs.get("transitEncryption")) or None,
                    message="not ENABLED, with an access point or IAM",
                )
            if point and root not in ("", "/"):
                yield Finding(
                    path=f"{where}.rootDirectory",
                    value=root,
                    message="the access point has a root of its own",
                )
            if with_role and not each.role:
                yield Finding(
                    path=f"{each.path}.jobRoleArn", value=None, message="IAM without a role"
                )


def _efs_plain(subject: Subject) -> Iterator[Finding]:
    for each in containers(subject.row):
        for path, volume in each.volumes:
            efs = mapping(volume.get("efsVolumeConfiguration"))
            if efs and not _is_encrypted(efs):
                yield Finding(
                    path=f"{path}.efsVolumeConfiguration.transitEncryption",
                    value=text(efs.get("transitEncryption")) or None,
                    message="files travel in the clear",
                )


def _is_encrypted(efs: Any) -> bool:
    return text(mapping(efs).get("transitEncryption")).upper() == "ENABLED"


def _privileged(subject: Subject) -> Iterator[Finding]:
    for each in containers(subject.row):
        if each.privileged:
            yield Finding(path=f"{each.path}.privileged", value=True, message="root on the node")


def _logs(subject: Subject) -> Iterator[Finding]:
    for each in containers(subject.row):
        if not mapping(each.settings.get("logConfiguration")).get("logDriver"):
            yield Finding(path=f"{each.path}.logConfiguration", value=None, message="not set")


def _with_environment(**variables: str) -> dict[str, Any]:
    listed = [{"name": name, "value": value} for name, value in variables.items()]
    return multi_node_job(environment=listed)


def _with_volume(**settings: Any) -> dict[str, Any]:
    return single_node_job(volumes=[{"name": "data", **settings}])


def _with_efs(**settings: Any) -> dict[str, Any]:
    return _with_volume(efsVolumeConfiguration={"fileSystemId": "fs-0123456789abcdef0", **settings})


_JOBS = frozenset({BATCH_JOB_DEFINITION})

RULES = (
    Rule(
        id="job-socket-interface",
        references=("R22",),
        family="jobs",
        level="advisory",
        level_because="image or script may choose the interface themselves",
        sentence="A multi-node GPU job keeps NCCL away from the ECS agent's interface.",
        why="NCCL takes ecs-eth0 for a way to its peers: `Connection refused`.",
        fix="set NCCL_SOCKET_IFNAME to ^lo,docker,ecs",
        url="https://github.com/NVIDIA/nccl/issues/859",
        types=_JOBS,
        check=_socket_interface,
        good=[_with_environment(NCCL_SOCKET_IFNAME="^lo,docker,ecs")],
        bad=[_with_environment(NCCL_SOCKET_IFNAME="^lo,docker")],
        decides_in_preview=False,
    ),
    Rule(
        id="job-stale-variables",
        references=("R23",),
        family="jobs",
        level="advisory",
        level_because="the job runs, maybe slower",
        sentence="A job sets no EFA or NCCL variable that has had its day.",
        why="Today's plug-in and kernel need none of them, and its tuner chooses protocol and "
        "channels better.",
        fix="take the variable out",
        url=SETTINGS_PAGE,
        types=_JOBS,
        check=_stale,
        good=[_with_environment(FI_PROVIDER="efa")],
        bad=[_with_environment(FI_EFA_FORK_SAFE="1")],
        decides_in_preview=False,
        options={
            "variables": Option(
                kind="array",
                default=["FI_EFA_FORK_SAFE", "NCCL_MIN_CHANNELS", "NCCL_PROTO", "RDMAV_FORK_SAFE"],
                description="the names of such variables",
            )
        },
    ),
    Rule(
        id="job-search-paths",
        references=("R24",),
        family="jobs",
        level="mandatory",
        level_because="no program or library is found, so the job cannot start",
        sentence="PATH, LD_LIBRARY_PATH and PYTHONPATH of a job hold no `$NAME`.",
        why="Batch expands nothing: PATH becomes `$PATH:/opt/bin` to the letter.",
        fix="write the whole value, or set it in the image or in the command",
        url=ENVIRONMENT_PAGE,
        types=_JOBS,
        check=_search_paths,
        good=[_with_environment(PATH="/opt/amazon/efa/bin:/usr/bin:/bin")],
        bad=[_with_environment(PATH="$PATH:/opt/amazon/efa/bin")],
        decides_in_preview=False,
    ),
    Rule(
        id="job-unexpanded-variables",
        references=("R24",),
        family="jobs",
        level="advisory",
        level_because="the program may expand it itself",
        sentence="Environment values of a job hold no `$NAME`.",
        why="Batch expands nothing, and the program sees the dollar sign.",
        fix="write the whole value, or set it in the command",
        url=ENVIRONMENT_PAGE,
        types=_JOBS,
        check=_unexpanded,
        good=[_with_environment(OUTPUT="/fsx/run")],
        bad=[_with_environment(OUTPUT="/fsx/$AWS_BATCH_JOB_ID")],
        decides_in_preview=False,
    ),
    Rule(
        id="job-reserved-variables",
        references=("R78",),
        family="jobs",
        level="mandatory",
        level_because="Batch refuses the definition or overrules the value",
        sentence="No environment variable of a job has a name that starts with AWS_BATCH.",
        why="Batch keeps those names for what it sets itself.",
        fix="choose another name",
        url=ENVIRONMENT_PAGE,
        types=_JOBS,
        check=_reserved,
        good=[_with_environment(BATCH_SIZE="8")],
        bad=[_with_environment(AWS_BATCH_SIZE="8")],
        decides_in_preview=False,
    ),
    Rule(
        id="job-secrets",
        references=("R75",),
        family="jobs",
        level="mandatory",
        level_because="it exposes a secret",
        sentence="No environment value of a job is a secret.",
        why="It stands in the definition, in the console and in every DescribeJobs answer.",
        fix="put it into Secrets Manager and name it under `secrets`",
        url=SECRETS_PAGE,
        types=_JOBS,
        check=_secrets,
        good=[_with_environment(TOKENIZERS_PARALLELISM="false", EPOCHS="3")],
        bad=[_with_environment(WANDB_API_KEY="example")],
        decides_in_preview=False,
    ),
    Rule(
        id="job-fixed-image",
        references=("R74",),
        family="jobs",
        level="advisory",
        level_because="the job runs",
        sentence="A job's image has a digest or a tag other than latest.",
        why="Nodes that pull it at different times may run different code.",
        fix="name a tag that nobody moves, or a digest",
        url="https://docs.docker.com/reference/cli/docker/image/tag/",
        types=_JOBS,
        check=_fixed_image,
        good=[multi_node_job()],
        bad=[single_node_job(image="example:latest")],
        decides_in_preview=False,
    ),
    Rule(
        id="job-volume-kinds",
        references=("R102",),
        family="jobs",
        level="mandatory",
        level_because="the volume is dropped, and the job sees an empty directory",
        sentence="Volumes of a job are of a kind that Batch has: host, EFS or S3 Files.",
        why="Batch knows neither FSx nor Docker volumes, unlike ECS.",
        fix="mount it on the node by user data, and give its directory as host.sourcePath",
        url=VOLUME_PAGE,
        types=_JOBS,
        check=_volume_kinds,
        good=[_with_volume(host={"sourcePath": "/fsx"})],
        bad=[_with_volume(fsxLustreVolumeConfiguration={"fileSystemId": "fs-1"})],
        decides_in_preview=False,
    ),
    Rule(
        id="job-efs-access",
        references=("R90",),
        family="jobs",
        level="mandatory",
        level_because="Batch refuses the definition",
        sentence="EFS by access point or IAM is encrypted in transit, from the point's own root.",
        why="RegisterJobDefinition fails; IAM also needs a role for the job.",
        fix="set transitEncryption ENABLED, leave rootDirectory out, and give a jobRoleArn for IAM",
        url=EFS_PAGE,
        types=_JOBS,
        check=_efs_access,
        good=[
            _with_efs(
                transitEncryption="ENABLED",
                authorizationConfig={"accessPointId": "fsap-0123456789abcdef0"},
            )
        ],
        bad=[_with_efs(authorizationConfig={"accessPointId": "fsap-0123456789abcdef0"})],
        decides_in_preview=False,
    ),
    Rule(
        id="job-efs-encryption",
        references=("R90",),
        family="jobs",
        level="advisory",
        level_because="the files stay in the VPC",
        sentence="EFS volumes of a job are encrypted in transit.",
        why="Batch's default is DISABLED.",
        fix="set transitEncryption ENABLED",
        url=EFS_PAGE,
        types=_JOBS,
        check=_efs_plain,
        good=[_with_efs(transitEncryption="ENABLED")],
        bad=[_with_efs()],
        decides_in_preview=False,
    ),
    Rule(
        id="job-privileged",
        references=(),
        family="jobs",
        level="advisory",
        level_because="some profilers need it",
        sentence="A job's container is not privileged.",
        why="Its code is root on the node, with the credentials of the node.",
        fix="take privileged out; map the devices that the job needs",
        url=CONTAINER_PAGE,
        types=_JOBS,
        check=_privileged,
        good=[multi_node_job(privileged=False)],
        bad=[multi_node_job(privileged=True)],
        decides_in_preview=False,
    ),
    Rule(
        id="job-logs",
        references=(),
        family="jobs",
        level="advisory",
        level_because="the job runs",
        sentence="A job says where its log goes.",
        why="Without it logs of all jobs share /aws/batch/job, for ever.",
        fix="set logConfiguration with awslogs and a log group that has a retention",
        url="https://docs.aws.amazon.com/batch/latest/userguide/using_cloudwatch_logs.html",
        types=_JOBS,
        check=_logs,
        good=[multi_node_job(logConfiguration={"logDriver": "awslogs"})],
        bad=[multi_node_job()],
        decides_in_preview=False,
    ),
)

"""Compute environments of AWS Batch: whether multi-node jobs can run on them at all."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from fabric.rows import Row, inputs, mappings, number, text, texts, true
from policy.batch import (
    compute_resources,
    has_efa,
    kind,
    launch_template,
    multi_node_definitions,
    serves_multi_node,
)
from policy.batch_examples import environment, multi_node_job, with_template
from policy.examples import interface, resource
from policy.job_definitions import is_for_fargate
from policy.program import Program
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    BATCH_ENVIRONMENT,
    BATCH_JOB_DEFINITION,
    BATCH_JOB_QUEUE,
    INTERNET_GATEWAY,
    LAUNCH_TEMPLATE,
    ROUTE,
    ROUTE_TABLE,
    ROUTE_TABLE_ASSOCIATION,
    SUBNET,
    VPC_ENDPOINT,
)
from policy.values import UNKNOWN, is_unknown

MULTI_NODE_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html"
COMPUTE_RESOURCE_PAGE = (
    "https://docs.aws.amazon.com/batch/latest/APIReference/API_ComputeResource.html"
)
_ORDERS = "computeEnvironmentOrders"
_TEMPLATE_GROUPS = ("networkInterfaces", "securityGroupNames", "vpcSecurityGroupIds")


def _on_demand(subject: Subject) -> Iterator[Finding]:
    own = kind(subject.row)
    if own in ("EC2", ""):
        return
    program = subject.program
    if not any(multi_node_definitions(program)):
        return
    stranding = program.once(_stranding_environments, partial(_stranding_environments, program))
    if text(subject.row.get("urn")) in stranding or has_efa(subject.row, program):
        yield Finding(
            path="type" if own == "UNMANAGED" else "computeResources.type",
            value=own,
            message="multi-node jobs run on managed On-Demand nodes only, type EC2",
        )


def _stranding_environments(program: Program) -> set[str]:
    """URNs of the environments behind the queues, if no queue has a place for multi-node jobs.

    A queue on Fargate does not count in a program that has jobs for Fargate.
    """
    serves_fargate = any(map(is_for_fargate, program.of_type(BATCH_JOB_DEFINITION)))
    found: set[str] = set()
    for queue in program.of_type(BATCH_JOB_QUEUE):
        reached = program.linked(queue, _ORDERS, BATCH_ENVIRONMENT)
        kinds = {kind(each) for each in reached}
        some_hidden = len(reached) < len(mappings(inputs(queue).get(_ORDERS)))
        if some_hidden or kinds & {"EC2", ""}:
            return set()
        if not (serves_fargate and all(each.startswith("FARGATE") for each in kinds)):
            found.update(text(each.get("urn")) for each in reached)
    return found


def _one_instance_type(subject: Subject) -> Iterator[Finding]:
    names = compute_resources(subject.row).get("instanceTypes")
    if kind(subject.row) not in ("EC2", "SPOT") or is_unknown(names):
        return
    listed = texts(names)
    sized = all("." in each for each in listed)
    if sized and (len(listed) == 1 or not any(multi_node_definitions(subject.program))):
        return
    if serves_multi_node(subject.row, subject.program):
        yield Finding(
            path="computeResources.instanceTypes",
            value=listed,
            message=f"{len(listed)} entries instead of one instance type with its size",
        )


def _vcpu_limits(subject: Subject) -> Iterator[Finding]:
    most = number(subject.at("computeResources.maxVcpus"))
    for key in ("minVcpus", "desiredVcpus"):
        amount = number(subject.at(f"computeResources.{key}"))
        if amount is not None and most is not None and amount > most:
            yield Finding(
                path=f"computeResources.{key}",
                value=int(amount),
                message=f"more than maxVcpus, which is {most:g}",
            )


def _strategy(subject: Subject) -> Iterator[Finding]:
    resources, own = compute_resources(subject.row), kind(subject.row)
    strategy = text(resources.get("allocationStrategy")).upper()
    if own == "EC2" and strategy.startswith("SPOT_"):
        yield Finding(
            path="computeResources.allocationStrategy",
            value=strategy,
            message="is for type SPOT only",
        )
    plain = not is_unknown(resources.get("allocationStrategy")) and strategy in ("", "BEST_FIT")
    if own == "SPOT" and plain and not resources.get("spotIamFleetRole"):
        yield Finding(
            path="computeResources.spotIamFleetRole",
            value=None,
            message="BEST_FIT on Spot needs a fleet role",
        )


def _security_groups(subject: Subject) -> Iterator[Finding]:
    resources, path = compute_resources(subject.row), "computeResources.securityGroupIds"
    groups = resources.get("securityGroupIds")
    template = launch_template(subject.row, subject.program)
    hidden = bool(resources.get("launchTemplate")) and template is None
    if kind(subject.row) not in ("EC2", "SPOT") or groups is UNKNOWN or hidden:
        return
    settings = inputs(template or {})
    from_template = any(settings.get(key) for key in _TEMPLATE_GROUPS)
    if groups and settings.get("networkInterfaces") not in (None, [], "", UNKNOWN):
        message = "the launch template has network interfaces, which bring their own"
        yield Finding(path=path, value=None if is_unknown(groups) else groups, message=message)
    elif not groups and not from_template:
        yield Finding(path=path, value=None, message="the nodes get no security group")


def _private_subnets(subject: Subject) -> Iterator[Finding]:
    program = subject.program
    if not serves_multi_node(subject.row, program) or _reaches_registry(program):
        return
    for subnet in subject.linked("computeResources", SUBNET):
        if true(inputs(subnet).get("mapPublicIpOnLaunch")) or _is_public(subnet, program):
            yield Finding(
                path="computeResources.subnets",
                value=text(subnet.get("name")),
                message="is a public subnet, where the tasks' interfaces get no public address",
            )


def _reaches_registry(program: Program) -> bool:
    """Whether images come through an endpoint, so that no address of the internet is needed."""
    names = (inputs(each).get("serviceName") for each in program.of_type(VPC_ENDPOINT))
    return any(text(name).endswith(".ecr.dkr") for name in names)


def _is_public(subnet: Row, program: Program) -> bool:
    associations = program.users(subnet, ROUTE_TABLE_ASSOCIATION)
    tables = [
        table
        for association in associations
        for table in program.linked(association, "routeTableId", ROUTE_TABLE)
    ]
    return any(
        program.linked(table, "routes", INTERNET_GATEWAY) if inputs(table).get("routes") else False
        for table in tables
    ) or any(
        program.linked(route, "gatewayId", INTERNET_GATEWAY)
        for table in tables
        for route in program.users(table, ROUTE)
    )


_PUBLIC_SUBNET = [
    resource(SUBNET, "subnet", cidrBlock="10.0.0.0/24"),
    resource(INTERNET_GATEWAY, "gateway"),
    resource(ROUTE_TABLE, "table"),
    resource(
        ROUTE,
        "out",
        links={"routeTableId": ["table"], "gatewayId": ["gateway"]},
        destinationCidrBlock="0.0.0.0/0",
    ),
    resource(ROUTE_TABLE_ASSOCIATION, links={"routeTableId": ["table"], "subnetId": ["subnet"]}),
]
_EFA_TEMPLATE = resource(
    LAUNCH_TEMPLATE, "template", networkInterfaces=[interface(0, 0, "interface"), interface(0, 1)]
)
_GROUPS = ["sg-0123456789abcdef0"]
_IN_SUBNET: dict[str, Any] = {
    "links": {"computeResources": ["subnet"]},
    "subnets": ["subnet-0123456789abcdef0"],
}

RULES = (
    Rule(
        id="batch-multi-node-on-demand",
        references=("R50",),
        family="batch",
        level="mandatory",
        level_because="the job never starts",
        sentence="Nodes for multi-node jobs come from a managed environment of type EC2.",
        why="Batch takes a multi-node job on Spot, Fargate or unmanaged nodes, says nothing, and "
        "leaves it RUNNABLE for ever.",
        fix="set type MANAGED and computeResources.type EC2",
        url=MULTI_NODE_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_on_demand,
        whole_program=True,
        good=[multi_node_job(), _EFA_TEMPLATE, with_template()],
        bad=[multi_node_job(), _EFA_TEMPLATE, with_template(type="SPOT")],
    ),
    Rule(
        id="batch-one-instance-type",
        references=("R52",),
        family="batch",
        level="mandatory",
        level_because="nodes with other network cards cannot launch, or the job never starts",
        sentence="An environment for multi-node jobs lists one instance type, size included.",
        why="All nodes of a job have one type, and a launch template's EFA interfaces fit one.",
        fix="list one type, such as p5.48xlarge, and make one environment for each further type",
        url=MULTI_NODE_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_one_instance_type,
        whole_program=True,
        good=[_EFA_TEMPLATE, with_template()],
        bad=[_EFA_TEMPLATE, with_template(instanceTypes=["p5"])],
    ),
    Rule(
        id="batch-vcpu-limits",
        references=(),
        family="batch",
        level="mandatory",
        level_because="Batch refuses the environment",
        sentence="minVcpus and desiredVcpus are not more than maxVcpus.",
        why="CreateComputeEnvironment and every later update fail.",
        fix="raise maxVcpus, or lower the other",
        url=COMPUTE_RESOURCE_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_vcpu_limits,
        good=[environment(minVcpus=384)],
        bad=[environment(minVcpus=385)],
    ),
    Rule(
        id="batch-spot-settings",
        references=(),
        family="batch",
        level="mandatory",
        level_because="Batch refuses the environment",
        sentence="SPOT_ strategies are for Spot, and BEST_FIT on Spot has a fleet role.",
        why="CreateComputeEnvironment fails; BEST_FIT is also what no strategy means.",
        fix="set SPOT_PRICE_CAPACITY_OPTIMIZED for type SPOT, BEST_FIT_PROGRESSIVE for type EC2",
        url=COMPUTE_RESOURCE_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_strategy,
        good=[environment(type="SPOT", allocationStrategy="SPOT_PRICE_CAPACITY_OPTIMIZED")],
        bad=[environment(allocationStrategy="SPOT_CAPACITY_OPTIMIZED")],
    ),
    Rule(
        id="batch-interfaces-or-security-groups",
        references=("R55",),
        family="batch",
        level="mandatory",
        level_because="Batch refuses the environment",
        sentence="Security groups are in the environment or in the template's interfaces, in one.",
        # the answer is quoted from https://github.com/aws/aws-cdk/issues/21577
        why="With both, Batch answers 400 `Either compute environment Security Groups or Network "
        "Interfaces in Launch template are exclusively allowed`; with neither it has none to use.",
        fix="put securityGroups into each network interface of the template, and none here; "
        "without interfaces set securityGroupIds",
        url=COMPUTE_RESOURCE_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_security_groups,
        whole_program=True,
        good=[_EFA_TEMPLATE, with_template()],
        bad=[_EFA_TEMPLATE, with_template(securityGroupIds=_GROUPS)],
    ),
    Rule(
        id="batch-private-subnets",
        references=("R57",),
        family="batch",
        level="mandatory",
        level_because="the job reaches nothing outside, its image included",
        sentence="Multi-node jobs run in private subnets.",
        why="The interface of each task has no public address, so only a NAT gateway or endpoints "
        "lead out.",
        fix="use subnets without a route to an internet gateway and without mapPublicIpOnLaunch",
        url=MULTI_NODE_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_private_subnets,
        whole_program=True,
        good=[*_PUBLIC_SUBNET[:1], multi_node_job(), environment(**_IN_SUBNET)],
        bad=[*_PUBLIC_SUBNET, multi_node_job(), environment(**_IN_SUBNET)],
    ),
)

"""Security groups of nodes with EFA, and of the tasks on them."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from fabric.rows import Row, dependencies, inputs, mapping, mappings, name, text
from policy.examples import interface, resource
from policy.group_rules import (
    ALL,
    GROUPS,
    SEPARATE_RULES,
    Direction,
    GroupRule,
    all_rules,
    allows_itself,
    efa_users,
    groups_on,
    inline_rules,
    is_world,
    rules_of,
    separate_rules,
)
from policy.launches import node_interfaces, subnets
from policy.program import Program
from policy.rule import Check, Finding, Rule, Subject
from policy.tokens import (
    BATCH_ENVIRONMENT,
    DEFAULT_SECURITY_GROUP,
    LAUNCH_TEMPLATE,
    SECURITY_GROUP,
    SECURITY_GROUP_EGRESS_RULE,
    SECURITY_GROUP_INGRESS_RULE,
    SUBNET,
    VPC,
)
from policy.values import UNKNOWN, is_unknown

EFA_GROUP_PAGE = (
    "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html#efa-start-security"
)
PROVIDER_PAGE = "https://www.pulumi.com/registry/packages/aws/api-docs/ec2/securitygroup/"
MULTI_NODE_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html"


def _allows_itself(direction: Direction) -> Check:
    def check(subject: Subject) -> Iterator[Finding]:
        for user in efa_users(subject.row, subject.program):
            groups = groups_on(user, subject.program)
            if not groups or any(allows_itself(g, direction, subject.program) for g in groups):
                continue
            rules = all_rules(subject.row, direction, subject.program)
            yield Finding(
                path=direction,
                value=[_in_words(each) for each in rules] or None,
                message=f"{name(user)} has EFA; no rule is for all traffic with the group itself",
            )
            return

    return check


def _in_words(rule: GroupRule) -> str:
    protocol = "all traffic" if rule.protocol == ALL else rule.protocol or "[unknown]"
    return f"{protocol} with {', '.join(sorted(rule.peers)) or '[unknown]'}"


def _closed_to_world(subject: Subject) -> Iterator[Finding]:
    opened = [
        (path, block)
        for rule in rules_of(subject.row, "ingress")
        for path, block in rule.blocks.items()
        if is_world(block)
    ]
    if not opened:
        return
    program = subject.program
    urns = set(dependencies(subject.row, "securityGroupId"))
    groups = [subject.row] if subject.row.get("type") in GROUPS else []
    groups += [each for each in program.of_type(*GROUPS) if each.get("urn") in urns]
    users = [user for group in groups for user in efa_users(group, program)]
    for path, block in opened if users else ():
        yield Finding(path=path, value=block, message=f"opens {name(users[0])} to the internet")


def _inline_or_separate(subject: Subject) -> Iterator[Finding]:
    directions: tuple[Direction, ...] = ("ingress", "egress")
    for direction in directions:
        separate = separate_rules(subject.row, direction, subject.program)
        covered: defaultdict[tuple[object, ...], set[str]] = defaultdict(set)
        for rule in separate:
            covered[_traffic(rule)] |= rule.peers
        written = mappings(inputs(subject.row).get(direction))
        for settings, rule in zip(written, inline_rules(subject.row, direction), strict=True):
            # after a refresh the provider shows the separate rules here, too
            is_shown = rule.peers <= covered[_traffic(rule)] and not is_unknown(settings)
            if separate and not is_shown:
                yield Finding(
                    path=rule.path,
                    value=_in_words(rule),
                    message="stands inline, and others of the group are resources",
                )


def _traffic(rule: GroupRule) -> tuple[object, ...]:
    ports = () if rule.protocol == ALL else (rule.from_port, rule.to_port)
    return (rule.protocol, *ports)


def _default_group_lets_tasks_talk(subject: Subject) -> Iterator[Finding]:
    program = subject.program
    environments = [
        each
        for each in program.of_type(BATCH_ENVIRONMENT)
        if _takes_default_group(each, subject.row, program)
    ]
    if not environments:
        return
    task = f"tasks of {name(environments[0])} get this group, and it"
    if not _is_hidden(subject, "ingress") and not any(
        "self" in each.peers for each in all_rules(subject.row, "ingress", program)
    ):
        yield Finding(path="ingress", value=None, message=f"{task} lets nothing in from itself")
    if not _is_hidden(subject, "egress") and not all_rules(subject.row, "egress", program):
        yield Finding(path="egress", value=None, message=f"{task} lets nothing out")


def _is_hidden(subject: Subject, direction: Direction) -> bool:
    return is_unknown(subject.at(direction))


def _takes_default_group(environment: Row, group: Row, program: Program) -> bool:
    compute = inputs(environment).get("computeResources")
    if compute is UNKNOWN or mapping(compute).get("securityGroupIds") not in (None, [], ""):
        return False
    if not any(each.is_efa for each in node_interfaces(environment, program)):
        return False
    return any(_same_vpc(group, subnet) for subnet in subnets(environment, program))


def _same_vpc(group: Row, subnet: Row) -> bool:
    ours, theirs = text(inputs(group).get("vpcId")), text(inputs(subnet).get("vpcId"))
    linked = set(dependencies(group, "vpcId")) & set(dependencies(subnet, "vpcId"))
    return bool(linked) or (ours != "" and ours == theirs)


_GROUP_ID = "sg-0123456789abcdef0"
_TO_ITSELF = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
_TO_WORLD = {"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}


def _nodes(**group: Any) -> list[Row]:
    return [
        resource(SECURITY_GROUP, "efa", **group),
        resource(
            LAUNCH_TEMPLATE,
            "nodes",
            links={"networkInterfaces": ["efa"]},
            networkInterfaces=[interface(0, 0, "efa"), interface(1, 0)],
        ),
    ]


def _ingress_rule(rule_name: str, cidr: str) -> Row:
    return resource(
        SECURITY_GROUP_INGRESS_RULE,
        rule_name,
        links={"securityGroupId": ["efa"]},
        securityGroupId=_GROUP_ID,
        ipProtocol="tcp",
        fromPort=29400,
        toPort=29400,
        cidrIpv4=cidr,
    )


def _self_rule(type_: str, rule_name: str) -> Row:
    links = ("securityGroupId", "referencedSecurityGroupId")
    return resource(
        type_,
        rule_name,
        links={key: ["efa"] for key in links},
        **dict.fromkeys(links, _GROUP_ID),
        ipProtocol="-1",
    )


_SELF_RULES = (
    _self_rule(SECURITY_GROUP_INGRESS_RULE, "from-itself"),
    _self_rule(SECURITY_GROUP_EGRESS_RULE, "to-itself"),
)


def _tasks(**default_group: Any) -> list[Row]:
    vpc = {"vpcId": "vpc-0123456789abcdef0"}
    return [
        resource(VPC, "vpc"),
        resource(SUBNET, "private", links={"vpcId": ["vpc"]}, **vpc),
        resource(DEFAULT_SECURITY_GROUP, links={"vpcId": ["vpc"]}, **vpc, **default_group),
        resource(LAUNCH_TEMPLATE, "nodes", networkInterfaces=[interface(0, 0, "efa")]),
        resource(
            BATCH_ENVIRONMENT,
            "batch",
            links={"computeResources": ["nodes", "private"]},
            computeResources={
                "launchTemplate": {"launchTemplateId": "lt-0123456789abcdef0"},
                "subnets": ["subnet-0123456789abcdef0"],
            },
        ),
    ]


RULES = (
    Rule(
        id="efa-group-allows-itself-in",
        references=("R14", "E-06"),
        family="security groups",
        level="mandatory",
        level_because="EFA traffic is silently dropped",
        sentence="The security group of EFA interfaces lets in all traffic from itself.",
        why="EFA has no ports to open one by one: without this rule no EFA packet of another node "
        "arrives, and collectives hang.",
        fix="add an ingress rule for protocol -1 from the group itself",
        url=EFA_GROUP_PAGE,
        types=GROUPS,
        check=_allows_itself("ingress"),
        whole_program=True,
        good=[*_nodes(), *_SELF_RULES],
        bad=_nodes(
            ingress=[{**_TO_ITSELF, "protocol": "tcp", "toPort": 65535}], egress=[_TO_ITSELF]
        ),
    ),
    Rule(
        id="efa-group-allows-itself-out",
        references=("R15", "E-06"),
        family="security groups",
        level="mandatory",
        level_because="EFA traffic is silently dropped",
        sentence="The security group of EFA interfaces lets out all traffic to itself.",
        why="A rule to 0.0.0.0/0 is about IP addresses, and EFA traffic has none.",
        fix="add an egress rule for protocol -1 to the group itself, beside that to anywhere",
        url=EFA_GROUP_PAGE,
        types=GROUPS,
        check=_allows_itself("egress"),
        whole_program=True,
        good=_nodes(ingress=[_TO_ITSELF], egress=[_TO_ITSELF, _TO_WORLD]),
        bad=_nodes(ingress=[_TO_ITSELF], egress=[_TO_WORLD]),
    ),
    Rule(
        id="efa-group-closed-to-world",
        references=("R16",),
        family="security groups",
        level="mandatory",
        level_because="it exposes the nodes",
        sentence="The security group of EFA interfaces lets nothing in from the whole internet.",
        why="Nodes of a training job trust each other: schedulers, rendezvous and NCCL take "
        "connections without a password.",
        fix="name the group itself, or the CIDR block of the VPC",
        url=EFA_GROUP_PAGE,
        types=GROUPS | SEPARATE_RULES,
        check=_closed_to_world,
        whole_program=True,
        good=[*_nodes(), *_SELF_RULES, _ingress_rule("from-vpc", "10.0.0.0/16")],
        bad=[*_nodes(), *_SELF_RULES, _ingress_rule("from-anywhere", "0.0.0.0/0")],
    ),
    Rule(
        id="group-rules-inline-or-separate",
        references=(),
        family="security groups",
        level="mandatory",
        level_because="a later update silently removes rules, those for EFA among them",
        sentence="A security group has its rules inline or as resources of their own, not both.",
        why="The provider takes the inline rules for all there are, and removes the others.",
        fix="make the inline rules resources of their own",
        url=PROVIDER_PAGE,
        types=frozenset({SECURITY_GROUP}),
        check=_inline_or_separate,
        whole_program=True,
        good=[*_nodes(), *_SELF_RULES],
        bad=[*_nodes(egress=[_TO_WORLD]), *_SELF_RULES],
    ),
    Rule(
        id="default-group-lets-tasks-talk",
        references=("R56",),
        family="security groups",
        level="advisory",
        level_because="AWS does not say whether the groups of the template's interfaces would do",
        sentence="A VPC's default group lets the tasks of a Batch environment without groups talk.",
        why="The task on each node of a multi-node job has its own interface, in the groups of the "
        "compute environment or else the VPC's default one: if that lets nothing in, the nodes "
        "never meet.",
        fix="let the default group take traffic from itself, and let it out",
        url=MULTI_NODE_PAGE,
        types=frozenset({DEFAULT_SECURITY_GROUP}),
        check=_default_group_lets_tasks_talk,
        whole_program=True,
        good=_tasks(ingress=[_TO_ITSELF], egress=[_TO_WORLD]),
        bad=_tasks(),
    ),
)
"""The rules on groups that nodes have; those on exposure alone are in `open_ingress`."""

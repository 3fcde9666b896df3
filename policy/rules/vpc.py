"""Routes, endpoints and flow logs of a network for nodes."""

import json
import re
from collections.abc import Iterator
from typing import Any

from fabric.rows import Row, inputs, mappings, text
from policy.documents import Statement, statements, trusted_services
from policy.examples import resource
from policy.program import Program
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    FLOW_LOG,
    IAM_ROLE,
    IAM_ROLE_POLICY,
    IAM_ROLE_POLICY_ATTACHMENT,
    INTERNET_GATEWAY,
    INTERNET_GATEWAY_ATTACHMENT,
    LOG_GROUP,
    NAT_GATEWAY,
    ROUTE,
    ROUTE_TABLE,
    VPC_ENDPOINT,
    VPC_ENDPOINT_ROUTE_TABLE,
)
from policy.values import is_unknown

S3_PAGE = "https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-endpoints-s3.html"
FLOW_LOG_PAGE = "https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-iam-role.html"
_LOG_WRITER = "vpc-flow-logs.amazonaws.com"
_BUCKET_ARN = re.compile(r"arn:aws[\w-]*:s3:")
_EVERYWHERE = ("0.0.0.0/0", "::/0")


def _without_s3(subject: Subject) -> Iterator[Finding]:
    program, table = subject.program, subject.row
    if _is_private(table, program) and not any(_s3_endpoints_of(table, program)):
        yield Finding(
            path="",
            value=None,
            message="nodes behind it reach S3 through NAT, or not at all",
        )


def _is_private(table: Row, program: Program) -> bool:
    """Whether no route of a table leads to an internet gateway; not while one may."""
    listed = inputs(table).get("routes")
    own = program.users(table, ROUTE)
    gateways = [each.get("gatewayId") for each in [*mappings(listed), *map(inputs, own)]]
    out = any(is_unknown(each) or text(each).startswith("igw-") for each in gateways) or any(
        program.linked(row, key, INTERNET_GATEWAY)
        for row, key in [(table, "routes"), *((route, "gatewayId") for route in own)]
    )
    return not out and (isinstance(listed, list) or not is_unknown(listed))


def _s3_endpoints_of(table: Row, program: Program) -> Iterator[Row]:
    for row in program.users(table, VPC_ENDPOINT, VPC_ENDPOINT_ROUTE_TABLE):
        if row.get("type") == VPC_ENDPOINT_ROUTE_TABLE:
            endpoints = program.linked(row, "vpcEndpointId", VPC_ENDPOINT)
            if not endpoints or any(_is_s3_gateway(each) for each in endpoints):
                yield row
        elif _is_s3_gateway(row):
            yield row


def _is_s3_gateway(endpoint: Row) -> bool:
    kind, service = inputs(endpoint).get("vpcEndpointType"), inputs(endpoint).get("serviceName")
    return kind in (None, "", "Gateway") and (is_unknown(service) or text(service).endswith(".s3"))


def _open_s3_endpoint(subject: Subject) -> Iterator[Finding]:
    policy = subject.at("policy")
    if not _is_s3_gateway(subject.row) or is_unknown(subject.at("serviceName")):
        return
    if not policy:
        yield Finding(path="policy", value=None, message="left out, it lets everything through")
    for statement in statements(policy):
        if _is_all(statement):
            yield Finding(
                path="policy",
                value="*",
                message=f"statement {statement.position} lets anybody write to any bucket",
            )


def _is_all(statement: Statement) -> bool:
    writes = statement.grants("s3:PutObject") and "*" in statement.resources
    return writes and statement.is_for_anyone


def _to_cloudwatch(subject: Subject) -> bool:
    kind = subject.at("logDestinationType")
    return kind in (None, "", "cloud-watch-logs")


def _flow_log_role(subject: Subject) -> Iterator[Finding]:
    if not _to_cloudwatch(subject) or _BUCKET_ARN.match(text(subject.at("logDestination"))):
        return
    if not subject.at("iamRoleArn"):
        yield Finding(path="iamRoleArn", value=None, message="nothing may write the log")
    if not (subject.at("logDestination") or subject.at("logGroupName")):
        yield Finding(path="logDestination", value=None, message="no log group is named")
    for role in subject.linked("iamRoleArn", IAM_ROLE) if subject.at("iamRoleArn") else ():
        trust = inputs(role).get("assumeRolePolicy")
        if statements(trust) and _LOG_WRITER not in trusted_services(role):
            yield Finding(
                path="iamRoleArn", value=None, message=f"the role does not trust {_LOG_WRITER}"
            )


def _flow_log_reach(subject: Subject) -> Iterator[Finding]:
    program, group = subject.program, text(subject.at("logDestination"))
    groups = subject.linked("logDestination", LOG_GROUP) if subject.at("logDestination") else []
    roles = subject.linked("iamRoleArn", IAM_ROLE) if subject.at("iamRoleArn") else []
    for role in roles if _to_cloudwatch(subject) else []:
        policies = program.users(role, IAM_ROLE_POLICY)
        elsewhere = program.users(role, IAM_ROLE_POLICY_ATTACHMENT)
        if (
            policies
            and not elsewhere
            and not any(_may_write(each, group, groups, program) for each in policies)
        ):
            yield Finding(
                path="iamRoleArn",
                value=text(subject.at("iamRoleArn")) or None,
                message="no policy of the role lets it write to the flow log's group",
            )


def _may_write(policy: Row, group: str, groups: list[Row], program: Program) -> bool:
    """Whether a policy lets its role write to a group: by name, else by where it comes from."""
    document = inputs(policy).get("policy")
    if is_unknown(document):
        sources = program.linked(policy, "policy", LOG_GROUP)
        return not sources or not groups or any(each in groups for each in sources)
    writes = [each for each in statements(document) if each.grants("logs:PutLogEvents")]
    if not group:  # not known yet: only a policy for any group is certain to cover it
        return bool(writes)
    return any(each.covers(f"{group}:log-stream:x") or each.covers(group) for each in writes)


def _races_the_gateway(subject: Subject) -> Iterator[Finding]:
    program = subject.program
    gateways = list(program.of_type(INTERNET_GATEWAY_ATTACHMENT)) or [
        each for each in program.of_type(INTERNET_GATEWAY) if inputs(each).get("vpcId")
    ]
    if not gateways or not _needs_gateway(subject):
        return
    wanted = {text(each.get("urn")) for each in gateways}
    if not wanted & program.upstream(subject.row):
        yield Finding(
            path="", value=None, message="it may be made before the internet gateway is attached"
        )


def _needs_gateway(subject: Subject) -> bool:
    if subject.row.get("type") == NAT_GATEWAY:
        return text(subject.at("connectivityType")) != "private"
    to = (subject.at("destinationCidrBlock"), subject.at("destinationIpv6CidrBlock"))
    gateway = subject.at("gatewayId")
    out = any(each in _EVERYWHERE for each in to) and bool(gateway)
    return out and bool(subject.linked("gatewayId", INTERNET_GATEWAY))


def _policy(principal: str, **more: object) -> str:
    allow = {"Effect": "Allow", "Principal": principal, "Action": "*", "Resource": "*", **more}
    return json.dumps({"Statement": [allow]})


def _table(*endpoints: dict[str, Any]) -> list[dict[str, Any]]:
    return [resource(ROUTE_TABLE, "private", vpcId="vpc-0123456789abcdef0"), *endpoints]


def _endpoint(service: str = "s3", *tables: str, **more: Any) -> dict[str, Any]:
    links = {"routeTableIds": list(tables)} if tables else {}
    name = f"com.amazonaws.us-east-1.{service}"
    return resource(VPC_ENDPOINT, "endpoint", links=links, serviceName=name, **more)


def _flow_log_to(group: str) -> list[dict[str, Any]]:
    arn = f"arn:aws:logs:us-east-1:123456789012:log-group:{group}:*"
    allow = {"Effect": "Allow", "Action": "logs:PutLogEvents", "Resource": arn}
    return [
        resource(LOG_GROUP, "flow", retentionInDays=30),
        resource(LOG_GROUP, "other", retentionInDays=30),
        resource(IAM_ROLE, "writer", path="/"),
        resource(
            IAM_ROLE_POLICY,
            "policy",
            links={"policy": [group], "role": ["writer"]},
            role="writer",
            policy=json.dumps({"Statement": [allow]}),
        ),
        resource(
            FLOW_LOG,
            links={"logDestination": ["flow"], "iamRoleArn": ["writer"]},
            iamRoleArn="arn:aws:iam::123456789012:role/writer",
            logDestination="arn:aws:logs:us-east-1:123456789012:log-group:flow",
        ),
    ]


def _nat(*links: str) -> list[dict[str, Any]]:
    nat = resource(NAT_GATEWAY, "nat", links={"subnetId": []}, subnetId="subnet-0123456789abcdef0")
    gateway = resource(INTERNET_GATEWAY, "internet", vpcId="vpc-0123456789abcdef0")
    return [gateway, nat | {"dependencies": [gateway["urn"] for _ in links]}]


RULES = (
    Rule(
        id="s3-gateway-endpoint",
        references=("R98",),
        family="vpc",
        level="advisory",
        level_because="it costs: NAT charges for each GB, the endpoint for none",
        sentence="Each private route table has an S3 gateway endpoint.",
        why="Data sets, checkpoints and image layers come from S3, through NAT without it.",
        fix="add the table to routeTableIds of a gateway endpoint for S3",
        url=S3_PAGE,
        types=frozenset({ROUTE_TABLE}),
        check=_without_s3,
        whole_program=True,
        good=_table(_endpoint("s3", "private", routeTableIds=["rtb-0123456789abcdef0"])),
        bad=_table(_endpoint("dynamodb", "private", routeTableIds=["rtb-0123456789abcdef0"])),
    ),
    Rule(
        id="s3-endpoint-policy",
        references=("R98",),
        family="vpc",
        level="advisory",
        level_because="it takes credentials of another account to use it",
        sentence="The policy of an S3 gateway endpoint says which buckets may be written to.",
        why="A job can send data to anybody's bucket through an endpoint that is open.",
        fix="add a condition on aws:ResourceAccount or aws:ResourceOrgID to what writes",
        url=S3_PAGE,
        types=frozenset({VPC_ENDPOINT}),
        check=_open_s3_endpoint,
        good=[
            _endpoint(
                policy=_policy(
                    "*", Condition={"StringEquals": {"aws:ResourceAccount": "123456789012"}}
                )
            )
        ],
        bad=[_endpoint(policy=_policy("*"))],
    ),
    Rule(
        id="flow-log-has-role",
        references=("R99",),
        family="vpc",
        level="mandatory",
        level_because="it cannot be created, or silently writes nothing",
        sentence="A flow log to CloudWatch names its group, and a role that flow logs may assume.",
        why="Without the role nothing is written, and nobody sees what the network did.",
        fix=f"set logDestination and iamRoleArn, to a role that trusts {_LOG_WRITER}",
        url=FLOW_LOG_PAGE,
        types=frozenset({FLOW_LOG}),
        check=_flow_log_role,
        whole_program=True,
        good=_flow_log_to("flow"),
        bad=[resource(FLOW_LOG, logDestinationType="cloud-watch-logs", trafficType="ALL")],
    ),
    Rule(
        id="flow-log-reaches-its-group",
        references=("R99",),
        family="vpc",
        level="mandatory",
        level_because="it silently writes nothing",
        sentence="The role of a flow log may write to the log's own group.",
        why="The log says it is active, and its group stays empty.",
        fix="take the ARN in the role's policy from the group that the flow log names",
        url=FLOW_LOG_PAGE,
        types=frozenset({FLOW_LOG}),
        check=_flow_log_reach,
        whole_program=True,
        good=_flow_log_to("flow"),
        bad=_flow_log_to("other"),
    ),
    Rule(
        id="gateway-attached-first",
        references=("R100",),
        family="vpc",
        level="advisory",
        level_because="it is a race that a second update wins",
        sentence="A NAT gateway and a route to the internet wait for the internet gateway.",
        why="Made before the gateway is attached they fail, sometimes.",
        fix="add the internet gateway, or its route, to depends_on",
        url="https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-troubleshooting.html",
        types=frozenset({NAT_GATEWAY, ROUTE}),
        check=_races_the_gateway,
        whole_program=True,
        good=_nat("internet"),
        bad=_nat(),
    ),
)

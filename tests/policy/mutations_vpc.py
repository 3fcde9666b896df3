"""Ways to break a good network."""

import json

from tests.policy.edits import Break, add, both, drop, named, put, remove
from tests.policy.mutations import Mutation, Rows, edit_json, first, of_type

ATTACHMENT = "aws:ec2/internetGatewayAttachment:InternetGatewayAttachment"
TABLE = "aws:ec2/routeTable:RouteTable"
S3 = ("VpcEndpoint", "network-s3")
API = ("VpcEndpoint", "ecr-api")
OPEN = {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*"}


def _ours(rule: str, what: str, breaks: Break) -> Mutation:
    return Mutation(rule=rule, stack="dev", what=what, breaks=breaks)


def _raw(rule: str, what: str, breaks: Break) -> Mutation:
    return Mutation(rule=rule, stack="eks-raw", what=what, breaks=breaks)


def _writes_elsewhere(rows: Rows) -> None:
    """Let the flow log's role write to another group of the program."""
    other = next(each for each in of_type(rows, "LogGroup") if "flow" not in each["name"])
    arn = f"arn:aws:logs:us-west-2:123456789012:log-group:{other['name']}"
    row = named(rows, "RolePolicy", "network-flow")
    edit_json(row, "policy", lambda policy: policy["Statement"][0].update({"Resource": [arn]}))
    row["propertyDependencies"]["policy"] = [other["urn"]]


def _trusts(service: str) -> Break:
    allow = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return put("Role", "network-flow", "assumeRolePolicy", json.dumps({"Statement": [allow]}))


def _nat_waits_for_nothing(rows: Rows) -> None:
    for short in ("NatGateway", "Eip"):
        first(rows, short)["dependencies"] = []


MUTATIONS = (
    _ours("s3-gateway-endpoint", "removed", remove(*S3)),
    _ours(
        "s3-gateway-endpoint",
        "DynamoDB's",
        put(*S3, "serviceName", "com.amazonaws.us-west-2.dynamodb"),
    ),
    _raw(
        "s3-gateway-endpoint",
        "a table forgotten",
        add(TABLE, "private-c", vpcId="vpc-0123456789abcdef0"),
    ),
    _ours("s3-endpoint-policy", "left out", drop(*S3, "policy")),
    _ours("s3-endpoint-policy", "open", put(*S3, "policy", json.dumps({"Statement": [OPEN]}))),
    _raw("interface-endpoint-private-dns", "off", put(*API, "privateDnsEnabled", False)),
    _raw("interface-endpoint-private-dns", "left out", drop(*API, "privateDnsEnabled")),
    _raw("private-dns-needs-vpc-names", "no host names", drop("Vpc", "vpc", "enableDnsHostnames")),
    _raw("private-dns-needs-vpc-names", "no DNS", put("Vpc", "vpc", "enableDnsSupport", False)),
    _raw(
        "interface-endpoint-port-open",
        "HTTP only",
        put("SecurityGroup", "endpoints", "ingress.0.toPort", 80),
    ),
    _raw("interface-endpoint-port-open", "nothing", drop("SecurityGroup", "endpoints", "ingress")),
    _ours("flow-log-has-role", "no role", drop("FlowLog", "network-flow", "iamRoleArn")),
    _ours("flow-log-has-role", "no group", drop("FlowLog", "network-flow", "logDestination")),
    _ours("flow-log-has-role", "trusts EC2", _trusts("ec2.amazonaws.com")),
    _ours("flow-log-reaches-its-group", "another group", _writes_elsewhere),
    _ours(
        "flow-log-reaches-its-group",
        "may only read",
        put(
            "RolePolicy",
            "network-flow",
            "policy",
            json.dumps({"Statement": [{**OPEN, "Action": "logs:DescribeLogStreams"}]}),
        ),
    ),
    _ours("gateway-attached-first", "NAT waits for nothing", _nat_waits_for_nothing),
    _ours(
        "gateway-attached-first",
        "a route before the attachment",
        both(
            drop("InternetGateway", "network-internet", "vpcId"),
            add(
                ATTACHMENT,
                "attachment",
                {"internetGatewayId": ("InternetGateway", "network-internet")},
                internetGatewayId="igw-0123456789abcdef0",
            ),
        ),
    ),
)

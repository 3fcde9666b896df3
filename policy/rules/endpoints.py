"""Interface endpoints: the way of a private subnet to the AWS APIs."""

from collections.abc import Iterator
from typing import Any

from fabric.rows import inputs, text, true
from policy.examples import resource
from policy.file_systems import visible_groups
from policy.ports import keeps_out
from policy.rule import Finding, Rule, Subject
from policy.tokens import SECURITY_GROUP, VPC, VPC_ENDPOINT
from policy.values import is_unknown

PAGE = "https://docs.aws.amazon.com/vpc/latest/privatelink/create-interface-endpoint.html"
_HTTPS = (443, 443)


def _no_private_dns(subject: Subject) -> Iterator[Finding]:
    value = subject.at("privateDnsEnabled")
    service = text(subject.at("serviceName"))
    is_aws = service.startswith("com.amazonaws.") and "vpce" not in service
    if _is_interface(subject) and is_aws and not true(value) and not is_unknown(value):
        yield Finding(
            path="privateDnsEnabled",
            value=value,
            message=f"clients of {service.rpartition('.')[2]} do not find the endpoint",
        )


def _is_interface(subject: Subject) -> bool:
    return text(subject.at("vpcEndpointType")) == "Interface"


def _vpc_without_names(subject: Subject) -> Iterator[Finding]:
    if not _is_interface(subject) or not true(subject.at("privateDnsEnabled")):
        return
    for vpc in subject.linked("vpcId", VPC):
        for key, default in (("enableDnsSupport", True), ("enableDnsHostnames", False)):
            value = inputs(vpc).get(key, default)
            if not true(value) and not is_unknown(value):
                yield Finding(path="privateDnsEnabled", value=True, message=f"its VPC has no {key}")


def _endpoint_port(subject: Subject) -> Iterator[Finding]:
    groups = visible_groups(subject.row, "securityGroupIds", subject.program)
    if _is_interface(subject) and groups and keeps_out(groups, subject.program, [_HTTPS]):
        yield Finding(
            path="securityGroupIds", value=None, message="no rule of its groups lets TCP 443 in"
        )


def _endpoint(links: dict[str, list[str]] | None = None, **more: Any) -> dict[str, Any]:
    return resource(
        VPC_ENDPOINT,
        links=links,
        serviceName="com.amazonaws.us-east-1.ecr.api",
        vpcEndpointType="Interface",
        **more,
    )


def _in_vpc(**vpc: Any) -> list[dict[str, Any]]:
    return [
        resource(VPC, "vpc", cidrBlock="10.0.0.0/16", **vpc),
        _endpoint({"vpcId": ["vpc"]}, privateDnsEnabled=True, vpcId="vpc-0123456789abcdef0"),
    ]


def _behind(port: int) -> list[dict[str, Any]]:
    rule = {"protocol": "tcp", "fromPort": port, "toPort": port, "cidrBlocks": ["10.0.0.0/16"]}
    return [
        resource(SECURITY_GROUP, "endpoints", ingress=[rule]),
        _endpoint({"securityGroupIds": ["endpoints"]}, securityGroupIds=["sg-0123456789abcdef0"]),
    ]


RULES = (
    Rule(
        id="interface-endpoint-private-dns",
        references=("R57",),
        family="vpc",
        level="advisory",
        level_because="a private hosted zone elsewhere may hold the names",
        sentence="An interface endpoint of an AWS service answers to the service's own name.",
        why="Without it clients go on to the public address, and the endpoint only costs.",
        fix="set privateDnsEnabled",
        url=PAGE,
        types=frozenset({VPC_ENDPOINT}),
        check=_no_private_dns,
        good=[_endpoint(privateDnsEnabled=True)],
        bad=[_endpoint()],
    ),
    Rule(
        id="private-dns-needs-vpc-names",
        references=("R57",),
        family="vpc",
        level="mandatory",
        level_because="the endpoint cannot be created",
        sentence="The VPC of an endpoint with private DNS has DNS support and DNS hostnames.",
        why="EC2 refuses private DNS without both.",
        fix="set enableDnsSupport and enableDnsHostnames on the VPC",
        url=PAGE,
        types=frozenset({VPC_ENDPOINT}),
        check=_vpc_without_names,
        whole_program=True,
        good=_in_vpc(enableDnsHostnames=True),
        bad=_in_vpc(),
    ),
    Rule(
        id="interface-endpoint-port-open",
        references=("R57",),
        family="vpc",
        level="mandatory",
        level_because="nothing behind the endpoint is reached, and jobs hang",
        sentence="The security groups of an interface endpoint let TCP 443 in.",
        why="With private DNS the endpoint is the only way, and a closed one answers nothing.",
        fix="add ingress for TCP 443 from the VPC or from the groups of the nodes",
        url=PAGE,
        types=frozenset({VPC_ENDPOINT}),
        check=_endpoint_port,
        whole_program=True,
        good=_behind(443),
        bad=_behind(80),
    ),
)

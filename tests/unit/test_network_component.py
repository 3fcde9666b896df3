"""Network: what each form of `trainyard:network` makes."""

import json
from typing import Any

import pytest

from tests.support.rehearsing import Rehearsed, rehearsed

ZONES = ["us-west-2a", "us-west-2b", "us-west-2c"]
NEW = {"cidr": "10.40.0.0/16", "availabilityZones": ZONES[:1]}
EXISTING = {
    "vpcId": "vpc-0123456789abcdef0",
    "privateSubnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "availabilityZones": ZONES[:2],
}
GROUP = {
    "name": "g4dn",
    "instanceType": "g4dn.8xlarge",
    "maxNodes": 2,
    "jobs": [{"name": "train", "repositoryTag": "v1"}],
}
ANYWHERE = {"0.0.0.0/0", "::/0"}


def new_network(**keys: Any) -> Rehearsed:
    return rehearsed(network={**NEW, **keys})


def names(run: Rehearsed, short: str) -> list[str]:
    return [each.name for each in run.all(short)]


def policy_of(text: str) -> list[dict[str, Any]]:
    return json.loads(text)["Statement"]


class TestNewVpc:
    def test_one_zone_has_a_private_and_a_public_subnet(self) -> None:
        assert names(new_network(), "ec2.Subnet") == [
            "network-private-us-west-2a",
            "network-public-us-west-2a",
        ]

    def test_each_of_three_zones_has_a_private_subnet_of_its_own(self) -> None:
        run = new_network(availabilityZones=ZONES)
        private = [each for each in run.all("ec2.Subnet") if "private" in each.name]
        assert [each.inputs["availabilityZone"] for each in private] == ZONES
        assert len({each.inputs["cidrBlock"] for each in private}) == 3

    def test_each_private_subnet_has_its_own_route_table(self) -> None:
        run = new_network(availabilityZones=ZONES)
        pairs = {
            each.inputs["subnetId"]: each.inputs["routeTableId"]
            for each in run.all("ec2.RouteTableAssociation")
            if "private" in each.name
        }
        assert len(pairs) == len(set(pairs.values())) == 3

    def test_names_of_interface_endpoints_can_be_resolved(self) -> None:
        vpc = new_network().one("ec2.Vpc").inputs
        assert (vpc["enableDnsHostnames"], vpc["enableDnsSupport"]) == (True, True)

    @pytest.mark.parametrize("nat", ["single", "perZone", "none"])
    def test_no_subnet_gives_public_addresses(self, nat: str) -> None:
        subnets = new_network(nat=nat, availabilityZones=ZONES).all("ec2.Subnet")
        assert {each.inputs["mapPublicIpOnLaunch"] for each in subnets} == {False}

    def test_the_stack_says_what_other_stacks_need(self) -> None:
        run = new_network(availabilityZones=ZONES[:2])
        assert run.outputs["network"] == {
            "vpcId": run.id_of(run.one("ec2.Vpc")),
            "privateSubnetIds": {
                zone: run.id_of(run.one("ec2.Subnet", f"network-private-{zone}"))
                for zone in ZONES[:2]
            },
            "efaSecurityGroupId": run.id_of(run.one("ec2.SecurityGroup")),
        }


class TestWaysOut:
    @pytest.mark.parametrize(("nat", "count"), [("single", 1), ("perZone", 3), ("none", 0)])
    def test_nat_gateways_are_one_or_one_a_zone_or_none(self, nat: str, count: int) -> None:
        run = new_network(nat=nat, availabilityZones=ZONES)
        assert len(run.all("ec2.NatGateway")) == len(run.all("ec2.Eip")) == count

    @pytest.mark.parametrize("nat", ["single", "perZone"])
    def test_every_private_route_table_leads_to_a_nat_gateway(self, nat: str) -> None:
        run = new_network(nat=nat, availabilityZones=ZONES)
        routes = {each.name: each.inputs for each in run.all("ec2.Route")}
        for zone in ZONES:
            table = run.one("ec2.RouteTable", f"network-private-{zone}")
            gateway = run.one(
                "ec2.NatGateway", f"network-nat-{zone if nat == 'perZone' else ZONES[0]}"
            )
            assert routes[f"network-private-out-{zone}"] == {
                "routeTableId": run.id_of(table),
                "destinationCidrBlock": "0.0.0.0/0",
                "natGatewayId": run.id_of(gateway),
            }

    def test_nat_gateway_and_address_wait_for_the_public_route(self) -> None:
        run = new_network()
        route = run.one("ec2.Route", "network-public-out")
        assert route.urn in run.one("ec2.NatGateway").dependencies
        assert route.urn in run.one("ec2.Eip").dependencies
        assert run.one("ec2.InternetGateway").urn in route.dependencies

    def test_without_nat_nothing_leads_to_the_internet(self) -> None:
        run = new_network(nat="none")
        assert run.all("ec2.InternetGateway") == run.all("ec2.Route") == []
        assert [each for each in names(run, "ec2.Subnet") if "public" in each] == []

    def test_without_nat_a_host_reaches_what_it_needs_by_interface_endpoints(self) -> None:
        endpoints = [
            each.inputs
            for each in new_network(nat="none", availabilityZones=ZONES).all("ec2.VpcEndpoint")
            if each.inputs["vpcEndpointType"] == "Interface"
        ]
        assert {each["serviceName"] for each in endpoints} == {
            f"com.amazonaws.us-west-2.{service}"
            for service in (
                "ecr.api",
                "ecr.dkr",
                "logs",
                "ecs",
                "ecs-agent",
                "ecs-telemetry",
                "ssm",
                "ssmmessages",
                "ec2messages",
            )
        }
        assert {each["privateDnsEnabled"] for each in endpoints} == {True}
        assert {len(each["subnetIds"]) for each in endpoints} == {3}

    def test_interface_endpoints_take_https_from_the_vpc_and_nothing_else(self) -> None:
        run = new_network(nat="none")
        group = run.id_of(run.one("ec2.SecurityGroup", "network-endpoints"))
        (rule,) = [
            each.inputs
            for each in run.all("vpc.SecurityGroupIngressRule")
            if each.inputs["securityGroupId"] == group
        ]
        assert (rule["cidrIpv4"], rule["ipProtocol"]) == ("10.40.0.0/16", "tcp")
        assert (rule["fromPort"], rule["toPort"]) == (443, 443)

    @pytest.mark.parametrize("nat", ["single", "perZone", "none"])
    def test_s3_is_reached_from_every_private_route_table_without_nat(self, nat: str) -> None:
        run = new_network(nat=nat, availabilityZones=ZONES)
        endpoint = run.one("ec2.VpcEndpoint", "network-s3").inputs
        tables = [each for each in run.all("ec2.RouteTable") if "private" in each.name]
        assert (endpoint["serviceName"], endpoint["vpcEndpointType"]) == (
            "com.amazonaws.us-west-2.s3",
            "Gateway",
        )
        assert set(endpoint["routeTableIds"]) == {run.id_of(each) for each in tables}

    def test_what_is_written_by_the_s3_endpoint_stays_in_this_account_or_in_named_buckets(
        self,
    ) -> None:
        bucket = "arn:aws:s3:::partner-data"
        group = {"name": "cpu", "instanceType": "c7i.2xlarge", "efa": False, "maxNodes": 1}
        job = {"name": "show", "kind": "singleNode", "repositoryTag": "v1"}
        run = rehearsed(
            network=NEW,
            batch={"writeBuckets": [bucket], "groups": [{**group, "jobs": [job]}]},
        )
        policy = policy_of(run.one("ec2.VpcEndpoint", "network-s3").inputs["policy"])
        writing = [
            each
            for each in policy
            if not all(action.startswith(("s3:Get", "s3:List")) for action in each["Action"])
        ]
        assert [(each["Resource"], each.get("Condition")) for each in writing] == [
            (["*"], {"StringEquals": {"aws:ResourceAccount": "123456789012"}}),
            ([f"{bucket}/*"], None),
        ]

    @pytest.mark.parametrize(("asked", "count"), [(True, 1), (False, 0)])
    def test_dynamodb_has_an_endpoint_when_asked_for(self, asked: bool, count: int) -> None:
        run = new_network(dynamodbEndpoint=asked)
        assert names(run, "ec2.VpcEndpoint").count("network-dynamodb") == count


class TestFlowLogs:
    def test_they_go_to_the_group_that_was_made_by_a_role_that_may_write_there(self) -> None:
        run = new_network()
        log, group = run.one("ec2.FlowLog"), run.one("cloudwatch.LogGroup")
        arn = run.arn_of(group)
        writing, _ = policy_of(run.one("iam.RolePolicy").inputs["policy"])
        assert log.inputs["logDestination"] == arn
        assert log.inputs["iamRoleArn"] == run.arn_of(run.one("iam.Role"))
        assert writing["Resource"] == [arn, f"{arn}:*"]
        assert {"logs:CreateLogStream", "logs:PutLogEvents"} <= set(writing["Action"])

    def test_they_start_when_their_role_may_write(self) -> None:
        run = new_network()
        assert run.one("iam.RolePolicy").urn in run.one("ec2.FlowLog").dependencies

    def test_only_the_flow_log_service_assumes_their_role(self) -> None:
        (trust,) = policy_of(new_network().one("iam.Role").inputs["assumeRolePolicy"])
        assert trust["Principal"] == {"Service": "vpc-flow-logs.amazonaws.com"}

    def test_they_are_kept_as_long_as_asked(self) -> None:
        group = new_network(flowLogRetentionDays=7).one("cloudwatch.LogGroup")
        assert group.inputs["retentionInDays"] == 7

    def test_zero_days_means_none(self) -> None:
        run = new_network(flowLogRetentionDays=0)
        assert run.all("ec2.FlowLog") == run.all("cloudwatch.LogGroup") == run.all("iam.Role") == []


class TestSecurityGroups:
    @pytest.mark.parametrize(
        "kind", ["vpc.SecurityGroupIngressRule", "vpc.SecurityGroupEgressRule"]
    )
    def test_efa_traffic_is_free_within_the_group(self, kind: str) -> None:
        run = new_network()
        group = run.id_of(run.one("ec2.SecurityGroup"))
        own = [
            each.inputs
            for each in run.all(kind)
            if each.inputs.get("referencedSecurityGroupId") == group
        ]
        assert [(each["securityGroupId"], each["ipProtocol"]) for each in own] == [(group, "-1")]

    def test_the_way_to_anywhere_is_a_rule_beside_the_one_to_the_group_itself(self) -> None:
        rule = new_network().one("vpc.SecurityGroupEgressRule", "network-efa-to-anywhere").inputs
        assert (rule["cidrIpv4"], rule["ipProtocol"]) == ("0.0.0.0/0", "-1")

    def test_the_rules_of_the_efa_group_are_resources_of_their_own(self) -> None:
        group = new_network().one("ec2.SecurityGroup").inputs
        assert {"ingress", "egress"}.isdisjoint(group)

    @pytest.mark.parametrize("network", [NEW, {**NEW, "nat": "none"}, {"existing": EXISTING}])
    def test_nothing_is_open_to_the_world(self, network: dict[str, Any]) -> None:
        run = rehearsed(network=network)
        rules = [each.inputs for each in run.all("vpc.SecurityGroupIngressRule")]
        in_line = [
            rule for each in run.all("ec2.DefaultSecurityGroup") for rule in each.inputs["ingress"]
        ]
        assert rules
        assert ANYWHERE.isdisjoint(each.get("cidrIpv4", each.get("cidrIpv6")) for each in rules)
        assert all(set(each) == {"self", "protocol", "fromPort", "toPort"} for each in in_line)

    def test_tasks_in_the_default_group_reach_each_other_and_anywhere(self) -> None:
        group = new_network().one("ec2.DefaultSecurityGroup").inputs
        everything = {"protocol": "-1", "fromPort": 0, "toPort": 0}
        assert group["ingress"] == [{**everything, "self": True}]
        assert group["egress"] == [
            {**everything, "self": True},
            {**everything, "cidrBlocks": ["0.0.0.0/0"]},
        ]


class TestExistingVpc:
    def test_only_the_security_group_of_nodes_and_its_rules_are_made(self) -> None:
        run = rehearsed(network={"existing": EXISTING})
        of_aws = [each for each in run.resources if each.type.startswith("aws:")]
        assert {each.type for each in of_aws} == {
            "aws:ec2/securityGroup:SecurityGroup",
            "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
            "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
        }
        assert run.one("ec2.SecurityGroup").inputs["vpcId"] == EXISTING["vpcId"]

    def test_its_subnets_are_known_by_their_zones(self) -> None:
        network = rehearsed(network={"existing": EXISTING}).outputs["network"]
        assert network["privateSubnetIds"] == dict(
            zip(ZONES, EXISTING["privateSubnetIds"], strict=False)
        )

    def test_of_two_subnets_in_a_zone_nodes_use_the_first(self) -> None:
        one_zone = {**EXISTING, "availabilityZones": ["us-west-2a", "us-west-2a"]}
        network = rehearsed(network={"existing": one_zone}).outputs["network"]
        assert network["privateSubnetIds"] == {"us-west-2a": EXISTING["privateSubnetIds"][0]}


class TestNetworkOfAnotherStack:
    STACK = "organization/trainyard/network"

    def test_nothing_is_made(self) -> None:
        run = rehearsed(network={"stack": self.STACK, "availabilityZones": ZONES[:1]})
        assert [each.type for each in run.resources if each.type.startswith("aws:")] == []

    def test_it_hands_on_what_that_stack_has_put_out(self) -> None:
        run = rehearsed(network={"stack": self.STACK, "availabilityZones": ZONES[:1]})
        network = run.outputs["network"]
        assert network["vpcId"].startswith("vpc-")
        assert network["efaSecurityGroupId"].startswith("sg-")
        assert set(network["privateSubnetIds"]) == {"us-west-2a"}


class TestWhatNodesWaitFor:
    def test_a_compute_environment_waits_for_the_way_to_the_internet(self) -> None:
        run = rehearsed(network=NEW, batch={"groups": [GROUP]})
        environment = run.one("batch.ComputeEnvironment")
        assert {
            run.one("ec2.Route", "network-private-out-us-west-2a").urn,
            run.one("ec2.RouteTableAssociation", "network-private-us-west-2a").urn,
        } <= set(environment.dependencies)

    def test_a_compute_environment_waits_for_the_endpoints_and_their_rule(self) -> None:
        run = rehearsed(network={**NEW, "nat": "none"}, batch={"groups": [GROUP]})
        environment = run.one("batch.ComputeEnvironment")
        rule = run.one("vpc.SecurityGroupIngressRule", "network-endpoints-from-vpc")
        endpoints = {each.urn for each in run.all("ec2.VpcEndpoint")}
        assert {*endpoints, rule.urn} <= set(environment.dependencies)

    def test_a_compute_environment_waits_for_the_rules_of_efa(self) -> None:
        run = rehearsed(network=NEW, batch={"groups": [GROUP]})
        rules = run.all("vpc.SecurityGroupIngressRule") + run.all("vpc.SecurityGroupEgressRule")
        waits_for = run.one("batch.ComputeEnvironment").dependencies
        assert {each.urn for each in rules} <= set(waits_for)

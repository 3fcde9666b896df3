"""A VPC of the stack's own: subnets, and ways out by NAT gateways or by endpoints."""

import pulumi
import pulumi_aws as aws
from pulumi import Input, Output, ResourceOptions

from components.flow_logs import flow_logs
from components.network_parts import NetworkParts
from components.policy_documents import allow, policy_document
from fabric.addresses import ZoneCidrs, plan_subnets
from settings.network import NetworkSettings
from settings.stack import StackSettings

# What a host reaches when it has no way out; the last three are Session Manager's.
# https://docs.aws.amazon.com/batch/latest/userguide/vpc-interface-endpoints.html
# https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html
# https://docs.aws.amazon.com/systems-manager/latest/userguide/setup-create-vpc.html
SERVICES_WITHOUT_NAT = (
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


def new_vpc(
    name: str, stack: StackSettings, network: NetworkSettings, *, parent: pulumi.Resource
) -> NetworkParts:
    """Create a VPC with one private subnet in each zone, under `parent`."""
    return _Vpc(name, stack, network, parent).parts()


class _Vpc:
    """Builds the VPC step by step; nothing of it outlives `new_vpc` but its parts."""

    def __init__(
        self, name: str, stack: StackSettings, network: NetworkSettings, parent: pulumi.Resource
    ) -> None:
        self.name, self.stack, self.network = name, stack, network
        self.own = ResourceOptions(parent=parent)
        self.associations: list[pulumi.Resource] = []  # a route serves no subnet without its own
        self.vpc = aws.ec2.Vpc(
            f"{name}-vpc",
            cidr_block=str(network.cidr),
            enable_dns_hostnames=True,  # private names of interface endpoints need it
            enable_dns_support=True,
            tags=self.tags("vpc"),
            opts=self.own,
        )

    def tags(self, what: str) -> dict[str, str]:
        return self.stack.tags(f"{self.name}-{what}")

    def parts(self) -> NetworkParts:
        default_group = self.default_security_group()
        if self.network.flow_log_retention_days:
            flow_logs(
                self.name, self.stack, self.vpc.id, self.network.flow_log_retention_days, self.own
            )
        plan = plan_subnets(
            cidr=self.network.cidr, availability_zones=self.network.availability_zones
        )
        subnets = {zone.availability_zone: self.private_subnet(zone) for zone in plan}
        tables = {zone: self.private_route_table(zone, subnet) for zone, subnet in subnets.items()}
        way_out: list[pulumi.Resource] = [default_group, *self.gateway_endpoints(tables)]
        if self.network.nat == "none":
            way_out += self.interface_endpoints(subnets)
        else:
            way_out += self.nat_routes(plan, tables)
        return NetworkParts(
            vpc_id=self.vpc.id,
            private_subnet_ids={zone: subnet.id for zone, subnet in subnets.items()},
            way_out=[*way_out, *self.associations],
        )

    def default_security_group(self) -> aws.ec2.DefaultSecurityGroup:
        """Open the VPC's default group to itself: the tasks of multi-node jobs are in it.

        Source: https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html
        """
        return aws.ec2.DefaultSecurityGroup(
            f"{self.name}-default",
            vpc_id=self.vpc.id,
            ingress=[
                aws.ec2.DefaultSecurityGroupIngressArgs(
                    protocol="-1", from_port=0, to_port=0, self=True
                )
            ],
            egress=[
                aws.ec2.DefaultSecurityGroupEgressArgs(
                    protocol="-1", from_port=0, to_port=0, self=True
                ),
                aws.ec2.DefaultSecurityGroupEgressArgs(
                    protocol="-1", from_port=0, to_port=0, cidr_blocks=["0.0.0.0/0"]
                ),
            ],
            tags=self.tags("default"),
            opts=self.own,
        )

    def private_subnet(self, zone: ZoneCidrs) -> aws.ec2.Subnet:
        return self._subnet("private", zone.availability_zone, str(zone.private))

    def _subnet(self, kind: str, zone: str, cidr: str) -> aws.ec2.Subnet:
        return aws.ec2.Subnet(
            f"{self.name}-{kind}-{zone}",
            vpc_id=self.vpc.id,
            availability_zone=zone,
            cidr_block=cidr,
            map_public_ip_on_launch=False,
            tags=self.tags(f"{kind}-{zone}"),
            opts=self.own,
        )

    def private_route_table(self, zone: str, subnet: aws.ec2.Subnet) -> aws.ec2.RouteTable:
        return self._route_table(f"private-{zone}", subnet)

    def _route_table(self, what: str, *subnets: aws.ec2.Subnet) -> aws.ec2.RouteTable:
        table = aws.ec2.RouteTable(
            f"{self.name}-{what}", vpc_id=self.vpc.id, tags=self.tags(what), opts=self.own
        )
        for index, subnet in enumerate(subnets):
            association = aws.ec2.RouteTableAssociation(
                f"{self.name}-{what}" + (f"-{index}" if index else ""),
                subnet_id=subnet.id,
                route_table_id=table.id,
                opts=self.own,
            )
            self.associations.append(association)
        return table

    def nat_routes(
        self, plan: tuple[ZoneCidrs, ...], tables: dict[str, aws.ec2.RouteTable]
    ) -> list[pulumi.Resource]:
        """Public subnets with NAT gateways, and the private subnets' routes to them."""
        gateway = aws.ec2.InternetGateway(
            f"{self.name}-internet", vpc_id=self.vpc.id, tags=self.tags("internet"), opts=self.own
        )
        zones = plan if self.network.nat == "perZone" else plan[:1]
        public = {
            zone.availability_zone: self._subnet("public", zone.availability_zone, str(zone.public))
            for zone in zones
        }
        table = self._route_table("public", *public.values())
        route = aws.ec2.Route(
            f"{self.name}-public-out",
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=gateway.id,
            opts=self.own,
        )
        gateways = {zone: self.nat_gateway(zone, subnet, route) for zone, subnet in public.items()}
        only = next(iter(gateways.values()))
        return [
            aws.ec2.Route(
                f"{self.name}-private-out-{zone}",
                route_table_id=private.id,
                destination_cidr_block="0.0.0.0/0",
                nat_gateway_id=gateways.get(zone, only).id,
                opts=self.own,
            )
            for zone, private in tables.items()
        ]

    def nat_gateway(
        self, zone: str, subnet: aws.ec2.Subnet, route: aws.ec2.Route
    ) -> aws.ec2.NatGateway:
        # neither an address nor a gateway works in a VPC whose internet gateway is not attached yet
        after_route = ResourceOptions.merge(self.own, ResourceOptions(depends_on=[route]))
        address = aws.ec2.Eip(
            f"{self.name}-nat-{zone}", domain="vpc", tags=self.tags(f"nat-{zone}"), opts=after_route
        )
        return aws.ec2.NatGateway(
            f"{self.name}-nat-{zone}",
            subnet_id=subnet.id,
            allocation_id=address.id,
            tags=self.tags(f"nat-{zone}"),
            opts=after_route,
        )

    def gateway_endpoints(self, tables: dict[str, aws.ec2.RouteTable]) -> list[pulumi.Resource]:
        """Free ways to S3, and to DynamoDB where asked for, on every private route table."""
        route_tables = [table.id for table in tables.values()]
        endpoints: list[pulumi.Resource] = [
            self._gateway_endpoint("s3", route_tables, policy=self.s3_policy())
        ]
        if self.network.dynamodb_endpoint:
            endpoints.append(self._gateway_endpoint("dynamodb", route_tables, policy=None))
        return endpoints

    def _gateway_endpoint(
        self, service: str, route_tables: list[Output[str]], *, policy: Input[str] | None
    ) -> pulumi.Resource:
        return aws.ec2.VpcEndpoint(
            f"{self.name}-{service}",
            vpc_id=self.vpc.id,
            service_name=f"com.amazonaws.{self.stack.region}.{service}",
            vpc_endpoint_type="Gateway",
            route_table_ids=route_tables,
            policy=policy,
            tags=self.tags(service),
            opts=self.own,
        )

    def s3_policy(self) -> Output[str]:
        """Read from anywhere, for images and packages; write to this account or named buckets.

        Source: https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-endpoints-s3.html
        """
        write = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
        named = self.stack.batch.write_buckets if self.stack.batch else ()
        account = aws.get_caller_identity_output(opts=pulumi.InvokeOutputOptions(parent=self.vpc))
        return account.account_id.apply(
            lambda account_id: policy_document(
                allow(["s3:Get*", "s3:List*"], ["*"], Principal="*"),
                allow(
                    ["s3:*"],
                    ["*"],
                    Principal="*",
                    Condition={"StringEquals": {"aws:ResourceAccount": account_id}},
                ),
                *(
                    [allow(write, [f"{bucket}/*" for bucket in named], Principal="*")]
                    if named
                    else []
                ),
            )
        )

    def interface_endpoints(self, subnets: dict[str, aws.ec2.Subnet]) -> list[pulumi.Resource]:
        """Ways to the services that a host needs, for a VPC without a NAT gateway."""
        group = aws.ec2.SecurityGroup(
            f"{self.name}-endpoints",
            vpc_id=self.vpc.id,
            description="Interface endpoints: HTTPS from this VPC",
            tags=self.tags("endpoints"),
            opts=self.own,
        )
        rule = aws.vpc.SecurityGroupIngressRule(
            f"{self.name}-endpoints-from-vpc",
            security_group_id=group.id,
            cidr_ipv4=str(self.network.cidr),
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            description="HTTPS from this VPC",
            tags=self.tags("endpoints-from-vpc"),
            opts=self.own,
        )
        endpoints = [
            aws.ec2.VpcEndpoint(
                f"{self.name}-{service.replace('.', '-')}",
                vpc_id=self.vpc.id,
                service_name=f"com.amazonaws.{self.stack.region}.{service}",
                vpc_endpoint_type="Interface",
                subnet_ids=[subnet.id for subnet in subnets.values()],
                security_group_ids=[group.id],
                private_dns_enabled=True,
                tags=self.tags(service),
                opts=self.own,
            )
            for service in SERVICES_WITHOUT_NAT
        ]
        return [rule, *endpoints]

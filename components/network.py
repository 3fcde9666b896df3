"""Network: the VPC, subnets and security groups that nodes live in."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi import Input, Output, ResourceOptions

from components.network_parts import NetworkParts
from components.vpc import new_vpc
from fabric.addresses import usable_addresses
from settings.network import ExistingNetwork, PrivateSubnet
from settings.stack import StackSettings


class Network(pulumi.ComponentResource):
    """A VPC of the stack's own, an existing one, or the network of another stack.

    Outputs: `vpc_id`; `private_subnet_ids`, a subnet's id for each Availability Zone;
    `efa_security_group_id`, the group of every node's interfaces. `ready` are the resources without
    which a node that starts cannot reach its image or the other nodes.
    """

    vpc_id: Output[str]
    private_subnet_ids: Mapping[str, Output[str]]
    efa_security_group_id: Output[str]
    ready: Sequence[pulumi.Resource]

    def __init__(
        self, name: str, stack: StackSettings, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("trainyard:index:Network", name, None, opts)
        if stack.network is None:
            raise ValueError("the stack has no network section")
        if stack.network.stack:
            outputs = _outputs_of(stack.network.stack, self)
            parts = NetworkParts(
                vpc_id=outputs.apply(lambda values: values["vpcId"]),
                private_subnet_ids={
                    each.availability_zone: _subnet_in(outputs, each.availability_zone)
                    for each in stack.private_subnets
                },
            )
            self.efa_security_group_id = outputs.apply(lambda values: values["efaSecurityGroupId"])
            self.ready = ()
        else:
            existing = stack.network.existing
            parts = (
                _existing(existing, stack)
                if existing
                else new_vpc(name, stack, stack.network, parent=self)
            )
            group, rules = _efa_security_group(
                name, stack, parts.vpc_id, ResourceOptions(parent=self)
            )
            self.efa_security_group_id = group.id
            self.ready = (*parts.way_out, *rules)
        self.vpc_id = Output.from_input(parts.vpc_id)
        self.private_subnet_ids = {
            zone: Output.from_input(subnet) for zone, subnet in parts.private_subnet_ids.items()
        }
        self.register_outputs(self.outputs)

    @property
    def outputs(self) -> dict[str, Any]:
        """The stack output `network`, which `trainyard:network: {stack: ...}` of others reads."""
        return {
            "vpcId": self.vpc_id,
            "privateSubnetIds": dict(self.private_subnet_ids),
            "efaSecurityGroupId": self.efa_security_group_id,
        }


def look_up_subnets(existing: ExistingNetwork) -> tuple[PrivateSubnet, ...]:
    """Ask AWS for the zone and the free addresses of each private subnet that exists."""
    found = [aws.ec2.get_subnet(id=each) for each in existing.private_subnet_ids]
    return tuple(
        PrivateSubnet(
            availability_zone=subnet.availability_zone,
            subnet_id=subnet.id,
            vpc_id=subnet.vpc_id,
            addresses=usable_addresses(IPv4Network(subnet.cidr_block)),
            free_addresses=subnet.available_ip_address_count,
            assigns_public_addresses=subnet.map_public_ip_on_launch,
        )
        for subnet in found
    )


def _existing(existing: ExistingNetwork, stack: StackSettings) -> NetworkParts:
    return NetworkParts(
        vpc_id=existing.vpc_id,
        private_subnet_ids={
            each.availability_zone: each.subnet_id
            # the first subnet of a zone is the one that nodes use, as in the configuration's order
            for each in reversed(stack.private_subnets)
            if each.subnet_id
        },
    )


def _outputs_of(stack_name: str, parent: pulumi.Resource) -> Output[dict[str, Any]]:
    reference = pulumi.StackReference(stack_name, opts=ResourceOptions(parent=parent))
    return reference.require_output("network")


def _subnet_in(outputs: Output[dict[str, Any]], zone: str) -> Output[str]:
    def find(values: dict[str, Any]) -> str:
        subnets: dict[str, str] = values["privateSubnetIds"]
        if zone not in subnets:
            raise pulumi.RunError(
                f"trainyard:network.availabilityZones: {zone!r} is not a zone of that stack's "
                f"network; use one of {', '.join(subnets)}"
            )
        return subnets[zone]

    return outputs.apply(find)


def _efa_security_group(
    name: str, stack: StackSettings, vpc_id: Input[str], own: ResourceOptions
) -> tuple[aws.ec2.SecurityGroup, tuple[pulumi.Resource, ...]]:
    """The group of nodes: all traffic among themselves in both directions, and out to anywhere.

    EFA needs both rules that name the group itself, beside the one to anywhere:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html#efa-start-security
    """
    group = aws.ec2.SecurityGroup(
        f"{name}-efa",
        vpc_id=vpc_id,
        description="Nodes with EFA: all traffic among themselves, and out to anywhere",
        tags=stack.tags(f"{name}-efa"),
        opts=own,
    )
    rules = (
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-efa-from-itself",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            description="EFA and TCP from other nodes",
            tags=stack.tags(f"{name}-efa-from-itself"),
            opts=own,
        ),
        aws.vpc.SecurityGroupEgressRule(
            f"{name}-efa-to-itself",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            description="EFA to other nodes, which a rule to anywhere does not admit",
            tags=stack.tags(f"{name}-efa-to-itself"),
            opts=own,
        ),
        aws.vpc.SecurityGroupEgressRule(
            f"{name}-efa-to-anywhere",
            security_group_id=group.id,
            cidr_ipv4="0.0.0.0/0",
            ip_protocol="-1",
            description="Images, logs and data",
            tags=stack.tags(f"{name}-efa-to-anywhere"),
            opts=own,
        ),
    )
    return group, rules

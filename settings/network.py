"""`trainyard:network`: a VPC of the stack's own, one that exists, or another stack's."""

from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from settings.base import AvailabilityZone, Section, StackName, SubnetId, VpcId
from settings.errors import refusal

DEFAULT_CIDR = IPv4Network("10.0.0.0/16")


def _a_network(text: object) -> object:
    try:
        IPv4Network(str(text))
    except ValueError as error:
        raise refusal(
            f"is not an IPv4 block ({error})", "write a block like 10.40.0.0/16, its host bits zero"
        ) from None
    return text


class ExistingNetwork(Section):
    """A VPC and subnets that exist; the stack adds a security group and nothing else."""

    vpc_id: VpcId = Field(description="Id of the VPC.")
    private_subnet_ids: tuple[SubnetId, ...] = Field(
        min_length=1, description="Subnets for nodes; of two in one zone the first is used."
    )
    public_subnet_ids: tuple[SubnetId, ...] = Field(
        default=(), description="Subnets that no node may be in; nothing else is done with them."
    )
    availability_zones: tuple[AvailabilityZone, ...] = Field(
        default=(),
        description="The zone of each private subnet, in their order: what a rehearsal believes, "
        "and what a deployment checks.",
    )

    @model_validator(mode="after")
    def _one_zone_each(self) -> "ExistingNetwork":
        if len(set(self.private_subnet_ids)) < len(self.private_subnet_ids):
            raise refusal("names a private subnet twice", "name each subnet once")
        if self.availability_zones and len(self.availability_zones) != len(self.private_subnet_ids):
            raise refusal(
                f"names {len(self.availability_zones)} availabilityZones for "
                f"{len(self.private_subnet_ids)} privateSubnetIds",
                "name one zone for each subnet, in their order, or none at all",
            )
        return self


class NetworkSettings(Section):
    """Where the nodes live: exactly one of a new VPC, `existing`, or `stack`."""

    availability_zones: tuple[AvailabilityZone, ...] = Field(
        default=(), description="Zones of a new VPC, or those to use of another stack's network."
    )
    cidr: Annotated[IPv4Network, BeforeValidator(_a_network)] = Field(
        default=DEFAULT_CIDR, description="IPv4 block of a new VPC."
    )
    nat: Literal["single", "perZone", "none"] = Field(
        default="single",
        description="NAT gateways of a new VPC: one, one per zone, or none and interface "
        "endpoints in their place.",
    )
    dynamodb_endpoint: bool = Field(
        default=False, description="Whether a new VPC has a gateway endpoint for DynamoDB, too."
    )
    flow_log_retention_days: Literal[0, 1, 3, 5, 7, 14, 30, 60, 90, 120, 180, 365] = Field(
        default=30, description="How long flow logs of a new VPC are kept; 0: no flow logs."
    )
    existing: ExistingNetwork | None = Field(
        default=None, description="A VPC that exists, in place of a new one."
    )
    stack: StackName | None = Field(
        default=None, description="Stack of this program whose network is used."
    )

    @model_validator(mode="after")
    def _exactly_one_network(self) -> "NetworkSettings":
        only_new = {"cidr", "nat", "dynamodb_endpoint", "flow_log_retention_days"}
        if self.existing and self.stack:
            raise refusal("names both existing and stack", "keep one of them")
        other = "existing" if self.existing else "stack" if self.stack else None
        if other and (too_many := only_new & self.model_fields_set):
            keys = ", ".join(
                sorted(type(self).model_fields[name].alias or name for name in too_many)
            )
            raise refusal(f"has {other} beside {keys}", f"remove {keys}: that network exists")
        if self.existing and self.availability_zones:
            raise refusal(
                "has existing beside availabilityZones", "move availabilityZones into existing"
            )
        if not self.existing and not self.availability_zones:
            raise refusal("names no availabilityZones", "add a list with one zone, or several")
        if len(set(self.availability_zones)) < len(self.availability_zones):
            raise refusal("names an Availability Zone twice", "name each zone once")
        return self


@dataclass(frozen=True, kw_only=True, slots=True)
class PrivateSubnet:
    """A private subnet as far as it is known before deployment.

    What is None cannot be told: ids of a subnet that a stack makes, sizes of another stack's.
    `addresses` are those that instances can have, `free_addresses` those that none has now.
    """

    availability_zone: str
    subnet_id: str | None = None
    vpc_id: str | None = None
    addresses: int | None = None
    free_addresses: int | None = None
    assigns_public_addresses: bool = False

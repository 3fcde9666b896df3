"""The CIDR plan of a VPC.

Subnets get the largest equal shares that the VPC has, not shares cut to today's nodes: a subnet's
CIDR cannot change without replacing everything in it, so growth must not move it.
"""

from dataclasses import dataclass
from ipaddress import IPv4Network

# https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
ADDRESSES_AWS_RESERVES = 5
LARGEST_VPC_PREFIX, SMALLEST_SUBNET_PREFIX = 16, 28


class CidrDoesNotFit(ValueError):
    """A VPC's CIDR block cannot hold the subnets that are asked of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ZoneCidrs:
    """The CIDR blocks of one Availability Zone."""

    availability_zone: str
    private: IPv4Network
    public: IPv4Network


def plan_subnets(
    *, cidr: IPv4Network, availability_zones: tuple[str, ...]
) -> tuple[ZoneCidrs, ...]:
    """Give each zone a private share of the VPC and a small public one out of the last share.

    A VPC of up to three zones is cut in four shares, one of up to seven zones in eight: adding a
    zone within that leaves the others where they are.

    Raises CidrDoesNotFit when the block is outside AWS's sizes or too small for the zones.
    """
    extra_bits = 2 if len(availability_zones) < 4 else 3
    largest = SMALLEST_SUBNET_PREFIX - 2 * extra_bits
    if len(availability_zones) > 7:
        raise CidrDoesNotFit("a VPC here has seven Availability Zones at most")
    if not LARGEST_VPC_PREFIX <= cidr.prefixlen <= largest:
        raise CidrDoesNotFit(
            f"a VPC with {len(availability_zones)} Availability Zones needs a block between "
            f"/{LARGEST_VPC_PREFIX} and /{largest}"
        )
    *private, public = cidr.subnets(prefixlen_diff=extra_bits)
    return tuple(
        ZoneCidrs(availability_zone=zone, private=mine, public=open_to_world)
        for zone, mine, open_to_world in zip(
            availability_zones, private, public.subnets(prefixlen_diff=extra_bits), strict=False
        )
    )


def usable_addresses(cidr: IPv4Network) -> int:
    """Addresses of a subnet that instances can have.

    Source: https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
    """
    return cidr.num_addresses - ADDRESSES_AWS_RESERVES

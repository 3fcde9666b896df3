"""How a VPC's addresses are shared out among its Availability Zones."""

from ipaddress import IPv4Network
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.addresses import CidrDoesNotFit, ZoneCidrs, plan_subnets, usable_addresses

ZONES = tuple(f"us-west-2{letter}" for letter in "abcdefgh")


def plan(cidr: IPv4Network, zones: int) -> tuple[ZoneCidrs, ...]:
    return plan_subnets(cidr=cidr, availability_zones=ZONES[:zones])


@st.composite
def blocks(draw: st.DrawFn, *, smallest: int) -> IPv4Network:
    """A block of a size that AWS allows for a VPC, down to the smallest prefix given."""
    prefix = draw(st.integers(16, smallest))
    return IPv4Network((draw(st.integers(0, 2**prefix - 1)) << (32 - prefix), prefix))


@st.composite
def fitting(draw: st.DrawFn) -> tuple[IPv4Network, int]:
    """A VPC's block and a number of zones that fit it."""
    zones = draw(st.integers(1, 7))
    return draw(blocks(smallest=24 if zones <= 3 else 22)), zones


def subnets(planned: tuple[ZoneCidrs, ...]) -> list[IPv4Network]:
    return [cidr for zone in planned for cidr in (zone.private, zone.public)]


def test_three_zones_share_a_vpc_in_quarters_with_the_public_subnets_in_the_last() -> None:
    planned = plan(IPv4Network("10.40.0.0/16"), 3)
    assert [str(zone.private) for zone in planned] == [
        "10.40.0.0/18",
        "10.40.64.0/18",
        "10.40.128.0/18",
    ]
    assert [str(zone.public) for zone in planned] == [
        "10.40.192.0/20",
        "10.40.208.0/20",
        "10.40.224.0/20",
    ]


def test_four_zones_and_more_share_a_vpc_in_eighths() -> None:
    planned = plan(IPv4Network("10.40.0.0/16"), 7)
    assert str(planned[0].private) == "10.40.0.0/19"
    assert str(planned[6].private) == "10.40.192.0/19"
    assert str(planned[0].public) == "10.40.224.0/22"


@given(fitting())
def test_every_zone_gets_a_private_and_a_public_subnet_in_the_order_given(
    case: tuple[IPv4Network, int],
) -> None:
    cidr, zones = case
    assert [zone.availability_zone for zone in plan(cidr, zones)] == list(ZONES[:zones])


@given(fitting())
def test_subnets_lie_inside_the_vpc_and_none_overlaps_another(
    case: tuple[IPv4Network, int],
) -> None:
    planned = subnets(plan(*case))
    assert all(subnet.subnet_of(case[0]) for subnet in planned)
    assert not any(one.overlaps(other) for one, other in combinations(planned, 2))


@given(fitting())
def test_no_subnet_is_smaller_than_aws_allows(case: tuple[IPv4Network, int]) -> None:
    # https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
    assert all(subnet.prefixlen <= 28 for subnet in subnets(plan(*case)))


@given(fitting())
def test_zones_are_equal_and_nodes_have_more_room_than_what_faces_the_internet(
    case: tuple[IPv4Network, int],
) -> None:
    planned = plan(*case)
    assert len({zone.private.prefixlen for zone in planned}) == 1
    assert len({zone.public.prefixlen for zone in planned}) == 1
    assert planned[0].private.num_addresses >= 4 * planned[0].public.num_addresses


@pytest.mark.parametrize(("few", "many"), [(1, 3), (4, 7)])
@given(st.data())
def test_adding_a_zone_within_three_or_within_seven_moves_nothing(
    few: int, many: int, data: st.DataObject
) -> None:
    cidr = data.draw(blocks(smallest=24 if many == 3 else 22))
    for zones in range(few, many):
        assert plan(cidr, zones + 1)[:zones] == plan(cidr, zones)


@pytest.mark.parametrize(
    ("cidr", "zones", "needs"),
    [
        ("10.0.0.0/15", 1, "between /16 and /24"),
        ("10.0.0.0/25", 3, "between /16 and /24"),
        ("10.0.0.0/15", 4, "between /16 and /22"),
        ("10.0.0.0/23", 4, "between /16 and /22"),
    ],
)
def test_a_block_outside_the_sizes_that_hold_the_zones_is_refused(
    cidr: str, zones: int, needs: str
) -> None:
    with pytest.raises(CidrDoesNotFit, match=rf"{zones} Availability Zones needs .* {needs}$"):
        plan(IPv4Network(cidr), zones)


@pytest.mark.parametrize(
    ("cidr", "zones"),
    [("10.0.0.0/16", 3), ("10.0.0.0/24", 3), ("10.0.0.0/16", 7), ("10.0.0.0/22", 7)],
)
def test_the_largest_and_the_smallest_block_that_hold_the_zones_are_taken(
    cidr: str, zones: int
) -> None:
    assert len(plan(IPv4Network(cidr), zones)) == zones


@given(blocks(smallest=22))
def test_an_eighth_zone_is_refused(cidr: IPv4Network) -> None:
    with pytest.raises(CidrDoesNotFit, match="seven Availability Zones at most"):
        plan(cidr, 8)


def test_a_refusal_is_a_value_error() -> None:
    assert issubclass(CidrDoesNotFit, ValueError)


@pytest.mark.parametrize(("cidr", "usable"), [("10.0.0.0/24", 251), ("10.0.0.0/28", 11)])
def test_aws_keeps_five_addresses_of_a_subnet(cidr: str, usable: int) -> None:
    # https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
    assert usable_addresses(IPv4Network(cidr)) == usable

"""What a launch asks of capacity reservations, and which of them its program makes itself."""

from dataclasses import dataclass

from fabric.rows import Row, inputs, mapping, text, texts
from policy.program import Program
from policy.tokens import (
    CAPACITY_BLOCK_RESERVATION,
    CAPACITY_RESERVATION,
    RESOURCE_GROUP,
    RESOURCE_GROUP_MEMBER,
)
from policy.values import is_unknown

SPECIFICATION = "capacityReservationSpecification"
TARGET = f"{SPECIFICATION}.capacityReservationTarget"

_ID_KEYS = ("capacityReservationId", "capacityReservationIds")
_GROUP_KEYS = ("capacityReservationResourceGroupArn", "capacityReservationResourceGroupArns")


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A target among a launch's inputs; the names hold what is known already.

    `ids` and `groups` are None where the input is absent, and empty where it is unknown.
    `preference` is None while unknown. `made_here` are reservations and blocks of this program.
    """

    ids: tuple[str, ...] | None
    groups: tuple[str, ...] | None
    preference: str | None
    made_here: tuple[Row, ...]

    @property
    def names(self) -> str:
        """The known ids and ARNs, for a message."""
        return ", ".join([*(self.ids or ()), *(self.groups or ())])

    @property
    def reservations(self) -> list[Row]:
        """The on-demand reservations of this program among them."""
        return [row for row in self.made_here if row.get("type") == CAPACITY_RESERVATION]

    @property
    def confined(self) -> bool:
        """Whether nothing starts outside: an id always holds, a group only by the preference.

        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
        """
        by_id = self.ids is not None and self.preference != "capacity-reservations-first"
        return by_id or self.preference == "capacity-reservations-only"


def target_of(row: Row, program: Program) -> Target | None:
    """The target of a launch template, an instance or an Auto Scaling group, if it has one.

    None, too, where the whole specification is unknown.
    """
    specification = mapping(inputs(row).get(SPECIFICATION))
    target = mapping(specification.get("capacityReservationTarget"))
    ids = _named([target.get(key) for key in _ID_KEYS])
    groups = _named([target.get(key) for key in _GROUP_KEYS])
    if ids is None and groups is None:
        return None
    preference = specification.get("capacityReservationPreference")
    return Target(
        ids=ids,
        groups=groups,
        preference=None if is_unknown(preference) else text(preference),
        made_here=tuple(_made_here(row, program)),
    )


def target_groups(row: Row, program: Program) -> list[Row]:
    """The resource groups of this program that a launch targets."""
    return program.linked(row, SPECIFICATION, RESOURCE_GROUP) if target_of(row, program) else []


def members(group: Row, program: Program) -> list[Row]:
    """The reservations in a resource group, if this program makes all that it puts into it."""
    kinds = (CAPACITY_RESERVATION, CAPACITY_BLOCK_RESERVATION)
    placed = program.users(group, RESOURCE_GROUP_MEMBER)
    each = [program.linked(member, "resourceArn", *kinds) for member in placed]
    return [row for rows in each for row in rows] if all(each) else []


def _made_here(row: Row, program: Program) -> list[Row]:
    found = program.linked(row, SPECIFICATION, CAPACITY_RESERVATION, CAPACITY_BLOCK_RESERVATION)
    for group in program.linked(row, SPECIFICATION, RESOURCE_GROUP):
        found += members(group, program)
    return list({text(one.get("urn")): one for one in found}.values())


def _named(values: list[object]) -> tuple[str, ...] | None:
    names = tuple(name for value in values for name in (text(value), *texts(value)) if name)
    return names if names or is_unknown(values) else None

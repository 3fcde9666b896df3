"""The price files, and one line of a bill: a unit price times a count, both when known."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fabric import rows

HOURS_PER_MONTH = 730  # how AWS's own estimates count a month: https://calculator.aws

_GP3_INCLUDED = {"iops": 3000, "throughput": 125}
"""IOPS and MiB/s in a gp3 volume's price: https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html"""


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceLine:
    """One charge of one resource, in USD; None is what is not known.

    `unit_usd` is the price of one for an hour, the counts say how many there are with everything at
    its minimum (idle) and at its maximum (full). Prices per GB and month are counted as one volume.
    """

    urn: str
    what: str
    unit_usd: float | None
    idle_count: float | None
    full_count: float | None
    idle_per_hour: float | None
    full_per_hour: float | None
    source: str | None
    note: str

    def to_json(self) -> dict[str, Any]:
        """The fields, named in camelCase."""
        return {_camel_case(field): value for field, value in asdict(self).items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """USD for an hour of one thing, the price's source, and what to know about it."""

    usd: float | None
    source: str | None = None
    note: str = ""

    def times(self, count: float | None) -> "Unit":
        """The price of several as one thing, such as the gigabytes of a volume."""
        return Unit(usd=product(self.usd, count), source=self.source, note=self.note)


class PriceBook:
    """Unit prices by name, for one region; other regions than the files' say whose price it is."""

    def __init__(self, region: str) -> None:
        self._region = region

    def instance(self, instance_type: str) -> Unit:
        """An on-demand Linux instance in shared tenancy."""
        file = price_file("on_demand_prices")
        source = f"{file['source']}, {file['date']}"
        return self._unit(file, file["prices"].get(instance_type), source)

    def unit(self, key: str) -> Unit:
        """An entry of unit_prices.json; a price per month is spread over its hours."""
        file = price_file("unit_prices")
        price = file["prices"].get(key, {"unit": "", "usd": None, "source": None})
        hours = HOURS_PER_MONTH if price["unit"].endswith("-month") else 1
        return self._unit(file, product(price["usd"], 1 / hours), price["source"])

    def volume(self, *, size: object, kind: object, settings: Mapping[str, Any]) -> Unit:
        """An EBS volume of `size` GB, with the `iops` and `throughput` of its settings."""
        parts = [self.unit(f"ebs-{rows.text(kind)}").times(rows.number(size))]
        for key, included in _GP3_INCLUDED.items() if kind == "gp3" else ():
            more = (rows.number(settings.get(key)) or 0.0) - included
            if more > 0:
                parts.append(self.unit(f"ebs-gp3-{key}").times(more))
        return together(parts)

    def _unit(self, file: Mapping[str, Any], usd: float | None, source: str | None) -> Unit:
        if usd is None:
            return Unit(usd=None, note="no price known here")
        foreign = self._region != file["region"]
        return Unit(usd=usd, source=source, note=f"{file['region']} price" if foreign else "")


@cache
def price_file(name: str) -> Mapping[str, Any]:
    """`on_demand_prices` or `unit_prices`, as `make prices` wrote it."""
    return json.loads(Path(__file__).with_name(f"{name}.json").read_text())


def price_line(
    row: rows.Row,
    what: str,
    *,
    unit: Unit,
    idle: float | None,
    full: float | None,
    notes: Iterable[str] = (),
    idle_is_known: bool = True,
    full_is_known: bool = True,
) -> PriceLine:
    """A line of `unit` times `idle` and `full`; nothing of something costs nothing at any price.

    A full count below the idle one, which AWS refuses, is read as the idle one.
    """
    if idle is not None and full is not None:
        full = max(idle, full)
    return PriceLine(
        urn=rows.text(row.get("urn")),
        what=what,
        unit_usd=_rounded(unit.usd),
        idle_count=idle,
        full_count=full,
        idle_per_hour=_rounded(product(unit.usd, idle)) if idle_is_known else None,
        full_per_hour=_rounded(product(unit.usd, full)) if full_is_known else None,
        source=unit.source,
        note="; ".join(note for note in (*notes, unit.note) if note),
    )


def together(units: Iterable[Unit]) -> Unit:
    """Several things at one price: unknown if one of them is."""
    parts = list(units)
    sources = dict.fromkeys(part.source for part in parts if part.source)
    notes = dict.fromkeys(part.note for part in parts if part.note)
    usd = total(part.usd for part in parts)
    return Unit(usd=usd, source="; ".join(sources) or None, note="; ".join(notes))


def total(amounts: Iterable[float | None]) -> float | None:
    """The sum, or None if one of the amounts is."""
    result = 0.0
    for amount in amounts:
        if amount is None:
            return None
        result += amount
    return result


def product(price: float | None, count: float | None) -> float | None:
    """Price times count; zero when one of them is zero, whatever the other is."""
    if price == 0 or count == 0:
        return 0.0
    return None if price is None or count is None else price * count


def _rounded(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 6)  # as fine as AWS writes hourly prices


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))

"""Until when Amazon EKS supports each Kubernetes version.

Standard support lasts 14 months, extended support 12 more at six times the price:
https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
The days: https://endoflife.date/amazon-eks
"""

import re
from dataclasses import dataclass

AS_OF = "2026-11-21"
"""The day of this table. Rules read no clock: the same program has the same verdict tomorrow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Support:
    """The last days of a version's support, as ISO dates."""

    version: str
    standard_until: str
    extended_until: str


SUPPORT = (
    Support(version="1.30", standard_until="2025-07-23", extended_until="2026-07-23"),
    Support(version="1.31", standard_until="2025-11-26", extended_until="2026-11-26"),
    Support(version="1.32", standard_until="2026-03-23", extended_until="2027-03-23"),
    Support(version="1.33", standard_until="2026-07-29", extended_until="2027-07-29"),
    Support(version="1.34", standard_until="2026-12-02", extended_until="2027-12-02"),
    Support(version="1.35", standard_until="2027-03-27", extended_until="2028-03-27"),
)

OLDEST = next(each.version for each in SUPPORT if each.extended_until >= AS_OF)
OLDEST_STANDARD = next(each.version for each in SUPPORT if each.standard_until >= AS_OF)


def minor(version: object) -> int | None:
    """35 for `1.35`; None for anything else."""
    found = re.fullmatch(r"1\.(\d{1,3})", version) if isinstance(version, str) else None
    return int(found[1]) if found else None

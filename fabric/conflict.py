"""Things that cannot be combined."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Conflict:
    """Why two things cannot be combined, and what to do about it."""

    reason: str
    fix: str

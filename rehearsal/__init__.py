"""Runs a stack's real program with no account, no credentials and no Pulumi CLI.

`python -m rehearsal STACK-OR-FILE [--json]` prints what the stack would create, what it costs and
when it is ready; `rehearse` is the same as a function.
"""

from rehearsal.model import Problem, Rehearsal, Resource
from rehearsal.run import rehearse

__all__ = ["Problem", "Rehearsal", "Resource", "rehearse"]

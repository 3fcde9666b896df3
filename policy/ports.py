"""Which TCP ports security groups let in, as far as the program shows their rules."""

from fabric.rows import Row, inputs
from policy.group_rules import ALL, all_rules
from policy.program import Program
from policy.values import UNKNOWN

Ports = tuple[int, int]
_EVERY: Ports = (0, 65535)


def keeps_out(groups: list[Row], program: Program, wanted: list[Ports]) -> list[Ports]:
    """Those of the wanted port ranges that no group lets in; none if a rule is not known yet."""
    open_: list[Ports] = []
    for group in groups:
        if inputs(group).get("ingress") is UNKNOWN:
            return []
        for rule in all_rules(group, "ingress", program):
            first, last = rule.from_port, rule.to_port
            if rule.protocol == ALL:
                open_.append(_EVERY)
            elif rule.protocol is None:
                return []
            elif rule.protocol in ("tcp", "6"):
                if first is None or last is None:
                    return []
                open_.append((first, last))
    return [each for each in wanted if not _covered(each, open_)]


def written(ports: Ports) -> str:
    """`988` or `1018-1023`."""
    first, last = ports
    return str(first) if first == last else f"{first}-{last}"


def _covered(wanted: Ports, open_: list[Ports]) -> bool:
    """Whether the ranges together hold every wanted port."""
    following, last = wanted
    for begin, end in sorted(open_):
        if begin <= following <= end:
            following = end + 1
    return following > last

"""`python -m rehearsal.diagram STACK-OR-FILE`: a stack as a Mermaid flowchart, from its rehearsal.

`--update README.md` writes it between the markers of a page, `--check` with it only says by the
exit status whether the page is out of date. Syntax: https://mermaid.js.org/syntax/flowchart.html.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rehearsal.model import Resource
from rehearsal.run import REPOSITORY, rehearse

BEGIN, END = "<!-- diagram:begin -->", "<!-- diagram:end -->"

MOST_ALIKE = 3
"""Components of one type beyond this many are counted, not drawn."""

# What a picture of a training stack is about; the rest is plumbing.
DRAWN: Mapping[str, str] = {
    "aws:batch/computeEnvironment:ComputeEnvironment": "compute environment",
    "aws:batch/jobDefinition:JobDefinition": "job definition",
    "aws:batch/jobQueue:JobQueue": "job queue",
    "aws:ec2/capacityReservation:CapacityReservation": "capacity reservation",
    "aws:ec2/launchTemplate:LaunchTemplate": "launch template",
    "aws:ec2/natGateway:NatGateway": "NAT gateway",
    "aws:ec2/placementGroup:PlacementGroup": "placement group",
    "aws:ec2/securityGroup:SecurityGroup": "security group",
    "aws:ec2/subnet:Subnet": "subnet",
    "aws:ec2/vpc:Vpc": "VPC",
    "aws:ec2/vpcEndpoint:VpcEndpoint": "VPC endpoint",
    "aws:ecr/repository:Repository": "image repository",
    "aws:efs/fileSystem:FileSystem": "EFS file system",
    "aws:eks/cluster:Cluster": "EKS cluster",
    "aws:eks/nodeGroup:NodeGroup": "node group",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "Lustre file system",
}

Node = tuple[str | None, str]
"""Resources of one type in one component are one node: the component's URN and the type."""


def flowchart(resources: Sequence[Resource]) -> str:
    """Components as boxes, their main resources as nodes, an arrow from each to what it uses."""
    names: dict[Node, list[str]] = {}
    node_of: dict[str, Node] = {}
    boxes, folded = _boxes(resources)
    for resource in resources:
        inside = resource.parent is None or resource.parent in boxes
        if resource.type in DRAWN and inside:
            node = (resource.parent, resource.type)
            names.setdefault(node, []).append(resource.name)
            node_of[resource.urn] = node
    ids = {node: f"n{position}" for position, node in enumerate(names)}
    lines = ["flowchart LR", *_box(None, boxes, names, ids, indent="  ")]
    lines += [
        f'  more{position}["and {count} more {kind}"]'
        for position, (kind, count) in enumerate(folded.items())
    ]
    lines += [f"  {ids[user]} --> {ids[used]}" for user, used in _arrows(resources, node_of)]
    return "\n".join(lines)


def _boxes(resources: Sequence[Resource]) -> tuple[dict[str, Resource], Counter[str]]:
    """The components that are drawn, by URN, and how many of each kind are not."""
    parents = {resource.parent for resource in resources}
    drawn: dict[str, Resource] = {}
    seen: Counter[tuple[str | None, str]] = Counter()
    folded: Counter[str] = Counter()
    for each in resources:
        if each.urn not in parents or (each.parent and each.parent not in drawn):
            continue
        seen[each.parent, each.type] += 1
        if seen[each.parent, each.type] <= MOST_ALIKE:
            drawn[each.urn] = each
        else:
            folded[each.type.rpartition(":")[2]] += 1
    return drawn, folded


def _box(
    parent: str | None,
    boxes: Mapping[str, Resource],
    names: Mapping[Node, list[str]],
    ids: Mapping[Node, str],
    indent: str,
) -> Iterator[str]:
    for node, named in names.items():
        if node[0] == parent:
            kind = DRAWN[node[1]]
            label = f"{kind}<br/>{named[0]}" if len(named) == 1 else f"{len(named)} x {kind}"
            yield f'{indent}{ids[node]}["{label}"]'
    for position, box in enumerate(boxes.values()):
        if box.parent == parent:
            yield f'{indent}subgraph s{position}["{box.type.rpartition(":")[2]} {box.name}"]'
            yield from _box(box.urn, boxes, names, ids, indent + "  ")
            yield f"{indent}end"


def _arrows(resources: Sequence[Resource], node_of: Mapping[str, Node]) -> list[tuple[Node, Node]]:
    """Who uses whom, without the arrows that a longer way makes superfluous."""
    uses: dict[Node, set[Node]] = {node: set() for node in node_of.values()}
    for resource in resources:
        if resource.urn in node_of:
            for urns in resource.property_dependencies.values():
                uses[node_of[resource.urn]] |= {node_of[urn] for urn in urns if urn in node_of}
    return [
        (user, used)
        for user in uses
        for used in sorted(uses[user] - {user}, key=str)
        if not any(_reaches(uses, via, used) for via in uses[user] - {user, used})
    ]


def _reaches(uses: Mapping[Node, set[Node]], start: Node, goal: Node) -> bool:
    seen: set[Node] = set()
    ahead = [start]
    while ahead:
        node = ahead.pop()
        if node == goal:
            return True
        if node not in seen:
            seen.add(node)
            ahead += uses[node]
    return False


def with_diagram(page: str, diagram: str) -> str:
    """The page with this diagram between its markers.

    Raises ValueError when the page does not have each marker once, in order.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in rest or END in after:
        raise ValueError(f"the page needs {BEGIN} and {END} once each, in this order")
    return f"{before}{BEGIN}\n```mermaid\n{diagram}\n```\n{END}{after}"


def main(arguments: list[str] | None = None) -> int:
    """Print the diagram, or update or check a page; the exit status is returned."""
    parser = argparse.ArgumentParser(
        prog="python -m rehearsal.diagram", description="Draw a stack as a Mermaid flowchart."
    )
    parser.add_argument("stack", metavar="STACK-OR-FILE")
    parser.add_argument("--project", type=Path, default=REPOSITORY)
    parser.add_argument("--update", type=Path, metavar="PAGE", help="write between its markers")
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if out of date")
    options = parser.parse_args(arguments)
    if options.check and not options.update:
        parser.error("--check needs --update PAGE, the page to check")
    rehearsal = rehearse(options.stack, project=options.project)
    if rehearsal.errors:
        print(*rehearsal.errors, sep="\n", file=sys.stderr)
        return 1
    diagram = flowchart(rehearsal.resources)
    if not options.update:
        print(diagram)
        return 0
    page = options.update.read_text(encoding="utf-8")
    wanted = with_diagram(page, diagram)
    if options.check:
        if page != wanted:
            print(f"{options.update} is out of date; run this without --check", file=sys.stderr)
        return int(page != wanted)
    options.update.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

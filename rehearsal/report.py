"""A rehearsal as text for people: tree, counts, price, time until ready, warnings, errors."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from rehearsal.model import Json, Problem, Rehearsal, Resource

WIDTH = 100
"""Columns when the output is not a terminal."""

MOST_ALIKE = 3
"""Siblings that differ in nothing shown are folded beyond this many."""

MOST_CHILDREN = 40
"""No branch of the tree shows more."""

MOST_CHARGES = 15
"""Lines of the price that are shown, the dearest first."""

# The few inputs that tell a person what a resource is: by type, a word and the path of its value.
# Paths go through maps, lists and JSON texts.
TELLING: Mapping[str, Mapping[str, str]] = {
    "aws:batch/computeEnvironment:ComputeEnvironment": {
        "": "computeResources.instanceTypes",
        "vCPUs from": "computeResources.minVcpus",
        "to": "computeResources.maxVcpus",
        "in": "computeResources.placementGroup",
    },
    "aws:batch/jobDefinition:JobDefinition": {"": "type", "nodes": "nodeProperties.numNodes"},
    "aws:cloudwatch/logGroup:LogGroup": {"days": "retentionInDays"},
    "aws:cloudwatch/metricAlarm:MetricAlarm": {"": "metricName"},
    "aws:ec2/capacityReservation:CapacityReservation": {
        "": "instanceCount",
        "x": "instanceType",
        "in": "availabilityZone",
        "until": "endDate",
    },
    "aws:ec2/launchTemplate:LaunchTemplate": {
        "": "networkInterfaces.interfaceType",
        "bought as": "instanceMarketOptions.marketType",
        "only in": "capacityReservationSpecification.capacityReservationTarget"
        ".capacityReservationId",
        "only in group": "capacityReservationSpecification.capacityReservationTarget"
        ".capacityReservationResourceGroupArn",
        "threads per core": "cpuOptions.threadsPerCore",
    },
    "aws:ec2/placementGroup:PlacementGroup": {"": "strategy"},
    "aws:ec2/route:Route": {"to": "destinationCidrBlock"},
    "aws:ec2/subnet:Subnet": {"": "cidrBlock", "in": "availabilityZone"},
    "aws:ec2/vpc:Vpc": {"": "cidrBlock"},
    "aws:ec2/vpcEndpoint:VpcEndpoint": {"": "vpcEndpointType", "to": "serviceName"},
    "aws:ecr/repository:Repository": {"tags": "imageTagMutability"},
    "aws:eks/cluster:Cluster": {"version": "version"},
    "aws:eks/nodeGroup:NodeGroup": {
        "": "instanceTypes",
        "nodes from": "scalingConfig.minSize",
        "to": "scalingConfig.maxSize",
    },
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": {
        "protocol": "ipProtocol",
        "to": "cidrIpv4",
        "to group": "referencedSecurityGroupId",
    },
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": {
        "protocol": "ipProtocol",
        "from": "cidrIpv4",
        "from group": "referencedSecurityGroupId",
    },
}

LONGEST_VALUE = 60

COUNT_COLUMNS = 2


def print_report(rehearsal: Rehearsal, console: Console | None = None) -> None:
    """Print everything that a person wants to know before `pulumi up`."""
    console = console or _console()
    where = f" in {rehearsal.region}" if rehearsal.region else ""
    console.print(f"[bold]{escape(rehearsal.stack)}[/bold]{escape(where)}", highlight=False)
    if rehearsal.resources:
        resources = sum(not each.external for each in rehearsal.resources)
        console.print(
            _tree(rehearsal), "", f"[bold]{resources} resource{'s' * (resources != 1)}[/]", sep="\n"
        )
        console.print(_counts(rehearsal.resources))
    if not rehearsal.errors:
        console.print("", _price(rehearsal.price), "", _ready(rehearsal.ready), sep="\n")
    _findings(console, rehearsal.findings)
    _problems(console, "warning", "yellow", rehearsal.warnings)
    _problems(console, "error", "red", rehearsal.errors)


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=WIDTH, highlight=False)


def _problems(console: Console, kind: str, style: str, problems: Sequence[Problem]) -> None:
    if problems:
        count = f"{len(problems)} {kind}{'s' if len(problems) > 1 else ''}"
        console.print(f"\n[bold {style}]{count}[/]", highlight=False)
    for problem in problems:
        # one problem is one line, however long: people search and copy it
        console.print(escape(str(problem)), highlight=False, soft_wrap=True)


def _findings(console: Console, findings: Sequence[Mapping[str, Json]]) -> None:
    for level, style in (("mandatory", "red"), ("advisory", "yellow")):
        of_level = [each for each in findings if each["level"] == level]
        if of_level:
            console.print(f"\n[bold {style}]{len(of_level)} {level}[/]")
        for each in of_level:
            where = f"{each['urn'].rpartition('::')[2]}: {each['path']}"
            value = "" if each["value"] is None else f" {_in_short([each['value']])}"
            text = (
                f"{each['rule']}: {where}{value}: {each['message']}; {each['fix']} ({each['url']})"
            )
            console.print(escape(text), soft_wrap=True)


def _tree(rehearsal: Rehearsal) -> Tree:
    children: dict[str | None, list[Resource]] = {}
    for resource in rehearsal.resources:
        children.setdefault(resource.parent, []).append(resource)
    tree = Tree("", hide_root=True)
    _grow(tree, None, children)
    return tree


def _grow(tree: Tree, parent: str | None, children: Mapping[str | None, list[Resource]]) -> None:
    shown = children.get(parent, [])
    alike: Counter[tuple[str, str]] = Counter()
    left_out: Counter[str] = Counter()
    for position, resource in enumerate(shown):
        details = " ".join(_telling(resource))
        alike[resource.type, details] += 1
        if alike[resource.type, details] > MOST_ALIKE or position >= MOST_CHILDREN:
            left_out[short_type(resource.type)] += 1
            continue
        mark = " (read)" if resource.external else ""
        label = f"[cyan]{escape(short_type(resource.type))}[/] {escape(resource.name)}{mark}"
        branch = tree.add(label + (f" [dim]{escape(details)}[/]" if details else ""))
        _grow(branch, resource.urn, children)
    for kind, count in left_out.items():
        tree.add(f"[dim]and {count} more {escape(kind)}[/]")


def short_type(token: str) -> str:
    """`ec2.Vpc` for `aws:ec2/vpc:Vpc`, `Network` for `trainyard:index:Network`."""
    package, module, name = [*token.split(":"), "", ""][:3]
    module = module.split("/")[0]
    return name if module in ("index", "") or package == "pulumi" else f"{module}.{name}"


def _telling(resource: Resource) -> Iterator[str]:
    for word, path in TELLING.get(resource.type, {}).items():
        found = list(_values_at(resource.inputs, path.split(".")))
        if found:
            yield f"{word} {_in_short(found)}".strip()


def _values_at(value: Json, path: Sequence[str]) -> Iterator[Json]:
    if isinstance(value, list):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _values_at(each, path)
    elif not path:
        yield value
    elif isinstance(value, str) and value.startswith("{"):
        yield from _values_at(json.loads(value), path)
    elif isinstance(value, Mapping) and path[0] in value:
        yield from _values_at(value[path[0]], path[1:])


def _in_short(values: Sequence[Json]) -> str:
    """Equal values are counted: `efa, 31 x efa-only`."""
    counts = Counter(map(str, values))
    text = ", ".join(value if n == 1 else f"{n} x {value}" for value, n in counts.items())
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def _counts(resources: Sequence[Resource]) -> Table:
    counts = Counter(short_type(each.type) for each in resources if not each.external)
    cells = [
        f"{n:>5}  {kind}" for kind, n in sorted(counts.items(), key=lambda at: (-at[1], at[0]))
    ]
    height = -(-len(cells) // COUNT_COLUMNS)
    columns = [cells[start : start + height] for start in range(0, len(cells), height)]
    table = Table.grid(padding=(0, 2))
    for row in zip_longest(*columns, fillvalue=""):
        table.add_row(*map(escape, row))
    return table


def _price(price: Mapping[str, Json]) -> Table:
    table = _three_columns()
    table.add_row("[bold]idle[/]", "[bold]full size[/]", "[bold]USD per hour[/]")
    lines: Sequence[Mapping[str, Json]] = price["lines"]
    dear = sorted(lines, key=_dearest_first)
    for line in dear[:MOST_CHARGES]:
        note = f" ({line['note']})" if line.get("note") else ""
        name = str(line["urn"]).rpartition("::")[2]
        amounts = _usd(line["idlePerHour"]), _usd(line["fullPerHour"])
        table.add_row(*amounts, escape(f"{name}: {line['what']}{note}"))
    if len(dear) > MOST_CHARGES:
        table.add_row("", "", f"and {len(dear) - MOST_CHARGES} lines more, see --json")
    totals = [_total(price, when) for when in ("Idle", "Full")]
    table.add_row(
        *(f"[bold]{each}[/]" for each in totals),
        "[bold]in all[/], without what depends on use, such as data and logs",
    )
    return table


def _dearest_first(line: Mapping[str, Json]) -> tuple[bool, float]:
    known = [each for each in (line["idlePerHour"], line["fullPerHour"]) if each is not None]
    return len(known) == 2, -max(known, default=0.0)


def _total(price: Mapping[str, Json], when: str) -> str:
    total, known = price[f"{when.lower()}PerHour"], price.get(f"known{when}PerHour", 0.0)
    return f"at least {known:,.2f}" if total is None else f"{total:,.2f}"


def _usd(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:,.4f}"


def _three_columns() -> Table:
    table = Table.grid(padding=(0, 2))
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    table.add_column()
    return table


def _ready(ready: Mapping[str, Json]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    seconds = ready["seconds"]
    minutes = "unknown" if seconds is None else f"{seconds / 60:.1f} min"
    table.add_row(f"[bold]{minutes}[/]", "[bold]until ready[/], one after the other:")
    for step in ready["criticalPath"]:
        table.add_row(f"{step['seconds']:.0f} s", escape(step["urn"].rpartition("::")[2]))
    if ready.get("unknown"):
        kinds = ", ".join(map(short_type, ready["unknown"]))
        table.add_row("unknown", escape(f"and nowhere published: {kinds}"))
    return table

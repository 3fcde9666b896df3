"""A rehearsal as text for people: tree, counts, price, time until ready, warnings, errors."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.markup import escape
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

# The few inputs that tell a person what a resource is, by type; paths go through maps and lists.
TELLING: Mapping[str, Sequence[str]] = {
    "aws:batch/computeEnvironment:ComputeEnvironment": (
        "computeResources.instanceTypes",
        "computeResources.minVcpus",
        "computeResources.maxVcpus",
        "computeResources.placementGroup",
    ),
    "aws:batch/jobDefinition:JobDefinition": ("nodeProperties", "type"),
    "aws:batch/jobQueue:JobQueue": ("priority",),
    "aws:cloudwatch/logGroup:LogGroup": ("retentionInDays",),
    "aws:cloudwatch/metricAlarm:MetricAlarm": ("metricName",),
    "aws:ec2/capacityReservation:CapacityReservation": (
        "instanceType",
        "instanceCount",
        "availabilityZone",
        "endDate",
    ),
    "aws:ec2/launchTemplate:LaunchTemplate": (
        "networkInterfaces.interfaceType",
        "instanceMarketOptions.marketType",
        "capacityReservationSpecification.capacityReservationTarget",
    ),
    "aws:ec2/placementGroup:PlacementGroup": ("strategy",),
    "aws:ec2/route:Route": ("destinationCidrBlock",),
    "aws:ec2/subnet:Subnet": ("cidrBlock", "availabilityZone", "mapPublicIpOnLaunch"),
    "aws:ec2/vpc:Vpc": ("cidrBlock",),
    "aws:ec2/vpcEndpoint:VpcEndpoint": ("serviceName",),
    "aws:ecr/repository:Repository": ("imageTagMutability", "forceDelete"),
    "aws:eks/cluster:Cluster": ("version",),
    "aws:eks/nodeGroup:NodeGroup": ("instanceTypes", "scalingConfig"),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": (
        "ipProtocol",
        "cidrIpv4",
        "referencedSecurityGroupId",
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": (
        "ipProtocol",
        "cidrIpv4",
        "referencedSecurityGroupId",
    ),
}

LONGEST_VALUE = 60


def print_report(rehearsal: Rehearsal, console: Console | None = None) -> None:
    """Print everything that a person wants to know before `pulumi up`."""
    console = console or _console()
    where = f" in {rehearsal.region}" if rehearsal.region else ""
    console.print(f"[bold]{escape(rehearsal.stack)}[/bold]{escape(where)}", highlight=False)
    if rehearsal.resources:
        console.print(_tree(rehearsal))
        _lines(console, _counts(rehearsal.resources))
    if not rehearsal.errors:
        _lines(console, _price(rehearsal.price))
        _lines(console, _ready(rehearsal.ready))
    for finding in rehearsal.findings:
        line = f"{finding['level']} {finding['rule']}: {finding['message']}; {finding['fix']}"
        console.print(escape(line), style="red" if finding["level"] == "mandatory" else "yellow")
    _problems(console, "warning", "yellow", rehearsal.warnings)
    _problems(console, "error", "red", rehearsal.errors)


def _console() -> Console:
    console = Console(soft_wrap=False)
    return console if console.is_terminal else Console(width=WIDTH)


def _lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(escape(line), highlight=False)


def _problems(console: Console, kind: str, style: str, problems: Sequence[Problem]) -> None:
    if problems:
        count = f"{len(problems)} {kind}{'s' if len(problems) > 1 else ''}"
        console.print(f"\n[bold {style}]{count}[/]", highlight=False)
    for problem in problems:
        # one problem is one line, however long: people search and copy it
        console.print(escape(str(problem)), highlight=False, soft_wrap=True)


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
        details = ", ".join(_telling(resource))
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
    for path in TELLING.get(resource.type, ()):
        found = list(_values_at(resource.inputs, path.split(".")))
        if found:
            yield f"{path.rpartition('.')[2]} {_in_short(found)}"


def _values_at(value: Json, path: Sequence[str]) -> Iterator[Json]:
    if isinstance(value, list):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _values_at(each, path)
    elif not path:
        yield value
    elif isinstance(value, Mapping) and path[0] in value:
        yield from _values_at(value[path[0]], path[1:])


def _in_short(values: Sequence[Json]) -> str:
    """Equal values are counted: `efa, 31 x efa-only`."""
    counts = Counter(map(str, values))
    text = ", ".join(value if n == 1 else f"{n} x {value}" for value, n in counts.items())
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def _counts(resources: Sequence[Resource]) -> Iterator[str]:
    counts = Counter(short_type(each.type) for each in resources if not each.external)
    yield f"\n{counts.total()} resources"
    for kind, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        yield f"  {count:>6}  {kind}"


def _price(price: Mapping[str, Json]) -> Iterator[str]:
    totals = (("\n", "idle", "idlePerHour"), ("", "at full size", "fullPerHour"))
    for gap, when, key in totals:
        total, known = price[key], price.get(f"known{key[0].upper()}{key[1:]}")
        amount = f"at least {known or 0:,.2f}" if total is None else f"{total:,.2f}"
        yield f"{gap}Price per hour {when}: {amount} USD"
    lines: Sequence[Mapping[str, Json]] = price["lines"]
    dear = sorted(lines, key=lambda line: -(line["fullPerHour"] or 0))
    for line in dear[:MOST_CHARGES]:
        note = f" ({line['note']})" if line.get("note") else ""
        idle, full = _usd(line["idlePerHour"]), _usd(line["fullPerHour"])
        name = str(line["urn"]).rpartition("::")[2]
        yield f"  {idle:>10} {full:>12}  {name}: {line['what']}{note}"
    if len(dear) > MOST_CHARGES:
        yield f"  and {len(dear) - MOST_CHARGES} lines more"


def _usd(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:,.4f}"


def _ready(ready: Mapping[str, Json]) -> Iterator[str]:
    path: Sequence[Mapping[str, Json]] = ready["criticalPath"]
    seconds = ready["seconds"]
    minutes = "unknown" if seconds is None else f"about {seconds / 60:.1f} minutes"
    yield f"\nReady after: {minutes}"
    for step in path:
        yield f"  {step['seconds']:>10.0f} s  {step['urn'].rpartition('::')[2]}"
    if ready.get("unknown"):
        yield f"  plus what has no known time: {', '.join(map(short_type, ready['unknown']))}"

"""What a program costs per hour: with nothing running (idle) and with everything at its maximum.

`price_of` judges the rows of any Pulumi AWS program. Prices are on-demand Linux prices without
discounts, from `on_demand_prices.json` and `unit_prices.json`, which `make prices` refreshes. A
price that is not known is None, makes the total None and is named in `Price.unknown`; nothing is
guessed. Charges that depend on use are no price per hour: `NOT_COUNTED` lists them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from fabric import node_prices
from fabric.node_prices import Program
from fabric.price_lines import PriceLine, Unit, price_file, price_line, together
from fabric.rows import Row, inputs, mapping, mappings, number, text, texts

__all__ = ["BILLED_WITHOUT_A_PRICE", "NOT_COUNTED", "PRICED", "Price", "PriceLine", "price_of"]

NOT_COUNTED = (
    "data through NAT gateways and interface endpoints, and between Availability Zones",
    "what logs, flow logs, metrics, container images, S3 and EFS take in and keep",
    "volumes that come with an AMI and that the program does not list",
    "the one instance by which AWS Batch may pass maxvCpus for a moment",
    "Fargate tasks and pods",
    "free tiers, discounts and taxes",
)
"""What no line holds, one phrase each, for the report and the documentation.

On the instance above maxvCpus:
https://docs.aws.amazon.com/batch/latest/userguide/allocation-strategies.html
"""

Pricer = Callable[[Program, Row], Iterator[PriceLine]]

_NO_PRICE = Unit(usd=None, note="no price known here")


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """USD per hour of a whole program, to four decimals; None where a line of it is not known."""

    lines: tuple[PriceLine, ...]

    @property
    def idle_per_hour(self) -> float | None:
        """With every group of nodes at its minimum."""
        known = None not in [line.idle_per_hour for line in self.lines]
        return self.known_idle_per_hour if known else None

    @property
    def full_per_hour(self) -> float | None:
        """With every group of nodes at its maximum."""
        known = None not in [line.full_per_hour for line in self.lines]
        return self.known_full_per_hour if known else None

    @property
    def known_idle_per_hour(self) -> float:
        """The sum of the known lines: the idle price is at least this."""
        return round(sum(line.idle_per_hour or 0.0 for line in self.lines), 4)

    @property
    def known_full_per_hour(self) -> float:
        """The sum of the known lines: the price at full size is at least this."""
        return round(sum(line.full_per_hour or 0.0 for line in self.lines), 4)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Each charge that lacks an amount: `resource name: what (why)`."""
        unknown = [li for li in self.lines if None in (li.idle_per_hour, li.full_per_hour)]
        return tuple(f"{li.urn.rpartition('::')[2]}: {li.what} ({li.note})" for li in unknown)

    def to_json(self) -> dict[str, Any]:
        """The value of `price` in `python -m rehearsal --json`."""
        return {
            "idlePerHour": self.idle_per_hour,
            "fullPerHour": self.full_per_hour,
            "knownIdlePerHour": self.known_idle_per_hour,
            "knownFullPerHour": self.known_full_per_hour,
            "unknown": list(self.unknown),
            "lines": [line.to_json() for line in self.lines],
        }


def price_of(rows: Sequence[Row], *, region: str) -> Price:
    """The price of every row whose type is billed by the hour, in the order of the rows.

    A region other than the price files' is priced all the same, and its lines' notes say whose
    price it is. Lines carry USD to six decimals. Odd rows raise nothing: what cannot be read is
    unknown.
    """
    program = Program(rows, region=region)
    return Price(lines=tuple(line for row in rows for line in _lines(program, row)))


def _lines(program: Program, row: Row) -> Iterator[PriceLine]:
    token = text(row.get("type"))
    if token in PRICED:
        yield from PRICED[token](program, row)
    elif token in BILLED_WITHOUT_A_PRICE:
        yield _always(row, token.rpartition(":")[2], _NO_PRICE)


def _always(
    row: Row, what: str, unit: Unit, note: str = "", count: float | None = 1.0
) -> PriceLine:
    """A line that is the same idle and at full size."""
    return price_line(row, what, unit=unit, idle=count, full=count, notes=[note])


def _one(what: str, key: str) -> Pricer:
    def price(program: Program, row: Row) -> Iterator[PriceLine]:
        yield _always(row, what, program.prices.unit(key))

    return price


def _cluster(program: Program, row: Row) -> Iterator[PriceLine]:
    extended = program.prices.unit("eks-cluster-extended-support").usd
    note = f"{extended} USD once its version is in extended support" if extended else ""
    yield _always(row, "EKS cluster", program.prices.unit("eks-cluster"), note)


def _endpoint(program: Program, row: Row) -> Iterator[PriceLine]:
    own = inputs(row)
    kind = text(own.get("vpcEndpointType")) or "Gateway"
    if kind == "Gateway":
        yield _always(row, "gateway endpoint", program.prices.unit("gateway-endpoint"))
    elif kind == "Interface":
        zones = float(len(texts(own.get("subnetIds")))) or None  # one subnet an Availability Zone
        unit = program.prices.unit("interface-endpoint")
        note = "" if zones else "its subnets are not known here"
        yield _always(row, "interface endpoint in one Availability Zone", unit, note, zones)
    else:
        yield _always(row, f"{kind} endpoint", _NO_PRICE)


def _reservation(program: Program, row: Row) -> Iterator[PriceLine]:
    own = inputs(row)
    instance_type = text(own.get("instanceType"))
    unit = program.prices.instance(instance_type)
    platform = text(own.get("instancePlatform")) or "Linux/UNIX"
    tenancy = text(own.get("tenancy")) or "default"
    if (platform, tenancy) != ("Linux/UNIX", "default"):
        unit = Unit(usd=None, note=f"no price known for {platform} in {tenancy} tenancy")
    what = f"reserved {instance_type or 'unknown type'} instance"
    note = "billed whether used or not"
    yield _always(row, what, unit, note, number(own.get("instanceCount")))


def _capacity_block(_: Program, row: Row) -> Iterator[PriceLine]:
    yield _always(row, "Capacity Block", Unit(usd=None, note="paid up front"))


def _volume(program: Program, row: Row) -> Iterator[PriceLine]:
    own = inputs(row)
    kind = own.get("type") or "gp2"  # EBS's default type
    unit = program.prices.volume(size=own.get("size"), kind=kind, settings=own)
    yield _always(row, f"EBS {own.get('size')} GB {kind}", unit)


def _efs(program: Program, row: Row) -> Iterator[PriceLine]:
    if number(inputs(row).get("provisionedThroughputInMibps") or 0) != 0:
        yield _always(row, "EFS provisioned throughput", _NO_PRICE)
    usd = price_file("unit_prices")["prices"]["efs-standard"]["usd"]
    note = f"billed by what is kept in it, {usd} USD per GB-month"
    yield _always(row, "EFS file system", program.prices.unit("efs-standard").times(0), note)


def _lustre(program: Program, row: Row) -> Iterator[PriceLine]:
    own = inputs(row)
    kind = text(own.get("deploymentType")) or "SCRATCH_1"  # FSx's default
    storage = text(own.get("storageType")) or "SSD"
    throughput = number(own.get("perUnitStorageThroughput"))
    speed = "" if throughput is None else f"-{throughput:g}"
    unit = program.prices.unit(f"fsx-lustre-{kind}-{storage}{speed}".lower())
    size = own.get("storageCapacity")
    if mapping(own.get("metadataConfiguration")).get("mode") == "USER_PROVISIONED":
        unit = together([unit, Unit(usd=None, note="no price known for provisioned metadata IOPS")])
    yield _always(row, f"FSx for Lustre {size} GB {kind}", unit.times(number(size)))


def _alarm(program: Program, row: Row) -> Iterator[PriceLine]:
    """Billed by metric; bands and Metrics Insights queries by what they watch, unknown here."""
    own = inputs(row)
    queries = mappings(own.get("metricQueries"))
    metrics = len([query for query in queries if mapping(query.get("metric"))]) if queries else 1
    shortest = min(_periods(own), default=60.0)  # seconds; below 60 is high resolution
    unit = program.prices.unit(
        "cloudwatch-alarm" if shortest >= 60 else "cloudwatch-alarm-high-resolution"
    )
    if not metrics or own.get("thresholdMetricId"):
        unit = Unit(usd=None, note="no price known for anomaly detection and Metrics Insights")
    yield _always(row, "CloudWatch alarm metric", unit, count=float(metrics or 1))


def _periods(alarm: Mapping[str, Any]) -> Iterator[float]:
    metrics = (mapping(query.get("metric")) for query in mappings(alarm.get("metricQueries")))
    for settings in (alarm, *metrics):
        period = number(settings.get("period"))
        if period is not None:
            yield period


PRICED: Mapping[str, Pricer] = MappingProxyType(
    {
        "aws:autoscaling/group:Group": node_prices.auto_scaling_group,
        "aws:batch/computeEnvironment:ComputeEnvironment": node_prices.compute_environment,
        "aws:cloudwatch/metricAlarm:MetricAlarm": _alarm,
        "aws:ebs/volume:Volume": _volume,
        "aws:ec2/capacityBlockReservation:CapacityBlockReservation": _capacity_block,
        "aws:ec2/capacityReservation:CapacityReservation": _reservation,
        "aws:ec2/eip:Eip": _one("public IPv4 address", "public-ipv4"),
        "aws:ec2/instance:Instance": node_prices.instance,
        "aws:ec2/natGateway:NatGateway": _one("NAT gateway", "nat-gateway"),
        "aws:ec2/vpcEndpoint:VpcEndpoint": _endpoint,
        "aws:efs/fileSystem:FileSystem": _efs,
        "aws:eks/cluster:Cluster": _cluster,
        "aws:eks/nodeGroup:NodeGroup": node_prices.node_group,
        "aws:fsx/lustreFileSystem:LustreFileSystem": _lustre,
        "aws:kms/key:Key": _one("KMS key", "kms-key"),
    }
)
"""What prices the resources of a type, by type token."""

BILLED_WITHOUT_A_PRICE = frozenset(
    {
        "aws:alb/loadBalancer:LoadBalancer",
        "aws:apprunner/service:Service",
        "aws:directoryservice/directory:Directory",
        "aws:dms/replicationInstance:ReplicationInstance",
        "aws:docdb/clusterInstance:ClusterInstance",
        "aws:ec2/dedicatedHost:DedicatedHost",
        "aws:ec2/fleet:Fleet",
        "aws:ec2/spotFleetRequest:SpotFleetRequest",
        "aws:ec2/spotInstanceRequest:SpotInstanceRequest",
        "aws:ec2/vpnConnection:VpnConnection",
        "aws:ec2clientvpn/networkAssociation:NetworkAssociation",
        "aws:ec2transitgateway/vpcAttachment:VpcAttachment",
        "aws:elasticache/cluster:Cluster",
        "aws:elasticache/replicationGroup:ReplicationGroup",
        "aws:elasticsearch/domain:Domain",
        "aws:elb/loadBalancer:LoadBalancer",
        "aws:emr/cluster:Cluster",
        "aws:fsx/ontapFileSystem:OntapFileSystem",
        "aws:fsx/openZfsFileSystem:OpenZfsFileSystem",
        "aws:fsx/windowsFileSystem:WindowsFileSystem",
        "aws:globalaccelerator/accelerator:Accelerator",
        "aws:lb/loadBalancer:LoadBalancer",
        "aws:memorydb/cluster:Cluster",
        "aws:mq/broker:Broker",
        "aws:msk/cluster:Cluster",
        "aws:neptune/clusterInstance:ClusterInstance",
        "aws:networkfirewall/firewall:Firewall",
        "aws:opensearch/domain:Domain",
        "aws:rds/clusterInstance:ClusterInstance",
        "aws:rds/instance:Instance",
        "aws:redshift/cluster:Cluster",
        "aws:route53/resolverEndpoint:ResolverEndpoint",
        "aws:sagemaker/endpoint:Endpoint",
        "aws:sagemaker/notebookInstance:NotebookInstance",
        "aws:transfer/server:Server",
    }
)
"""Types that cost by the hour and have no price in the files."""

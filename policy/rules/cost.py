"""What a program costs: its price at full size, its ceilings, and what is paid for nothing."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from fabric.catalogue import InstanceType
from fabric.prices import BILLED_WITHOUT_A_PRICE, PRICED, Price, price_of
from fabric.rows import at, inputs, mapping, number, text
from policy.example_programs import reserved_nodes
from policy.examples import resource
from policy.fleets import LAUNCHERS, Fleet, fleet_of, fleets, known
from policy.program import Program
from policy.reservations import SPECIFICATION
from policy.rule import Finding, Option, Rule, Subject
from policy.tokens import (
    BATCH_ENVIRONMENT,
    CAPACITY_RESERVATION,
    ECR_LIFECYCLE_POLICY,
    ECR_REPOSITORY,
    INSTANCE,
    LOG_GROUP,
    METRIC_ALARM,
    NAT_GATEWAY,
    NODE_GROUP,
    SUBNET,
)
from policy.values import UNKNOWN, is_unknown

BATCH_PAGE = "https://docs.aws.amazon.com/batch/latest/APIReference/API_ComputeResource.html"
PRICES_PAGE = "https://aws.amazon.com/ec2/pricing/on-demand/"
METRICS_PAGE = (
    "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservation-cw-metrics.html"
)
NAT_PAGE = "https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-pricing.html"
LOGS_PAGE = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/Working-with-log-groups-and-streams.html"
IMAGES_PAGE = "https://docs.aws.amazon.com/AmazonECR/latest/userguide/LifecyclePolicies.html"

_RESERVATION_METRICS = ("AvailableInstanceCount", "InstanceUtilization", "UsedInstanceCount")


def _price_ceiling(subject: Subject) -> Iterator[Finding]:
    ceiling = number(subject.options["maximumUsdPerHour"]) or 0.0
    if not ceiling:
        return
    price, dearest = _full_price(subject.program)
    strict = subject.options["unknownIsOver"] is True and bool(price.unknown)
    if text(subject.row.get("urn")) != dearest or not (
        strict or price.known_full_per_hour > ceiling
    ):
        return
    fleet = fleet_of(subject.row, subject.program)
    path = fleet.most[0] if fleet is not None and fleet.most else "instanceCount"
    message = f"at full size {price.known_full_per_hour:,.2f} USD per hour of {ceiling:,.2f}"
    if price.unknown:
        message += f", not counting {len(price.unknown)} unknown: {'; '.join(price.unknown)}"
    yield Finding(path=path, value=known(at(subject.row, path)), message=message)


@lru_cache(maxsize=1)  # every priced resource asks for the same sum
def _full_price(program: Program) -> tuple[Price, str]:
    """The program's price, and the URN of the resource with its dearest line."""
    price = price_of(program.rows(), region=_region(program))
    dearest = max(price.lines, key=lambda line: line.full_per_hour or 0.0, default=None)
    return price, dearest.urn if dearest else ""


def _region(program: Program) -> str:
    rows = program.of_type(SUBNET, CAPACITY_RESERVATION)
    zones = (text(inputs(row).get("availabilityZone")) for row in rows)
    return next((zone[:-1] for zone in zones if zone), "us-east-1")


def _node_ceiling(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    if fleet is None:
        return
    limit = number(subject.options["maxNodes"]) or 0.0
    if fleet.most and any(_is_dear(one) for one in fleet.types):
        path, nodes = fleet.most
        if nodes > limit:
            message = f"up to {nodes} nodes of {fleet.types[0].name}, more than {limit:g}"
            yield Finding(path=path, value=known(at(subject.row, path)), message=message)
        return
    vcpus = number(subject.at("computeResources.maxVcpus"))
    limit = number(subject.options["maxVcpus"]) or 0.0
    if vcpus is not None and vcpus > limit:
        message = f"up to {vcpus:g} vCPUs, more than {limit:g}"
        yield Finding(path="computeResources.maxVcpus", value=int(vcpus), message=message)


def _idle(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    if fleet is None or not any(_is_accelerated(one) for one in fleet.types) or _is_paid(fleet):
        return
    running = fleet.fewest if fleet.fewest and fleet.fewest[1] else None
    desired = number(subject.at("scalingConfig.desiredSize"))
    if running is None and desired:
        running = ("scalingConfig.desiredSize", int(desired))
    if running:
        path, nodes = running
        message = f"{nodes} x {fleet.types[0].name} run without any job"
        yield Finding(path=path, value=known(at(subject.row, path)), message=message)


def _is_paid(fleet: Fleet) -> bool:
    """Whether nodes are paid for whether they run or not, or that is unknown."""
    said = [at(row, SPECIFICATION) for row in (fleet.row, fleet.template or {})]
    return fleet.market in (None, "capacity-block") or bool(fleet.target) or UNKNOWN in said


def _is_accelerated(type_: InstanceType) -> bool:
    return bool(type_.gpus or type_.neuron_devices)


def _is_dear(type_: InstanceType) -> bool:
    return _is_accelerated(type_) or type_.supports_efa


def _watched(subject: Subject) -> Iterator[Finding]:
    alarms = [inputs(one) for one in subject.program.of_type(METRIC_ALARM)]
    own = [inputs(one) for one in subject.program.users(subject.row, METRIC_ALARM)]
    of_all = [one for one in alarms if not mapping(one.get("dimensions"))]
    said = [one.get("metricName") for one in (*own, *of_all)]
    queried = any(one.get("metricQueries") for one in own)
    if not queried and not any(is_unknown(one) or one in _RESERVATION_METRICS for one in said):
        yield Finding(
            path="instanceCount",
            value=known(subject.inputs.get("instanceCount")),
            message="no alarm tells when reserved instances stand idle",
        )


def _nat_in_use(subject: Subject) -> Iterator[Finding]:
    zones = [fleet.zones for fleet in fleets(subject.program)]
    used = {name for one in zones for name in one.names}
    subnets = subject.linked("subnetId", SUBNET) if subject.inputs.get("subnetId") else []
    own = {text(inputs(subnet).get("availabilityZone")) for subnet in subnets}
    is_known = len(used) == len(own) == 1 and all(one.complete for one in zones) and "" not in own
    if is_known and own != used:
        yield Finding(
            path="subnetId",
            value=known(subject.inputs.get("subnetId")),
            message=f"stands in {own.pop()}, while all nodes are in {used.pop()}",
        )


def _retention(subject: Subject) -> Iterator[Finding]:
    days = subject.inputs.get("retentionInDays")
    short_lived = subject.inputs.get("logGroupClass") == "DELIVERY"  # kept for a day or two
    if not number(days) and not is_unknown(days) and not short_lived:
        yield Finding(path="retentionInDays", value=days, message="log events are kept for ever")


def _image_expiry(subject: Subject) -> Iterator[Finding]:
    if subject.program.users(subject.row, ECR_LIFECYCLE_POLICY):
        return
    named = {
        text(inputs(one).get("repository")) for one in subject.program.of_type(ECR_LIFECYCLE_POLICY)
    }
    if text(subject.inputs.get("name")) not in named - {""}:
        yield Finding(path="name", value=None, message="no lifecycle policy for its images")


def _environment(**settings: Any) -> dict[str, Any]:
    return resource(
        BATCH_ENVIRONMENT,
        computeResources={
            "type": "EC2",
            "instanceTypes": ["p4d.24xlarge"],
            "minVcpus": 0,
            "maxVcpus": 384,
            **settings,
        },
    )


def _alarm(metric: str) -> dict[str, Any]:
    return resource(
        METRIC_ALARM,
        "alarm",
        links={"dimensions": ["reserved"]},
        dimensions={"CapacityReservationId": "cr-0123456789abcdef0"},
        metricName=metric,
        namespace="AWS/EC2CapacityReservations",
    )


def _gateway(zone: str) -> dict[str, Any]:
    return resource(NAT_GATEWAY, f"nat-{zone}", links={"subnetId": [zone]}, subnetId="subnet-0123")


def _nodes_in_one_zone(*gateways: str) -> list[dict[str, Any]]:
    """Nodes in us-west-2a, with NAT gateways in some zones."""
    return [
        *(resource(SUBNET, zone, availabilityZone=zone) for zone in ("us-west-2a", "us-west-2b")),
        resource(
            NODE_GROUP, links={"subnetIds": ["us-west-2a"]}, subnetIds=["subnet-0123456789abcdef0"]
        ),
        *(_gateway(zone) for zone in gateways),
    ]


_POLICY = resource(ECR_LIFECYCLE_POLICY, "policy", links={"repository": ["images"]})

RULES = (
    Rule(
        id="stack-price-ceiling",
        references=(),
        family="cost",
        level="mandatory",
        level_because="somebody set the ceiling so that nothing passes it",
        sentence="The program at full size costs no more per hour than the option says.",
        why="With every group of nodes at its maximum, the bill grows by this price each hour.",
        fix="lower the largest maximum, or raise maximumUsdPerHour with whoever pays",
        url=PRICES_PAGE,
        types=BILLED_WITHOUT_A_PRICE.union(PRICED),
        check=_price_ceiling,
        whole_program=True,
        good=[_environment()],
        bad=[_environment(maxVcpus=1_000_000)],
        options={
            "maximumUsdPerHour": Option(
                kind="number",
                default=100_000,
                description="USD per hour with every group at its maximum; 0 means no ceiling",
            ),
            "unknownIsOver": Option(
                kind="boolean",
                default=False,
                description="whether a charge without a known price breaks the rule",
            ),
        },
    ),
    Rule(
        id="node-ceiling",
        references=("R54",),
        family="cost",
        level="advisory",
        level_because="it costs only when so many jobs come",
        sentence="No launcher may start more nodes, or more vCPUs, than the options say.",
        why="A maximum far above the need, such as 100000 vCPUs, stops no runaway queue of jobs.",
        fix="set the maximum to the nodes that you want to pay for, times the vCPUs of one",
        url=BATCH_PAGE,
        types=LAUNCHERS - {INSTANCE},
        check=_node_ceiling,
        whole_program=True,
        good=[_environment()],
        bad=[_environment(maxVcpus=100_000)],
        options={
            "maxNodes": Option(
                kind="integer",
                default=64,
                description="nodes with accelerators or EFA that one launcher may start",
            ),
            "maxVcpus": Option(
                kind="integer",
                default=10_000,
                description="vCPUs of other compute environments",
            ),
        },
    ),
    Rule(
        id="no-idle-accelerators",
        references=("R54",),
        family="cost",
        level="advisory",
        level_because="it only costs more than it should",
        sentence="Accelerated nodes that are not reserved scale to zero.",
        why="A minimum or desired size above zero keeps them running, and billed, without work.",
        fix="set the minimum and the desired size to 0",
        url=BATCH_PAGE,
        types=LAUNCHERS - {INSTANCE},
        check=_idle,
        whole_program=True,
        good=[_environment()],
        bad=[_environment(minVcpus=96)],
    ),
    Rule(
        id="reservation-watched",
        references=("R40",),
        family="cost",
        level="advisory",
        level_because="it only hides a cost",
        sentence="An alarm watches how many instances of a capacity reservation stand idle.",
        why="An unused reservation costs as much as a used one, and nothing else shows it.",
        fix="add a CloudWatch alarm on AvailableInstanceCount of AWS/EC2CapacityReservations",
        url=METRICS_PAGE,
        types=frozenset({CAPACITY_RESERVATION}),
        check=_watched,
        whole_program=True,
        good=[*reserved_nodes(), _alarm("AvailableInstanceCount")],
        bad=reserved_nodes(),
    ),
    Rule(
        id="nat-gateway-in-use",
        references=("R101",),
        family="cost",
        level="advisory",
        level_because="it only costs more than it should",
        sentence="NAT gateways stand in the one Availability Zone where all nodes are.",
        why="One gateway serves nodes of one zone; each further one is billed by the hour.",
        fix="remove the NAT gateways of other zones, or add nodes there",
        url=NAT_PAGE,
        types=frozenset({NAT_GATEWAY}),
        check=_nat_in_use,
        whole_program=True,
        good=_nodes_in_one_zone("us-west-2a"),
        bad=_nodes_in_one_zone("us-west-2a", "us-west-2b"),
    ),
    Rule(
        id="log-retention",
        references=(),
        family="cost",
        level="advisory",
        level_because="it only costs more than it should",
        sentence="A log group keeps its events for a limited number of days.",
        why="Without a retention CloudWatch keeps, and bills, them for ever.",
        fix="set retentionInDays",
        url=LOGS_PAGE,
        types=frozenset({LOG_GROUP}),
        check=_retention,
        good=[resource(LOG_GROUP, retentionInDays=30)],
        bad=[resource(LOG_GROUP)],
    ),
    Rule(
        id="image-expiry",
        references=(),
        family="cost",
        level="advisory",
        level_because="it only costs more than it should",
        sentence="An image repository has a lifecycle policy.",
        why="Training images of many gigabytes pile up, and each is billed by its size.",
        fix="add an aws.ecr.LifecyclePolicy that expires untagged images",
        url=IMAGES_PAGE,
        types=frozenset({ECR_REPOSITORY}),
        check=_image_expiry,
        whole_program=True,
        good=[resource(ECR_REPOSITORY, "images"), _POLICY],
        bad=[resource(ECR_REPOSITORY, "images")],
    ),
)

"""Ways to make a program cost more than it should."""

from tests.policy.mutations import Mutation, Rows
from tests.policy.name_edits import Change, both, in_stack, link, put, row_of


def _without(name: str, kind: str) -> Change:
    def change(rows: Rows) -> None:
        rows.remove(row_of(rows, name, kind))

    return change


RESERVED = "reserved-nodes"  # tests/policy/foreign: Auto Scaling and EKS with reservations
_ENVIRONMENT = ":ComputeEnvironment"

MUTATIONS: tuple[Mutation, ...] = (
    *in_stack(
        "batch-p4d",
        "stack-price-ceiling",
        (
            "a maximum with three zeros too many",
            put("batch-p4d", "computeResources.maxVcpus", 1_000_000, kind=_ENVIRONMENT),
        ),
    ),
    *in_stack(
        RESERVED,
        "stack-price-ceiling",
        ("a huge node group", put("g6e-nodes", "scalingConfig.maxSize", 100_000)),
        ("a huge reservation", put("held", "instanceCount", 10_000)),
    ),
    *in_stack(
        "batch-p4d",
        "node-ceiling",
        (
            "100000 vCPUs",
            put("batch-p4d", "computeResources.maxVcpus", 100_000, kind=_ENVIRONMENT),
        ),
        (
            "100000 vCPUs of whatever fits",
            both(
                put("batch-p4d", "computeResources.maxVcpus", 100_000, kind=_ENVIRONMENT),
                put("batch-p4d", "computeResources.instanceTypes", ["optimal"], kind=_ENVIRONMENT),
            ),
        ),
    ),
    *in_stack(
        RESERVED,
        "node-ceiling",
        ("a thousand nodes", put("g6e-nodes", "scalingConfig.maxSize", 1000)),
        ("a thousand in Auto Scaling", put("p4d-nodes", "maxSize", 1000)),
    ),
    *in_stack(
        "batch-p4d",
        "no-idle-accelerators",
        (
            "one node stays",
            put("batch-p4d", "computeResources.minVcpus", 96, kind=_ENVIRONMENT),
        ),
    ),
    *in_stack(
        RESERVED,
        "no-idle-accelerators",
        ("a minimum of one", put("g6e-nodes", "scalingConfig.minSize", 1)),
        ("two nodes at the start", put("g6e-nodes", "scalingConfig.desiredSize", 2)),
    ),
    *in_stack(
        RESERVED,
        "reservation-watched",
        ("no alarm", _without("held-idle", ":MetricAlarm")),
        ("an alarm on another metric", put("spare-idle", "metricName", "TotalInstanceCount")),
    ),
    *in_stack(
        RESERVED,
        "reservation-is-no-larger",
        ("more places", put("held", "instanceCount", 8)),
        ("fewer nodes", put("g6-nodes", "scalingConfig.maxSize", 1)),
    ),
    *in_stack(
        RESERVED,
        "nat-gateway-in-use",
        ("a gateway in another zone", link("nat", "subnetId", "private-c")),
        ("a subnet in another zone", put("public-b", "availabilityZone", "us-west-2a")),
    ),
    *in_stack(
        "batch-p4d",
        "log-retention",
        ("no retention", put("batch-jobs", "retentionInDays", None, kind=":LogGroup")),
        ("zero days", put("batch-jobs", "retentionInDays", 0, kind=":LogGroup")),
    ),
    *in_stack(
        "batch-p4d",
        "image-expiry",
        ("no lifecycle policy", _without("batch-images", ":LifecyclePolicy")),
        (
            "a policy of another repository",
            both(
                put("batch-images", "repository", "other", kind=":LifecyclePolicy"),
                link("batch-images", "repository", "batch-jobs", kind=":LifecyclePolicy"),
            ),
        ),
    ),
)

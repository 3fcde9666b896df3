"""Ways to break placement, capacity reservations, Capacity Blocks and purchase options."""

from tests.policy.mutations import Mutation, Rows, edit_json
from tests.policy.name_edits import Change, both, in_stack, link, put, retype, row_of

RESERVED = "reserved-nodes"  # tests/policy/foreign: Auto Scaling and EKS with reservations

_GROUP_ARN = "arn:aws:resource-groups:us-west-2:123456789012:group/other"
_TARGET = "capacityReservationSpecification.capacityReservationTarget"
_PREFERENCE = "capacityReservationSpecification.capacityReservationPreference"


def _job_nodes(nodes: int) -> Change:
    def change(rows: Rows) -> None:
        job = row_of(rows, "batch-p4d_train")
        edit_json(job, "nodeProperties", lambda value: value.update(numNodes=nodes))

    return change


_TWO_SUBNETS = ["subnet-0000000000000000b", "subnet-0000000000000000c"]
_ENVIRONMENT = ":ComputeEnvironment"
_SPOT_SHARE = put(
    "p4d-nodes",
    "mixedInstancesPolicy",
    {"instancesDistribution": {"onDemandPercentageAboveBaseCapacity": 50}},
)

MUTATIONS: tuple[Mutation, ...] = (
    *in_stack(
        RESERVED,
        "efa-one-zone",
        (
            "an Auto Scaling group over two zones",
            both(
                put("p4d-nodes", "vpcZoneIdentifiers", _TWO_SUBNETS),
                link("p4d-nodes", "vpcZoneIdentifiers", "private-b", "private-c"),
            ),
        ),
        (
            "a node group over two zones",
            both(
                put("g6e-nodes", "subnetIds", _TWO_SUBNETS),
                link("g6e-nodes", "subnetIds", "private-b", "private-c"),
            ),
        ),
        (
            "zones by name",
            both(
                put("p4d-nodes", "vpcZoneIdentifiers", None),
                put("p4d-nodes", "availabilityZones", ["us-west-2b", "us-west-2c"]),
            ),
        ),
    ),
    *in_stack(
        RESERVED,
        "efa-cluster-strategy",
        ("a spread group in the template", put("close", "strategy", "spread")),
        ("a partition group in the launcher", put("together", "strategy", "partition")),
    ),
    *in_stack(
        RESERVED,
        "placement-group-takes-type",
        ("a burstable node group", put("g6e-nodes", "instanceTypes", ["t3.large"])),
        ("a burstable template", put("p4d", "instanceType", "t3.large")),
    ),
    *in_stack(
        RESERVED,
        "efa-placement-group",
        ("a template without its group", put("g6e", "placement", None)),
        (
            "neither reservation nor group",
            both(
                put("p4d", "capacityReservationSpecification", None),
                put("p4d-nodes", "placementGroup", None),
            ),
        ),
    ),
    *in_stack(
        RESERVED,
        "cluster-group-one-type",
        (
            "two types in a node group",
            put("g6e-nodes", "instanceTypes", ["g6e.12xlarge", "g6e.24xlarge"]),
        ),
        (
            "two overrides in an Auto Scaling group",
            put(
                "p4d-nodes",
                "mixedInstancesPolicy.launchTemplate.overrides",
                [{"instanceType": "p4d.24xlarge"}, {"instanceType": "p4de.24xlarge"}],
            ),
        ),
    ),
    *in_stack(
        RESERVED,
        "capacity-block-target",
        ("no specification", put("p5", "capacityReservationSpecification", None)),
        ("an empty target", put("p5", _TARGET, {})),
    ),
    *in_stack(
        RESERVED,
        "capacity-block-market-type",
        (
            "a block of the program, launched on demand",
            retype("held", "aws:ec2/capacityBlockReservation:CapacityBlockReservation"),
        ),
        (
            "a block of the program, launched as Spot",
            both(
                retype("held", "aws:ec2/capacityBlockReservation:CapacityBlockReservation"),
                put("p4d", "instanceMarketOptions", {"marketType": "spot"}),
            ),
        ),
    ),
    *in_stack(
        RESERVED,
        "on-demand-reservation-market-type",
        ("a reservation by id", put("p4d", "instanceMarketOptions.marketType", "capacity-block")),
        (
            "a reservation in a group",
            put("g6", "instanceMarketOptions.marketType", "capacity-block"),
        ),
    ),
    *in_stack(
        RESERVED,
        "capacity-block-template-placement",
        ("a group by name", put("p5", "placement.groupName", "training")),
        ("a group by id", put("p5", "placement.groupId", "pg-0123456789abcdef0")),
    ),
    *in_stack(
        RESERVED,
        "capacity-block-launcher-placement",
        ("an Auto Scaling group names a group", put("p5-nodes", "placementGroup", "training")),
        (
            "a node group on a block, its template with a group",
            put("g6e-nodes", "capacityType", "CAPACITY_BLOCK"),
        ),
    ),
    *in_stack(
        RESERVED,
        "capacity-block-scaling",
        ("the latest version", put("p5-nodes", "launchTemplate.version", "$Latest")),
        ("a warm pool", put("p5-nodes", "warmPool", {"minSize": 1})),
        (
            "a mixed instances policy",
            put("p5-nodes", "mixedInstancesPolicy.instancesDistribution", {}),
        ),
    ),
    *in_stack(
        RESERVED,
        "capacity-block-purchase",
        (
            "a reservation becomes a purchase",
            retype("held", "aws:ec2/capacityBlockReservation:CapacityBlockReservation"),
        ),
        (
            "a pool of purchases",
            retype("spare", "aws:ec2/capacityBlockReservation:CapacityBlockReservation"),
        ),
    ),
    *in_stack(
        RESERVED,
        "reservation-target-is-one",
        (
            "a group beside the id",
            put("p4d", f"{_TARGET}.capacityReservationResourceGroupArn", _GROUP_ARN),
        ),
        (
            "an id beside the group",
            put("g6", f"{_TARGET}.capacityReservationId", "cr-0123456789abcdef1"),
        ),
    ),
    *in_stack(
        RESERVED,
        "reservation-target-is-named",
        ("an empty target", put("p4d", _TARGET, {})),
        ("an empty id", put("p4d", f"{_TARGET}.capacityReservationId", "")),
        ("an empty specification", put("p4d", "capacityReservationSpecification", {})),
    ),
    *in_stack(
        RESERVED,
        "reservation-group-only",
        ("no preference in a template", put("g6", _PREFERENCE, None)),
        (
            "no preference in an Auto Scaling group",
            put(
                "p4d-nodes",
                f"{_TARGET}.capacityReservationResourceGroupArns",
                [_GROUP_ARN],
            ),
        ),
    ),
    *in_stack(
        RESERVED,
        "reservation-preference-fits-target",
        ("open beside an id", put("p4d", _PREFERENCE, "open")),
        ("none beside a group", put("g6", _PREFERENCE, "none")),
    ),
    *in_stack(
        "batch-p4d-odcr",
        "reservation-end-is-consistent",
        ("limited without a date", put("placement-p4d-held", "endDate", None, kind="Reservation")),
        (
            "unlimited with a date",
            put("placement-p4d-held", "endDateType", "unlimited", kind="Reservation"),
        ),
    ),
    *in_stack(
        RESERVED,
        "reservation-ends",
        ("unlimited", put("held", "endDateType", "unlimited")),
        ("left at the default", put("spare", "endDateType", None)),
    ),
    *in_stack(
        RESERVED,
        "reservation-group-is-pool",
        (
            "a group of any resources",
            put("pool", "configurations", [{"type": "AWS::ResourceGroups::Generic"}]),
        ),
        (
            "a misspelt type",
            put("pool", "configurations", [{"type": "AWS::EC2::CapacityReserationPool"}]),
        ),
    ),
    *in_stack(
        "batch-p4d-odcr",
        "reservation-placement-group",
        (
            "reserved outside the group",
            put("placement-p4d-held", "placementGroupArn", None, kind="Reservation"),
        ),
        (
            "launched outside the group",
            put("batch-p4d", "computeResources.placementGroup", None, kind=_ENVIRONMENT),
        ),
    ),
    *in_stack(
        RESERVED,
        "reservation-placement-group",
        (
            "launched into another group",
            both(
                put("p4d-nodes", "placementGroup", "close-1a2b3c4"),
                link("p4d-nodes", "placementGroup", "close"),
            ),
        ),
    ),
    *in_stack(
        RESERVED,
        "older-reservation-new-placement-group",
        (
            "an existing reservation in the template",
            put("g6e", f"{_TARGET}.capacityReservationId", "cr-0123456789abcdef0"),
        ),
        (
            "an existing group of reservations",
            put("g6e", f"{_TARGET}.capacityReservationResourceGroupArn", _GROUP_ARN),
        ),
    ),
    *in_stack(
        RESERVED,
        "reservation-instance-type",
        ("another type in the template", put("p4d", "instanceType", "p4de.24xlarge")),
        ("one more type", put("g6-nodes", "instanceTypes", ["g6.12xlarge", "g6.24xlarge"])),
    ),
    *in_stack(
        "batch-p4d-odcr",
        "reservation-instance-type",
        (
            "another type is reserved",
            put("placement-p4d-held", "instanceType", "p4de.24xlarge", kind="Reservation"),
        ),
    ),
    *in_stack(
        RESERVED,
        "reservation-zone",
        ("reserved elsewhere", put("held", "availabilityZone", "us-west-2c")),
        ("launched elsewhere", link("g6-nodes", "subnetIds", "private-c")),
    ),
    *in_stack(
        RESERVED,
        "reservation-platform-and-tenancy",
        ("Windows is reserved", put("spare", "instancePlatform", "Windows")),
        ("dedicated instances are launched", put("p4d", "placement.tenancy", "dedicated")),
    ),
    *in_stack(
        "batch-p4d-odcr",
        "reservation-holds-job",
        (
            "fewer places",
            put("placement-p4d-held", "instanceCount", 3, kind="Reservation"),
        ),
        ("a larger job", _job_nodes(5)),
    ),
    *in_stack(
        RESERVED,
        "reservation-holds-running-nodes",
        ("a large minimum", put("p4d-nodes", "minSize", 5)),
        ("a node group with a large minimum", put("g6-nodes", "scalingConfig.minSize", 3)),
    ),
    *in_stack(
        RESERVED,
        "reservation-holds-all-nodes",
        ("a large maximum", put("p4d-nodes", "maxSize", 8)),
        ("few places", put("spare", "instanceCount", 1)),
    ),
    *in_stack(
        RESERVED,
        "purchase-option-offered",
        ("a type of UltraServers on demand", put("p4d", "instanceType", "p6e-gb200.36xlarge")),
        ("a block of a type without", put("p5", "instanceType", "g6.12xlarge")),
        (
            "Spot nodes of an HPC type",
            both(
                put("g6e-nodes", "capacityType", "SPOT"),
                put("g6e-nodes", "instanceTypes", ["hpc7a.96xlarge"]),
            ),
        ),
    ),
    *in_stack(
        RESERVED,
        "spot-template-without-reservation",
        ("Spot with an id", put("p4d", "instanceMarketOptions.marketType", "spot")),
        ("Spot with a group", put("g6", "instanceMarketOptions.marketType", "spot")),
    ),
    *in_stack(
        RESERVED,
        "spot-launcher-without-reservation",
        ("a Spot node group", put("g6-nodes", "capacityType", "SPOT")),
        ("an Auto Scaling group with a share of Spot", _SPOT_SHARE),
    ),
    *in_stack(
        "batch-p5en-odcr-group",
        "spot-launcher-without-reservation",
        (
            "a Spot compute environment",
            put("batch-p5en", "computeResources.type", "SPOT", kind=_ENVIRONMENT),
        ),
    ),
    *in_stack(
        RESERVED,
        "spot-efa-nodes",
        ("a Spot node group", put("g6e-nodes", "capacityType", "SPOT")),
        ("an Auto Scaling group with a share of Spot", _SPOT_SHARE),
    ),
)

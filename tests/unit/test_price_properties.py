"""What holds for the price of any rows, also those that no provider would accept."""

import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.prices import BILLED_WITHOUT_A_PRICE, PRICED, price_of

TYPES = [
    *PRICED,
    min(BILLED_WITHOUT_A_PRICE),
    "aws:ec2/launchTemplate:LaunchTemplate",
    "aws:resourcegroups/group:Group",
    "aws:resourcegroups/resource:Resource",
    "not a type",
    7,
]
KEYS = re.findall(
    r"\w+",
    """
    type computeResources instanceTypes instanceType minVcpus maxVcpus launchTemplate minSize ebs
    maxSize scalingConfig capacityType mixedInstancesPolicy overrides instancesDistribution size
    onDemandPercentageAboveBaseCapacity weightedCapacity blockDeviceMappings volumeSize iops
    volumeType throughput rootBlockDevice ebsBlockDevices networkInterfaces subnetIds placement
    associatePublicIpAddress instanceMarketOptions marketType capacityReservationSpecification
    capacityReservationTarget capacityReservationId capacityReservationResourceGroupArn tenancy
    instanceCount vpcEndpointType storageCapacity deploymentType perUnitStorageThroughput period
    metricQueries metric provisionedThroughputInMibps
    """,
)
WORDS = ["gp3", "EC2", "SPOT", "Interface", "g4dn.8xlarge", "p5", "SSD", "12", "1e400", "nan", "-3"]
URNS = st.sampled_from([f"urn:{i}" for i in range(6)])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(WORDS), st.text()
)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=25,
)
COUNTS = st.integers(-1, 200) | SCALARS
INSTANCE_TYPES = st.lists(st.sampled_from(["g4dn.8xlarge", "m5.large", "p5"]), max_size=2)
FLEETS = st.fixed_dictionaries(
    {
        "instanceTypes": INSTANCE_TYPES,
        "instanceType": st.just("m5.large"),
        "instanceCount": COUNTS,
        "minSize": COUNTS,
        "maxSize": COUNTS,
        "scalingConfig": st.fixed_dictionaries({"minSize": COUNTS, "maxSize": COUNTS}),
        "computeResources": st.fixed_dictionaries(
            {"instanceTypes": INSTANCE_TYPES, "minVcpus": COUNTS, "maxVcpus": COUNTS}
        ),
    },
    optional={key: TREES for key in KEYS if key.startswith(("capacity", "block", "mixed"))},
)
ODD_ROWS = st.fixed_dictionaries(
    {},
    optional={
        "urn": URNS | SCALARS,
        "type": st.sampled_from(TYPES),
        "name": SCALARS,
        "inputs": FLEETS | st.dictionaries(st.sampled_from(KEYS), TREES, max_size=10) | TREES,
        "dependencies": st.lists(URNS, max_size=3) | TREES,
        "propertyDependencies": st.dictionaries(
            st.sampled_from(KEYS), st.lists(URNS, max_size=2), max_size=3
        )
        | TREES,
    },
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ODD_ROWS, max_size=6))
def test_odd_rows_never_fail_and_totals_follow_from_their_lines(rows: list[dict[str, Any]]) -> None:
    result = price_of(rows, region="us-east-1")
    json.dumps(result.to_json(), allow_nan=False)
    idle = [line.idle_per_hour for line in result.lines]
    full = [line.full_per_hour for line in result.lines]
    assert (result.idle_per_hour is None) == (None in idle)
    assert (result.full_per_hour is None) == (None in full)
    for at_idle, at_full in zip(idle, full, strict=True):
        assert at_idle is None or at_full is None or 0 <= at_idle <= at_full

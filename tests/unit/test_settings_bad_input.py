"""Bad input: each ends in one error with key, value, reason and what to do."""

import pytest

from tests.support.settings import GROUP, NETWORK, problem

P5_IN = (
    "\nbatch: {{groups: [{{name: p5, instanceType: p5.48xlarge, maxNodes: 2, placement: {0}}}]}}"
)


@pytest.mark.parametrize(
    ("text", "key", "reason", "fix"),
    [
        pytest.param(
            "batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2, efaa: true}]}",
            "trainyard:batch.groups[0].efaa",
            "is not a key",
            "write efa",
            id="unknown key",
        ),
        pytest.param(
            "batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2,"
            " jobs: [{name: train, imagge: x:1}]}]}",
            "trainyard:batch.groups[0].jobs[0].imagge",
            "is not a key",
            "write image",
            id="unknown key deep inside",
        ),
        pytest.param(
            GROUP + "netwrok: {}",
            "trainyard:netwrok",
            "is not a section",
            "write trainyard:network",
            id="unknown section",
        ),
        pytest.param(
            "batch: {groups: [{name: p5, instanceType: p5.48xlrage, maxNodes: 2}]}",
            "trainyard:batch.groups[0].instanceType",
            "is not an instance type",
            "p5.48xlarge",
            id="unknown instance type",
        ),
        pytest.param(
            "batch: {groups: [{name: g5, instanceType: g5.xlarge, maxNodes: 2}]}",
            "trainyard:batch.groups[0].instanceType",
            "has no EFA",
            "efa: false",
            id="a type without EFA where EFA is asked for",
        ),
        pytest.param(
            "placement: {week: {capacityBlock: cr-0123456789abcdef0}}"
            "\nbatch: {groups: [{name: g6, instanceType: g6.12xlarge, maxNodes: 2,"
            " placement: week}]}",
            "trainyard:batch.groups[0].instanceType",
            "is not sold as capacity-block",
            "choose another",
            id="R46 a type that the purchase option does not have",
        ),
        pytest.param(
            "placement: {x: {reservation: cr-0123456789abcdef0, reservationGroup:"
            ' "arn:aws:resource-groups:us-west-2:123456789012:group/pool"}}' + P5_IN.format("x"),
            "trainyard:placement.x",
            "has reservation and reservationGroup",
            "keep exactly one",
            id="R33 reservation id and group",
        ),
        pytest.param(
            "placement: {x: {}}" + P5_IN.format("x"),
            "trainyard:placement.x",
            "does not say where instances come from",
            "keep exactly one of onDemand",
            id="R33 no target at all",
        ),
        pytest.param(
            "placement: {x: {reservation: {}}}" + P5_IN.format("x"),
            "trainyard:placement.x.reservation",
            "does not say which reservation",
            "give an id",
            id="R33 an empty target",
        ),
        pytest.param(
            'placement: {x: {reservation: ""}}' + P5_IN.format("x"),
            "trainyard:placement.x.reservation",
            "is not the id of a reservation",
            "cr-",
            id="R33 an empty id",
        ),
        pytest.param(
            "placement: {x: {capacityBlock: cr-0123456789abcdef0, placementGroup: true}}"
            + P5_IN.format("x"),
            "trainyard:placement.x",
            "cannot be launched into a placement group",
            "remove placementGroup",
            id="R32 Capacity Block with a placement group",
        ),
        pytest.param(
            "placement: {x: {capacityBlock: cr-0123456789abcdef0, placementGroup: mine}}"
            + P5_IN.format("x"),
            "trainyard:placement.x",
            "cannot be launched into a placement group",
            "remove placementGroup",
            id="R32 Capacity Block with a named placement group",
        ),
        pytest.param(
            "placement: {x: {capacityBlock: {}}}" + P5_IN.format("x"),
            "trainyard:placement.x.capacityBlock",
            "does not say which block",
            "give its id",
            id="R30 Capacity Block without an id",
        ),
        pytest.param(
            "placement: {x: {spot: {}}}" + P5_IN.format("x"),
            "trainyard:batch.groups[0].placement",
            "is Spot",
            "use on demand",
            id="R50 Spot with multi-node jobs",
        ),
        pytest.param(
            "placement: {x: {reservation: cr-0123456789abcdef0, placementGroup: true}}"
            + P5_IN.format("x"),
            "trainyard:placement.x",
            "cannot be the one that the reservation was made in",
            "NAME",
            id="R34 placementGroup true beside a reservation",
        ),
        pytest.param(
            "placement: {x: {reservationGroup: {reservations: [cr-0123456789abcdef0]},"
            " placementGroup: true}}" + P5_IN.format("x"),
            "trainyard:placement.x",
            "cannot be the one that the reservation was made in",
            "NAME",
            id="R35 placementGroup true beside a reservation group",
        ),
        pytest.param(
            "batch: {groups: [{name: p5, instanceType: p5.48xlarge, maxNodes: 2,"
            " availabilityZone: [us-west-2a, us-west-2b]}]}",
            "trainyard:batch.groups[0].availabilityZone",
            "EFA traffic cannot leave a zone",
            "name one zone",
            id="R17 several zones for one EFA group",
        ),
        pytest.param(
            "batch: {groups: [{name: p4d, instanceType: p4d.24xlarge, maxNodes: 2,"
            " jobs: [{name: train, nodes: 3}]}]}",
            "trainyard:batch.groups[0].jobs[0].nodes",
            "more than the group's maxNodes, which is 2",
            "raise maxNodes",
            id="R53 more nodes than the group has",
        ),
        pytest.param(
            "batch: {groups: [{name: g5, instanceType: g5.8xlarge, maxNodes: 2,"
            " threadsPerCore: 1}]}",
            "trainyard:batch.groups[0].threadsPerCore",
            "is not possible on g5.8xlarge",
            "remove it",
            id="R77 one thread where the type takes no CPU options",
        ),
        pytest.param(
            "batch: {groups: [{name: hpc, instanceType: c6gn.16xlarge, maxNodes: 2,"
            " threadsPerCore: 1, jobs: [{name: a, image: a:1}]}]}",
            "trainyard:batch.groups[0].threadsPerCore",
            "is how this type runs anyway",
            "remove it",
            id="R77 one thread where the type has one",
        ),
        pytest.param(
            "batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 0}]}",
            "trainyard:batch.groups[0].maxNodes",
            "is less than 1",
            "write 1 or more",
            id="no nodes",
        ),
        pytest.param(
            'batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: "2"}]}',
            "trainyard:batch.groups[0].maxNodes",
            "is not a whole number",
            "without quotation marks",
            id="a number in quotation marks",
        ),
        pytest.param(
            "batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2,"
            " placement: x}]}",
            "trainyard:batch.groups[0].placement",
            "is not in trainyard:placement",
            "add it",
            id="a placement that is not there",
        ),
        pytest.param(
            "placement: {x: {reserve: {instanceType: p5.48xlarge, count: 2}}}" + P5_IN.format("x"),
            "trainyard:placement.x.reserve",
            "has no end",
            "unlimited: true",
            id="R40 a reservation without an end",
        ),
        pytest.param(
            "placement: {x: {reserve: {instanceType: p5.48xlarge, count: 1, unlimited: true}}}"
            + P5_IN.format("x"),
            "trainyard:batch.groups[0].maxNodes",
            "more than the 1 instances that x reserves",
            "lower maxNodes to 1",
            id="R38 more nodes than the reservation has",
        ),
        pytest.param(
            "placement: {x: {reserve: {instanceType: p4d.24xlarge, count: 2, unlimited: true}}}"
            + P5_IN.format("x"),
            "trainyard:batch.groups[0].instanceType",
            "is not what x reserves",
            "write p4d.24xlarge",
            id="R37 another type than the reservation's",
        ),
        pytest.param(
            "placement: {x: {reservation: cr-0123456789abcdef0, availabilityZone: us-west-2b}}"
            + P5_IN.format("x"),
            "trainyard:batch.groups[0].availabilityZone",
            "has no private subnet",
            "choose one of us-west-2a",
            id="R37 a reservation in a zone without a subnet",
        ),
        pytest.param(
            "placement: {x: {capacityBlock: {id: cr-0123456789abcdef0,"
            ' start: "2026-12-01T11:30:00Z", end: "2026-12-02T11:30:00Z"}}}'
            "\nbatch: {groups: [{name: p5, instanceType: p5.48xlarge, maxNodes: 2, placement: x,"
            " jobs: [{name: train, timeoutMinutes: 1401}]}]}",
            "trainyard:batch.groups[0].jobs[0].timeoutMinutes",
            "longer than the 1400 minutes",
            "write 1400 or less",
            id="R42 a job that outlives its Capacity Block",
        ),
        pytest.param(
            'batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 2,'
            ' jobs: [{name: train, environment: {PATH: "$PATH:/opt"}}]}]}',
            "trainyard:batch.groups[0].jobs[0].environment.PATH",
            "expands no variables",
            "write the whole value",
            id="R24 an environment value that looks expanded",
        ),
        pytest.param(
            "batch: {groups: [{name: hpc, instanceType: hpc7g.16xlarge, maxNodes: 2,"
            " jobs: [{name: a, image: a:1}]}]}",
            "trainyard:batch.groups[0].instanceType",
            "is not offered in us-west-2",
            "choose another region",
            id="R18 a type that the region does not have",
        ),
        pytest.param(
            "batch: {groups: [{name: c7i, instanceType: c7i.48xlarge, maxNodes: 2,"
            " jobs: [{name: a}]}]}",
            "trainyard:batch.groups[0].jobs[0].image",
            "there is no default image",
            "name an image",
            id="no image for CPU jobs",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_named_with_reason_and_fix(text: str, key: str, reason: str, fix: str) -> None:
    found = problem(NETWORK, text)
    assert found.key == key
    assert reason in found.reason
    assert fix in found.fix


IN_BLOCK = "\nbatch: {groups: [{name: p5, instanceType: p5.48xlarge, maxNodes: 2, placement: x}]}"


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        pytest.param(
            "placement: {x: {capacityBlock: {id: cr-0123456789abcdef0,"
            ' start: "2026-12-01T11:30:00Z", end: "2026-12-01T12:00:00Z"}}}' + IN_BLOCK,
            "trainyard:placement.x.capacityBlock",
            "leaves no time for a job",
            id="a block that is over before a job could run",
        ),
        pytest.param(
            "placement: {x: {capacityBlock: {id: cr-0123456789abcdef0, start: 12}}}" + IN_BLOCK,
            "trainyard:placement.x.capacityBlock.start",
            "is not a date",
            id="a number for a date",
        ),
        pytest.param(
            "placement: {x: {capacityBlock: {resourceGroup:"
            ' "arn:aws:resource-groups:us-west-2:123456789012:group/b"}}}'
            + IN_BLOCK.replace("p5.48xlarge", "p6e-gb200.36xlarge").replace(
                "placement: x", "placement: x, jobs: [{name: a, image: 'a:1'}]"
            ),
            "trainyard:batch.groups[0].instanceType",
            "is sold in UltraServers",
            id="an UltraServer's type in a block that is none",
        ),
        pytest.param(
            "placement: {x: {reservationGroup:"
            ' "arn:aws:resource-groups:eu-west-1:123456789012:group/b"}}' + IN_BLOCK,
            "trainyard:placement.x.reservationGroup",
            "is of the region eu-west-1",
            id="an ARN of another region",
        ),
        pytest.param(
            "placement: {x: {reservation: {stack: a/b/c, name: d}, placementGroup: false}}"
            + IN_BLOCK,
            "trainyard:placement.x",
            "comes with its group",
            id="R35 another stack's reservation outside its placement group",
        ),
        pytest.param(
            "placement: {x: {onDemand: {}, placementGroup: 5}}" + IN_BLOCK,
            "trainyard:placement.x.placementGroup",
            "is no placement group",
            id="a placement group that is a number",
        ),
        pytest.param(
            "common: {tags: {Name: mine}}",
            "trainyard:common.tags",
            "sets itself",
            id="a tag that the stack sets",
        ),
        pytest.param(
            "batch: {groups: [{name: p3, instanceType: p3dn.24xlarge, maxNodes: 1,"
            " jobs: [{name: a, image: 'a:1'}]}]}",
            "trainyard:batch.groups[0].instanceType",
            "has no machine image from ECS",
            id="R61 a type without an ECS image",
        ),
        pytest.param(
            "batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 1,"
            f" jobs: [{{name: a, command: ['{'x' * 25_000}']}}]}}]}}",
            "trainyard:batch.groups[0].jobs[0]",
            "Batch takes at most 24576",
            id="a job definition that is too large",
        ),
        pytest.param(
            "batch: {groups: [{name: g4dn, instanceType: g4dn.8xlarge, maxNodes: 1,"
            " fairShare: {shares: {team-a: 1}}}]}",
            "trainyard:batch.groups[0].fairShare.shares.team-a",
            "is not a share identifier",
            id="R79 a share that Batch does not take",
        ),
    ],
)
def test_more_bad_input_is_named_with_its_reason(text: str, key: str, reason: str) -> None:
    found = problem(NETWORK, text)
    assert found.key == key
    assert reason in found.reason


def test_a_reservation_that_the_stack_makes_needs_a_zone() -> None:
    found = problem(
        "placement: {x: {reserve: {instanceType: p5.48xlarge, count: 1, unlimited: true}}}"
    )
    assert found.key == "trainyard:placement.x.availabilityZone"

"""Reservations of a program against what it launches into them: an instance goes in only if it
matches in placement group, type, Availability Zone, platform and tenancy.
"""

from collections.abc import Iterator

from fabric.rows import Row, at, inputs, mappings, name, text
from policy.example_programs import reserved_nodes
from policy.examples import resource
from policy.fleets import FLEETS, Fleet, fleet_of, known
from policy.rule import Finding, Rule, Subject
from policy.tokens import BATCH_ENVIRONMENT, LAUNCH_TEMPLATE, NODE_GROUP, PLACEMENT_GROUP
from policy.values import is_unknown

PLACEMENT_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-cpg.html"
USE_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-using.html"


def _in_its_group(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    made = fleet.reservations if fleet is not None else []
    if fleet is None or not made:
        return
    wrong = [why for one in made if (why := _misplaced(fleet, one))]
    if len(wrong) == len(made):
        placement = fleet.placement
        yield Finding(
            path=placement.path if placement else fleet.template_path,
            value=placement.value if placement else None,
            message=wrong[0],
        )


def _misplaced(fleet: Fleet, reservation: Row) -> str:
    """Why a fleet cannot use a reservation's places, as to placement groups; empty if it can."""
    arn = inputs(reservation).get("placementGroupArn")
    groups = fleet.program.linked(reservation, "placementGroupArn", PLACEMENT_GROUP) if arn else []
    own, made = fleet.placement, name(reservation)
    if not arn:
        clusters = own is not None and own.strategy in ("", "cluster")
        return f"the reservation {made} was made in no placement group" if clusters else ""
    if own is None:
        return f"the reservation {made} was made in a placement group" if fleet.is_unplaced else ""
    if groups and own.group is not None:
        differs = own.group not in groups
    else:
        by_name = text(arn) and own.value and own.path.rpartition(".")[2] != "groupId"
        differs = bool(by_name) and text(arn).rpartition("/")[2] != own.value
    return f"the reservation {made} was made in another placement group" if differs else ""


def _made_before(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    target = fleet.target if fleet is not None else None
    placement = fleet.placement if fleet is not None and fleet.market == "on-demand" else None
    if target and target.names and not target.made_here and placement and placement.group:
        yield Finding(
            path=placement.path,
            value=placement.value,
            message=f"{target.names} cannot have been made in a group that this program makes",
        )


def _of_its_type(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    made = fleet.reservations if fleet is not None else []
    held = {text(inputs(one).get("instanceType")) for one in made}
    if fleet is None or not made or "" in held:
        return
    for path, launched in fleet.type_paths:
        # A name without a dot stands for many types, as Batch's `optimal` and its families do.
        if "." in launched and launched not in held:
            message = f"{launched} in a reservation of {', '.join(sorted(held))}"
            yield Finding(path=path, value=launched, message=message)


def _in_its_zone(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    made = fleet.reservations if fleet is not None else []
    held = {text(inputs(one).get("availabilityZone")) for one in made}
    if fleet is None or not made or "" in held or not fleet.zones.complete:
        return
    if held.isdisjoint(fleet.zones.names):
        yield Finding(
            path=fleet.zones.path,
            value=known(at(subject.row, fleet.zones.path)),
            message=f"launches in {', '.join(fleet.zones.names)}, but the reservation is in "
            f"{', '.join(sorted(held))}",
        )


def _of_its_kind(subject: Subject) -> Iterator[Finding]:
    fleet = fleet_of(subject.row, subject.program)
    made = fleet.reservations if fleet is not None else []
    if fleet is None or not made:
        return
    for key, default, launched in (
        ("instancePlatform", "", _platform(fleet)),
        ("tenancy", "default", _tenancy(fleet)),
    ):
        values = [inputs(one).get(key) for one in made]
        held = {text(value) or default for value in values}
        if launched and launched not in held and "" not in held and not is_unknown(values):
            yield Finding(
                path=fleet.template_path,
                value=launched,
                message=f"launches {launched} instances, but the reservation is for "
                f"{', '.join(sorted(held))}",
            )


def _platform(fleet: Fleet) -> str:
    """The platform of the AMI that EKS or Batch chooses; empty where somebody else does.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html
    """
    if fleet.kind == NODE_GROUP:
        image = text(inputs(fleet.row).get("amiType"))
    elif fleet.kind == BATCH_ENVIRONMENT and fleet.is_whole:
        chosen = mappings(at(fleet.row, "computeResources.ec2Configurations"))
        own = inputs(fleet.template or {}).get("imageId")
        images = [text(one.get("imageType")) for one in chosen if not one.get("imageIdOverride")]
        image = images[0] if len(images) == 1 and not own else ""
    else:
        return ""
    amazon_linux = image.removeprefix("ECS_").removeprefix("EKS_").startswith(("AL2", "BOTTLE"))
    return "Linux/UNIX" if amazon_linux else ""


def _tenancy(fleet: Fleet) -> str:
    """The tenancy that the launch names; the VPC's tenancy may decide where it names none."""
    template = text(at(fleet.template or {}, "placement.tenancy"))
    return text(inputs(fleet.row).get("tenancy")) or template


RULES = (
    Rule(
        id="reservation-placement-group",
        references=("R34", "R35"),
        family="capacity",
        level="mandatory",
        level_because="launches fail although reserved places are free",
        sentence="Instances launch into a reservation in the placement group it was made in.",
        why="A reservation serves one cluster placement group or none; other launches end with "
        "InsufficientInstanceCapacity.",
        fix="make the reservation in the group of the launch, by placementGroupArn, or use none",
        url=PLACEMENT_PAGE,
        types=FLEETS,
        check=_in_its_group,
        whole_program=True,
        good=reserved_nodes(within=True),
        bad=reserved_nodes(environment={"placementGroup": "training"}),
    ),
    Rule(
        id="older-reservation-new-placement-group",
        references=("R34", "E-09"),
        family="capacity",
        level="mandatory",
        level_because="launches fail although reserved places are free",
        sentence="A launch into a reservation that exists is in no placement group of the program.",
        why="The reservation was made before the group and cannot be moved into it, so launches "
        "end with InsufficientInstanceCapacity.",
        fix="remove the placement group, or name the one that the reservation was made in",
        url=PLACEMENT_PAGE,
        types=FLEETS,
        check=_made_before,
        whole_program=True,
        good=reserved_nodes(within=True),
        bad=[
            resource(PLACEMENT_GROUP, "group", strategy="cluster"),
            resource(
                LAUNCH_TEMPLATE,
                links={"placement": ["group"]},
                placement={"groupName": "group-1"},
                capacityReservationSpecification={
                    "capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}
                },
            ),
        ],
    ),
    Rule(
        id="reservation-instance-type",
        references=("R37",),
        family="capacity",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="Instances that target a reservation are of the type that it reserves.",
        why="An instance of another type matches no reserved place, so its launch fails.",
        fix="list the reserved instance type only",
        url=USE_PAGE,
        types=FLEETS,
        check=_of_its_type,
        whole_program=True,
        good=reserved_nodes(),
        bad=reserved_nodes(environment={"instanceTypes": ["p4de.24xlarge"]}),
    ),
    Rule(
        id="reservation-zone",
        references=("R37", "E-03"),
        family="capacity",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="Instances that target a reservation launch in its Availability Zone.",
        why="A reservation holds places in one zone; launches elsewhere find none.",
        fix="use a subnet in the reservation's Availability Zone",
        url=USE_PAGE,
        types=FLEETS,
        check=_in_its_zone,
        whole_program=True,
        good=reserved_nodes(),
        bad=reserved_nodes(reserved={"availabilityZone": "us-west-2c"}),
    ),
    Rule(
        id="reservation-platform-and-tenancy",
        references=("R37",),
        family="capacity",
        level="mandatory",
        level_because="the instance cannot launch",
        sentence="Instances that target a reservation have its platform and its tenancy.",
        why="An instance of another platform or tenancy matches no reserved place.",
        fix="make the reservation for the platform and the tenancy that are launched",
        url=USE_PAGE,
        types=FLEETS,
        check=_of_its_kind,
        whole_program=True,
        good=reserved_nodes(),
        bad=reserved_nodes(reserved={"instancePlatform": "Windows"}),
    ),
)

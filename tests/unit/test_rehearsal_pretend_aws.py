"""The pretend AWS: always the same answers, in AWS's forms, as the configuration describes them."""

import re
from typing import Any

import pytest

from rehearsal.aws_kinds import KINDS
from rehearsal.configuration import StackConfiguration
from rehearsal.pretend_aws import PretendAws, UnknownLookUpError


def aws(**sections: Any) -> PretendAws:
    values = {f"toy:{name}": value for name, value in sections.items()}
    return PretendAws(
        StackConfiguration(
            project="toy",
            stack="dev",
            values={"aws:region": "us-west-2", **values},
            secret_keys=frozenset(),
            problems=(),
        )
    )


EXISTING = {
    "vpcId": "vpc-0abc",
    "privateSubnetIds": ["subnet-0a", "subnet-0b"],
    "publicSubnetIds": ["subnet-0c"],
}


@pytest.mark.parametrize("type_", sorted(KINDS))
def test_every_kind_answers_the_same_twice_and_another_name_otherwise(type_: str) -> None:
    inputs = {"tags": {"a": "b"}}
    first, again, other = (
        aws().create(type_=type_, name=name, inputs=inputs) for name in ("one", "one", "two")
    )
    assert first == again
    assert first[0] != other[0]
    assert re.fullmatch(r"arn:aws:[a-z0-9-]+:([a-z0-9-]*):(\d{12})?:\S+", first[1]["arn"])
    assert "{" not in str(first[0]) + str([v for v in first[1].values() if isinstance(v, str)])


@pytest.mark.parametrize(
    ("type_", "form"),
    [
        ("aws:ec2/vpc:Vpc", r"vpc-0[0-9a-f]{16}"),
        ("aws:ec2/launchTemplate:LaunchTemplate", r"lt-0[0-9a-f]{16}"),
        ("aws:ec2/placementGroup:PlacementGroup", r"it-[0-9a-f]{7}"),
        ("aws:batch/jobQueue:JobQueue", r"arn:aws:batch:us-west-2:123456789012:job-queue/it-\w{7}"),
        ("aws:iam/role:Role", r"it-[0-9a-f]{7}"),
        ("random:index/randomId:RandomId", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ],
)
def test_ids_have_the_form_that_aws_gives_them(type_: str, form: str) -> None:
    assert re.fullmatch(form, aws().create(type_=type_, name="it", inputs={})[0])


@pytest.mark.parametrize(
    ("inputs", "name"), [({"name": "mine"}, "mine"), ({"namePrefix": "my-"}, r"my-[0-9a-f]{7}")]
)
def test_a_stated_name_is_kept(inputs: dict[str, str], name: str) -> None:
    _, outputs = aws().create(type_="aws:iam/role:Role", name="it", inputs=inputs)
    assert re.fullmatch(name, outputs["name"])
    assert outputs["arn"] == f"arn:aws:iam::123456789012:role/{outputs['name']}"


def test_a_type_that_the_table_lacks_gets_an_arn_from_its_token() -> None:
    _, outputs = aws().create(
        type_="aws:codebuild/reportGroup:ReportGroup", name="it", inputs={"name": "it"}
    )
    assert outputs["arn"] == "arn:aws:codebuild:us-west-2:123456789012:report-group/it"


@pytest.mark.parametrize(
    ("region", "partition"), [("us-gov-west-1", "aws-us-gov"), ("cn-north-1", "aws-cn")]
)
def test_the_partition_follows_from_the_region(region: str, partition: str) -> None:
    _, outputs = aws().create(type_="aws:sns/topic:Topic", name="t", inputs={}, region=region)
    assert outputs["arn"].startswith(f"arn:{partition}:sns:{region}:")
    answer = aws().look_up("aws:index/getPartition:getPartition", {}, region=region)
    assert answer["partition"] == partition


def subnet(pretend: PretendAws, id_: str) -> dict[str, Any]:
    return pretend.look_up("aws:ec2/getSubnet:getSubnet", {"id": id_})


def test_existing_subnets_have_the_stated_zones_and_consecutive_blocks() -> None:
    zones = ["us-west-2b", "us-west-2d"]
    pretend = aws(network={"existing": {**EXISTING, "availabilityZones": zones}})
    answers = [subnet(pretend, each) for each in ("subnet-0a", "subnet-0b", "subnet-0c")]
    assert [each["availabilityZone"] for each in answers] == ["us-west-2b", "us-west-2d", zones[0]]
    assert [each["cidrBlock"] for each in answers] == [
        "10.0.0.0/20",
        "10.0.16.0/20",
        "10.0.32.0/20",
    ]
    assert {each["vpcId"] for each in answers} == {"vpc-0abc"}
    assert answers[0]["availableIpAddressCount"] == 4091
    assert answers[0]["mapPublicIpOnLaunch"] is False


def test_without_stated_zones_subnets_are_where_the_groups_want_them() -> None:
    pretend = aws(
        network={"existing": EXISTING}, batch={"groups": [{"availabilityZone": "us-west-2c"}]}
    )
    assert subnet(pretend, "subnet-0b")["availabilityZone"] == "us-west-2c"


def test_without_any_zone_subnets_are_in_the_regions_first() -> None:
    assert subnet(aws(network={"existing": EXISTING}), "subnet-0a")["availabilityZone"] == (
        "us-west-2a"
    )


def test_another_stack_puts_out_the_network_that_the_configuration_expects() -> None:
    zones = ["us-west-2a", "us-west-2b"]
    pretend = aws(network={"stack": "base", "availabilityZones": zones})
    network = pretend.stack_outputs("base")["network"]
    assert list(network["privateSubnetIds"]) == zones
    assert network["vpcId"].startswith("vpc-0")
    assert pretend.stack_outputs("another") == {}


def test_another_stack_puts_out_the_reservations_that_the_configuration_names() -> None:
    held = {"reservation": {"stack": "base", "name": "held"}, "availabilityZone": "us-west-2b"}
    pretend = aws(placement={"ours": held, "cheap": {"spot": {}}})
    placement = pretend.stack_outputs("base")["placement"]
    assert list(placement) == ["held"]
    assert placement["held"]["availabilityZone"] == "us-west-2b"
    assert placement["held"]["capacityReservationId"].startswith("cr-0")


def test_the_default_group_of_a_vpc_is_the_same_however_it_is_asked_for() -> None:
    one = aws().look_up(
        "aws:ec2/getSecurityGroup:getSecurityGroup", {"vpcId": "vpc-1", "name": "default"}
    )
    filters = [
        {"name": "vpc-id", "values": ["vpc-1"]},
        {"name": "group-name", "values": ["default"]},
    ]
    many = aws().look_up("aws:ec2/getSecurityGroups:getSecurityGroups", {"filters": filters})
    assert many["ids"] == [one["id"]]


def test_a_parameter_of_an_image_is_an_image_id() -> None:
    answer = aws().look_up("aws:ssm/getParameter:getParameter", {"name": "/aws/service/x/image_id"})
    assert re.fullmatch(r"ami-0[0-9a-f]{16}", answer["value"])


def test_the_caller_is_the_example_account() -> None:
    answer = aws().look_up("aws:index/getCallerIdentity:getCallerIdentity", {})
    assert answer["accountId"] == "123456789012"


def test_an_unknown_look_up_is_refused_by_name() -> None:
    with pytest.raises(UnknownLookUpError, match="aws:ec2/getKeyPair:getKeyPair"):
        aws().look_up("aws:ec2/getKeyPair:getKeyPair", {})

"""`make prices`, on answers in the shape of the Price List API (tests/recorded/price_list)."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from fabric.price_lines import price_file
from fabric.refresh import prices as refresh

ANSWERS = Path(__file__).parents[1] / "recorded" / "price_list"
DAY = date(2026, 11, 21)
LINUX = {
    "operatingSystem": "Linux",
    "preInstalledSw": "NA",
    "tenancy": "Shared",
    "capacitystatus": "Used",
    "operation": "RunInstances",
}
UNIT_QUERIES = [
    ("AmazonCloudWatch", "Alarm"),
    ("AmazonEC2", "NAT Gateway"),
    ("AmazonEC2", "Provisioned Throughput"),
    ("AmazonEC2", "Storage"),
    ("AmazonEC2", "System Operation"),
    ("AmazonEFS", "Storage"),
    ("AmazonEKS", ""),
    ("AmazonFSx", "Storage"),
    ("AmazonVPC", ""),
    ("AmazonVPC", "VpcEndpoint"),
    ("awskms", ""),
]


def recorded(name: str) -> dict[str, Any]:
    answer = json.loads((ANSWERS / f"{name}.json").read_text())
    return {**answer, "PriceList": [json.dumps(product) for product in answer["PriceList"]]}


def question(service: str, **fields: str) -> dict[str, Any]:
    filters = [{"Type": "TERM_MATCH", "Field": k, "Value": v} for k, v in fields.items()]
    return {"ServiceCode": service, "Filters": filters}


class PriceList:
    """A pricing client that answers, in order, what was recorded, and refuses other questions."""

    def __init__(self) -> None:
        connect: Any = boto3.client  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        self.client: Any = connect(
            "pricing",
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        self.stub: Any = Stubber(self.client)

    def expect_on_demand(self) -> None:
        first = question("AmazonEC2", regionCode="us-west-2", **LINUX)
        self.stub.add_response("get_products", recorded("on-demand-1"), first)
        second = {**first, "NextToken": "page-2"}
        self.stub.add_response("get_products", recorded("on-demand-2"), second)

    def expect_units(self) -> None:
        for service, family in UNIT_QUERIES:
            fields = {"productFamily": family} if family else {}
            self.stub.add_response(
                "get_products",
                recorded(f"{service} {family}".strip().replace(" ", "-")),
                question(service, regionCode="us-west-2", **fields),
            )


@pytest.fixture
def price_list() -> Iterator[PriceList]:
    result = PriceList()
    with result.stub:
        yield result
    result.stub.assert_no_pending_responses()


@pytest.fixture
def on_demand(price_list: PriceList) -> dict[str, Any]:
    price_list.expect_on_demand()
    return refresh.on_demand_prices(price_list.client, region="us-west-2", day=DAY)


@pytest.fixture
def units(price_list: PriceList) -> dict[str, Any]:
    price_list.expect_units()
    return refresh.unit_prices(price_list.client, region="us-west-2", day=DAY)


def test_every_page_of_the_instances_is_read_and_bare_metal_too(on_demand: dict[str, Any]) -> None:
    assert on_demand["prices"] == {
        "c5n.metal": 3.888,
        "g4dn.8xlarge": 2.176,
        "p4d.24xlarge": 21.957642,
    }


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a1.medium", "not in the catalogue"),
        ("p5.48xlarge", "two prices"),
        ("p5e.48xlarge", "a Capacity Block"),
        ("dl1.24xlarge", "a price of zero"),
        ("p5en.48xlarge", "no terms"),
    ],
)
def test_an_instance_type_without_one_sure_price_is_left_out(
    on_demand: dict[str, Any], name: str, why: str
) -> None:
    assert name not in on_demand["prices"], why


def test_the_files_say_whose_prices_they_are_and_of_which_day(
    on_demand: dict[str, Any], price_list: PriceList
) -> None:
    assert (on_demand["region"], on_demand["date"]) == ("us-west-2", "2026-11-21")
    assert on_demand.keys() == price_file("on_demand_prices").keys()


@pytest.mark.parametrize(
    ("key", "usd"),
    [
        ("nat-gateway", 0.045),
        ("nat-gateway-data", 0.045),
        ("interface-endpoint", 0.01),
        ("interface-endpoint-data", 0.01),  # the first of three tiers
        ("public-ipv4", 0.005),
        ("eks-cluster", 0.1),
        ("ebs-gp3", 0.08),
        ("ebs-gp3-iops", 0.005),
        ("ebs-gp3-throughput", 0.04),  # 40.96 USD a GiB/s
        ("efs-standard", 0.3),
        ("fsx-lustre-scratch_2-ssd", 0.14),
        ("fsx-lustre-persistent_2-ssd-125", 0.145),
        ("cloudwatch-alarm", 0.1),
        ("cloudwatch-alarm-high-resolution", 0.3),
        ("kms-key", 1.0),
    ],
)
def test_a_unit_price_is_found_under_its_usage_type(
    units: dict[str, Any], key: str, usd: float
) -> None:
    price = units["prices"][key]
    assert price["usd"] == usd
    assert price["source"].startswith("AWS Price List API, ")


@pytest.mark.parametrize("key", ["eks-cluster-extended-support", "fsx-lustre-persistent_2-ssd-250"])
def test_a_unit_price_that_the_api_does_not_tell_is_null(units: dict[str, Any], key: str) -> None:
    assert (units["prices"][key]["usd"], units["prices"][key]["source"]) == (None, None)


@pytest.mark.parametrize("key", ["gateway-endpoint", "capacity-block"])
def test_what_the_price_list_never_holds_stays_as_it_is(units: dict[str, Any], key: str) -> None:
    assert units["prices"][key] == price_file("unit_prices")["prices"][key]


def test_every_unit_price_is_either_asked_for_or_never_in_the_price_list() -> None:
    keys = set(price_file("unit_prices")["prices"])
    assert keys - refresh.PRODUCTS.keys() == {"gateway-endpoint", "capacity-block"}
    assert refresh.PRODUCTS.keys() < keys


def test_the_command_writes_both_files_in_the_form_of_the_repository(
    price_list: PriceList,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    price_list.expect_on_demand()
    price_list.expect_units()

    def connect(service: str, **_: Any) -> Any:
        assert service == "pricing"
        return price_list.client

    monkeypatch.setattr(boto3, "client", connect)
    refresh.main(["--region", "us-west-2", "--directory", str(tmp_path)])
    for name in ("on_demand_prices", "unit_prices"):
        written = json.loads((tmp_path / f"{name}.json").read_text())
        assert written.keys() == price_file(name).keys()
        assert written["region"] == "us-west-2"
    assert "3 prices of us-west-2" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["on_demand_prices", "unit_prices"])
def test_the_files_are_written_as_the_command_would_write_them(name: str) -> None:
    file = Path(refresh.__file__).parents[1] / f"{name}.json"
    assert file.read_text() == json.dumps(price_file(name), indent=1) + "\n"

"""Write the price files of fabric from AWS's Price List API.

`python -m fabric.refresh.prices` asks with the caller's credentials, for which it needs
pricing:GetProducts, and rewrites `on_demand_prices.json` and `unit_prices.json` for one region.
What the API does not tell becomes null (a unit price) or is left out (an instance type); what it
never lists, such as a Capacity Block, stays as it is. Creation times come from no API:
`creation_times.json` is kept by hand.

The API: https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import boto3

from fabric.catalogue import instance_types
from fabric.price_lines import price_file

API_REGION = "us-east-1"  # https://docs.aws.amazon.com/general/latest/gr/billing.html

# The on-demand price of running Linux on machines that other accounts use, too.
ON_DEMAND_LINUX = {
    "operatingSystem": "Linux",
    "preInstalledSw": "NA",
    "tenancy": "Shared",
    "capacitystatus": "Used",
    "operation": "RunInstances",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """Where the price list holds a unit price.

    The usage type starts with a code of the region (`USW2-NatGateway-Hours`), in us-east-1 with
    none: https://docs.aws.amazon.com/cur/latest/userguide/product-columns.html
    """

    service: str
    usage_type: str
    family: str | None = None


PRODUCTS: Mapping[str, Product] = {
    "nat-gateway": Product(
        service="AmazonEC2", family="NAT Gateway", usage_type="NatGateway-Hours"
    ),
    "nat-gateway-data": Product(
        service="AmazonEC2", family="NAT Gateway", usage_type="NatGateway-Bytes"
    ),
    "interface-endpoint": Product(
        service="AmazonVPC", family="VpcEndpoint", usage_type="VpcEndpoint-Hours"
    ),
    "interface-endpoint-data": Product(
        service="AmazonVPC", family="VpcEndpoint", usage_type="VpcEndpoint-Bytes"
    ),
    "public-ipv4": Product(service="AmazonVPC", usage_type="PublicIPv4:InUseAddress"),
    "eks-cluster": Product(service="AmazonEKS", usage_type="AmazonEKS-Hours:perCluster"),
    "eks-cluster-extended-support": Product(
        service="AmazonEKS", usage_type="AmazonEKS-Hours:extendedSupport"
    ),
    "ebs-gp2": Product(service="AmazonEC2", family="Storage", usage_type="EBS:VolumeUsage.gp2"),
    "ebs-gp3": Product(service="AmazonEC2", family="Storage", usage_type="EBS:VolumeUsage.gp3"),
    "ebs-gp3-iops": Product(
        service="AmazonEC2", family="System Operation", usage_type="EBS:VolumeP-IOPS.gp3"
    ),
    "ebs-gp3-throughput": Product(
        service="AmazonEC2",
        family="Provisioned Throughput",
        usage_type="EBS:VolumeP-Throughput.gp3",
    ),
    "efs-standard": Product(
        service="AmazonEFS", family="Storage", usage_type="TimedStorage-ByteHrs"
    ),
    "fsx-lustre-scratch_2-ssd": Product(
        service="AmazonFSx", family="Storage", usage_type="Storage"
    ),
    **{
        f"fsx-lustre-persistent_2-ssd-{speed}": Product(
            service="AmazonFSx", family="Storage", usage_type=f"Storage.SSD.{speed}"
        )
        for speed in (125, 250, 500, 1000)
    },
    "cloudwatch-alarm": Product(
        service="AmazonCloudWatch", family="Alarm", usage_type="CW:AlarmMonitorUsage"
    ),
    "cloudwatch-alarm-high-resolution": Product(
        service="AmazonCloudWatch", family="Alarm", usage_type="CW:HighResAlarmMonitorUsage"
    ),
    "kms-key": Product(service="awskms", usage_type="KMS-Keys"),
}
"""The price list's product of every key of unit_prices.json that it holds."""

# The price list counts gp3 throughput in GiB/s, the volumes and unit_prices.json in MiB/s.
SHARE_OF_UNIT = {"GiBps-mo": 1 / 1024}


def on_demand_prices(client: Any, *, region: str, day: date) -> dict[str, Any]:
    """The content of on_demand_prices.json, for the catalogue's types and those of the file so far.

    Raises botocore.exceptions.ClientError or BotoCoreError where the API cannot be asked.
    """
    file = price_file("on_demand_prices")
    wanted = instance_types().keys() | file["prices"].keys()
    prices: dict[str, set[float]] = {}
    for product in _products(client, "AmazonEC2", {"regionCode": region, **ON_DEMAND_LINUX}):
        attributes = product["product"]["attributes"]
        name, price = attributes.get("instanceType", ""), _price(product)
        if name in wanted and price and _is_used_as(attributes, f"BoxUsage:{name}"):
            prices.setdefault(name, set()).add(price)
    return {
        **file,
        "region": region,
        "date": day.isoformat(),
        "source": "AWS Price List API, AmazonEC2",
        "prices": {name: min(prices[name]) for name in sorted(prices) if len(prices[name]) == 1},
    }


def unit_prices(client: Any, *, region: str, day: date) -> dict[str, Any]:
    """The content of unit_prices.json; a price that the API does not tell for sure is null.

    Raises botocore.exceptions.ClientError or BotoCoreError where the API cannot be asked.
    """
    found: dict[str, set[float]] = {key: set() for key in PRODUCTS}
    for service, family in sorted({(p.service, p.family or "") for p in PRODUCTS.values()}):
        filters = {"regionCode": region} | ({"productFamily": family} if family else {})
        for product in _products(client, service, filters):
            for key in _keys_of(product, service):
                price = _price(product)
                if price is not None:
                    found[key].add(price)
    file = price_file("unit_prices")
    prices = dict(file["prices"])
    for key, amounts in found.items():
        known = len(amounts) == 1
        source = f"AWS Price List API, {PRODUCTS[key].service} {PRODUCTS[key].usage_type}"
        told = {"usd": min(amounts) if known else None, "source": source if known else None}
        prices[key] = {**prices[key], **told}
    return {**file, "region": region, "date": day.isoformat(), "prices": prices}


def _products(client: Any, service: str, filters: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    pages = client.get_paginator("get_products").paginate(
        ServiceCode=service,
        Filters=[
            {"Type": "TERM_MATCH", "Field": field, "Value": value}
            for field, value in filters.items()
        ],
    )
    for page in pages:
        yield from map(json.loads, page["PriceList"])


def _keys_of(product: Mapping[str, Any], service: str) -> Iterator[str]:
    attributes = product["product"]["attributes"]
    # FSx sells its other file systems under the same usage types.
    if service == "AmazonFSx" and attributes.get("operation") != "CreateFileSystem:Lustre":
        return
    for key, wanted in PRODUCTS.items():
        if wanted.service == service and _is_used_as(attributes, wanted.usage_type):
            yield key


def _is_used_as(attributes: Mapping[str, str], usage_type: str) -> bool:
    """Whether a product has the usage type, after the code of whatever region."""
    own = attributes.get("usagetype", "")
    return own == usage_type or own.endswith(f"-{usage_type}")


def _price(product: Mapping[str, Any]) -> float | None:
    """The one on-demand price in USD, of the first tier where there are several."""
    dimensions = [
        dimension
        for term in product.get("terms", {}).get("OnDemand", {}).values()
        for dimension in term["priceDimensions"].values()
        if dimension.get("beginRange", "0") == "0" and "USD" in dimension["pricePerUnit"]
    ]
    if len(dimensions) != 1:
        return None
    usd = float(dimensions[0]["pricePerUnit"]["USD"]) * SHARE_OF_UNIT.get(dimensions[0]["unit"], 1)
    return round(usd, 10)  # as many decimals as the price list writes


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line that the module's docstring shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--region", default="us-east-1", help="whose prices (default: %(default)s)")
    parser.add_argument("--directory", type=Path, default=Path(__file__).parents[1])
    options = parser.parse_args(arguments)
    connect: Any = boto3.client  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    client = connect("pricing", region_name=API_REGION)
    day = datetime.now(UTC).date()
    for name, content in (
        ("on_demand_prices", on_demand_prices(client, region=options.region, day=day)),
        ("unit_prices", unit_prices(client, region=options.region, day=day)),
    ):
        path = options.directory / f"{name}.json"
        path.write_text(json.dumps(content, indent=1) + "\n")
        print(f"{path}: {len(content['prices'])} prices of {options.region}")


if __name__ == "__main__":
    main()

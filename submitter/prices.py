"""What an instance costs at present: its Spot price and its On-Demand price."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from submitter.facts import Price
from submitter.session import client_config

if TYPE_CHECKING:
    import boto3

_PRICING_REGION: Final = "us-east-1"
"""The price list of all regions is served in a few of them ("AWS Price List endpoints", AWS Billing user guide)."""

_ON_DEMAND: Final = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}


def read_price(session: "boto3.Session", instance_type: str) -> Price:
    """Return what the type costs in the session's region; a price that cannot be read, or may not be, is None."""
    return Price(spot=_spot(session, instance_type), on_demand=_on_demand(session, instance_type))


def _spot(session: "boto3.Session", instance_type: Any) -> float | None:
    """Return the lowest Spot price of the zones."""
    try:
        history = session.client("ec2", config=client_config()).describe_spot_price_history(
            InstanceTypes=[instance_type], ProductDescriptions=["Linux/UNIX"], StartTime=datetime.now(UTC)
        )["SpotPriceHistory"]
    except (BotoCoreError, ClientError):
        return None
    return min((float(each["SpotPrice"]) for each in history), default=None)


def _on_demand(session: "boto3.Session", instance_type: str) -> float | None:
    wanted = {"instanceType": instance_type, "regionCode": session.region_name, **_ON_DEMAND}
    try:
        products = session.client("pricing", region_name=_PRICING_REGION, config=client_config()).get_products(
            ServiceCode="AmazonEC2",
            Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
        )["PriceList"]
    except (BotoCoreError, ClientError):
        return None
    prices = [
        float(dimension["pricePerUnit"]["USD"])
        for product in map(json.loads, products)
        for term in product["terms"]["OnDemand"].values()
        for dimension in term["priceDimensions"].values()
    ]
    return max(prices, default=None)

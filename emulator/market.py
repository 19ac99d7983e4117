"""What EC2 instances cost, as far as this account knows: an On-Demand price, and a Spot market for each type.

moto has one made-up Spot price and no price list, so both are served here, before it. A Spot environment whose bid is
below the Spot price gets no instance.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from emulator.calls import read_members

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from emulator.calls import Call
    from emulator.clock import Clock
    from emulator.regions import Regions

# US dollars an hour, Linux, us-east-1. Source: "Amazon EC2 On-Demand Pricing". Other types have no price here.
_ON_DEMAND = {
    "c5a.large": 0.077,
    "c6g.medium": 0.034,
    "g4dn.xlarge": 0.526,
    "g4dn.4xlarge": 1.204,
    "m6gd.medium": 0.0452,
    "r5ad.large": 0.131,
}
_USUAL_SPOT_SHARE = 0.4
_SPOT_ITEM = (
    "<item><instanceType>{type}</instanceType><productDescription>Linux/UNIX</productDescription>"
    "<spotPrice>{price:.6f}</spotPrice><timestamp>{at}</timestamp><availabilityZone>{region}a</availabilityZone></item>"
)


class Prices:
    """The prices of one region, in US dollars an hour."""

    def __init__(self) -> None:
        self._spot: dict[str, float] = {}

    def on_demand(self, instance_type: str) -> float | None:
        """The On-Demand price, or None when it is not known here."""
        return _ON_DEMAND.get(instance_type)

    def spot(self, instance_type: str) -> float | None:
        """The Spot price of the moment, or None when it is not known here."""
        usual = self.on_demand(instance_type)
        return self._spot.get(instance_type, None if usual is None else usual * _USUAL_SPOT_SHARE)

    def set_spot(self, instance_type: str, price: float) -> None:
        """Change the Spot price of a type."""
        self._spot[instance_type] = price

    def too_dear(self, instance_type: str, bid_percentage: int) -> bool:
        """Whether Spot costs more than this share of the On-Demand price; a type without a price costs nothing."""
        on_demand, spot = self.on_demand(instance_type), self.spot(instance_type)
        return on_demand is not None and spot is not None and spot > on_demand * bid_percentage / 100


class Market:
    """A WSGI application that serves what is asked about prices, and leaves the rest to another.

    Args:
        app: The other.
        regions: Whose prices are asked for.
        clock: The account's clock.
    """

    def __init__(self, app: "WSGIApplication", regions: "Regions", clock: "Clock") -> None:
        self._app, self._regions, self._clock = app, regions, clock

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Serve DescribeSpotPriceHistory of EC2 and GetProducts of the price list."""
        call: Call = environ["emulator.call"]
        members = read_members(environ, environ["wsgi.input"].getvalue())
        match call.service, call.operation:
            case "ec2", "DescribeSpotPriceHistory":
                types = [str(value) for name, value in sorted(members.items()) if name.startswith("InstanceType.")]
                kind, data = "text/xml", self._history(call.region, types)
            case "pricing", "GetProducts":
                kind, data = "application/x-amz-json-1.1", self._products(members)
            case _:
                return self._app(environ, start_response)
        start_response("200 OK", [("Content-Type", kind), ("Content-Length", str(len(data)))])
        return [data]

    def _history(self, region: str, types: list[str]) -> bytes:
        prices = self._regions.batch(region).scheduler.fleet.prices
        at = datetime.fromtimestamp(self._clock.now(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        items = "".join(
            _SPOT_ITEM.format(type=escape(name), price=price, at=at, region=region)
            for name in types
            if (price := prices.spot(name)) is not None
        )
        return (
            f"<DescribeSpotPriceHistoryResponse><spotPriceHistorySet>{items}</spotPriceHistorySet>"
            "</DescribeSpotPriceHistoryResponse>"
        ).encode()

    def _products(self, members: dict[str, object]) -> bytes:
        filters = members.get("Filters")
        wanted = {each["Field"]: each["Value"] for each in filters} if isinstance(filters, list) else {}
        name = str(wanted.get("instanceType"))
        price = self._regions.batch(str(wanted.get("regionCode"))).scheduler.fleet.prices.on_demand(name)
        listed = []
        if price is not None:
            dimension = {"unit": "Hrs", "pricePerUnit": {"USD": f"{price:.10f}"}}
            product = {
                "product": {"attributes": wanted},
                "terms": {"OnDemand": {"t": {"priceDimensions": {"d": dimension}}}},
            }
            listed.append(json.dumps(product))
        return json.dumps({"FormatVersion": "aws_v1", "PriceList": listed}).encode()

"""What instances cost, and that a Spot environment gets none for less."""

import json
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

import pytest

from emulator.server import EmulatorServer

Aws = Callable[..., Any]


def products(aws: Aws, instance_type: str) -> list[Any]:
    wanted = {"instanceType": instance_type, "regionCode": "us-east-1", "operatingSystem": "Linux"}
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    listed = aws("pricing").get_products(ServiceCode="AmazonEC2", Filters=filters)["PriceList"]
    return [json.loads(product) for product in listed]


def spot_prices(aws: Aws, *instance_types: str) -> dict[str, float]:
    history = aws("ec2").describe_spot_price_history(InstanceTypes=list(instance_types))["SpotPriceHistory"]
    return {each["InstanceType"]: float(each["SpotPrice"]) for each in history}


def test_on_demand_prices_are_listed_where_they_are_known(aws: Aws) -> None:
    [product] = products(aws, "c5a.large")
    [term] = product["terms"]["OnDemand"].values()
    [dimension] = term["priceDimensions"].values()
    assert float(dimension["pricePerUnit"]["USD"]) == 0.077
    assert products(aws, "u-6tb1.metal") == []


def test_spot_prices_are_below_and_move(aws: Aws, server: EmulatorServer) -> None:
    assert spot_prices(aws, "c5a.large", "u-6tb1.metal") == {"c5a.large": pytest.approx(0.0308)}
    server.control.set_spot_price("c5a.large", 0.07)
    assert spot_prices(aws, "c5a.large", "c6g.medium") == pytest.approx({"c5a.large": 0.07, "c6g.medium": 0.0136})


@pytest.fixture
def ask(server: EmulatorServer) -> Callable[..., None]:
    """Use the control endpoint: `ask("spot-price", type="c5a.large", dollars=0.05)`."""

    def post(path: str, **sent: Any) -> None:
        headers = {"Content-Type": "application/json"}
        urlopen(Request(f"{server.url}/_emulator/{path}", json.dumps(sent).encode(), headers)).close()  # noqa: S310 - http

    return post


@pytest.fixture
def submit(aws: Aws, environment: Callable[..., Any], wait_until: Callable[..., Any]) -> Callable[[], Any]:
    """Submit a job to a Spot queue whose bid is half of the On-Demand price, and return how to read its status."""
    batch = aws("batch")
    on = environment("spot", type="SPOT", allocationStrategy="SPOT_PRICE_CAPACITY_OPTIMIZED", bidPercentage=50)
    order = [{"order": 1, "computeEnvironment": on["computeEnvironmentArn"]}]
    batch.create_job_queue(jobQueueName="queue", priority=1, computeEnvironmentOrder=order)
    wait_until(lambda: batch.describe_job_queues(jobQueues=["queue"])["jobQueues"][0]["status"] == "VALID")
    needs = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}]
    batch.register_job_definition(
        jobDefinitionName="true",
        type="container",
        containerProperties={"image": "none", "command": ["true"], "resourceRequirements": needs},
    )

    def send() -> Callable[[], str]:
        job = batch.submit_job(jobName="job", jobQueue="queue", jobDefinition="true")["jobId"]
        return lambda: str(batch.describe_jobs(jobs=[job])["jobs"][0]["status"])

    return send


@pytest.mark.parametrize(
    ("path", "hindered", "free"),
    [
        ("spot-price", {"type": "c5a.large", "dollars": 0.08}, {"type": "c5a.large", "dollars": 0.03}),
        ("capacity", {"environment": "spot", "available": False}, {"environment": "spot", "available": True}),
    ],
)
def test_without_capacity_or_below_the_price_jobs_wait_until_that_changes(
    submit: Any, ask: Any, wait_until: Any, *, path: str, hindered: Any, free: Any
) -> None:
    ask(path, **hindered)
    status = submit()
    wait_until(lambda: status() == "RUNNABLE")
    ask(path, **free)
    wait_until(lambda: status() == "SUCCEEDED")

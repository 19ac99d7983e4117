"""An empty account for each test, and the few resources of it that most tests need."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import boto3
import pytest
from botocore.config import Config

from emulator.batch.transitions import MOMENT
from emulator.server import EmulatorServer

Aws = Callable[..., Any]


@pytest.fixture(scope="session")
def boto3_session() -> boto3.Session:
    """One session for all tests: it keeps the service models, which are slow to read."""
    return boto3.Session(aws_access_key_id="emulator", aws_secret_access_key="emulator", region_name="us-east-1")


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    """An empty account of this test's own."""
    with EmulatorServer(cores=2) as running:
        yield running


@pytest.fixture
def aws(server: EmulatorServer, boto3_session: boto3.Session) -> Iterator[Aws]:
    """Make boto3 clients of the account: `aws("batch")`; further arguments go into the client's Config.

    Parameters are not validated by the client, so that what AWS refuses is refused by the server; and nothing is
    retried, so that every answer is seen.
    """
    clients: dict[str, Any] = {}

    def client(service: str, **config: Any) -> Any:
        key = f"{service} {config}"
        if key not in clients:
            settings = Config(**{"parameter_validation": False, "retries": {"total_max_attempts": 1}, **config})
            clients[key] = boto3_session.client(service, endpoint_url=server.url, config=settings)  # type: ignore[call-overload]  # the service's name is not a literal
        return clients[key]

    yield client
    for made in clients.values():
        made.close()


@pytest.fixture
def held(server: EmulatorServer) -> Callable[[], AbstractContextManager[None]]:
    """Hold environments and queues in CREATING, UPDATING and DELETING while a test looks: `with held(): ...`."""

    @contextmanager
    def hold() -> Iterator[None]:
        server.batch.transitions.moment = 3600
        yield
        server.batch.transitions.moment = MOMENT
        server.control.advance(3600)

    return hold


@pytest.fixture(scope="session")
def wait_until() -> Callable[..., Any]:
    """Wait for a condition, and fail when it does not come true: `wait_until(lambda: ..., seconds=20)`."""

    def wait(condition: Callable[[], Any], seconds: float = 20) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not true within {seconds} seconds")
            time.sleep(0.005)
        return found

    return wait


def trust(service: str) -> str:
    """A trust policy for one service."""
    allow = {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [allow]})


@pytest.fixture
def role(aws: Aws) -> Callable[[str, str], str]:
    """Make a role that a service may assume, and return its ARN: `role("instance", "ec2")`."""
    return lambda name, service: aws("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust(service))["Role"][
        "Arn"
    ]


@pytest.fixture
def resources(aws: Aws, role: Callable[[str, str], str]) -> dict[str, Any]:
    """`computeResources` that Batch takes, with what they refer to: On-Demand c5a.large, at most 16 vCPUs."""
    role("instance", "ec2")
    policy = "arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role"
    aws("iam").attach_role_policy(RoleName="instance", PolicyArn=policy)
    aws("iam").create_instance_profile(InstanceProfileName="instance")
    aws("iam").add_role_to_instance_profile(InstanceProfileName="instance", RoleName="instance")
    subnets = aws("ec2").describe_subnets()["Subnets"]
    return {
        "type": "EC2",
        "allocationStrategy": "BEST_FIT_PROGRESSIVE",
        "minvCpus": 0,
        "maxvCpus": 16,
        "instanceTypes": ["c5a.large"],
        "subnets": [subnet["SubnetId"] for subnet in subnets],
        "instanceRole": "instance",
    }


@pytest.fixture
def environment(aws: Aws, resources: dict[str, Any], wait_until: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Make a compute environment, wait until it is settled, and describe it: `environment("a", maxvCpus=4)`."""

    def make(name: str = "environment", **changes: Any) -> dict[str, Any]:
        batch = aws("batch")
        own_role = {"serviceRole": changes.pop("serviceRole")} if "serviceRole" in changes else {}
        batch.create_compute_environment(
            computeEnvironmentName=name, type="MANAGED", computeResources={**resources, **changes}, **own_role
        )
        described: dict[str, Any] = wait_until(
            lambda: [
                found
                for found in batch.describe_compute_environments(computeEnvironments=[name])["computeEnvironments"]
                if found["status"] in ("VALID", "INVALID")
            ]
        )[0]
        return described

    return make


@pytest.fixture
def queue(
    aws: Aws, environment: Callable[..., dict[str, Any]], wait_until: Callable[..., Any]
) -> Callable[..., dict[str, Any]]:
    """Make a job queue on an environment of its own, wait until it is VALID, and describe it: `queue("a")`."""

    def make(name: str = "queue", *, instance_type: str = "c5a.large", **changes: Any) -> dict[str, Any]:
        batch = aws("batch")
        on = environment(f"{name}-environment", instanceTypes=[instance_type])
        order = [{"order": 1, "computeEnvironment": on["computeEnvironmentArn"]}]
        batch.create_job_queue(jobQueueName=name, **{"priority": 1, "computeEnvironmentOrder": order, **changes})
        described: dict[str, Any] = wait_until(
            lambda: [q for q in batch.describe_job_queues(jobQueues=[name])["jobQueues"] if q["status"] == "VALID"]
        )[0]
        return described

    return make

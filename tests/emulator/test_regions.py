"""One account in several regions: what has a region is apart, IAM is not."""

from collections.abc import Callable
from typing import Any

import boto3
import pytest

from emulator.account import Account
from emulator.batch.api import Batch
from emulator.regions import Regions
from emulator.server import EmulatorServer

Aws = Callable[..., Any]
NAME = "environment"


@pytest.fixture
def elsewhere(server: EmulatorServer, boto3_session: boto3.Session) -> Aws:
    """Make boto3 clients of the same account in another region."""
    return lambda service: boto3_session.client(service, region_name="eu-west-1", endpoint_url=server.url)


@pytest.fixture
def there(elsewhere: Aws, resources: dict[str, Any], wait_until: Callable[..., Any]) -> dict[str, Any]:
    """An environment in the other region."""
    subnets = [subnet["SubnetId"] for subnet in elsewhere("ec2").describe_subnets()["Subnets"]]
    return make_environment(elsewhere, {**resources, "subnets": subnets}, wait_until)


def make_environment(aws: Aws, resources: dict[str, Any], wait_until: Callable[..., Any]) -> dict[str, Any]:
    """Make the environment and return it as it is when it has settled."""
    batch = aws("batch")
    batch.create_compute_environment(computeEnvironmentName=NAME, type="MANAGED", computeResources=resources)
    wait_until(lambda: batch.describe_compute_environments()["computeEnvironments"][0]["status"] != "CREATING")
    found: dict[str, Any] = batch.describe_compute_environments()["computeEnvironments"][0]
    return found


def test_batch_is_apart_in_each_region_and_its_names_may_repeat(
    server: EmulatorServer, aws: Aws, elsewhere: Aws, environment: Callable[..., Any], there: dict[str, Any]
) -> None:
    here = environment(NAME)
    assert there["computeEnvironmentArn"] == here["computeEnvironmentArn"].replace("us-east-1", "eu-west-1")
    assert there["serviceRole"] == here["serviceRole"], "IAM has no regions"
    aws("batch").update_compute_environment(computeEnvironment=NAME, state="DISABLED")
    assert elsewhere("batch").describe_compute_environments()["computeEnvironments"] == [there]
    assert {call.region for call in server.control.record.calls("batch")} == {"us-east-1", "eu-west-1"}


def test_a_subnet_of_another_region_is_none(
    elsewhere: Aws, resources: dict[str, Any], wait_until: Callable[..., Any]
) -> None:
    made = make_environment(elsewhere, resources, wait_until)
    assert "does not exist" in made["statusReason"]


def test_what_moto_lets_pass_is_refused_in_every_region(elsewhere: Aws) -> None:
    elsewhere("logs").create_log_group(logGroupName="jobs")
    with pytest.raises(elsewhere("logs").exceptions.ResourceNotFoundException, match="log stream does not exist"):
        elsewhere("logs").get_log_events(logGroupName="jobs", logStreamName="none")


def submit(aws: Aws, wait_until: Callable[..., Any], *command: str) -> str:
    """Submit a job to a queue of its own on the environment, and return its id."""
    batch = aws("batch")
    order = [{"order": 1, "computeEnvironment": NAME}]
    batch.create_job_queue(jobQueueName="queue", priority=1, computeEnvironmentOrder=order)
    wait_until(lambda: batch.describe_job_queues()["jobQueues"][0]["status"] == "VALID")
    aws("logs").create_log_group(logGroupName="jobs")
    batch.register_job_definition(
        jobDefinitionName="job",
        type="container",
        containerProperties={
            "image": "unused",
            "command": list(command),
            "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "1000"}],
            "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "jobs"}},
        },
    )
    return str(batch.submit_job(jobName="job", jobQueue="queue", jobDefinition="job")["jobId"])


@pytest.mark.usefixtures("there")
def test_jobs_of_another_region_run_there(elsewhere: Aws, aws: Aws, wait_until: Callable[..., Any]) -> None:
    batch = elsewhere("batch")
    job = submit(elsewhere, wait_until, "printenv", "AWS_REGION")
    wait_until(lambda: batch.describe_jobs(jobs=[job])["jobs"][0]["status"] == "SUCCEEDED")
    stream = batch.describe_jobs(jobs=[job])["jobs"][0]["container"]["logStreamName"]
    events = elsewhere("logs").get_log_events(logGroupName="jobs", logStreamName=stream)["events"]
    assert [event["message"] for event in events] == ["eu-west-1"]
    assert not aws("batch").describe_jobs(jobs=[job])["jobs"]


@pytest.mark.usefixtures("there")
def test_the_regions_share_the_cores_of_this_machine(
    elsewhere: Aws, aws: Aws, environment: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    """The account of the tests has two cores."""

    def is_running(region: Aws, job: str) -> bool:
        return bool(region("batch").describe_jobs(jobs=[job])["jobs"][0]["status"] == "RUNNING")

    environment(NAME)
    first = submit(aws, wait_until, "sleep", "600")
    second = aws("batch").submit_job(jobName="job", jobQueue="queue", jobDefinition="job")["jobId"]
    wait_until(lambda: is_running(aws, first) and is_running(aws, second))
    third = submit(elsewhere, wait_until, "sleep", "600")
    wait_until(lambda: elsewhere("batch").describe_jobs(jobs=[third])["jobs"][0]["status"] == "STARTING")
    aws("batch").terminate_job(jobId=first, reason="make room")
    wait_until(lambda: is_running(elsewhere, third))


def test_batch_is_made_only_where_it_is_used(server: EmulatorServer) -> None:
    made: list[str] = []

    def make(account: Account) -> Batch:
        made.append(account.region)
        return server.batch

    regions = Regions(server.account, make)
    assert regions.account("eu-west-1").region == "eu-west-1"
    assert made == ["us-east-1"]
    for _ in range(2):
        regions.batch("eu-west-1")
    assert made == ["us-east-1", "eu-west-1"]

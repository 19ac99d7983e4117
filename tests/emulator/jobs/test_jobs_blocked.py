"""A queue whose head no instance comes for, by a state of the account: roles, networks; and when it starts after all.

Source of the words: "Jobs stuck in a RUNNABLE status", Batch user guide.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

NO_PERMISSION = "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS \N{EN DASH} Batch service role has a permission issue."
NOT_OFFERED = (
    "MISCONFIGURATION:EC2_INSTANCE_CONFIGURATION_UNSUPPORTED - Your compute environment associated with this job queue "
    "has an unsupported instance type configuration."
)
UNDETERMINED = "UNDETERMINED - Batch job is blocked, root cause is undetermined."
OF_BATCH = "arn:aws:iam::aws:policy/service-role/AWSBatchServiceRole"
OF_HOSTS = "arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role"

Aws = Callable[..., Any]


def waits(lab: Any, job_id: str, reason: str) -> None:
    """Wait until a RUNNABLE job has this reason."""
    lab.wait_until(lambda: lab.job(job_id).get("statusReason") == reason)
    assert lab.job(job_id)["status"] == "RUNNABLE"


def desired_vcpus(lab: Any) -> int:
    described = lab.batch.describe_compute_environments(computeEnvironments=["queue-environment"])
    return int(described["computeEnvironments"][0]["computeResources"]["desiredvCpus"])


@pytest.fixture
def dedicated(lab: Any, environment: Callable[..., Any], role: Callable[[str, str], str]) -> str:
    """Let the queue have one environment, whose service role `own` has no policy; returns its name."""
    made = environment("dedicated", serviceRole=role("own", "batch"))
    order = [{"order": 1, "computeEnvironment": made["computeEnvironmentArn"]}]
    lab.batch.update_job_queue(jobQueue="queue", computeEnvironmentOrder=order)
    lab.wait_until(lambda: lab.batch.describe_job_queues(jobQueues=["queue"])["jobQueues"][0]["status"] == "VALID")
    return str(made["computeEnvironmentName"])


@pytest.mark.usefixtures("dedicated")
def test_a_service_role_without_its_policy_starts_nothing_until_it_has_it_again(lab: Any, aws: Aws) -> None:
    job_id = lab.submit("true")
    waits(lab, job_id, NO_PERMISSION)
    behind = lab.submit("true")
    lab.reaches(behind, "RUNNABLE")
    assert "statusReason" not in lab.job(behind)
    aws("iam").attach_role_policy(RoleName="own", PolicyArn=OF_BATCH)
    assert lab.ended(job_id)["status"] == lab.ended(behind)["status"] == "SUCCEEDED"
    aws("iam").detach_role_policy(RoleName="own", PolicyArn=OF_BATCH)
    waits(lab, lab.submit("true"), NO_PERMISSION)  # although the instance is still there: no task starts either


@pytest.mark.usefixtures("dedicated")
def test_a_service_role_needs_each_permission_that_starting_takes(lab: Any, aws: Aws) -> None:
    def put(**statement: Any) -> None:
        document = json.dumps({"Version": "2012-10-17", "Statement": {"Resource": "*", **statement}})
        aws("iam").put_role_policy(RoleName="own", PolicyName="own", PolicyDocument=document)

    put(Effect="Allow", Action=["autoscaling:*", "ecs:*", "iam:PassRole"])
    job_id = lab.submit("true")
    waits(lab, job_id, NO_PERMISSION)
    put(Effect="Allow", Action=["autoscaling:*", "ec2:*", "ecs:*", "iam:PassRole"])
    assert lab.ended(job_id)["status"] == "SUCCEEDED"
    aws("iam").attach_role_policy(RoleName="own", PolicyArn=OF_BATCH)
    put(Effect="Deny", Action="ec2:runinstances")
    waits(lab, lab.submit("true"), NO_PERMISSION)


def test_one_environment_that_may_start_instances_is_enough(lab: Any, dedicated: str) -> None:
    job_id = lab.submit("true")
    waits(lab, job_id, NO_PERMISSION)
    both = [{"order": n, "computeEnvironment": name} for n, name in enumerate((dedicated, "queue-environment"), 1)]
    lab.batch.update_job_queue(jobQueue="queue", computeEnvironmentOrder=both)
    assert lab.ended(job_id)["status"] == "SUCCEEDED"


def test_what_is_invalid_or_disabled_is_said_before_what_its_role_lacks(lab: Any, dedicated: str) -> None:
    lab.batch.update_compute_environment(computeEnvironment=dedicated, state="DISABLED")
    waits(lab, lab.submit("true"), "ACTION_REQUIRED - CE(s) associated with the job queue are disabled.")


def subnets(aws: Aws, *zones: str) -> list[str]:
    """The default subnets of some zones of us-east-1: `subnets(aws, "e")`."""
    return [
        subnet["SubnetId"]
        for subnet in aws("ec2").describe_subnets()["Subnets"]
        if subnet["AvailabilityZone"].removeprefix("us-east-1") in zones
    ]


def update(lab: Any, **resources: Any) -> None:
    lab.batch.update_compute_environment(computeEnvironment="queue-environment", computeResources=resources)
    described = lab.batch.describe_compute_environments
    lab.wait_until(lambda: described()["computeEnvironments"][0]["status"] == "VALID")


def test_a_type_that_no_zone_of_the_subnets_has_is_never_started(lab: Any, aws: Aws) -> None:
    """EC2 has no c5a.large in us-east-1e."""
    update(lab, subnets=subnets(aws, "e"))
    job_id = lab.submit("true")
    waits(lab, job_id, NOT_OFFERED)
    assert desired_vcpus(lab) == 0
    update(lab, subnets=subnets(aws, "a", "e"))
    assert lab.ended(job_id)["status"] == "SUCCEEDED"


def test_another_type_of_the_environment_that_a_zone_has_is_started(lab: Any, aws: Aws) -> None:
    update(lab, subnets=subnets(aws, "e"), instanceTypes=["c5a.large", "m4.xlarge"])
    host = lab.reaches(lab.submit("exec sleep 600"), "RUNNING")
    assert desired_vcpus(lab) == 4, host


def test_a_subnet_that_is_made_is_a_zone_that_is_there(lab: Any, aws: Aws) -> None:
    """The subnets of the environment may go and come; here the only one that would do goes."""
    keep, going = subnets(aws, "e"), subnets(aws, "a")
    update(lab, subnets=keep + going)
    aws("ec2").delete_subnet(SubnetId=going[0])
    waits(lab, lab.submit("true"), NOT_OFFERED)


def test_instances_whose_role_has_lost_its_policy_start_and_never_join(lab: Any, aws: Aws) -> None:
    aws("iam").detach_role_policy(RoleName="instance", PolicyArn=OF_HOSTS)
    job_id = lab.submit("exec sleep 600")
    lab.reaches(job_id, "RUNNABLE")
    lab.wait_until(lambda: desired_vcpus(lab) == 2)
    lab.server.control.advance(590)
    assert "statusReason" not in lab.job(job_id)
    lab.server.control.advance(20)
    waits(lab, job_id, UNDETERMINED)
    assert desired_vcpus(lab) == 2, "one instance is asked for, and no more than that"
    aws("iam").attach_role_policy(RoleName="instance", PolicyArn=OF_HOSTS)
    assert "statusReason" not in lab.reaches(job_id, "RUNNING")
    assert desired_vcpus(lab) == 2, "it is the same one that joins"
    lab.batch.terminate_job(jobId=job_id, reason="enough")
    lab.ended(job_id)
    lab.server.control.advance(310)
    lab.wait_until(lambda: desired_vcpus(lab) == 0)


def test_an_instance_that_never_joined_goes_when_nobody_waits_for_it(lab: Any, aws: Aws) -> None:
    aws("iam").detach_role_policy(RoleName="instance", PolicyArn=OF_HOSTS)
    job_id = lab.submit("true")
    lab.wait_until(lambda: desired_vcpus(lab) == 2)
    lab.batch.cancel_job(jobId=job_id, reason="enough")
    lab.server.control.advance(310)
    lab.wait_until(lambda: desired_vcpus(lab) == 0)


def test_an_update_of_the_environment_takes_instances_away_that_never_joined(lab: Any, aws: Aws) -> None:
    aws("iam").detach_role_policy(RoleName="instance", PolicyArn=OF_HOSTS)
    job_id = lab.submit("true")
    lab.wait_until(lambda: desired_vcpus(lab) == 2)
    update(lab, instanceTypes=["c5a.xlarge"])
    lab.wait_until(lambda: desired_vcpus(lab) == 4)
    aws("iam").attach_role_policy(RoleName="instance", PolicyArn=OF_HOSTS)
    assert lab.ended(job_id)["status"] == "SUCCEEDED"


@pytest.mark.parametrize("text", [NO_PERMISSION, NOT_OFFERED, UNDETERMINED, "ACTION_REQUIRED - "])
def test_what_batch_cannot_remedy_has_no_time_limit(lab: Any, text: str) -> None:
    """Source: "Automatic remediation with jobStateTimeLimitActions", Batch user guide."""
    action = {"reason": text.split(maxsplit=1)[0], "state": "RUNNABLE", "action": "CANCEL", "maxTimeSeconds": 600}
    with pytest.raises(ClientError, match="is not supported"):
        lab.batch.update_job_queue(jobQueue="queue", jobStateTimeLimitActions=[action])


def summary(lab: Any, array_id: str) -> dict[str, int]:
    """How many children an array is said to have in which status."""
    counts = lab.job(array_id)["arrayProperties"]["statusSummary"]
    return {status: count for status, count in counts.items() if count}


def test_the_summary_of_an_array_can_lag_behind_its_children(lab: Any) -> None:
    lab.server.control.delay_summaries(60)
    array_id = lab.submit("exec sleep 600", size=2)
    for index in (0, 1):
        lab.reaches(f"{array_id}:{index}", "RUNNING")
    assert summary(lab, array_id) == {"PENDING": 2}
    lab.server.control.advance(60)
    assert summary(lab, array_id) == {"RUNNING": 2}
    lab.batch.terminate_job(jobId=array_id, reason="enough")
    ended = lab.ended(array_id)
    assert summary(lab, array_id) == {"RUNNING": 2}, "although the array itself has ended"
    assert ended["arrayProperties"]["statusSummaryLastUpdatedAt"] < ended["stoppedAt"]
    lab.server.control.advance(60)
    assert summary(lab, array_id) == {"FAILED": 2}


def test_summaries_lag_no_more_when_that_is_taken_back(lab: Any) -> None:
    lab.server.control.delay_summaries(3600)
    array_id = lab.submit("true", size=2)
    lab.ended(array_id)
    assert summary(lab, array_id) == {"PENDING": 2}
    lab.server.control.delay_summaries(0)
    assert summary(lab, array_id) == {"SUCCEEDED": 2}

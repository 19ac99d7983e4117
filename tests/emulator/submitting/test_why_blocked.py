"""AWS Batch's own reasons, each caused by a state of the account that is then mended."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from submitter.diagnosis import diagnose
from submitter.evidence import Evidence
from submitter.prices import read_price

Aws = Callable[..., Any]
WaitUntil = Callable[..., Any]

QUEUE = "c5a-large-spot"

Why = Callable[..., list[tuple[str, str]]]
Update = Callable[..., None]
Submit = Callable[..., None]


def test_no_instance_to_be_had_is_told_with_where_else_to_go(
    machine: Any, why: Why, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    machine.server.control.set_capacity("spot", available=False)
    submit_to_wait()
    [(sentence, remedy)] = why()
    assert sentence.startswith("EC2 has no c5a.large to give at present (CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY")
    assert "the On-Demand queue, c5a-large" in remedy
    assert machine.run_status(1).reason.startswith("CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY")
    machine.server.control.set_capacity("spot", available=True)
    wait_until(lambda: machine.status().counts.get("running") == 2)
    assert why() == []


def test_a_queue_that_the_stack_no_longer_has_is_told_without_its_type(machine: Any, submit_to_wait: Submit) -> None:
    machine.server.control.set_capacity("spot", available=False)
    submit_to_wait()
    contract = replace(machine.contract, queue_names=(), queues={})
    evidence = Evidence(contract, machine.batch, partial(read_price, machine.session), machine.clock)
    [waiting] = evidence.waiting("ada/first", machine.status().generation)
    [finding] = diagnose(waiting)
    assert finding.sentence.startswith("EC2 has no instance to give at present (CAPACITY")


def test_an_environment_that_may_not_have_one_instance_is_told(
    machine: Any, why: Why, update_environment: Update, wait_until: WaitUntil, *, submit_to_wait: Submit
) -> None:
    update_environment(computeResources={"maxvCpus": 1})
    submit_to_wait()
    [(sentence, remedy)] = why()
    assert sentence.startswith(
        "The environment may have 1 vCPUs at once, fewer than one instance has (MISCONFIGURATION"
    )
    assert "maxVcpus" in remedy
    update_environment(computeResources={"maxvCpus": 2})
    wait_until(lambda: machine.status().counts.get("running") == 2)
    assert why() == []


def test_a_disabled_environment_is_told_with_how_to_enable_it(
    machine: Any, why: Why, update_environment: Update, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    update_environment(state="DISABLED")
    submit_to_wait()
    [(sentence, remedy)] = why()
    assert sentence == "The environment spot is disabled and starts no run."
    assert "update-compute-environment --state ENABLED --compute-environment spot" in remedy
    first_waits_for(machine, wait_until, "ACTION_REQUIRED - CE(s) associated with the job queue are disabled.")
    update_environment(state="ENABLED")
    wait_until(lambda: machine.status().counts.get("running") == 2)
    assert why() == []


def test_an_invalid_environment_is_told_in_awss_words(
    aws: Aws, machine: Any, why: Why, *, update_environment: Update, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    aws("iam").remove_role_from_instance_profile(InstanceProfileName="instance", RoleName="instance")
    aws("iam").delete_instance_profile(InstanceProfileName="instance")
    update_environment("INVALID", computeResources={"maxvCpus": 8})
    submit_to_wait()
    [(sentence, _)] = why()
    assert sentence == "The environment spot is INVALID: CLIENT_ERROR - Invalid IamInstanceProfile: instance"
    first_waits_for(machine, wait_until, "ACTION_REQUIRED - CE(s) associated with the job queue are invalid.")
    aws("iam").create_instance_profile(InstanceProfileName="instance")
    aws("iam").add_role_to_instance_profile(InstanceProfileName="instance", RoleName="instance")
    update_environment(computeResources={"maxvCpus": 8})
    wait_until(lambda: machine.status().counts.get("running") == 2)
    assert why() == []


SERVICE_ROLE = "arn:aws:iam::aws:policy/service-role/AWSBatchServiceRole"
HOST_ROLE = "arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role"


@pytest.fixture
def dedicated(
    aws: Aws, contract: Any, environment: Callable[..., Any], role: Callable[[str, str], str], wait_until: WaitUntil
) -> None:
    """Let the queue have an environment whose service role `batch` has the policy that AWS manages for it."""
    arn = role("batch", "batch")
    aws("iam").attach_role_policy(RoleName="batch", PolicyArn=SERVICE_ROLE)
    made = environment("dedicated", serviceRole=arn)
    order = [{"order": 1, "computeEnvironment": made["computeEnvironmentArn"]}]
    [queue] = contract.queue_names
    aws("batch").update_job_queue(jobQueue=queue, computeEnvironmentOrder=order)
    wait_until(lambda: aws("batch").describe_job_queues(jobQueues=[queue])["jobQueues"][0]["status"] == "VALID")


def first_waits_for(machine: Any, wait_until: WaitUntil, reason: str) -> None:
    """Wait until `status --runs` gives AWS's reason for the first run, and see that it gives none for the next."""
    wait_until(lambda: (machine.run_status(1).reason or "").startswith(reason))
    assert machine.run_status(2).reason is None


@pytest.mark.usefixtures("dedicated")
def test_a_service_role_that_lost_its_policy_is_named_until_it_has_it_again(
    aws: Aws, machine: Any, why: Why, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    aws("iam").detach_role_policy(RoleName="batch", PolicyArn=SERVICE_ROLE)
    submit_to_wait()
    first_waits_for(machine, wait_until, "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS")
    [(sentence, remedy)] = why()
    assert sentence == (
        "AWS Batch may not start instances or runs: its service role batch lacks permissions "
        "(MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS \N{EN DASH} Batch service role has a permission issue.)."
    )
    assert "AWSBatchServiceRole" in remedy
    aws("iam").attach_role_policy(RoleName="batch", PolicyArn=SERVICE_ROLE)
    wait_until(lambda: machine.status().counts.get("running") == 2)
    assert why() == []


def test_zones_without_the_instance_type_are_told_until_the_environment_has_another(
    aws: Aws, machine: Any, why: Why, *, update_environment: Update, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    """EC2 has no c5a.large in us-east-1e."""
    by_zone = {each["AvailabilityZone"]: each["SubnetId"] for each in aws("ec2").describe_subnets()["Subnets"]}
    update_environment(computeResources={"subnets": [by_zone["us-east-1e"]]})
    submit_to_wait()
    first_waits_for(machine, wait_until, "MISCONFIGURATION:EC2_INSTANCE_CONFIGURATION_UNSUPPORTED")
    [(sentence, remedy)] = why()
    assert sentence.startswith("EC2 cannot start a c5a.large there: no zone of the environment's subnets has the type")
    assert "has an unsupported instance type configuration.)." in sentence
    assert "--filters Name=instance-type,Values=c5a.large`" in remedy
    update_environment(computeResources={"subnets": list(by_zone.values())})
    wait_until(lambda: machine.status().counts.get("running") == 2)
    assert why() == []


def test_instances_that_do_not_join_the_cluster_are_a_reason_that_aws_does_not_know(
    aws: Aws, machine: Any, why: Why, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    aws("iam").detach_role_policy(RoleName="instance", PolicyArn=HOST_ROLE)
    submit_to_wait()
    wait_until(lambda: machine.status().counts == {"runnable": 2})
    assert why()[0][0].startswith("AWS gives no reason."), "an instance needs some minutes"
    machine.clock.sleep(610)
    first_waits_for(machine, wait_until, "UNDETERMINED")
    [(sentence, remedy)] = why()
    assert sentence == (
        "AWS Batch does not know why the first run waits. Mostly an instance does not start, or does not join the "
        "cluster; asked for are 2 vCPUs of spot (UNDETERMINED - Batch job is blocked, root cause is undetermined.)."
    )
    assert "AmazonEC2ContainerServiceforEC2Role" in remedy
    aws("iam").attach_role_policy(RoleName="instance", PolicyArn=HOST_ROLE)
    wait_until(lambda: machine.status().counts.get("running") == 2)
    assert why() == []


def test_what_fits_no_instance_is_told_with_what_an_instance_has(
    machine: Any, why: Why, update_environment: Update, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    submit_to_wait(memory_mib=8192)
    [(sentence, remedy)] = why()
    assert sentence.startswith("A run needs 1 vCPU, 8192 MiB and 0 GPU, and a c5a.large has 2 vCPU, about 3")
    assert "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT" in sentence
    assert "--num-memory" in remedy
    update_environment(computeResources={"instanceTypes": ["r5ad.large"]})
    wait_until(lambda: machine.status().counts.get("running") == 2)
    assert why() == []


def test_runs_that_a_time_limit_has_cancelled_are_told_with_what_they_waited_for(
    aws: Aws, machine: Any, why: Why, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    limit = {"reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY", "state": "RUNNABLE", "action": "CANCEL"}
    aws("batch").update_job_queue(jobQueue=QUEUE, jobStateTimeLimitActions=[{**limit, "maxTimeSeconds": 600}])
    machine.server.control.set_capacity("spot", available=False)
    submit_to_wait(seeds=(1,))
    assert why()[-1][0] == "The queue cancels a run that has been its head for 10 min 00 s for this reason."
    machine.clock.sleep(601)
    wait_until(lambda: machine.status().over)
    [(sentence, remedy)] = why()
    assert sentence == (
        "The queue has cancelled 1 run after a time limit for waiting for this reason: "
        "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"
    )
    assert "`submitter retry`" in remedy
    assert machine.run_status(1).reason.startswith("Canceled by JobStateTimeLimit action")


def test_where_aws_gives_no_reason_and_none_is_seen_that_is_said(
    machine: Any, why: Why, submit_to_wait: Submit
) -> None:
    """Spot may cost more than On-Demand for a while, which an environment that pays all of it does not show."""
    machine.server.control.set_spot_price("c5a.large", 0.08)
    submit_to_wait()
    [(sentence, remedy)] = why()
    assert sentence.startswith("AWS gives no reason. The runs have waited for ")
    assert remedy == "Wait, then ask again."

    machine.clock.sleep(3600)  # by the account's clock, which the command line does not have
    evidence = Evidence(machine.contract, machine.batch, partial(read_price, machine.session), machine.clock)
    [waiting] = evidence.waiting("ada/first", machine.status().generation)
    [finding] = diagnose(waiting)
    assert finding.sentence.startswith("AWS gives no reason, and none is seen")
    assert finding.sentence.endswith("have waited for 1 h 00 min is not known.")
    assert "quotas" in finding.remedy

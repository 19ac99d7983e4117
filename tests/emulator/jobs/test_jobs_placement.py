"""Which jobs start, on what, and what is said about those that wait."""

from pathlib import Path
from typing import Any

import pytest

LARGE = {"resourceRequirements": [{"type": "MEMORY", "value": "90000"}]}


def desired_vcpus(lab: Any) -> int:
    (environment,) = lab.batch.describe_compute_environments()["computeEnvironments"]
    return int(environment["computeResources"]["desiredvCpus"])


def waits(lab: Any, job_id: str, *, reason: str) -> dict[str, Any]:
    """Wait until a RUNNABLE job has a reason that begins like this."""
    found: dict[str, Any] = lab.wait_until(
        lambda: job if (job := lab.job(job_id)).get("statusReason", "").startswith(reason) else None
    )
    assert found["status"] == "RUNNABLE"
    return found


def test_batch_changes_the_desired_vcpus_with_the_jobs(lab: Any, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    assert desired_vcpus(lab) == 0
    array_id = lab.submit(f"until [ -e {go_on} ]; do sleep 0.02; done", size=5)
    lab.reaches(f"{array_id}:1", "RUNNING")
    assert desired_vcpus(lab) == 6  # two children to a host of two vCPUs
    go_on.touch()
    lab.ended(array_id)
    assert desired_vcpus(lab) == 6
    lab.server.control.advance(301)
    lab.wait_until(lambda: desired_vcpus(lab) == 0)


def test_an_environments_vcpus_are_never_exceeded_and_the_rest_waits_its_turn(lab: Any) -> None:
    array_id = lab.submit("exec sleep 600", size=20)
    lab.reaches(f"{array_id}:1", "RUNNING")
    summary = lab.job(array_id)["arrayProperties"]["statusSummary"]
    assert (summary["RUNNING"] + summary["STARTING"], summary["RUNNABLE"]) == (16, 4)
    assert desired_vcpus(lab) == 16
    assert "statusReason" not in lab.job(f"{array_id}:16")


def test_a_placed_job_is_starting_until_one_of_the_machines_cores_is_free(lab: Any) -> None:
    """The account of the tests has two cores."""
    array_id = lab.submit("exec sleep 600", size=3)
    lab.reaches(f"{array_id}:0", "RUNNING")
    lab.reaches(f"{array_id}:1", "RUNNING")
    assert lab.job(f"{array_id}:2")["status"] == "STARTING"
    assert "taskArn" in lab.job(f"{array_id}:2")["container"]
    lab.batch.terminate_job(jobId=f"{array_id}:0", reason="make room")
    lab.reaches(f"{array_id}:2", "RUNNING")


def test_only_the_head_of_the_queue_is_diagnosed_and_it_blocks_the_others(lab: Any) -> None:
    head = lab.submit("true", containerOverrides=LARGE)
    waits(lab, head, reason="MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - ")
    behind = lab.submit("true")
    lab.reaches(behind, "RUNNABLE")
    assert "statusReason" not in lab.job(behind)
    lab.batch.cancel_job(jobId=head, reason="too large")
    assert lab.ended(behind)["status"] == "SUCCEEDED"


def test_a_head_that_was_cancelled_keeps_its_reason_when_another_waits_behind_it(lab: Any) -> None:
    head, behind = lab.submit("true", containerOverrides=LARGE), lab.submit("true", containerOverrides=LARGE)
    waits(lab, head, reason="MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - ")
    lab.batch.cancel_job(jobId=head, reason="too large")
    waits(lab, behind, reason="MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - ")
    assert lab.job(head)["statusReason"] == "too large"


def test_an_environment_that_is_too_small_or_disabled_is_named_and_can_be_mended(lab: Any) -> None:
    change = lab.batch.update_compute_environment
    change(computeEnvironment="queue-environment", computeResources={"maxvCpus": 1})
    job_id = lab.submit("true")
    waits(lab, job_id, reason="MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE - ")
    described = lab.batch.describe_compute_environments
    lab.wait_until(lambda: described()["computeEnvironments"][0]["status"] == "VALID")
    change(computeEnvironment="queue-environment", state="DISABLED")
    waits(lab, job_id, reason="ACTION_REQUIRED - CE(s) associated with the job queue are disabled.")
    lab.wait_until(lambda: described()["computeEnvironments"][0]["status"] == "VALID")
    change(computeEnvironment="queue-environment", state="ENABLED", computeResources={"maxvCpus": 2})
    assert lab.ended(job_id)["status"] == "SUCCEEDED"


def host_of(lab: Any, job_id: str) -> str:
    return str(lab.reaches(job_id, "RUNNING")["container"]["containerInstanceArn"])


def update(lab: Any, **changes: Any) -> None:
    """Update the environment, and wait until it is VALID."""
    lab.batch.update_compute_environment(computeEnvironment="queue-environment", **changes)
    described = lab.batch.describe_compute_environments
    lab.wait_until(lambda: described()["computeEnvironments"][0]["status"] == "VALID")


def test_an_update_of_the_infrastructure_gives_new_hosts_and_lets_jobs_end_on_the_old_ones(lab: Any) -> None:
    old = lab.submit("exec sleep 600")
    host = host_of(lab, old)
    update(lab, computeResources={"maxvCpus": 8})
    second = lab.submit("exec sleep 600")
    assert host_of(lab, second) == host, "no other host is needed for other limits"
    lab.batch.terminate_job(jobId=second, reason="make room")
    lab.ended(second)
    update(lab, computeResources={"instanceTypes": ["c5a.xlarge"]})
    new = lab.submit("exec sleep 600")
    assert host_of(lab, new) != host
    assert desired_vcpus(lab) == 6
    lab.batch.terminate_job(jobId=old, reason="done")
    lab.ended(old)
    assert desired_vcpus(lab) == 4


@pytest.mark.parametrize(
    ("policy", "minutes"),
    [(None, 30), ({"jobExecutionTimeoutMinutes": 90}, 90), ({"terminateJobsOnUpdate": True}, 0)],
)
def test_a_job_is_lost_when_the_update_of_its_environment_waits_no_longer(
    lab: Any, policy: dict[str, Any] | None, minutes: int
) -> None:
    if policy:
        update(lab, updatePolicy=policy)
    job_id = lab.submit("exec sleep 600")
    lab.reaches(job_id, "RUNNING")
    update(lab, computeResources={"tags": {"a": "b"}})
    if minutes:
        lab.server.control.advance(minutes * 60 - 30)
        assert lab.job(job_id)["status"] == "RUNNING"
        lab.server.control.advance(60)
    assert lab.ended(job_id)["statusReason"].startswith("Host EC2 (instance i-")
    assert desired_vcpus(lab) == 0


def test_a_lack_of_capacity_is_named_until_ec2_has_instances_again(lab: Any) -> None:
    set_capacity = lab.server.batch.scheduler.set_capacity
    lab.server.loop.call(set_capacity, "queue-environment", available=False)
    job_id = lab.submit("true")
    waits(lab, job_id, reason="CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - ")
    lab.server.loop.call(set_capacity, "queue-environment", available=True)
    assert lab.ended(job_id)["status"] == "SUCCEEDED"


def test_a_time_limit_cancels_the_head_and_lets_the_next_one_start(lab: Any) -> None:
    reason = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"
    action = {"reason": reason, "state": "RUNNABLE", "maxTimeSeconds": 600, "action": "CANCEL"}
    lab.batch.update_job_queue(jobQueue="queue", jobStateTimeLimitActions=[action])
    head, behind = lab.submit("true", containerOverrides=LARGE), lab.submit("true")
    waits(lab, head, reason=reason)
    lab.server.control.advance(590)
    assert lab.job(head)["status"] == "RUNNABLE"
    lab.server.control.advance(20)
    job = lab.ended(head)
    assert (job["status"], job["attempts"]) == ("FAILED", [])
    assert job["statusReason"] == f"Canceled by JobStateTimeLimit action due to reason: {reason}"
    assert lab.ended(behind)["status"] == "SUCCEEDED"


def test_a_gpu_is_never_shared(lab: Any, queue: Any) -> None:
    queue("gpu", instance_type="g4dn.xlarge")
    definition = lab.define("trainer", memory_mib=1000)
    gpu = {"resourceRequirements": [{"type": "GPU", "value": "1"}]}
    ids = [lab.submit("exec sleep 600", jobQueue="gpu", jobDefinition=definition, containerOverrides=gpu) for _ in "ab"]
    hosts = {lab.reaches(job_id, "RUNNING")["container"]["containerInstanceArn"] for job_id in ids}
    assert len(hosts) == 2
    on_cpus = lab.submit("true", containerOverrides=gpu)
    waits(lab, on_cpus, reason="MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - ")


def test_queues_of_one_environment_are_served_by_priority(lab: Any, queue: Any) -> None:
    (environment,) = lab.batch.describe_compute_environments()["computeEnvironments"]
    order = [{"order": 1, "computeEnvironment": environment["computeEnvironmentArn"]}]
    queue("urgent", priority=9, computeEnvironmentOrder=order)
    blockers = lab.submit("exec sleep 600", size=16)
    lab.reaches(f"{blockers}:15", "STARTING", "RUNNING")
    ordinary = lab.submit("true")
    urgent = lab.submit("true", jobQueue="urgent")
    lab.reaches(ordinary, "RUNNABLE")
    lab.reaches(urgent, "RUNNABLE")
    lab.batch.terminate_job(jobId=f"{blockers}:0", reason="make room")
    lab.reaches(urgent, "STARTING", "RUNNING", "SUCCEEDED")
    lab.batch.terminate_job(jobId=blockers, reason="done")
    assert lab.ended(urgent)["status"] == lab.ended(ordinary)["status"] == "SUCCEEDED"
    assert lab.job(urgent)["startedAt"] <= lab.job(ordinary)["startedAt"]


def test_a_fair_share_queue_serves_the_share_that_uses_less(lab: Any, queue: Any) -> None:
    policy = lab.batch.create_scheduling_policy(name="shares", fairsharePolicy={})["arn"]
    queue("fair", schedulingPolicyArn=policy)
    many = lab.submit("exec sleep 600", size=20, jobQueue="fair", shareIdentifier="many")
    lab.reaches(f"{many}:16", "RUNNABLE")
    few = lab.submit("exec sleep 600", jobQueue="fair", shareIdentifier="few")
    lab.reaches(few, "RUNNABLE")
    lab.batch.terminate_job(jobId=f"{many}:0", reason="make room")
    lab.reaches(few, "STARTING", "RUNNING")
    assert lab.job(f"{many}:16")["status"] == "RUNNABLE"


def test_what_a_reclaimed_host_has_left_of_the_vcpus_is_used_at_once(lab: Any) -> None:
    """The jobs of the lost host had not begun, so that no end of a process tells the scheduler of it."""
    array_id = lab.submit("exec sleep 600", size=17)
    lab.reaches(f"{array_id}:1", "RUNNING")
    lab.reaches(f"{array_id}:16", "RUNNABLE")
    assert sorted(lab.server.control.reclaim(f"{array_id}:15")) == [f"{array_id}:14", f"{array_id}:15"]
    lab.reaches(f"{array_id}:16", "STARTING")


def test_a_reclaimed_host_takes_all_of_its_jobs_and_nothing_else(lab: Any) -> None:
    array_id = lab.submit("exec sleep 600", size=4)
    lab.reaches(f"{array_id}:0", "RUNNING")
    lost = lab.server.loop.call(lab.server.batch.scheduler.reclaim, f"{array_id}:0")
    assert sorted(lost) == [f"{array_id}:0", f"{array_id}:1"]
    reasons = {lab.ended(job_id)["statusReason"] for job_id in lost}
    assert len(reasons) == 1
    for index in (2, 3):
        assert lab.job(f"{array_id}:{index}")["status"] in {"STARTING", "RUNNING"}
    assert desired_vcpus(lab) == 2
    with pytest.raises(LookupError):
        lab.server.loop.call(lab.server.batch.scheduler.reclaim, f"{array_id}:0")

"""Job queues and scheduling policies as AWS has them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.server import EmulatorServer

Aws = Callable[..., Any]
Held = Callable[[], AbstractContextManager[None]]


def described(aws: Aws, name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = aws("batch").describe_job_queues(jobQueues=[name])["jobQueues"]
    return found[0] if found else {"status": "GONE"}


def test_a_new_queue_is_creating_and_then_valid(
    aws: Aws, environment: Callable[..., Any], held: Held, wait_until: Callable[..., Any]
) -> None:
    first, second = environment("first"), environment("second")
    order = [{"order": 7, "computeEnvironment": "second"}, {"order": 2, "computeEnvironment": "first"}]
    with held():
        made = aws("batch").create_job_queue(
            jobQueueName="q", priority=3, computeEnvironmentOrder=order, tags={"a": "b"}, state="DISABLED"
        )
        assert described(aws, "q")["status"] == "CREATING"
    assert made["jobQueueArn"] == "arn:aws:batch:us-east-1:123456789012:job-queue/q"
    wait_until(lambda: described(aws, "q")["status"] == "VALID")
    assert described(aws, made["jobQueueArn"]) == {
        "jobQueueName": "q",
        "jobQueueArn": made["jobQueueArn"],
        "state": "DISABLED",
        "status": "VALID",
        "statusReason": "JobQueue Healthy",
        "priority": 3,
        "computeEnvironmentOrder": [
            {"order": 2, "computeEnvironment": first["computeEnvironmentArn"]},
            {"order": 7, "computeEnvironment": second["computeEnvironmentArn"]},
        ],
        "jobQueueType": "ECS",
        "jobStateTimeLimitActions": [],
        "tags": {"a": "b"},
    }


def test_a_queue_is_repointed_and_the_old_environment_is_free_to_go(
    aws: Aws, queue: Callable[..., Any], environment: Callable[..., Any], held: Held, wait_until: Callable[..., Any]
) -> None:
    old = queue("q")["computeEnvironmentOrder"][0]["computeEnvironment"]
    new = environment("new")["computeEnvironmentArn"]
    batch = aws("batch")
    order = [{"order": 1, "computeEnvironment": new}]
    with held():
        batch.update_job_queue(jobQueue="q", priority=9, computeEnvironmentOrder=order)
        assert described(aws, "q")["status"] == "UPDATING"
    wait_until(lambda: described(aws, "q")["status"] == "VALID")
    assert described(aws, "q")["priority"] == 9
    batch.update_compute_environment(computeEnvironment=old, state="DISABLED")
    wait_until(
        lambda: (
            batch.describe_compute_environments(computeEnvironments=[old])["computeEnvironments"][0]["status"]
            == "VALID"
        )
    )
    batch.delete_compute_environment(computeEnvironment=old)


def test_an_empty_list_of_time_limit_actions_switches_them_off(
    aws: Aws, queue: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    action = {
        "reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
        "state": "RUNNABLE",
        "maxTimeSeconds": 86_400,
        "action": "CANCEL",
    }
    assert queue("q", jobStateTimeLimitActions=[action])["jobStateTimeLimitActions"] == [action]
    aws("batch").update_job_queue(jobQueue="q", state="ENABLED")
    wait_until(lambda: described(aws, "q")["status"] == "VALID")
    assert described(aws, "q")["jobStateTimeLimitActions"] == [action]
    aws("batch").update_job_queue(jobQueue="q", jobStateTimeLimitActions=[])
    wait_until(lambda: described(aws, "q")["status"] == "VALID")
    assert described(aws, "q")["jobStateTimeLimitActions"] == []


def test_a_queue_is_deleted_when_it_is_disabled(
    aws: Aws, queue: Callable[..., Any], held: Held, wait_until: Callable[..., Any]
) -> None:
    queue("q")
    batch = aws("batch")
    with pytest.raises(ClientError, match="must be DISABLED"):
        batch.delete_job_queue(jobQueue="q")
    with held():
        batch.update_job_queue(jobQueue="q", state="DISABLED")
        with pytest.raises(ClientError, match="Cannot delete, resource is being modified"):
            batch.delete_job_queue(jobQueue="q")
    wait_until(lambda: described(aws, "q")["status"] == "VALID")
    with held():
        batch.delete_job_queue(jobQueue="q")
        assert described(aws, "q")["status"] == "DELETING"
    wait_until(lambda: described(aws, "q")["status"] == "GONE")
    batch.delete_job_queue(jobQueue="q")


def test_what_does_not_exist_can_not_be_updated(aws: Aws) -> None:
    with pytest.raises(ClientError, match="JobQueue none does not exist"):
        aws("batch").update_job_queue(jobQueue="none", state="DISABLED")
    with pytest.raises(ClientError, match="none does not exist"):
        aws("batch").update_compute_environment(computeEnvironment="none", state="DISABLED")


def test_a_fifo_queue_never_gets_a_policy_and_a_fair_share_queue_never_loses_it(
    aws: Aws, queue: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    batch = aws("batch")
    one, two = (batch.create_scheduling_policy(name=name)["arn"] for name in ("one", "two"))
    queue("fifo")
    queue("fair", schedulingPolicyArn=one)
    with pytest.raises(ClientError, match="can not be added"):
        batch.update_job_queue(jobQueue="fifo", schedulingPolicyArn=one)
    with pytest.raises(ClientError, match="replaced but not removed"):
        batch.update_job_queue(jobQueue="fair", schedulingPolicyArn="")
    batch.update_job_queue(jobQueue="fair", schedulingPolicyArn=two)
    assert described(aws, "fair")["schedulingPolicyArn"] == two
    with pytest.raises(ClientError, match="existing JobQueue relationship"):
        batch.delete_scheduling_policy(arn=two)
    batch.delete_scheduling_policy(arn=one)
    assert batch.list_scheduling_policies()["schedulingPolicies"] == [{"arn": two}]
    wait_until(lambda: described(aws, "fair")["status"] == "VALID")


def test_a_policy_is_described_as_it_was_last_updated(aws: Aws) -> None:
    batch = aws("batch")
    arn = batch.create_scheduling_policy(name="p", tags={"a": "b"})["arn"]
    assert arn == "arn:aws:batch:us-east-1:123456789012:scheduling-policy/p"
    fair = {
        "shareDecaySeconds": 60,
        "computeReservation": 10,
        "shareDistribution": [{"shareIdentifier": "lab*", "weightFactor": 0.5}],
    }
    batch.update_scheduling_policy(arn=arn, fairsharePolicy=fair)
    assert batch.describe_scheduling_policies(arns=[arn, f"{arn}x"])["schedulingPolicies"] == [
        {"name": "p", "arn": arn, "fairsharePolicy": fair, "tags": {"a": "b"}}
    ]


def test_everything_is_listed_in_pages(aws: Aws, server: EmulatorServer) -> None:
    batch = aws("batch")
    arns = {batch.create_scheduling_policy(name=f"p{number}")["arn"] for number in range(5)}
    paginator = batch.get_paginator("list_scheduling_policies")
    pages = [page["schedulingPolicies"] for page in paginator.paginate(maxResults=2)]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert {policy["arn"] for page in pages for policy in page} == arns
    assert len(server.record.calls("batch", "ListSchedulingPolicies")) == 3


def test_tags_are_added_replaced_and_removed_on_every_kind_of_resource(
    aws: Aws, queue: Callable[..., Any], subtests: pytest.Subtests
) -> None:
    batch = aws("batch")
    made = queue("q")
    definition = batch.register_job_definition(
        jobDefinitionName="d", type="container", containerProperties={"image": "i", "vcpus": 1, "memory": 4}
    )
    environment_arn = made["computeEnvironmentOrder"][0]["computeEnvironment"]
    policy_arn = batch.create_scheduling_policy(name="p")["arn"]
    for arn in (made["jobQueueArn"], environment_arn, definition["jobDefinitionArn"], policy_arn):
        with subtests.test(arn):
            batch.tag_resource(resourceArn=arn, tags={"a": "1", "b": "1"})
            batch.tag_resource(resourceArn=arn, tags={"b": "2"})
            batch.untag_resource(resourceArn=arn, tagKeys=["a", "never there"])
            assert batch.list_tags_for_resource(resourceArn=arn)["tags"] == {"b": "2"}
            with pytest.raises(ClientError, match="must not exceed 50"):
                batch.tag_resource(resourceArn=arn, tags={f"t{number}": "" for number in range(50)})
    with pytest.raises(ClientError, match="does not exist"):
        batch.list_tags_for_resource(resourceArn=f"{made['jobQueueArn']}x")

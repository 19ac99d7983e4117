"""Job definitions as AWS has them: revisions, look-up, status."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

Aws = Callable[..., Any]
CONTAINER = {
    "image": "i",
    "command": ["true"],
    "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "100"}],
}


def register(aws: Aws, name: str = "d", **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = aws("batch").register_job_definition(
        jobDefinitionName=name, type="container", containerProperties=CONTAINER, **more
    )
    return made


def names(aws: Aws, **request: Any) -> list[str]:
    found = aws("batch").describe_job_definitions(**request)["jobDefinitions"]
    return [f"{each['jobDefinitionName']}:{each['revision']}" for each in found]


def test_a_definition_is_described_as_it_was_registered_with_the_defaults_of_batch(aws: Aws) -> None:
    retry = {"attempts": 3, "evaluateOnExit": [{"onReason": "*", "action": "EXIT"}]}
    made = register(aws, retryStrategy=retry, timeout={"attemptDurationSeconds": 60}, tags={"a": "b"})
    assert made["revision"] == 1
    assert aws("batch").describe_job_definitions(jobDefinitions=["d:1"])["jobDefinitions"] == [
        {
            "jobDefinitionName": "d",
            "jobDefinitionArn": "arn:aws:batch:us-east-1:123456789012:job-definition/d:1",
            "revision": 1,
            "status": "ACTIVE",
            "type": "container",
            "parameters": {},
            "retryStrategy": retry,
            "timeout": {"attemptDurationSeconds": 60},
            "propagateTags": False,
            "platformCapabilities": ["EC2"],
            "containerOrchestrationType": "ECS",
            "tags": {"a": "b"},
            "containerProperties": {
                **CONTAINER,
                "volumes": [],
                "environment": [],
                "mountPoints": [],
                "ulimits": [],
                "secrets": [],
            },
        }
    ]


def test_revisions_count_on_even_past_inactive_ones(aws: Aws) -> None:
    assert [register(aws)["revision"] for _ in range(2)] == [1, 2]
    aws("batch").deregister_job_definition(jobDefinition="d:2")
    assert register(aws)["revision"] == 3


def test_definitions_are_found_by_name_revision_arn_and_status(aws: Aws) -> None:
    arn = [register(aws)["jobDefinitionArn"] for _ in range(3)][1]
    register(aws, "other")
    aws("batch").deregister_job_definition(jobDefinition=arn)
    assert names(aws, jobDefinitions=["d:3", arn, "d:9", "none"]) == ["d:3", "d:2"]
    assert names(aws, jobDefinitionName="d") == ["d:1", "d:2", "d:3"]
    assert names(aws, jobDefinitionName="d", status="ACTIVE") == ["d:1", "d:3"]
    assert names(aws, status="INACTIVE") == ["d:2"]
    assert names(aws, jobDefinitionName="none") == []


def test_definitions_come_in_pages(aws: Aws) -> None:
    for _ in range(12):
        register(aws)
    pages = aws("batch").get_paginator("describe_job_definitions").paginate(jobDefinitionName="d", maxResults=5)
    assert [[each["revision"] for each in page["jobDefinitions"]] for page in pages] == [
        [1, 2, 3, 4, 5],
        [6, 7, 8, 9, 10],
        [11, 12],
    ]


def test_only_one_revision_at_a_time_is_deregistered(aws: Aws) -> None:
    register(aws)
    with pytest.raises(ClientError, match="a name with its revision"):
        aws("batch").deregister_job_definition(jobDefinition="d")
    with pytest.raises(ClientError, match="does not exist"):
        aws("batch").deregister_job_definition(jobDefinition="d:2")


def test_named_definitions_can_not_be_paged(aws: Aws) -> None:
    with pytest.raises(ClientError, match="can't be used with other parameters"):
        aws("batch").describe_job_definitions(jobDefinitions=["d:1"], maxResults=1)


def test_the_actions_of_retry_conditions_may_be_written_in_lower_case(aws: Aws) -> None:
    retry = {"attempts": 2, "evaluateOnExit": [{"onReason": "*", "action": "exit"}]}
    assert register(aws, retryStrategy=retry)["revision"] == 1

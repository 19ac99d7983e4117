"""What AWS refuses is refused, one row a limit; the client validates nothing.

The rows of a table share an account: a request that is refused changes nothing.
"""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

Aws = Callable[..., Any]


def refusal(call: Callable[..., Any], **request: Any) -> tuple[str, str]:
    """The code and the words with which a request is refused."""
    with pytest.raises(ClientError) as caught:
        call(**request)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


ENVIRONMENTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"computeEnvironmentName": "a b"}, {}, "valid pattern"),
    ({"computeEnvironmentName": "-a"}, {}, "valid pattern"),
    ({"computeEnvironmentName": "a" * 129}, {}, "valid pattern"),
    ({"computeEnvironmentName": None}, {}, "Value null at 'computeEnvironmentName'"),
    ({"type": "FANCY"}, {}, "Member must satisfy enum value set: [MANAGED, UNMANAGED]"),
    ({"state": "ON"}, {}, "Member must satisfy enum value set"),
    ({"computeResources": None}, {}, "computeResources must be provided"),
    ({"tags": {f"t{n}": "" for n in range(51)}}, {}, "less than or equal to 50"),
    ({"tags": {"aws:own": "x"}}, {}, "reserved for AWS"),
    ({"tags": {"k" * 129: "x"}}, {}, "key of 1 to 128 characters"),
    ({}, {"type": None}, "Value null at 'computeResources.type'"),
    ({}, {"maxvCpus": None}, "Value null at 'computeResources.maxvCpus'"),
    ({}, {"minvCpus": None}, "Resource minvCpus is required."),
    ({}, {"minvCpus": 17}, "minvCpus must be less than or equal to maxvCpus"),
    ({}, {"minvCpus": -1}, "must not be negative"),
    ({}, {"desiredvCpus": 17}, "desiredvCpus should be between minvCpus and maxvCpus"),
    ({}, {"instanceRole": None}, "Instance role is required."),
    ({}, {"subnets": []}, "subnets must be provided"),
    ({}, {"instanceTypes": []}, "instanceTypes must be provided"),
    ({}, {"instanceTypes": ["c5a.lagre"]}, "c5a.lagre is not one"),
    ({}, {"instanceTypes": ["c5a.large", "c6g.medium"]}, "must share the same architecture"),
    ({}, {"instanceTypes": ["a1.medium"]}, "ECS_AL2023 does not support the instance type a1.medium"),
    ({}, {"ec2Configuration": [{"imageType": "ECS_AL2"}]}, "no longer provides Amazon Linux 2"),
    ({}, {"ec2Configuration": [{"imageType": "ECS_AL1"}]}, "Invalid imageType ECS_AL1"),
    (
        {},
        {"ec2Configuration": [{"imageType": "ECS_AL2023_NVIDIA"}], "instanceTypes": ["g5g.xlarge"]},
        "ECS_AL2023_NVIDIA does not support the instance type g5g.xlarge",
    ),
    (
        {},
        {"allocationStrategy": "SPOT_CAPACITY_OPTIMIZED"},
        "Invalid compute resource allocation strategy SPOT_CAPACITY_OPTIMIZED for type EC2",
    ),
    ({}, {"type": "SPOT", "allocationStrategy": "BEST_FIT"}, "spotIamFleetRole is required"),
    ({}, {"type": "SPOT", "allocationStrategy": None}, "spotIamFleetRole is required"),
    ({}, {"type": "SPOT", "bidPercentage": 0}, "bidPercentage must be greater than 0"),
    ({}, {"launchTemplate": {"launchTemplateId": "lt-1", "launchTemplateName": "a"}}, "but not both"),
]


def test_a_compute_environment_that_aws_refuses_is_refused(
    aws: Aws, resources: dict[str, Any], subtests: pytest.Subtests
) -> None:
    for changes, resource_changes, words in ENVIRONMENTS:
        request = {
            "computeEnvironmentName": "a",
            "type": "MANAGED",
            "computeResources": {**resources, **resource_changes},
            **changes,
        }
        with subtests.test(words):
            code, message = refusal(aws("batch").create_compute_environment, **request)
            assert (code, words in message) == ("ClientException", True), message
    assert aws("batch").describe_compute_environments()["computeEnvironments"] == []


ACTION = {
    "reason": "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
    "state": "RUNNABLE",
    "maxTimeSeconds": 600,
    "action": "CANCEL",
}
QUEUES: list[tuple[dict[str, Any], str]] = [
    ({"jobQueueName": "a.b"}, "valid pattern"),
    ({"jobQueueName": "a" * 129}, "valid pattern"),
    ({"priority": None}, "Value null at 'priority'"),
    ({"priority": -1}, "priority must not be negative"),
    ({"computeEnvironmentOrder": []}, "computeEnvironmentOrder must be provided"),
    ({"computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "none"}]}, "none does not exist"),
    ({"computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "broken"}]}, "is not in VALID state"),
    (
        {"computeEnvironmentOrder": [{"order": n, "computeEnvironment": "x86"} for n in range(4)]},
        "at most 3 compute environments",
    ),
    (
        {"computeEnvironmentOrder": [{"order": n, "computeEnvironment": "x86"} for n in range(2)]},
        "only once",
    ),
    (
        {"computeEnvironmentOrder": [{"order": 1, "computeEnvironment": name} for name in ("x86", "arm")]},
        "must be unique",
    ),
    (
        {
            "computeEnvironmentOrder": [
                {"order": 1, "computeEnvironment": "x86"},
                {"order": 2, "computeEnvironment": "arm"},
            ]
        },
        "must share the same architecture",
    ),
    ({"schedulingPolicyArn": "arn:aws:batch:us-east-1:123456789012:scheduling-policy/none"}, "does not exist"),
    ({"jobStateTimeLimitActions": [{**ACTION, "maxTimeSeconds": 599}]}, "maxTimeSeconds must be between 600"),
    (
        {"jobStateTimeLimitActions": [{**ACTION, "maxTimeSeconds": 86_401}]},
        "maxTimeSeconds must be between 600",
    ),
    ({"jobStateTimeLimitActions": [{**ACTION, "reason": "BOREDOM"}]}, "reason BOREDOM is not supported"),
    ({"jobStateTimeLimitActions": [{**ACTION, "state": "RUNNING"}]}, "Member must satisfy enum value set: [RUNNABLE]"),
    ({"jobStateTimeLimitActions": [{**ACTION, "action": "TERMINATE"}]}, "CANCEL"),
]


def test_a_job_queue_that_aws_refuses_is_refused(
    aws: Aws, environment: Callable[..., Any], subtests: pytest.Subtests
) -> None:
    environment("x86")
    environment("arm", instanceTypes=["c6g.medium"])
    environment("broken", subnets=["subnet-0123456789abcdef0"])
    order = [{"order": 1, "computeEnvironment": "x86"}]
    for changes, words in QUEUES:
        request = {"jobQueueName": "a", "priority": 1, "computeEnvironmentOrder": order, **changes}
        with subtests.test(words):
            code, message = refusal(aws("batch").create_job_queue, **request)
            assert (code, words in message) == ("ClientException", True), message
    assert aws("batch").describe_job_queues()["jobQueues"] == []


def test_there_are_at_most_fifty_environments_and_fifty_queues(
    aws: Aws, resources: dict[str, Any], queue: Callable[..., dict[str, Any]]
) -> None:
    batch = aws("batch")
    order = queue("q0")["computeEnvironmentOrder"]
    for number in range(1, 50):
        batch.create_job_queue(jobQueueName=f"q{number}", priority=1, computeEnvironmentOrder=order)
        batch.create_compute_environment(
            computeEnvironmentName=f"e{number}", type="MANAGED", computeResources=resources
        )
    _, message = refusal(
        batch.create_compute_environment, computeEnvironmentName="e50", type="MANAGED", computeResources=resources
    )
    assert "limit of 50 compute environments" in message
    _, message = refusal(batch.create_job_queue, jobQueueName="q50", priority=1, computeEnvironmentOrder=order)
    assert "limit of 50 job queues" in message


REQUIREMENTS = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "100"}]
RULE = {"onReason": "*", "action": "RETRY"}
DEFINITIONS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"jobDefinitionName": "a:b"}, {}, "valid pattern"),
    ({"jobDefinitionName": "a" * 129}, {}, "valid pattern"),
    ({"type": "pod"}, {}, "Member must satisfy enum value set"),
    ({"containerProperties": None}, {}, "containerProperties must be provided"),
    ({"tags": {f"t{n}": "" for n in range(51)}}, {}, "less than or equal to 50"),
    ({"parameters": {"p": "x" * 24 * 1024}}, {}, "must not exceed 24 KiB"),
    ({"timeout": {"attemptDurationSeconds": 59}}, {}, "at least 60 seconds"),
    ({"retryStrategy": {"attempts": 0}}, {}, "attempts must be between 1 and 10"),
    ({"retryStrategy": {"attempts": 11}}, {}, "attempts must be between 1 and 10"),
    ({"retryStrategy": {"evaluateOnExit": [RULE]}}, {}, "RetryAttempts must be provided with retry strategy"),
    ({"retryStrategy": {"attempts": 2, "evaluateOnExit": [RULE] * 6}}, {}, "at most 5 conditions"),
    ({"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"action": "EXIT"}]}}, {}, "at least one of"),
    (
        {"retryStrategy": {"attempts": 2, "evaluateOnExit": [{**RULE, "onReason": "*lost"}]}},
        {},
        "an asterisk can only be at its end",
    ),
    (
        {"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"onExitCode": "1a", "action": "EXIT"}]}},
        {},
        "not a valid pattern",
    ),
    (
        {"retryStrategy": {"attempts": 2, "evaluateOnExit": [{**RULE, "action": "PERHAPS"}]}},
        {},
        "Member must satisfy enum value set: [RETRY, EXIT]",
    ),
    ({"schedulingPriority": 10_000}, {}, "between 0 and 9999"),
    ({}, {"image": None}, "Container image is not provided."),
    ({}, {"image": "i" * 256}, "at most 255 characters"),
    ({}, {"resourceRequirements": REQUIREMENTS[1:]}, "vCPU is not provided."),
    ({}, {"resourceRequirements": REQUIREMENTS[:1]}, "Memory is not provided."),
    (
        {},
        {"resourceRequirements": [{"type": "VCPU", "value": "1.0"}, REQUIREMENTS[1]]},
        "Value 1.0 for type VCPU in resourceRequirement is not valid. Please provide a numeric value.",
    ),
    ({}, {"resourceRequirements": [REQUIREMENTS[0], {"type": "MEMORY", "value": "3"}]}, "at least 4"),
    ({}, {"resourceRequirements": [*REQUIREMENTS, {"type": "GPU", "value": "0"}]}, "at least 1"),
    ({}, {"resourceRequirements": [*REQUIREMENTS, REQUIREMENTS[0]]}, "more than once"),
    ({}, {"command": ["sh", ""]}, "may not contain an empty string"),
    ({}, {"secrets": [{"name": "A", "valueFrom": "arn"}]}, "executionRoleArn is required"),
]


def test_a_job_definition_that_aws_refuses_is_refused(aws: Aws, subtests: pytest.Subtests) -> None:
    for changes, container, words in DEFINITIONS:
        properties = {"image": "i", "resourceRequirements": REQUIREMENTS, **container}
        request = {"jobDefinitionName": "a", "type": "container", "containerProperties": properties, **changes}
        with subtests.test(words):
            code, message = refusal(aws("batch").register_job_definition, **request)
            assert (code, words in message) == ("ClientException", True), message
    assert aws("batch").describe_job_definitions()["jobDefinitions"] == []


POLICIES: list[tuple[dict[str, Any], str]] = [
    ({"shareDecaySeconds": 604_801}, "shareDecaySeconds must be between 0 and 604800"),
    ({"computeReservation": 100}, "computeReservation must be between 0 and 99"),
    ({"shareDistribution": [{"shareIdentifier": "a-b"}]}, "letters and digits"),
    ({"shareDistribution": [{"shareIdentifier": "a", "weightFactor": 0}]}, "weightFactor must be between"),
    ({"shareDistribution": [{"shareIdentifier": name} for name in ("UserA*", "UserA1")]}, "can't overlap"),
    ({"shareDistribution": [{"shareIdentifier": name} for name in ("UserA", "UserA")]}, "can't overlap"),
]


def test_a_scheduling_policy_that_aws_refuses_is_refused(aws: Aws, subtests: pytest.Subtests) -> None:
    for policy, words in POLICIES:
        with subtests.test(words):
            code, message = refusal(aws("batch").create_scheduling_policy, name="a", fairsharePolicy=policy)
            assert (code, words in message) == ("ClientException", True), message
    assert aws("batch").list_scheduling_policies()["schedulingPolicies"] == []


def test_the_limits_themselves_are_taken(aws: Aws) -> None:
    rules = [{"onStatusReason": "Host EC2*", "onExitCode": "137", "action": "RETRY"}] * 5
    at_the_limits = {
        "jobDefinitionName": "a" * 128,
        "timeout": {"attemptDurationSeconds": 60},
        "retryStrategy": {"attempts": 10, "evaluateOnExit": rules},
        "tags": {f"t{n}": "v" * 256 for n in range(50)},
    }
    aws("batch").register_job_definition(
        type="container", containerProperties={"image": "i" * 255, "vcpus": 1, "memory": 4}, **at_the_limits
    )
    (taken,) = aws("batch").describe_job_definitions(jobDefinitionName="a" * 128)["jobDefinitions"]
    assert {name: taken[name] for name in at_the_limits} == at_the_limits


def test_a_page_has_one_to_a_hundred_entries(aws: Aws, subtests: pytest.Subtests) -> None:
    for operation in ("compute_environments", "job_queues", "job_definitions"):
        for size in (0, 101):
            with subtests.test(operation, size=size):
                _, message = refusal(getattr(aws("batch"), f"describe_{operation}"), maxResults=size)
                assert "maxResults must be between 1 and 100" in message


def test_what_this_account_does_not_have_is_refused_rather_than_ignored(aws: Aws, resources: dict[str, Any]) -> None:
    batch = aws("batch")
    for request in (
        {"type": "UNMANAGED"},
        {"type": "MANAGED", "computeResources": {**resources, "type": "FARGATE"}},
        {
            "type": "MANAGED",
            "computeResources": resources,
            "eksConfiguration": {"eksClusterArn": "a", "kubernetesNamespace": "b"},
        },
    ):
        _, message = refusal(batch.create_compute_environment, computeEnvironmentName="a", **request)
        assert "not part of this emulated account" in message
    _, message = refusal(batch.list_consumable_resources)
    assert message == "ListConsumableResources is not part of this emulated account."

"""Compute environments as AWS has them: states, in-place updates or not, deletion."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.server import EmulatorServer

Aws = Callable[..., Any]
Held = Callable[[], AbstractContextManager[None]]
LINKED = "arn:aws:iam::123456789012:role/aws-service-role/batch.amazonaws.com/AWSServiceRoleForBatch"
BATCH_POLICY = "arn:aws:iam::aws:policy/service-role/AWSBatchServiceRole"


def described(aws: Aws, name: str = "environment") -> dict[str, Any]:
    found: list[dict[str, Any]] = aws("batch").describe_compute_environments(computeEnvironments=[name])[
        "computeEnvironments"
    ]
    return found[0] if found else {"status": "GONE"}


def test_a_new_environment_is_creating_and_then_valid(
    aws: Aws, resources: dict[str, Any], held: Held, wait_until: Callable[..., Any]
) -> None:
    with held():
        made = aws("batch").create_compute_environment(
            computeEnvironmentName="environment", type="MANAGED", computeResources=resources, tags={"a": "b"}
        )
        assert described(aws)["status"] == "CREATING"
    assert made["computeEnvironmentArn"] == "arn:aws:batch:us-east-1:123456789012:compute-environment/environment"
    wait_until(lambda: described(aws)["status"] == "VALID")
    found = described(aws)
    assert (found["state"], found["statusReason"], found["tags"]) == (
        "ENABLED",
        "ComputeEnvironment Healthy",
        {"a": "b"},
    )
    assert found["computeResources"] == {
        **resources,
        "desiredvCpus": 0,
        "ec2Configuration": [{"imageType": "ECS_AL2023"}],
    }
    assert found["ecsClusterArn"].startswith("arn:aws:ecs:us-east-1:123456789012:cluster/environment_Batch_")


def test_without_a_service_role_batch_makes_its_linked_one(aws: Aws, environment: Callable[..., Any]) -> None:
    assert environment()["serviceRole"] == LINKED
    assert aws("iam").get_role(RoleName="AWSServiceRoleForBatch")["Role"]["Arn"] == LINKED


def test_the_image_of_gpu_types_is_the_nvidia_one(environment: Callable[..., Any]) -> None:
    found = environment(instanceTypes=["g4dn.xlarge"])
    assert found["computeResources"]["ec2Configuration"] == [{"imageType": "ECS_AL2023_NVIDIA"}]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"instanceRole": "missing"}, "Invalid IamInstanceProfile: missing"),
        ({"subnets": ["subnet-0123456789abcdef0"]}, "The subnet ID 'subnet-0123456789abcdef0' does not exist"),
        ({"securityGroupIds": ["sg-0123456789abcdef0"]}, "security group 'sg-0123456789abcdef0' does not exist"),
        ({"launchTemplate": {"launchTemplateId": "lt-0123456789abcdef0"}}, "launch template"),
        ({"launchTemplate": {"launchTemplateName": "none"}}, "launch template"),
        ({"type": "SPOT", "allocationStrategy": "BEST_FIT", "spotIamFleetRole": "none"}, "Spot Fleet role"),
    ],
)
def test_what_batch_finds_out_later_makes_the_environment_invalid(
    environment: Callable[..., Any], changes: dict[str, Any], words: str
) -> None:
    """Batch takes names and ARNs as they are; "INVALID compute environment" in its user guide."""
    found = environment(**changes)
    assert found["status"] == "INVALID"
    assert found["statusReason"].startswith("CLIENT_ERROR - ")
    assert words in found["statusReason"]


def test_a_service_role_that_batch_may_not_assume_makes_it_invalid_and_an_update_mends_it(
    aws: Aws, resources: dict[str, Any], role: Callable[[str, str], str], wait_until: Callable[..., Any]
) -> None:
    batch = aws("batch")
    batch.create_compute_environment(
        computeEnvironmentName="environment",
        type="MANAGED",
        computeResources=resources,
        serviceRole=role("wrong", "ec2"),
    )
    wait_until(lambda: described(aws)["status"] == "INVALID")
    assert "sts:AssumeRole" in described(aws)["statusReason"]
    batch.update_compute_environment(computeEnvironment="environment", serviceRole=role("right", "batch"))
    wait_until(lambda: described(aws)["status"] == "VALID")


def test_a_role_that_trusts_everybody_names_no_service(
    aws: Aws, environment: Callable[..., Any], subtests: pytest.Subtests
) -> None:
    for number, principal in enumerate(("*", {"AWS": "*"})):
        allow = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
        made = aws("iam").create_role(RoleName=f"everybody{number}", AssumeRolePolicyDocument=policy)["Role"]["Arn"]
        with subtests.test(principal=principal):
            assert environment(f"e{number}", serviceRole=made)["status"] == "INVALID"


def test_a_launch_template_is_found_by_id_name_and_version(aws: Aws, environment: Callable[..., Any]) -> None:
    made = aws("ec2").create_launch_template(LaunchTemplateName="t", LaunchTemplateData={"KeyName": "k"})
    template = made["LaunchTemplate"]["LaunchTemplateId"]
    for number, reference in enumerate(
        (
            {"launchTemplateId": template, "version": "1"},
            {"launchTemplateId": template, "version": "$Latest"},
            {"launchTemplateName": "t"},
        )
    ):
        assert environment(f"e{number}", launchTemplate=reference)["status"] == "VALID"
    assert environment("e9", launchTemplate={"launchTemplateId": template, "version": "2"})["status"] == "INVALID"


UPDATES: list[dict[str, Any]] = [
    {"maxvCpus": 32},
    {"minvCpus": 2},
    {"desiredvCpus": 4},
    {"instanceTypes": ["c5a.xlarge"]},
    {"tags": {"Project": "x"}},
    {"ec2Configuration": [{"imageType": "ECS_AL2023", "imageIdOverride": "ami-1"}]},
    {"allocationStrategy": "BEST_FIT_PROGRESSIVE_ORDERED"},
]


def test_with_the_linked_role_and_an_updatable_strategy_everything_is_updated_in_place(
    aws: Aws, environment: Callable[..., Any], held: Held, wait_until: Callable[..., Any], subtests: pytest.Subtests
) -> None:
    for update in UPDATES:
        name = next(iter(update))
        before = environment(name)
        with subtests.test(name):
            with held():
                aws("batch").update_compute_environment(
                    computeEnvironment=before["computeEnvironmentArn"], computeResources=update
                )
                assert described(aws, name)["status"] == "UPDATING"
            wait_until(lambda name=name: described(aws, name)["status"] == "VALID")
            after = described(aws, name)
            assert after["uuid"] == before["uuid"]
            expected = {**before["computeResources"], **update}
            expected["desiredvCpus"] = max(expected["desiredvCpus"], expected["minvCpus"])
            assert after["computeResources"] == expected


def test_without_them_only_the_vcpus_are(
    aws: Aws, environment: Callable[..., Any], role: Callable[[str, str], str], subtests: pytest.Subtests
) -> None:
    own_role = role("own", "batch")
    for kind, changes in (("own role", {"serviceRole": own_role}), ("BEST_FIT", {"allocationStrategy": "BEST_FIT"})):
        for update in UPDATES:
            member = next(iter(update))
            name = f"{kind}-{member}".replace(" ", "-")
            before = environment(name, **changes)
            request = {"computeEnvironment": name, "computeResources": update}
            with subtests.test(kind, member=member):
                if member.endswith("vCpus"):
                    aws("batch").update_compute_environment(**request)
                    continue
                with pytest.raises(ClientError, match="Following fields"):
                    aws("batch").update_compute_environment(**request)
                assert described(aws, name) == before


def test_an_environment_of_instances_never_becomes_one_of_fargate(aws: Aws, environment: Callable[..., Any]) -> None:
    environment()
    with pytest.raises(ClientError, match="FARGATE: not part of this emulated account"):
        aws("batch").update_compute_environment(computeEnvironment="environment", computeResources={"type": "FARGATE"})
    assert described(aws)["computeResources"]["type"] == "EC2"


def test_an_update_policy_is_kept_within_its_limits_and_only_where_updates_are_in_place(
    aws: Aws, environment: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    environment()
    environment("best", allocationStrategy="BEST_FIT")
    policy = {"terminateJobsOnUpdate": False, "jobExecutionTimeoutMinutes": 360}
    batch = aws("batch")
    batch.update_compute_environment(computeEnvironment="environment", updatePolicy=policy)
    assert described(aws)["updatePolicy"] == policy
    wait_until(lambda: described(aws)["status"] == "VALID")
    with pytest.raises(ClientError, match="less than or equal to 7200"):
        batch.update_compute_environment(
            computeEnvironment="environment", updatePolicy={"jobExecutionTimeoutMinutes": 7201}
        )
    with pytest.raises(ClientError, match="updatePolicy"):
        batch.update_compute_environment(computeEnvironment="best", updatePolicy=policy)


def test_an_environment_never_changes_between_a_linked_and_an_own_role(
    aws: Aws, environment: Callable[..., Any], role: Callable[[str, str], str]
) -> None:
    environment()
    with pytest.raises(ClientError, match="service-linked role"):
        aws("batch").update_compute_environment(computeEnvironment="environment", serviceRole=role("own", "batch"))


def test_desired_vcpus_go_up_but_not_down(aws: Aws, environment: Callable[..., Any]) -> None:
    environment(desiredvCpus=8)
    with pytest.raises(ClientError, match="Manually scaling down compute environment is not supported"):
        aws("batch").update_compute_environment(computeEnvironment="environment", computeResources={"desiredvCpus": 4})


def test_an_environment_is_deleted_when_it_is_disabled_and_in_no_queue(
    aws: Aws, queue: Callable[..., dict[str, Any]], held: Held, wait_until: Callable[..., Any]
) -> None:
    name = queue("q")["computeEnvironmentOrder"][0]["computeEnvironment"]
    batch = aws("batch")
    with pytest.raises(ClientError, match="must be DISABLED"):
        batch.delete_compute_environment(computeEnvironment=name)
    with held():
        batch.update_compute_environment(computeEnvironment=name, state="DISABLED")
        with pytest.raises(ClientError, match="Cannot delete, resource is being modified"):
            batch.delete_compute_environment(computeEnvironment=name)
    wait_until(lambda: described(aws, name)["status"] == "VALID")
    with pytest.raises(ClientError, match="Cannot delete, found existing JobQueue relationship"):
        batch.delete_compute_environment(computeEnvironment=name)
    batch.update_job_queue(jobQueue="q", state="DISABLED")
    wait_until(lambda: batch.describe_job_queues()["jobQueues"][0]["status"] == "VALID")
    batch.delete_job_queue(jobQueue="q")
    wait_until(lambda: not batch.describe_job_queues()["jobQueues"])
    with held():
        batch.delete_compute_environment(computeEnvironment=name)
        assert described(aws, name)["status"] == "DELETING"
    wait_until(lambda: described(aws, name)["status"] == "GONE")
    batch.delete_compute_environment(computeEnvironment=name)


@pytest.fixture
def disabled_with_own_role(
    aws: Aws, resources: dict[str, Any], role: Callable[[str, str], str], wait_until: Callable[..., Any]
) -> None:
    """A disabled environment with the role `own`, which has a policy."""
    aws("batch").create_compute_environment(
        computeEnvironmentName="environment",
        type="MANAGED",
        computeResources=resources,
        serviceRole=role("own", "batch"),
        state="DISABLED",
    )
    aws("iam").attach_role_policy(RoleName="own", PolicyArn=BATCH_POLICY)
    wait_until(lambda: described(aws)["status"] == "VALID")


@pytest.mark.usefixtures("disabled_with_own_role")
def test_an_environment_whose_own_role_went_first_can_not_be_deleted(
    aws: Aws, role: Callable[[str, str], str], wait_until: Callable[..., Any]
) -> None:
    aws("iam").detach_role_policy(RoleName="own", PolicyArn=BATCH_POLICY)
    aws("iam").delete_role(RoleName="own")
    aws("batch").delete_compute_environment(computeEnvironment="environment")
    wait_until(lambda: described(aws)["status"] == "INVALID")
    assert "sts:AssumeRole" in described(aws)["statusReason"]
    role("own", "batch")
    aws("iam").attach_role_policy(RoleName="own", PolicyArn=BATCH_POLICY)
    aws("batch").delete_compute_environment(computeEnvironment="environment")
    wait_until(lambda: described(aws)["status"] == "GONE")


@pytest.mark.usefixtures("disabled_with_own_role")
def test_an_environment_stays_in_deleting_until_its_own_role_may_end_instances(
    aws: Aws, server: EmulatorServer, wait_until: Callable[..., Any]
) -> None:
    aws("iam").detach_role_policy(RoleName="own", PolicyArn=BATCH_POLICY)
    aws("batch").delete_compute_environment(computeEnvironment="environment")
    server.control.advance(24 * 3600)
    assert described(aws)["status"] == "DELETING"
    with pytest.raises(ClientError, match="resource is being modified"):
        aws("batch").delete_compute_environment(computeEnvironment="environment")
    aws("iam").attach_role_policy(RoleName="own", PolicyArn=BATCH_POLICY)
    wait_until(lambda: described(aws)["status"] == "GONE")


def test_what_iam_has_just_made_may_not_be_seen_yet(
    aws: Aws, server: EmulatorServer, environment: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    """Source: "Troubleshoot IAM", IAM user guide."""
    environment("before")
    server.control.delay_iam(60)
    aws("iam").create_instance_profile(InstanceProfileName="new")
    assert environment("again")["status"] == "VALID"
    assert "Invalid IamInstanceProfile: new" in environment("early", instanceRole="new")["statusReason"]
    server.control.advance(60)
    assert environment("later", instanceRole="new")["status"] == "VALID"
    assert described(aws, "early")["status"] == "INVALID", "it is looked at again when it is updated"
    aws("batch").update_compute_environment(computeEnvironment="early", state="ENABLED")
    wait_until(lambda: described(aws, "early")["status"] == "VALID")


def test_a_later_delay_of_iam_is_not_cut_short_by_an_earlier_one(
    aws: Aws, server: EmulatorServer, environment: Callable[..., Any]
) -> None:
    server.control.delay_iam(60)
    server.control.delay_iam(600)
    aws("iam").create_instance_profile(InstanceProfileName="new")
    server.control.advance(60)
    assert environment("early", instanceRole="new")["status"] == "INVALID"
    server.control.advance(540)
    assert environment("later", instanceRole="new")["status"] == "VALID"


def test_a_name_is_taken_once(aws: Aws, environment: Callable[..., Any], resources: dict[str, Any]) -> None:
    environment()
    with pytest.raises(ClientError, match="Object already exists"):
        aws("batch").create_compute_environment(
            computeEnvironmentName="environment", type="MANAGED", computeResources=resources
        )

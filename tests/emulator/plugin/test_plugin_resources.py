"""What the plugin does to the account beyond changing one input, each of the traps with its reason."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import status_pb2

from emulator.plugin.schema import UNKNOWN

ROLE = "aws:iam/role:Role"
GROUP = "aws:cloudwatch/logGroup:LogGroup"
SECRET = "aws:secretsmanager/secret:Secret"
ENVIRONMENT = "aws:batch/computeEnvironment:ComputeEnvironment"
QUEUE = "aws:batch/jobQueue:JobQueue"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "batch.amazonaws.com"}, "Action": "sts:AssumeRole"}],
    }
)


def said(refused: Any) -> str:
    """Return what the engine would show of an error."""
    return str(refused.value.details())


def metadata(refused: Any) -> Any:
    return refused.value.trailing_metadata()


def test_an_automatic_name_is_decided_in_check_and_kept(engine: Any) -> None:
    role = engine.create(ROLE, "host", {"assumeRolePolicy": TRUST})
    assert role.inputs["name"].startswith("host-")
    assert role.state["name"] == role.inputs["name"]
    engine.seed = b"another"
    assert engine.diff(role, {"assumeRolePolicy": TRUST}).changes == pb.DiffResponse.DIFF_NONE
    assert engine.inputs(ROLE, "host", {"assumeRolePolicy": TRUST})["name"] != role.inputs["name"]


def test_a_name_that_the_program_gave_is_not_kept_when_it_gives_none(engine: Any) -> None:
    """Else taking a fixed name out would leave two stacks fighting over it."""
    group = engine.create(GROUP, "jobs", {"name": "jobs-fixed"})
    assert list(engine.diff(group, {}).replaces) == ["name"]


def test_a_resource_with_a_name_of_its_own_goes_before_its_replacement(engine: Any) -> None:
    named = engine.create(ROLE, "host", {"assumeRolePolicy": TRUST, "name": "host"})
    assert engine.diff(named, {"assumeRolePolicy": TRUST, "name": "host", "path": "/x/"}).deleteBeforeReplace
    unnamed = engine.create(ROLE, "host", {"assumeRolePolicy": TRUST})
    assert not engine.diff(unnamed, {"assumeRolePolicy": TRUST, "path": "/x/"}).deleteBeforeReplace


def test_an_input_that_is_not_served_is_refused_by_its_name(engine: Any) -> None:
    _, failures = engine.check(ROLE, "host", {"assumeRolePolicy": TRUST, "inlinePolicies": []})
    assert failures == [("inlinePolicies", "the stand-in AWS plugin does not serve the property inlinePolicies")]
    resources = {"type": "SPOT", "maxVcpus": 1, "subnets": [], "colour": "red"}
    _, failures = engine.check(ENVIRONMENT, "c5a", {"type": "MANAGED", "computeResources": resources})
    assert [name for name, _ in failures] == ["computeResources.colour"]


def test_a_type_that_is_not_served_is_refused_with_those_that_are(engine: Any) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        engine.check("aws:sqs/queue:Queue", "q", {})
    assert "does not serve aws:sqs/queue:Queue, only aws:batch" in said(refused)


def test_a_preview_keeps_what_is_known_and_promises_the_rest(engine: Any, aws: Any) -> None:
    before = aws("iam").list_roles()["Roles"]
    state = engine.preview_create(ROLE, "host", {"assumeRolePolicy": UNKNOWN, "tags": {"a": "1"}})
    assert state["assumeRolePolicy"] == state["arn"] == state["uniqueId"] == UNKNOWN
    assert state["tags"] == state["tagsAll"] == {"a": "1"}
    assert aws("iam").list_roles()["Roles"] == before


def test_a_value_that_is_not_known_yet_is_a_difference(engine: Any) -> None:
    role = engine.create(ROLE, "host", {"assumeRolePolicy": TRUST, "path": "/a/"})
    assert not engine.diff(role, {"assumeRolePolicy": UNKNOWN, "path": "/a/"}).replaces
    assert list(engine.diff(role, {"assumeRolePolicy": TRUST, "path": UNKNOWN}).replaces) == ["path"]


def test_the_paths_of_differences_are_detailed(engine: Any, world: Any) -> None:
    program = world.environment_program()
    environment = engine.create(ENVIRONMENT, "c5a", program)
    resources = {
        **program["computeResources"],
        "maxVcpus": 20,
        "placementGroup": "near",
        "tags": {"a": "1", "b.c": "2"},
    }
    reply = engine.diff(environment, {**program, "computeResources": resources})
    assert {path: difference.kind for path, difference in reply.detailedDiff.items()} == {
        "computeResources.maxVcpus": pb.PropertyDiff.UPDATE,
        "computeResources.placementGroup": pb.PropertyDiff.ADD_REPLACE,
        'computeResources.tags["b.c"]': pb.PropertyDiff.ADD,
    }
    assert all(difference.inputDiff for difference in reply.detailedDiff.values())
    assert (list(reply.diffs), list(reply.replaces)) == (["computeResources"], ["computeResources"])
    ignored = engine.diff(
        environment,
        {**program, "computeResources": resources},
        ("computeResources.placementGroup", "computeResources.tags"),
    )
    assert list(ignored.detailedDiff) == ["computeResources.maxVcpus"]


def test_drift_is_seen_and_only_drift(engine: Any, aws: Any) -> None:
    role = engine.create(ROLE, "host", {"assumeRolePolicy": TRUST, "description": "mine", "tags": {"a": "1"}})
    aws("iam").update_role(RoleName=role.id, Description="theirs")
    aws("iam").tag_role(RoleName=role.id, Tags=[{"Key": "b", "Value": "2"}])
    inputs, state = engine.read(role)
    assert inputs == {**role.inputs, "description": "theirs", "tags": {"a": "1", "b": "2"}}
    assert state["tagsAll"] == {"a": "1", "b": "2"}
    aws("iam").delete_role(RoleName=role.id)
    assert engine.read(role) is None
    engine.delete(role)  # what is gone is deleted


def test_an_import_finds_the_inputs(engine: Any) -> None:
    group = engine.create(GROUP, "jobs", {"retentionInDays": 30, "tags": {"a": "1"}})
    inputs, state = engine.import_(GROUP, group.id)
    assert inputs == {"name": group.id, "retentionInDays": 30, "tags": {"a": "1"}}
    assert state["arn"] == group.state["arn"]


def test_an_error_of_aws_is_its_operation_and_its_words(engine: Any, log_file: Path) -> None:
    engine.create(ROLE, "host", {"assumeRolePolicy": TRUST, "name": "taken"})
    with pytest.raises(grpc.RpcError) as refused:
        engine.create(ROLE, "host", {"assumeRolePolicy": TRUST, "name": "taken"})
    assert said(refused) == "CreateRole: EntityAlreadyExists: Role with name taken already exists."
    assert not log_file.exists() or not log_file.read_text()


def test_an_error_that_nobody_expected_goes_into_the_log(
    engine: Any, log_file: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> str:
        raise KeyError("colour")

    monkeypatch.setattr(engine.plugin.types[ROLE], "create", fail)
    with pytest.raises(grpc.RpcError) as refused:
        engine.create(ROLE, "host", {"assumeRolePolicy": TRUST})
    assert said(refused).endswith(f"failed unexpectedly (KeyError: 'colour'), see {log_file}")
    assert "Traceback" in caplog.text


def test_what_is_half_made_is_kept_in_the_state(engine: Any, aws: Any) -> None:
    """An environment that turns out INVALID exists: losing it would orphan it and block its name."""
    role = engine.create(ROLE, "instance", {"assumeRolePolicy": TRUST})
    subnet = aws("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    resources = {
        "type": "EC2",
        "allocationStrategy": "BEST_FIT_PROGRESSIVE",
        "instanceRole": "arn:aws:iam::123456789012:instance-profile/nothing",
        "instanceTypes": ["c5a.large"],
        "maxVcpus": 4,
        "subnets": [subnet],
    }
    program = {"type": "MANAGED", "computeResources": resources}
    with pytest.raises(grpc.RpcError) as refused:
        engine.create(ENVIRONMENT, "c5a", program)
    status = status_pb2.Status.FromString(dict(metadata(refused))["grpc-status-details-bin"])
    details = pb.ErrorResourceInitFailed()
    assert status.details[0].Unpack(details)
    assert details.id in said(refused)
    assert str(details.properties["arn"]).endswith(details.id)
    batch = aws("batch")
    assert batch.describe_compute_environments(computeEnvironments=[details.id])["computeEnvironments"]
    engine.stub.Delete(pb.DeleteRequest(id=details.id, urn=f"urn:pulumi:dev::rl::{ENVIRONMENT}::c5a"))
    assert not batch.describe_compute_environments(computeEnvironments=[details.id])["computeEnvironments"]
    assert role.id


def test_what_an_update_left_undone_is_done_by_the_next(engine: Any, aws: Any) -> None:
    """After a failure the engine has the new inputs in its state, although they never reached the account."""
    role = engine.create(ROLE, "host", {"assumeRolePolicy": TRUST, "description": "old", "tags": {"a": "1"}})
    program = {"assumeRolePolicy": TRUST, "description": "new", "tags": {"a": "2"}}
    role.inputs = engine.inputs(ROLE, "host", program, role.inputs)
    engine.update(role, program)
    found = aws("iam").get_role(RoleName=role.id)["Role"]
    assert (found["Description"], found["Tags"]) == ("new", [{"Key": "a", "Value": "2"}])


def test_what_was_half_made_and_could_not_be_read_then_gets_its_tags(engine: Any, world: Any, aws: Any) -> None:
    program = world.environment_program()
    environment = engine.create(ENVIRONMENT, "c5a", program)
    environment.state = {}
    engine.update(environment, {**program, "tags": {"a": "b"}})
    (found,) = aws("batch").describe_compute_environments(computeEnvironments=[environment.id])["computeEnvironments"]
    assert found["tags"] == {"a": "b"}


def test_an_invalid_environment_is_an_error_where_something_changed_and_left_alone_where_nothing_did(
    engine: Any, world: Any, aws: Any, wait_until: Callable[..., Any]
) -> None:
    """Source: resourceComputeEnvironmentUpdate of the Terraform provider."""
    batch = aws("batch")
    environment = engine.create(ENVIRONMENT, "c5a", world.environment_program())
    batch.update_compute_environment(computeEnvironment=environment.id, computeResources={"instanceRole": "nothing"})
    named = {"computeEnvironments": [environment.id]}
    wait_until(lambda: batch.describe_compute_environments(**named)["computeEnvironments"][0]["status"] == "INVALID")
    environment.inputs["computeResources"] = {**environment.inputs["computeResources"], "instanceRole": "nothing"}
    program = {**world.environment_program(), "computeResources": environment.inputs["computeResources"]}
    assert engine.update(environment, program)["status"] == "INVALID"
    with pytest.raises(grpc.RpcError) as refused:
        engine.update(environment, {**program, "state": "DISABLED"})
    assert "is not valid: CLIENT_ERROR - Invalid IamInstanceProfile: nothing" in said(refused)


def test_only_an_updatable_environment_changes_its_hosts_in_place(engine: Any, world: Any) -> None:
    """Source: resourceComputeEnvironmentCustomizeDiff of the Terraform provider."""
    program = world.environment_program()
    resources = program["computeResources"]
    environment = engine.create(ENVIRONMENT, "c5a", program)
    role = "arn:aws:iam::123456789012:role/own"

    def replaces(**changes: Any) -> bool:
        new = {**program, "computeResources": {**resources, **changes}}
        return bool(engine.diff(environment, new).replaces)

    assert not replaces(instanceTypes=["c5a.4xlarge"])
    assert replaces(instanceTypes=["c5a.4xlarge"], allocationStrategy="BEST_FIT")
    assert replaces(ec2Configurations=[*resources["ec2Configurations"], {"imageType": "ECS_AL2023_NVIDIA"}])
    assert replaces(launchTemplate=None)
    environment.inputs["serviceRole"] = program["serviceRole"] = role
    assert replaces(instanceTypes=["c5a.4xlarge"])
    assert replaces(launchTemplate={**resources["launchTemplate"], "version": UNKNOWN})
    assert not replaces(maxVcpus=32)


def test_the_service_role_is_never_changed_behind_awss_back(engine: Any, world: Any) -> None:
    """The provider sends a role that is added, which AWS refuses, and takes no notice of one that is removed."""
    program = world.environment_program()
    del program["updatePolicy"]
    environment = engine.create(ENVIRONMENT, "c5a", program)
    role = world.engine.create(ROLE, "batch", {"assumeRolePolicy": TRUST})
    added = {**program, "serviceRole": role.state["arn"]}
    assert not engine.diff(environment, added).replaces
    with pytest.raises(grpc.RpcError) as refused:
        engine.update(environment, added)
    assert "service-linked role" in said(refused)
    environment.inputs["serviceRole"] = role.state["arn"]
    assert engine.diff(environment, program).changes == pb.DiffResponse.DIFF_NONE
    environment.inputs.pop("serviceRole")


def test_an_environment_is_disabled_before_it_goes_and_a_queue_too(engine: Any, world: Any, aws: Any) -> None:
    environment = engine.create(ENVIRONMENT, "c5a", world.environment_program())
    orders = [{"computeEnvironment": environment.state["arn"], "order": 1}]
    queue = engine.create(
        QUEUE, "c5a", {"name": "c5a", "computeEnvironmentOrders": orders, "priority": 1, "state": "ENABLED"}
    )
    with pytest.raises(grpc.RpcError) as refused:
        engine.delete(environment)
    assert "found existing JobQueue relationship" in said(refused)
    engine.delete(queue)
    engine.delete(environment)
    assert not aws("batch").describe_job_queues(jobQueues=["c5a"])["jobQueues"]
    assert not aws("batch").describe_compute_environments(computeEnvironments=[environment.id])["computeEnvironments"]


def test_a_new_version_of_a_template_is_not_known_in_a_preview(engine: Any, aws: Any) -> None:
    """Else the environments that refer to the latest version would not be seen to change with it."""
    template = engine.create(TEMPLATE, "host", {"userData": "MQ==", "updateDefaultVersion": False})
    preview = engine.update(template, {"userData": "Mg==", "updateDefaultVersion": False}, preview=True)
    assert (preview["latestVersion"], preview["defaultVersion"]) == (UNKNOWN, 1)
    state = engine.update(template, {"userData": "Mg==", "updateDefaultVersion": False})
    assert (state["latestVersion"], state["defaultVersion"]) == (2, 1)
    state = engine.update(template, {"userData": "Mg==", "updateDefaultVersion": True})
    assert (state["latestVersion"], state["defaultVersion"]) == (2, 2)
    engine.update(template, {"userData": "Mg==", "defaultVersion": 1})
    found = aws("ec2").describe_launch_templates(LaunchTemplateIds=[template.id])["LaunchTemplates"][0]
    assert found["DefaultVersionNumber"] == 1
    only_tags = engine.update(template, {"userData": "Mg==", "defaultVersion": 1, "tags": {"a": "1"}}, preview=True)
    assert only_tags["latestVersion"] == 2


def test_what_aws_never_tells_has_its_effect_at_the_end(engine: Any, aws: Any) -> None:
    kept = engine.create(GROUP, "kept", {"skipDestroy": True})
    engine.delete(kept)
    assert aws("logs").describe_log_groups(logGroupNamePrefix=kept.id)["logGroups"]
    secret = engine.create(SECRET, "gone", {"recoveryWindowInDays": 0})
    waiting = engine.create(SECRET, "waiting", {"recoveryWindowInDays": 7})
    engine.delete(secret)
    engine.delete(waiting)
    assert engine.read(waiting) is None
    listed = aws("secretsmanager").list_secrets(IncludePlannedDeletion=True)["SecretList"]
    assert {waiting.id} == {found["ARN"] for found in listed if found["ARN"] in (secret.id, waiting.id)}
    role = engine.create(ROLE, "host", {"assumeRolePolicy": TRUST, "forceDetachPolicies": True})
    aws("iam").attach_role_policy(RoleName=role.id, PolicyArn="arn:aws:iam::aws:policy/ReadOnlyAccess")
    engine.delete(role)
    assert engine.read(role) is None


def test_the_sixth_version_of_a_policy_takes_the_place_of_the_oldest(engine: Any, aws: Any) -> None:
    def program(action: int) -> dict[str, Any]:
        statement = {"Effect": "Allow", "Action": [f"s3:Get{action}"], "Resource": "*"}
        return {"policy": json.dumps({"Version": "2012-10-17", "Statement": [statement]})}

    policy = engine.create("aws:iam/policy:Policy", "submit", program(0))
    for action in range(1, 8):
        engine.update(policy, program(action))
    assert len(aws("iam").list_policy_versions(PolicyArn=policy.id)["Versions"]) == 5


def test_requests_are_served_side_by_side(engine: Any) -> None:
    with futures.ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda n: engine.create(ROLE, f"host{n}", {"assumeRolePolicy": TRUST}), range(16)))
    assert len({role.id for role in made}) == 16


@pytest.fixture
def stuck(engine: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make environments that never settle, as the plugin sees it."""
    kind = engine.plugin.types[ENVIRONMENT]
    monkeypatch.setattr(kind, "_settled", lambda aws, _: aws.wait("it is valid", lambda: None))
    yield
    engine.plugin._account.cancelled.clear()


def test_a_request_waits_as_long_as_the_program_says(engine: Any, world: Any, stuck: None) -> None:  # noqa: ARG001
    with pytest.raises(grpc.RpcError) as refused:
        engine.create(ENVIRONMENT, "late", world.environment_program(), timeout=0.2)
    assert "it is valid took longer than 0.2 s" in said(refused)


def test_a_cancelled_request_ends(engine: Any, world: Any, stuck: None) -> None:  # noqa: ARG001
    program = world.environment_program()
    with futures.ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(engine.create, ENVIRONMENT, "late", program)
        while not waiting.done():
            engine.cancel()
            time.sleep(0.01)
        with pytest.raises(grpc.RpcError) as refused:
            waiting.result()
    assert "cancelled while waiting until it is valid" in said(refused)

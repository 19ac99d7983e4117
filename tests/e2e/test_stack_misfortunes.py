"""AWS not being ready, and refusing: the update says so, and the next one goes on from there."""

import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

from emulator.server import EmulatorServer

SPOT = "c5a-large-spot"
BATCH_POLICY = "arn:aws:iam::aws:policy/service-role/AWSBatchServiceRole"
HOST_POLICY = "arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role"


def failed(stack: Any) -> str:
    """Run an update that fails, and return what it says."""
    done = stack.pulumi("up", "--yes", "--skip-preview", capture=True, check=False)
    assert done.returncode != 0
    return str(done.stdout)


def test_environments_that_were_invalid_because_iam_lagged_are_replaced_when_they_are_marked_for_it(
    make_stack: Callable[..., Any],
) -> None:
    """An update in which nothing has changed sends nothing, so it leaves them as they are."""
    stack = make_stack()
    account, before = stack.account, stack.account.inventory()
    account.control("POST", "iam", delay=600)
    assert "is not valid: CLIENT_ERROR" in failed(stack)
    invalid = account.environments()
    assert {environment["status"] for environment in invalid.values()} == {"INVALID"}
    account.control("POST", "clock", advance=600)
    failed(stack)
    assert {environment["status"] for environment in account.environments().values()} == {"INVALID"}
    deployment = json.loads(stack.pulumi("stack", "export", capture=True).stdout)["deployment"]
    for resource in deployment["resources"]:
        if resource["type"].endswith(":ComputeEnvironment"):
            stack.pulumi("state", "taint", resource["urn"], "--yes", capture=True)
    stack.up()
    assert {environment["status"] for environment in account.environments().values()} == {"VALID"}
    assert not account.environments().keys() & invalid.keys()
    assert set(account.queues()) == {"c5a-large", SPOT}
    stack.assert_nothing_to_do()
    stack.destroy()
    assert account.inventory() == before


def test_an_old_environment_that_may_not_go_yet_goes_with_a_later_update(make_stack: Callable[..., Any]) -> None:
    """Whether a queue still uses an environment is known to AWS with some delay."""
    stack = make_stack()
    account, before = stack.account, stack.account.inventory()
    stack.up()
    old = account.environment_of(SPOT)["computeEnvironmentName"]
    words = {"code": "ClientException", "message": "Cannot delete, found existing JobQueue relationship"}
    refusal = {"service": "batch", "operation": "DeleteComputeEnvironment", "kind": "refuse", "count": 2, **words}
    account.control("POST", "faults", **refusal)
    stack.configure(spotAllocationStrategy="BEST_FIT")
    for _ in range(2):
        assert words["message"] in failed(stack)
        assert old in account.environments()
        new = account.environment_of(SPOT)
        assert (new["computeEnvironmentName"] != old, new["status"]) == (True, "VALID"), "the queue works meanwhile"
    stack.up()
    assert old not in account.environments()
    assert account.environment_of(SPOT)["uuid"] == new["uuid"]
    stack.assert_nothing_to_do()
    stack.destroy()
    assert account.inventory() == before


def test_an_environment_goes_before_its_role_and_is_stuck_without_it(make_stack: Callable[..., Any]) -> None:
    stack = make_stack(serviceRole="dedicated")
    account, before = stack.account, stack.account.inventory()
    stack.up()
    role = account.environment_of(SPOT)["serviceRole"].rpartition("/")[2]
    account.client("iam").detach_role_policy(RoleName=role, PolicyArn=BATCH_POLICY)
    destroying = subprocess.Popen(
        ["pulumi", "destroy", "--yes", "--skip-preview", "--non-interactive"],
        cwd=stack.folder,
        env=stack.home.process_environment(),
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while {environment["status"] for environment in account.environments().values()} != {"DELETING"}:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert not account.queues(), "queues go first"
    account.client("iam").attach_role_policy(RoleName=role, PolicyArn=BATCH_POLICY)
    assert destroying.wait(timeout=120) == 0
    assert account.inventory() == before


def test_policies_that_were_detached_by_hand_are_attached_again_as_the_advice_for_waiting_runs_says(
    make_stack: Callable[..., Any],
) -> None:
    stack = make_stack(serviceRole="dedicated")
    account, before = stack.account, stack.account.inventory()
    stack.up()
    environment, iam = account.environment_of(SPOT), account.client("iam")
    profile = environment["computeResources"]["instanceRole"].rpartition("/")[2]
    [host_role] = iam.get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]["Roles"]
    policies = {environment["serviceRole"].rpartition("/")[2]: BATCH_POLICY, host_role["RoleName"]: HOST_POLICY}
    for role, policy in policies.items():
        iam.detach_role_policy(RoleName=role, PolicyArn=policy)
    stack.pulumi("up", "--refresh", "--yes", "--skip-preview", capture=True)
    for role, policy in policies.items():
        attached = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
        assert [each["PolicyArn"] for each in attached] == [policy]
    stack.destroy()
    assert account.inventory() == before


def test_credentials_of_another_account_neither_update_nor_destroy_a_stack_that_names_its_own(
    make_stack: Callable[..., Any],
) -> None:
    """The engine destroys with the provider of the last update, so the key must have been there then."""
    stack = make_stack()
    account, before = stack.account, stack.account.inventory()
    stack.pulumi("config", "set", "--path", "--type", "string", "aws:allowedAccountIds[0]", "123456789012")
    stack.up()
    deployed = account.inventory()
    with EmulatorServer(account_id="999999999999") as other:
        for command in ("up", "destroy"):
            refused = subprocess.run(
                ["pulumi", command, "--yes", "--skip-preview", "--non-interactive"],
                cwd=stack.folder,
                env={**stack.home.process_environment(), "AWS_ENDPOINT_URL": other.url},
                capture_output=True,
                text=True,
                check=False,
            )
            assert refused.returncode != 0
            assert "AWS account ID not allowed: 999999999999" in refused.stdout + refused.stderr
    assert account.inventory() == deployed
    stack.destroy()
    assert account.inventory() == before

"""Changes of a deployed stack: in place where AWS allows it, else a new one before the old one goes."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

QUEUE, SPOT = "c5a-large", "c5a-large-spot"
SLEEP = {
    "image": "none",
    "command": ["sleep", "600"],
    "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "500"}],
}
# The new environment is there before the queue is told of it, and the old one goes after that.
REPLACED = [
    ("create-replacement", "ComputeEnvironment"),
    ("replace", "ComputeEnvironment"),
    ("update", "JobQueue"),
    ("delete-replaced", "ComputeEnvironment"),
]


@pytest.fixture
def deployed(make_stack: Callable[..., Any]) -> Any:
    """Deploy a stack: `deployed(maxVcpus=4)`."""

    def make(**config: Any) -> Any:
        stack = make_stack(**config)
        stack.up()
        return stack

    return make


def changed(stack: Any, **config: Any) -> list[tuple[str, str]]:
    """Change configuration, and return what the update did; nothing is left to do then."""
    stack.configure(**config)
    steps: list[tuple[str, str]] = stack.update()
    stack.assert_nothing_to_do()
    return steps


def uuids(stack: Any) -> dict[str, str]:
    """Tell which environment is behind each queue, all of them in good order."""
    queues = stack.account.queues()
    behind = {name: stack.account.environment_of(name) for name in queues}
    assert {(each["status"], each["state"]) for each in (*queues.values(), *behind.values())} == {("VALID", "ENABLED")}
    return {name: environment["uuid"] for name, environment in behind.items()}


def test_what_aws_changes_in_place_is_changed_in_place(deployed: Callable[..., Any]) -> None:
    stack = deployed()
    account, before = stack.account, uuids(stack)
    subnets = sorted(account.environment_of(SPOT)["computeResources"]["subnets"])[:2]
    steps = changed(
        stack,
        maxVcpus=64,
        rootVolumeGib=80,
        spotAllocationStrategy="SPOT_CAPACITY_OPTIMIZED",
        spotBidPercentage=60,
        subnetIds=subnets,
        tags={"team": "rl"},
    )
    assert {op for op, _ in steps} == {"update"}
    assert Counter(kind for _, kind in steps) == {
        "ComputeEnvironment": 2,
        "InstanceProfile": 1,
        "JobQueue": 2,
        "LaunchTemplate": 1,
        "LogGroup": 1,
        "Policy": 1,
        "Role": 3,
        "Secret": 1,
        "SecurityGroup": 1,
        "Table": 1,
    }
    assert uuids(stack) == before
    spot = account.environment_of(SPOT)
    resources = spot["computeResources"]
    assert (resources["maxvCpus"], resources["bidPercentage"]) == (64, 60)
    assert resources["allocationStrategy"] == "SPOT_CAPACITY_OPTIMIZED"
    assert sorted(resources["subnets"]) == subnets
    assert spot["tags"]["team"] == account.queues()[SPOT]["tags"]["team"] == "rl"
    assert "team" not in resources["tags"], "to change the tags of hosts is to replace them"
    chosen = {"LaunchTemplateId": resources["launchTemplate"]["launchTemplateId"], "Versions": ["2"]}
    assert resources["launchTemplate"]["version"] == "2"
    (version,) = account.client("ec2").describe_launch_template_versions(**chosen)["LaunchTemplateVersions"]
    assert version["LaunchTemplateData"]["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 80
    stack.destroy()


def test_types_come_and_go_and_an_environment_is_replaced_while_runs_run_on_another_queue(
    deployed: Callable[..., Any],
) -> None:
    stack = deployed()
    batch, before = stack.account.client("batch"), uuids(stack)
    batch.register_job_definition(jobDefinitionName="sleep", type="container", containerProperties=SLEEP)
    job = batch.submit_job(jobName="sleep", jobQueue=SPOT, jobDefinition="sleep")["jobId"]

    assert Counter(changed(stack, instanceTypes=["c5a.large", "g4dn.xlarge"])) == {
        ("create", "ComputeEnvironment"): 2,
        ("create", "JobQueue"): 2,
        ("update", "Policy"): 1,
    }
    added = uuids(stack)
    assert added.items() > before.items()
    assert added.keys() - before.keys() == {"g4dn-xlarge", "g4dn-xlarge-spot"}

    steps = changed(stack, instanceTypes=["c5a.large"], onDemandAllocationStrategy="BEST_FIT")
    assert Counter(steps) == Counter(REPLACED) + Counter(
        {("delete", "ComputeEnvironment"): 2, ("delete", "JobQueue"): 2, ("update", "Policy"): 1}
    )
    assert [step for step in steps if step in REPLACED] == REPLACED
    after = uuids(stack)
    assert after.keys() == {QUEUE, SPOT}
    assert (after[QUEUE] == before[QUEUE], after[SPOT] == before[SPOT]) == (False, True)
    assert len(stack.account.environments()) == 2

    assert batch.describe_jobs(jobs=[job])["jobs"][0]["status"] == "RUNNING"
    stack.destroy()
    assert batch.describe_jobs(jobs=[job])["jobs"][0]["status"] == "FAILED", "a destroy ends what runs"


def test_the_service_role_and_fair_share_change_both_ways(deployed: Callable[..., Any]) -> None:
    stack = deployed()
    account, linked = stack.account, uuids(stack)

    twice = Counter(REPLACED) + Counter(REPLACED)
    assert Counter(changed(stack, serviceRole="dedicated")) == twice + Counter(
        {("create", "Role"): 1, ("create", "RolePolicyAttachment"): 1}
    )
    dedicated = uuids(stack)
    assert "-batch-" in account.environment_of(QUEUE)["serviceRole"]
    assert Counter(changed(stack, serviceRole="linked")) == twice + Counter(
        {("delete", "Role"): 1, ("delete", "RolePolicyAttachment"): 1}
    )
    again = uuids(stack)
    assert account.environment_of(QUEUE)["serviceRole"].endswith("/AWSServiceRoleForBatch")
    assert all(len({linked[queue], dedicated[queue], again[queue]}) == 3 for queue in (QUEUE, SPOT))

    # AWS neither gives a queue a scheduling policy nor takes it away.
    anew = Counter(
        {("delete-replaced", "JobQueue"): 2, ("replace", "JobQueue"): 2, ("create-replacement", "JobQueue"): 2}
    )
    assert Counter(changed(stack, fairShare=True)) == anew + Counter({("create", "SchedulingPolicy"): 1})
    assert all(queue["schedulingPolicyArn"] for queue in account.queues().values())
    assert Counter(changed(stack, fairShare=False)) == anew + Counter({("delete", "SchedulingPolicy"): 1})
    assert not any("schedulingPolicyArn" in queue for queue in account.queues().values())
    assert uuids(stack) == again
    stack.destroy()


def test_an_image_of_ones_own_comes_changes_and_goes(deployed: Callable[..., Any]) -> None:
    """The provider does not see that an image is no longer asked for: what is there counts as AWS's choice."""
    stack = deployed()
    twice = Counter(REPLACED) + Counter(REPLACED)
    for image, steps in (
        ("ami-0123456789abcdef0", twice),
        ("ami-0fedcba9876543210", {("update", "ComputeEnvironment"): 2}),
        ("", twice),
    ):
        assert Counter(changed(stack, amiId=image)) == steps
        for queue in (QUEUE, SPOT):
            (ec2,) = stack.account.environment_of(queue)["computeResources"]["ec2Configuration"]
            assert ec2.get("imageIdOverride", "") == image
    stack.destroy()


def test_what_was_changed_by_hand_is_put_right_and_what_batch_changes_is_let_be(deployed: Callable[..., Any]) -> None:
    stack = deployed()
    account = stack.account
    batch, name = account.client("batch"), account.environment_of(SPOT)["computeEnvironmentName"]
    batch.update_compute_environment(computeEnvironment=name, computeResources={"desiredvCpus": 32})
    stack.assert_nothing_to_do()

    batch.update_compute_environment(
        computeEnvironment=name, state="DISABLED", computeResources={"maxvCpus": 48, "bidPercentage": 40}
    )
    batch.update_job_queue(jobQueue=QUEUE, state="DISABLED", priority=7)
    stack.pulumi("refresh", "--yes", "--skip-preview", capture=True)
    assert Counter(stack.update()) == {("update", "ComputeEnvironment"): 1, ("update", "JobQueue"): 1}
    mended = account.environment_of(SPOT)
    resources = mended["computeResources"]
    assert (mended["state"], resources["maxvCpus"], resources["bidPercentage"]) == ("ENABLED", 2000, 100)
    assert resources["desiredvCpus"] == 32
    assert (account.queues()[QUEUE]["state"], account.queues()[QUEUE]["priority"]) == ("ENABLED", 100)
    stack.assert_nothing_to_do()
    stack.destroy()

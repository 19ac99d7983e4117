"""A stack's life on the real engine, each step checked in the account and not only in the preview."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from emulator.project import Project

SPOT = "c5a-large-spot"


def previewed(project: Project) -> Counter[str]:
    """Count the steps of a preview by what they do to AWS's resources."""
    shown = project.pulumi("preview", "--json", capture=True)
    steps = json.loads(shown.stdout)["steps"]
    return Counter(step["op"] for step in steps if "aws:" in step["urn"].rpartition("$")[2])


def assert_nothing_to_do(project: Project) -> None:
    project.pulumi("preview", "--expect-no-changes", capture=True)
    project.pulumi("preview", "--refresh", "--expect-no-changes", capture=True)


def test_a_stack_is_created_updated_replaced_and_destroyed_as_its_previews_say(
    make_stack: Callable[..., Any],
) -> None:
    project = make_stack(instanceTypes=["c5a.large", "g4dn.xlarge"])
    account = project.account
    before = account.inventory()

    first = previewed(project)
    assert set(first) == {"create"}
    assert account.inventory() == before, "a preview changes nothing"

    project.up()
    made = account.inventory() - before
    assert set(account.queues()) == {"c5a-large", SPOT, "g4dn-xlarge", "g4dn-xlarge-spot"}
    assert all(environment["status"] == "VALID" for environment in account.environments().values())
    environment = account.environment_of(SPOT)
    resources = environment["computeResources"]
    assert (resources["type"], resources["instanceTypes"], resources["maxvCpus"]) == ("SPOT", ["c5a.large"], 2000)
    assert resources["instanceRole"].split(":instance-profile/")[1] in {
        name.removeprefix("instance profile ") for name in made
    }
    assert resources["ec2Configuration"] == [{"imageType": "ECS_AL2023"}]
    assert resources["launchTemplate"]["version"] == "1"
    assert_nothing_to_do(project)

    project.configure(maxVcpus=64)
    assert previewed(project)["update"] == 4
    project.up()
    updated = account.environment_of(SPOT)
    assert updated["computeResources"]["maxvCpus"] == 64
    assert updated["uuid"] == environment["uuid"], "changed in place"
    assert account.inventory() == before | made
    assert_nothing_to_do(project)

    # With BEST_FIT, AWS changes nearly nothing of an environment in place.
    project.configure(spotAllocationStrategy="BEST_FIT")
    project.up()
    best_fit = account.environment_of(SPOT)
    project.configure(spotBidPercentage=60)
    assert previewed(project)["replace"] == 2
    project.up()
    new = account.environment_of(SPOT)
    assert new["computeResources"]["bidPercentage"] == 60
    assert new["computeEnvironmentName"] != best_fit["computeEnvironmentName"]
    assert best_fit["computeEnvironmentName"] not in account.environments()
    assert account.queues()[SPOT]["status"] == "VALID"
    assert_nothing_to_do(project)

    project.destroy()
    assert account.inventory() == before

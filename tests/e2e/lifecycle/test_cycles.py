"""Stacks that come and go, alone and beside each other, leave an account as it was."""

import json
from collections.abc import Callable
from typing import Any


def test_five_ups_and_destroys_leave_nothing(make_stack: Callable[..., Any]) -> None:
    """A secret that waits for its deletion, or a bucket or repository that is not empty, would be in the way."""
    stack = make_stack(artifactsBucket=True, artifactsForceDestroy=True, imageRepository=True)
    account, before = stack.account, stack.account.inventory()
    names = set()
    for _ in range(5):
        stack.up()
        outputs = json.loads(stack.pulumi("stack", "output", "--json", capture=True).stdout)
        names.add(outputs["secret_arn"])
        use(account, outputs)
        account.control("DELETE", "requests")
        stack.pulumi("destroy", "--yes", "--skip-preview", capture=True)
        assert account.inventory() == before
        assert_environments_go_before_their_roles([call.operation for call in account.calls()])
    assert len(names) == 5


def assert_environments_go_before_their_roles(operations: list[str]) -> None:
    """An environment that has lost its permissions cannot end its instances, and stays in DELETING."""
    permissions = {"DeleteRole", "DeleteRolePolicy", "DetachRolePolicy", "RemoveRoleFromInstanceProfile"}
    hosts = [number for number, operation in enumerate(operations) if operation == "DeleteComputeEnvironment"]
    roles = [number for number, operation in enumerate(operations) if operation in permissions]
    assert hosts[-1] < roles[0]


def use(account: Any, outputs: dict[str, Any]) -> None:
    """Put a key, a file and an image where a person's go."""
    value = {"SecretId": outputs["secret_arn"], "SecretString": '{"WANDB_API_KEY": "k"}', "VersionStages": ["key-1"]}
    account.client("secretsmanager").put_secret_value(**value)
    account.client("s3").put_object(Bucket=outputs["artifacts_bucket"], Key="model.pt", Body=b"weights")
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": []}
    repository = outputs["image_repository"].partition("/")[2]
    account.client("ecr").put_image(repositoryName=repository, imageManifest=json.dumps(manifest), imageTag="latest")


def test_stacks_share_an_account_and_the_same_stack_is_in_two_regions(
    make_stack: Callable[..., Any], account_of: Callable[..., Any], shared_home: Any
) -> None:
    alice, bob, west = make_stack("a", queuePrefix="alice"), make_stack("b", queuePrefix="bob"), make_stack("c")
    here, there = alice.account, account_of(shared_home, "us-west-2")
    west.pulumi("config", "set", "aws:region", "us-west-2")
    before = here.inventory(), there.inventory()

    alice.up()
    after_alice = here.inventory()
    bob.up()
    west.up()
    assert set(here.queues()) == {f"{name}-c5a-large{kind}" for name in ("alice", "bob") for kind in ("", "-spot")}
    assert set(there.queues()) == {"c5a-large", "c5a-large-spot"}
    environments = [*here.environments().values(), *there.environments().values()]
    assert [environment["status"] for environment in environments] == ["VALID"] * 6
    for stack in (alice, bob, west):
        stack.assert_nothing_to_do()

    west.destroy()
    bob.destroy()
    assert here.inventory() == after_alice
    alice.assert_nothing_to_do()
    alice.destroy()
    assert (here.inventory(), there.inventory()) == before

"""`kill -9` in the middle of an update or a destroy loses nothing: what was made is found again, and goes."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest


# An update of one type makes 22 requests that change something, a destroy 21; which of them comes n-th varies.
@pytest.mark.parametrize(("up", "destroy"), [(1, 1), (4, 3), (8, 6), (11, 8), (14, 12), (16, 15), (18, 18), (22, 21)])
def test_after_a_kill_the_next_one_recovers_and_nothing_is_orphaned(
    make_stack: Callable[..., Any], kill_at: Callable[..., Any], recover: Callable[[Any], None], up: int, destroy: int
) -> None:
    stack = make_stack()
    account = stack.account
    before = account.inventory()

    kill_at(stack, "up", up)
    recover(stack)
    stack.up()
    stack.assert_nothing_to_do()
    assert {queue["status"] for queue in account.queues().values()} == {"VALID"}
    state = stack.pulumi("stack", "export", capture=True).stdout
    assert [made for made in account.inventory() - before if made.rpartition(" ")[2] not in state] == []

    kill_at(stack, "destroy", destroy)
    recover(stack)
    stack.destroy()
    assert account.inventory() == before


@pytest.mark.parametrize(
    ("config", "number"),
    [
        # The first request makes the new environment, which nothing uses yet.
        ({"onDemandAllocationStrategy": "BEST_FIT"}, 1),
        # The queues are gone, and the last of the new ones is just being made.
        ({"fairShare": True}, 7),
    ],
)
def test_after_a_kill_amid_a_replacement_the_next_update_replaces_and_nothing_is_orphaned(
    make_stack: Callable[..., Any],
    kill_at: Callable[..., Any],
    recover: Callable[[Any], None],
    config: dict[str, Any],
    number: int,
) -> None:
    stack = make_stack()
    account = stack.account
    before = account.inventory()
    stack.up()
    stack.configure(**config)

    kill_at(stack, "up", number)
    recover(stack)
    stack.up()
    stack.assert_nothing_to_do()
    assert (len(account.environments()), set(account.queues())) == (2, {"c5a-large", "c5a-large-spot"})
    assert {queue["status"] for queue in account.queues().values()} == {"VALID"}
    stack.destroy()
    assert account.inventory() == before


def test_recovery_refuses_another_region_and_goes_on_after_a_refresh_that_failed(
    make_stack: Callable[..., Any], kill_at: Callable[..., Any], run_in: Callable[..., Any]
) -> None:
    stack = make_stack()
    account = stack.account
    before = account.inventory()
    kill_at(stack, "up", 18)
    stack.pulumi("cancel", "--yes")
    state = stack.pulumi("stack", "export", capture=True).stdout
    recover = sys.executable, "-m", "infra.recover"

    stack.pulumi("config", "set", "aws:region", "eu-west-1")
    refused = run_in(stack, *recover)
    assert (refused.returncode, "is of region us-east-1" in refused.stderr) == (1, True), refused.stderr
    assert stack.pulumi("stack", "export", capture=True).stdout == state
    stack.pulumi("config", "set", "aws:region", "us-east-1")

    words = {"code": "AccessDenied", "message": "not now"}
    account.control("POST", "faults", service="iam", operation="GetRole", kind="refuse", **words)
    broken = run_in(stack, *recover)
    assert (broken.returncode, "pulumi refresh" in broken.stderr) == (1, True), broken.stderr
    (backup,) = stack.folder.glob("state-before-recovery-*.json")
    assert str(backup) in broken.stdout
    assert json.loads(backup.read_text()) == json.loads(state)
    account.control("DELETE", "faults")

    assert run_in(stack, *recover).returncode == 0
    stack.up()
    stack.assert_nothing_to_do()
    stack.destroy()
    assert account.inventory() == before


def test_a_state_that_a_kill_has_made_unreadable_is_there_again_without_its_attributes(
    make_stack: Callable[..., Any], run_in: Callable[..., Any]
) -> None:
    """Pulumi writes attributes beside a state in a folder, not at once; the stacks of these tests have none."""
    stack = make_stack()
    export = "pulumi", "stack", "export", "--stack", "emulator"
    default = {"PULUMI_BACKEND_URL": stack.home.backend.as_uri()}
    attributes = stack.home.backend / ".pulumi/stacks/rl-batch/emulator.json.attrs"
    assert not attributes.exists()
    attributes.touch()
    broken = run_in(stack, *export, extra=default)
    assert "failed to load checkpoint: EOF" in broken.stderr
    attributes.unlink()
    assert run_in(stack, *export, extra=default).returncode == 0

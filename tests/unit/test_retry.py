"""Which failed attempts are followed by another."""

from typing import Any

import pytest

from emulator.batch.retry import Outcome, retries

HOST_LOST = Outcome(status_reason="Host EC2 (instance i-0123456789abcdef0) terminated.")
EXITED_1 = Outcome(exit_code=1, status_reason="Essential container in task exited")
NOT_PULLED = Outcome(reason="CannotPullContainerError: no such image", status_reason="Task failed to start")
SPOT_RULES = [
    {"onStatusReason": "Host EC2*", "action": "RETRY"},
    {"onReason": "*", "action": "EXIT"},
]


def rule(action: str = "EXIT", **patterns: str) -> dict[str, str]:
    return {"action": action, **patterns}


@pytest.mark.parametrize(("made", "expected"), [(1, True), (2, True), (3, False), (4, False)])
def test_without_conditions_every_failure_is_retried_while_attempts_are_left(made: int, expected: bool) -> None:
    assert retries({"attempts": 3}, made, EXITED_1) is expected


def test_a_strategy_without_attempts_means_one() -> None:
    assert not retries({}, 1, EXITED_1)


def test_a_host_loss_is_retried_and_an_exit_code_is_not() -> None:
    """The pattern that AWS documents for Spot."""
    strategy = {"attempts": 5, "evaluateOnExit": SPOT_RULES}
    assert retries(strategy, 1, HOST_LOST)
    assert not retries(strategy, 1, EXITED_1)


def test_an_action_may_be_written_in_lower_case() -> None:
    assert retries(
        {"attempts": 2, "evaluateOnExit": [rule("retry", onExitCode="1"), rule("exit", onExitCode="*")]}, 1, EXITED_1
    )


def test_the_first_condition_that_matches_decides() -> None:
    conditions = [rule("RETRY", onExitCode="1"), rule("EXIT", onExitCode="1*")]
    strategy = {"attempts": 2, "evaluateOnExit": conditions}
    assert retries(strategy, 1, EXITED_1)
    assert not retries({**strategy, "evaluateOnExit": conditions[::-1]}, 1, EXITED_1)


def test_no_match_means_retry() -> None:
    assert retries({"attempts": 2, "evaluateOnExit": [rule("EXIT", onExitCode="2")]}, 1, EXITED_1)


def test_the_last_attempt_is_not_retried_whatever_the_conditions_say() -> None:
    assert not retries({"attempts": 2, "evaluateOnExit": [rule("RETRY", onReason="*")]}, 2, EXITED_1)


@pytest.mark.parametrize(
    ("condition", "outcome", "matches"),
    [
        (rule(onExitCode="137"), Outcome(exit_code=137), True),
        (rule(onExitCode="137"), Outcome(exit_code=1), False),
        (rule(onExitCode="13*"), Outcome(exit_code=137), True),
        (rule(onExitCode="13"), Outcome(exit_code=137), False),
        (rule(onExitCode="1*"), HOST_LOST, False),
        (rule(onReason="CannotPullContainerError*"), NOT_PULLED, True),
        (rule(onReason="PullContainerError*"), NOT_PULLED, False),
        (rule(onStatusReason="Task failed to start"), NOT_PULLED, True),
        (rule(onStatusReason="task failed to start"), NOT_PULLED, False),
        (rule(onReason="*", onExitCode="1"), EXITED_1, True),
        (rule(onReason="CannotPull*", onExitCode="1"), EXITED_1, False),
    ],
)
def test_a_condition_holds_when_all_of_its_patterns_match(condition: Any, outcome: Outcome, matches: bool) -> None:
    """Every condition here says EXIT, and without a match the attempt is retried; so no retry shows the match."""
    assert retries({"attempts": 2, "evaluateOnExit": [condition]}, 1, outcome) is not matches

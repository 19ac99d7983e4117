"""Batch's account of a job, in words."""

from typing import Any

import pytest

from submitter.reasons import CANCEL_REASON, SPOT_RECLAIMED, attempts, log_streams, reason, state

LOST = "Host EC2 (instance i-0123456789abcdef0) terminated."
EXITED = "Essential container in task exited"


def attempt(status_reason: str, **container: Any) -> dict[str, Any]:
    return {"statusReason": status_reason, "container": container}


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"status": "SUCCEEDED", "statusReason": EXITED, "container": {"exitCode": 0}}, None),
        ({"status": "RUNNING"}, None),
        ({"status": "FAILED", "statusReason": EXITED, "container": {"exitCode": 3}}, "exit code 3"),
        ({"status": "FAILED", "statusReason": LOST}, SPOT_RECLAIMED),
        (
            {
                "status": "FAILED",
                "statusReason": EXITED,
                "container": {"reason": "OutOfMemoryError: killed", "exitCode": 137},
            },
            "OutOfMemoryError: killed",
        ),
        (
            {"status": "FAILED", "statusReason": "Job attempt duration exceeded timeout"},
            "Job attempt duration exceeded timeout",
        ),
        ({"status": "RUNNABLE", "statusReason": "MISCONFIGURATION:X"}, "MISCONFIGURATION:X"),
        ({"status": "RUNNING", "attempts": [attempt(LOST)]}, f"attempt 1: {SPOT_RECLAIMED}"),
        (
            {"status": "RUNNABLE", "statusReason": "CAPACITY:X", "attempts": [attempt(EXITED, exitCode=1)]},
            "attempt 1: exit code 1; CAPACITY:X",
        ),
    ],
)
def test_the_reason_is_in_words(job: dict[str, Any], words: str | None) -> None:
    assert reason(job, spot=True) == words


def test_a_lost_on_demand_host_is_no_spot_interruption() -> None:
    assert reason({"status": "FAILED", "statusReason": LOST}, spot=False) == f"the instance was lost: {LOST}"


def test_an_attempt_under_way_counts() -> None:
    ended = [attempt(LOST, logStreamName="d/default/1")]
    assert attempts({"status": "RUNNABLE", "attempts": ended}) == 1
    assert attempts({"status": "RUNNING", "attempts": ended}) == 2
    assert attempts({"status": "SUBMITTED"}) == 0


def test_each_attempt_has_its_log_stream() -> None:
    ended = [attempt("CannotPullContainerError"), attempt(EXITED, logStreamName="d/default/1")]
    running = {"status": "RUNNING", "attempts": ended, "container": {"logStreamName": "d/default/2"}}
    assert log_streams(running) == [(2, "d/default/1"), (3, "d/default/2")]
    failed = {"status": "FAILED", "attempts": ended, "container": {"logStreamName": "d/default/1"}}
    assert log_streams(failed) == [(2, "d/default/1")]
    assert log_streams({"status": "SUBMITTED"}) == []


@pytest.mark.parametrize(
    ("job", "ended"),
    [
        ({"status": "FAILED", "statusReason": LOST}, "cancelled"),
        ({"status": "FAILED", "statusReason": LOST, "stoppedAt": 1_000_500}, "cancelled"),
        ({"status": "FAILED", "statusReason": LOST, "stoppedAt": 999_999}, "failed"),
        ({"status": "FAILED", "statusReason": CANCEL_REASON, "stoppedAt": 999_999}, "cancelled"),
        ({"status": "FAILED", "statusReason": "Job was terminated", "container": {}}, "cancelled"),
        ({"status": "FAILED", "statusReason": EXITED, "container": {"exitCode": 1}}, "failed"),
        ({"status": "SUCCEEDED", "statusReason": EXITED, "container": {"exitCode": 0}}, "succeeded"),
        ({"status": "RUNNING"}, "running"),
    ],
)
def test_a_cancelled_run_whose_program_never_exited_is_cancelled_in_whatever_words_unless_it_had_ended_before(
    job: dict[str, Any], ended: str
) -> None:
    assert state(job, told=1000) == ended
    asked = job.get("statusReason") == CANCEL_REASON
    assert state(job) == ("cancelled" if asked else job["status"].lower())
    assert (reason(job, spot=False, told=1000) is None) == (ended != "failed")

"""Cancelling: only what is asked for, whatever state it is in, and for good whoever dies or comes between."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest

from emulator.batch import scheduler
from submitter import plan
from submitter.errors import UsageError
from submitter.history import Generation
from submitter.numbers import NumberSet
from submitter.reasons import SPOT_RECLAIMED

Killed = Callable[..., AbstractContextManager[None]]
WaitUntil = Callable[..., Any]

FIRST_IS_SHORT = "test {seed} = 1 || exec sleep 600"
LONG = "exec sleep 600 # {seed}"


def everything(generation: Generation) -> NumberSet:
    return generation.table.runs().numbers


def only(*numbers: int) -> Callable[[Generation], NumberSet]:
    return lambda _: NumberSet(numbers)


def live_jobs(machine: Any) -> dict[str, str]:
    """The names of the jobs that have not ended, with their statuses."""
    jobs = machine.batch.describe(machine.jobs_by_name().values())
    return {job["jobName"]: job["status"] for job in jobs.values() if job["status"] not in ("SUCCEEDED", "FAILED")}


def ended(machine: Any, wait_until: WaitUntil) -> list[str]:
    wait_until(lambda: machine.status().over)
    statuses: list[str] = machine.statuses()
    return statuses


def test_every_state_is_ended_and_the_sweep_whose_name_only_begins_so_goes_on(
    machine: Any, wait_until: WaitUntil
) -> None:
    """A run that has succeeded stays so; running, waiting and not yet looked at ones end."""
    machine.run(range(1, 21), command=FIRST_IS_SHORT)
    other = replace(machine.order([1, 2], command=LONG), sweep="ada/first2")
    machine.submit(other)
    wait_until(lambda: {"succeeded", "running", "starting", "runnable"} <= set(machine.statuses()))
    before = machine.calls("batch")
    assert str(machine.cancel()) == "1-20"
    assert "CancelJob" not in machine.calls("batch") - before
    assert ended(machine, wait_until) == ["succeeded"] + ["cancelled"] * 19
    assert machine.status().counts == {"succeeded": 1, "cancelled": 19}
    assert [name for name in live_jobs(machine) if name.startswith("first2-")]
    assert not machine.ledger.entries("ada/first2")[1:]


def test_only_the_chosen_runs_end(machine: Any, wait_until: WaitUntil) -> None:
    machine.run(range(1, 7), command=LONG)
    wait_until(lambda: machine.status().counts.get("running") == 2)
    machine.cancel(only(1, 5))
    wait_until(lambda: [n for n, status in enumerate(machine.statuses(), 1) if status == "cancelled"] == [1, 5])
    assert not {"failed", "succeeded"} & set(machine.statuses())


def test_chosen_runs_end_even_if_their_array_was_submitted_a_moment_ago(machine: Any, wait_until: WaitUntil) -> None:
    machine.run(range(1, 7), command=LONG)
    machine.cancel(only(2))
    wait_until(lambda: machine.statuses()[1] == "cancelled")


def test_what_was_cancelled_is_not_run_again_but_more_seeds_are(machine: Any) -> None:
    machine.run([1, 2], command=LONG)
    machine.cancel()
    outcome = machine.run([1, 2, 3], command=LONG)
    assert (str(outcome.submitted), str(outcome.cancelled), str(outcome.present)) == ("3", "1-2", "")


def test_many_jobs_are_ended_fifty_a_call(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MAX_ARRAY", 2)
    machine.run(range(120), command=LONG)
    before = machine.calls("batch")
    machine.cancel()
    assert (machine.calls("batch") - before) == {"DescribeJobs": 1, "TerminateJobs": 2}


def test_cancelling_again_ends_nothing_and_writes_nothing(machine: Any) -> None:
    machine.run([1, 2], command=LONG)
    machine.cancel()
    before = {service: machine.calls(service) for service in ("batch", "dynamodb")}
    assert str(machine.cancel()) == "1-2"
    assert machine.calls("batch") == before["batch"]
    assert machine.calls("dynamodb") - before["dynamodb"] == {"Query": 1}


def test_the_jobs_of_an_older_generation_end_too(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1, 2, 3], command=LONG)
    machine.run([1], command=LONG, fresh=True)
    newest = machine.status().generation.nonce
    machine.cancel()
    wait_until(lambda: not live_jobs(machine))
    assert machine.status().generation.nonce == newest
    assert machine.run([1, 2], command=LONG).submitted == NumberSet([2])


def test_what_aws_has_forgotten_cannot_be_ended_and_need_not(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1, 2])
    wait_until(lambda: not live_jobs(machine))
    machine.clock.sleep(9 * 86_400)
    assert str(machine.cancel()) == "1-2"
    assert machine.status().counts == {"unknown": 2}


@pytest.mark.parametrize("skew", [0, 200])
@pytest.mark.parametrize("whole", [True, False])
def test_what_had_failed_before_a_cancel_keeps_its_own_end(
    make_machine: Callable[..., Any], wait_until: WaitUntil, *, whole: bool, skew: float
) -> None:
    """A reclaimed host gives no exit code, and nor does a cancel: which of the two came first, AWS's clock tells."""
    machine = make_machine(skew=skew)
    machine.run(range(1, 5), command="exec sleep 600 # {seed}", attempts=1, memory_mib=3000)
    wait_until(lambda: machine.status().counts.get("running") == 2)
    lost = [run.number for run in machine.status(runs=True).runs if run.status == "running"]
    for number in lost:
        machine.server.control.reclaim(machine.run_status(number).job)
    wait_until(lambda: machine.status().counts.get("failed") == 2 and machine.status().counts.get("running") == 2)
    going = sorted({1, 2, 3, 4} - set(lost))
    machine.clock.sleep(2)  # AWS's clock, as a reply shows it, has whole seconds
    machine.cancel(everything if whole else only(lost[0], *going))
    expected = {"failed": 2, "cancelled": 2}
    wait_until(lambda: machine.status().over)
    assert machine.status().counts == expected
    runs = machine.status(runs=True).runs
    assert {run.number: run.reason for run in runs} == dict.fromkeys(lost, SPOT_RECLAIMED) | dict.fromkeys(going)
    machine.clock.sleep(9 * 86_400)
    assert machine.status().counts == expected


def test_counts_of_a_cancelled_array_that_goes_on_tell_failures_apart(machine: Any, wait_until: WaitUntil) -> None:
    machine.run(range(1, 5), command="exec sleep 600 # {seed}", attempts=1, memory_mib=3000)
    wait_until(lambda: machine.status().counts.get("running") == 2)
    lost = next(run for run in machine.status(runs=True).runs if run.status == "running")
    machine.server.control.reclaim(lost.job)
    wait_until(lambda: (counts := machine.status().counts).get("failed") == 1 and counts.get("running") == 2)
    going = [run.number for run in machine.status(runs=True).runs if run.status == "running"]
    machine.clock.sleep(2)
    machine.cancel(only(lost.number, going[0]))
    wait_until(lambda: machine.status().counts == {"failed": 1, "cancelled": 1, "running": 2})
    machine.cancel()


def test_a_sweep_that_there_is_not_cannot_be_cancelled(machine: Any) -> None:
    with pytest.raises(UsageError, match="no sweep ada/first"):
        machine.cancel()


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    ("part", "method"), [("ledger", "put"), ("batch", "describe"), ("batch", "terminate_all"), ("ledger", "done")]
)
def test_a_cancel_that_died_is_completed_by_whoever_looks_once_it_is_written(
    *, make_machine: Callable[[], Any], killed: Killed, wait_until: WaitUntil, part: str, method: str, before: bool
) -> None:
    machine = make_machine()
    machine.run(range(1, 6), command=LONG)
    with killed(getattr(machine, part), method, before=before):
        machine.cancel()
    other = make_machine()
    if method == "put" and before:
        assert "cancelled" not in other.statuses()
        other.cancel()
    assert ended(other, wait_until) == ["cancelled"] * 5
    assert other.ledger.entries("ada/first")[-1].done
    assert not other.run(range(1, 6), command=LONG).submitted


@pytest.mark.parametrize(("method", "before"), [("submit", True), ("submit", False)])
def test_what_a_dead_run_may_have_sent_is_found_and_ended(
    make_machine: Callable[[], Any], killed: Killed, wait_until: WaitUntil, method: str, before: bool
) -> None:
    machine = make_machine()
    with killed(machine.batch, method, before=before):
        machine.run([1, 2], command=LONG)
    other = make_machine()
    other.cancel()
    assert ended(other, wait_until) == ["cancelled"] * 2
    assert bool(other.said) == before
    assert not live_jobs(other)
    assert not other.run([1, 2], command=LONG).submitted


def test_a_request_that_arrives_after_the_cancel_was_written_is_ended(
    make_machine: Callable[[], Any], killed: Killed, fault: Callable[..., None], wait_until: WaitUntil
) -> None:
    machine = make_machine()
    fault("batch", "SubmitJob", "late", count=1, seconds=200)
    with killed(machine.batch, "submit", before=False):
        machine.run([1, 2], command=LONG)
    machine.cancel()
    assert len(machine.jobs_by_name()) == 1
    wait_until(lambda: not live_jobs(machine))


def only_about(machine: Any, sentence: str) -> bool:
    """Whether the user was told to wait, and each time for this."""
    return bool(machine.said) and all(said.startswith(sentence) for said in machine.said)


def test_who_waits_for_a_lost_answer_is_told_so(
    make_machine: Callable[[], Any], killed: Killed, wait_until: WaitUntil
) -> None:
    machine = make_machine()
    machine.server.control.delay_listing(59)
    with killed(machine.batch, "submit", before=False):
        machine.run([1, 2], command=LONG)
    other = make_machine()
    other.cancel()
    assert only_about(other, "AWS's answer to an earlier submission was lost: looking whether it made its jobs, for ")
    assert ended(other, wait_until) == ["cancelled"] * 2


def test_who_waits_until_aws_shows_a_job_is_told_so(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """DescribeJobs, too, may need a while to show a new job."""
    machine.run([1, 2], command=LONG)
    describe, shown = machine.batch.describe, machine.clock.now() + 30

    def late(ids: Any) -> dict[str, Any]:
        found: dict[str, Any] = describe(ids)
        return found if machine.batch.described_at >= shown else {}

    monkeypatch.setattr(machine.batch, "describe", late)
    machine.cancel()
    assert only_about(machine, "AWS has accepted a job and does not show it yet: waiting until it can be ended, for ")
    assert machine.ledger.entries("ada/first")[-1].done
    assert machine.calls("batch")["TerminateJobs"] == 1


def test_who_waits_for_the_runs_of_a_new_array_is_told_so(
    machine: Any, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "ADMISSION_SECONDS", 3)
    machine.run(range(1, 7), command=LONG)
    machine.cancel(only(2))
    assert only_about(
        machine, "AWS has not made the runs of a new array yet: waiting until they can be ended, for 10 s at most."
    )
    wait_until(lambda: machine.statuses()[1] == "cancelled")


@pytest.mark.parametrize("operation", ["TransactWriteItems", "UpdateItem"])
@pytest.mark.parametrize("kind", ["drop", "error-after"])
def test_a_reply_of_the_ledger_may_be_lost(machine: Any, fault: Callable[..., None], operation: str, kind: str) -> None:
    machine.run([1, 2], command=LONG)
    fault("dynamodb", operation, kind, count=1)
    machine.cancel()
    assert [entry.kind for entry in machine.ledger.entries("ada/first")] == ["run", "cancel"]


def test_a_run_at_the_same_time_leaves_nothing_that_was_sent_before_the_cancel(
    make_machine: Callable[[], Any], wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is second has read the other's entry: nothing of what the cancel is about runs in the end."""
    monkeypatch.setattr(plan, "MAX_ARRAY", 2)
    machine, other = make_machine(), make_machine()
    machine.run([1], command=LONG)
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(machine.run, range(1, 12), command=LONG)
        cancelled = pool.submit(other.cancel).result(60)
        running.result(60)
    statuses = wait_until(lambda: "deciding" not in (now := other.statuses()) and now)
    wait_until(lambda: all(status == "cancelled" for n, status in enumerate(other.statuses(), 1) if n in cancelled))
    assert len(statuses) == 11
    assert {n for n, status in enumerate(other.statuses(), 1) if status == "cancelled"} == set(cancelled)

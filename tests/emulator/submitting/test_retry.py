"""Retrying: what failed and nothing else, once, as the same runs; whoever dies, repeats or comes between."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from submitter import plan
from submitter.errors import UsageError
from submitter.history import Generation
from submitter.numbers import NumberSet
from submitter.reasons import log_streams

Killed = Callable[..., AbstractContextManager[None]]
WaitUntil = Callable[..., Any]

LONG = "exec sleep 600 # {seed}"


def only(*numbers: int) -> Callable[[Generation], NumberSet]:
    return lambda _: NumberSet(numbers)


def fails_until(mended: Path) -> str:
    """A command that says which W&B run it is, and fails for even seeds until the file is there."""
    return f"echo $WANDB_RUN_ID; test -e {mended} || test $(({{seed}} % 2)) = 1"


def over(machine: Any, wait_until: WaitUntil) -> list[str]:
    wait_until(lambda: machine.status().over, seconds=60)
    statuses: list[str] = machine.statuses()
    return statuses


def printed(machine: Any, number: int) -> list[str]:
    """What a run has written, in all attempts of its newest job."""
    job = machine.run_status(number).job
    client = machine.session.client("logs")
    return [
        event["message"]
        for _, stream in log_streams(machine.batch.describe([job])[job])
        for event in client.get_log_events(logGroupName="/jobs", logStreamName=stream, startFromHead=True)["events"]
    ]


def sent(machine: Any) -> Counter[int]:
    """How often each run was sent, in jobs that the account has."""
    machine.jobs_by_name()
    entries = machine.ledger.entries("ada/first")
    return Counter(number for entry in entries for slot in entry.slots if slot.sent for number in slot.runs)


def test_what_failed_runs_again_as_the_same_wandb_runs(machine: Any, wait_until: WaitUntil, tmp_path: Path) -> None:
    command = fails_until(tmp_path / "mended")
    machine.run([1, 2, 3, 4], command=command)
    assert over(machine, wait_until) == ["succeeded", "failed", "succeeded", "failed"]
    nonce = machine.status().generation.nonce
    (tmp_path / "mended").touch()
    assert str(machine.retry().submitted) == "2,4"
    assert over(machine, wait_until) == ["succeeded"] * 4
    assert [printed(machine, number) for number in (2, 4)] == [[f"{nonce}-2"], [f"{nonce}-4"]]
    assert not machine.retry().submitted
    assert not machine.run([1, 2, 3, 4], command=command).submitted
    assert sent(machine) == {1: 1, 2: 2, 3: 1, 4: 2}


def test_where_a_program_does_not_resume_each_later_attempt_has_a_wandb_id_of_its_own(
    machine: Any, wait_until: WaitUntil, tmp_path: Path
) -> None:
    command = f"echo $WANDB_RUN_ID; test -e {tmp_path / 'mended'} # {{seed}}"
    changes = {"environment": {"SUBMITTER_WANDB_RETRY": "new"}, "retry_on_error": True}
    machine.run([1], command=command, **changes)
    assert over(machine, wait_until) == ["failed"]
    nonce = machine.status().generation.nonce
    assert printed(machine, 1) == [f"{nonce}-1", f"{nonce}-1-2"]
    machine.retry()
    assert over(machine, wait_until) == ["failed"]
    assert printed(machine, 1) == [f"{nonce}-1-r2", f"{nonce}-1-r2-2"]


def test_only_the_chosen_runs_are_sent(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1, 2, 3], command="false # {seed}")
    over(machine, wait_until)
    assert str(machine.retry(only(2)).submitted) == "2"


def test_failed_runs_are_sent_while_others_of_their_array_go_on(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1, 2, 3], command="test {seed} != 2 && exec sleep 600")
    wait_until(lambda: machine.statuses()[1] == "failed")
    assert str(machine.retry().submitted) == "2"
    assert sent(machine) == {1: 1, 2: 2, 3: 1}


def test_cancelled_runs_are_sent_when_they_have_ended(machine: Any, wait_until: WaitUntil, tmp_path: Path) -> None:
    """A program that ignores SIGTERM goes on for half a minute: two jobs of a run would fight for its W&B run."""
    machine.run([1, 2], command=f"trap '' TERM; touch {tmp_path}/{{seed}}.deaf; while :; do sleep 1; done")
    wait_until(lambda: len(list(tmp_path.glob("*.deaf"))) == 2)
    first = machine.status().generation.entries[0].slots[0].sent
    machine.cancel()
    assert machine.batch.describe([first])[first]["status"] != "FAILED"
    assert str(machine.retry().submitted) == "1-2"
    assert machine.said
    assert machine.batch.describe([first])[first]["status"] == "FAILED"


def test_what_was_cancelled_before_it_was_sent_is_sent(machine: Any, killed: Killed) -> None:
    with killed(machine.batch, "submit", before=True):
        machine.run([1, 2], command=LONG)
    machine.cancel()
    assert machine.status().counts == {"cancelled": 2}
    assert str(machine.retry().submitted) == "1-2"


def test_a_changed_image_is_marked_and_the_sweep_stays_what_it_is(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1, 2], command="test {seed} = 1")
    over(machine, wait_until)
    machine.retry(image="trainer:2", memory_mib=1024, timeout_seconds=3600)
    runs = machine.status(runs=True).runs
    assert [run.image for run in runs] == ["trainer:1", "trainer:2"]
    job = machine.batch.describe([runs[1].job])[runs[1].job]
    assert job["container"]["image"] == "trainer:2"
    assert {"type": "MEMORY", "value": "1024"} in job["container"]["resourceRequirements"]
    assert job["timeout"] == {"attemptDurationSeconds": 3600}
    assert not machine.run([1, 2], command="test {seed} = 1").submitted
    wait_until(lambda: machine.status().over)
    machine.retry()
    assert machine.run_status(2).image == "trainer:2"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [({"memory_mib": 4096}, "do not fit"), ({"queue": "c5a-large"}, "no queue c5a-large")],
)
def test_a_change_that_cannot_work_is_refused_before_anything_is_sent(
    machine: Any, wait_until: WaitUntil, changes: dict[str, Any], sentence: str
) -> None:
    machine.run([1], command="false # {seed}")
    over(machine, wait_until)
    with pytest.raises(Exception, match=sentence):
        machine.retry(**changes)
    assert len(machine.ledger.entries("ada/first")) == 1


def test_a_change_that_cannot_work_for_some_is_refused_before_any_is_sent(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1], command="false # {seed}")
    machine.run([2], command="false # {seed}", vcpus=2)
    assert over(machine, wait_until) == ["failed", "failed"]
    (queue,) = machine.contract.queues.values()
    small = replace(queue, name="small", vcpus=1)
    machine.contract = replace(machine.contract, queues={queue.name: queue, "small": small})
    with pytest.raises(UsageError, match="has no 2 vCPUs"):
        machine.retry(queue="small")
    assert sent(machine) == {1: 1, 2: 1}


def test_runs_that_were_asked_for_differently_are_sent_as_they_were(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1], command="false # {seed}")
    machine.run([2], command="false # {seed}", memory_mib=1024)
    over(machine, wait_until)
    assert str(machine.retry().submitted) == "1-2"
    memory = [entry.spec.memory_mib for entry in machine.ledger.entries("ada/first")]
    assert memory == [512, 1024, 512, 1024]


def test_three_thousand_scattered_of_ten_thousand_are_sent(machine: Any, wait_until: WaitUntil) -> None:
    machine.run(range(1, 10_001), command=LONG)
    [job] = machine.jobs_by_name().values()
    machine.batch.terminate(job, "enough")
    wait_until(lambda: machine.status().over, seconds=60)
    scattered = [number for number in range(1, 10_001) if number * 7919 % 10 < 3]
    before = machine.calls("batch")
    retried = machine.retry(only(*scattered))
    assert retried.submitted == NumberSet(scattered)
    assert len(retried.submitted) == 3_000
    assert (machine.calls("batch") - before)["SubmitJob"] <= 10
    entry = machine.ledger.entries("ada/first")[-1]
    assert sorted(number for slot in entry.slots for number in slot.runs) == scattered


def test_a_sweep_that_was_begun_afresh_meanwhile_is_left_alone(
    machine: Any, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.run([1], command="false # {seed}")
    over(machine, wait_until)
    put = machine.ledger.put

    def late(sweep: str, entry: Any, **after: Any) -> Any:
        monkeypatch.setattr(machine.ledger, "put", put)
        machine.run([1], command=LONG, fresh=True)
        return put(sweep, entry, **after)

    monkeypatch.setattr(machine.ledger, "put", late)
    with pytest.raises(UsageError, match="begun afresh meanwhile"):
        machine.retry()
    assert [entry.kind for entry in machine.ledger.entries("ada/first")] == ["run", "run"]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    ("part", "method"), [("ledger", "put"), ("batch", "definition"), ("batch", "submit"), ("ledger", "record")]
)
def test_a_retry_that_was_killed_is_completed_by_the_next(
    *, make_machine: Callable[[], Any], killed: Killed, wait_until: WaitUntil, part: str, method: str, before: bool
) -> None:
    machine = make_machine()
    machine.run([1, 2, 3], command='test {seed} = 1 || test -n "$MENDED"')
    over(machine, wait_until)
    with killed(getattr(machine, part), method, before=before):
        machine.retry(environment={"MENDED": "yes"})
    other = make_machine()
    other.retry(environment={"MENDED": "yes"})
    assert over(other, wait_until) == ["succeeded"] * 3
    assert sent(other) == {1: 1, 2: 2, 3: 2}


@pytest.mark.parametrize("kind", ["drop", "late", "error-after"])
def test_an_answer_that_is_lost_makes_no_second_job(
    machine: Any, fault: Callable[..., None], wait_until: WaitUntil, kind: str
) -> None:
    machine.run([1, 2], command="false # {seed}")
    over(machine, wait_until)
    fault("batch", "SubmitJob", kind, count=1, seconds=100)
    machine.retry()
    assert len(machine.jobs_by_name()) == 2
    assert sent(machine) == {1: 2, 2: 2}


def test_two_at_once_send_each_run_once(
    make_machine: Callable[[], Any], wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "MAX_ARRAY", 2)
    machines = [make_machine(), make_machine()]
    machines[0].run(range(1, 6), command='test -n "$MENDED" # {seed}')
    over(machines[0], wait_until)
    barrier = Barrier(2)
    for machine in machines:
        put = machine.ledger.put

        def together(sweep: str, entry: Any, *, after: Any, put: Any = put) -> Any:
            if entry.n == 2:
                barrier.wait(20)
            return put(sweep, entry, after=after)

        monkeypatch.setattr(machine.ledger, "put", together)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda machine: machine.retry(environment={"MENDED": "yes"}), machines))
    assert sorted(len(retried.submitted) for retried in done) == [0, 5]
    assert sent(machines[0]) == dict.fromkeys(range(1, 6), 2)


def test_a_cancel_that_comes_between_wins(
    machine: Any, make_machine: Callable[[], Any], wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.run([1, 2], command="test {seed} = 1")
    over(machine, wait_until)
    put = machine.ledger.put

    def late(sweep: str, entry: Any, **after: Any) -> Any:
        monkeypatch.setattr(machine.ledger, "put", put)
        make_machine().cancel()
        return put(sweep, entry, **after)

    monkeypatch.setattr(machine.ledger, "put", late)
    assert not machine.retry().submitted
    assert str(machine.retry().submitted) == "2"


def test_a_retry_of_another_sweep_is_none_of_this_ones(machine: Any, wait_until: WaitUntil) -> None:
    machine.submit(replace(machine.order([1], command="false # {seed}"), sweep="ada/first2"))
    machine.run([1], command="echo {seed}")
    over(machine, wait_until)
    assert not machine.retry().submitted

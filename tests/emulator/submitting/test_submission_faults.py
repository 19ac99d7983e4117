"""Nothing twice, nothing lost: `run` killed, repeated, run twice at once, with replies lost, late and wrong."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from submitter import plan
from submitter.batch import Answer
from submitter.errors import UsageError
from submitter.history import SIGNED_WITHIN, VOID, Generation
from submitter.settle import LISTING_LAG, SIGNATURE_LIFE
from submitter.writer import Writer

Fault = Callable[..., None]
Killed = Callable[..., AbstractContextManager[None]]

NO_SUCH_PROCESS = 2**22 + 1
"""Above the largest process number of Linux and macOS."""

AT_MOST = SIGNED_WITHIN + SIGNATURE_LIFE + LISTING_LAG + 35
"""Seconds until an open slot is decided: the protocol's, and what is lost between two looks."""


@pytest.fixture
def small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of two runs, so that a handful of runs makes several."""
    monkeypatch.setattr(plan, "MAX_ARRAY", 2)


@pytest.mark.parametrize("lag", [0, 50])
def test_a_job_whose_answer_was_lost_is_found_by_its_name(machine: Any, fault: Fault, lag: float) -> None:
    machine.server.control.delay_listing(lag)
    fault("batch", "SubmitJob", "drop", count=1)
    assert str(machine.run([1, 2]).submitted) == "1-2"
    assert bool(machine.said) == bool(lag)
    machine.server.control.delay_listing(0)
    machine.assert_each_run_has_one_job([1, 2])


def test_a_request_that_arrives_minutes_later_makes_the_only_job(machine: Any, fault: Fault) -> None:
    fault("batch", "SubmitJob", "late", count=1, seconds=200)
    assert str(machine.run([1, 2]).submitted) == "1-2"
    assert machine.calls("batch")["SubmitJob"] == 1
    machine.assert_each_run_has_one_job([1, 2])


def test_a_request_that_never_arrives_is_sent_again_when_it_cannot_arrive_any_more(machine: Any, fault: Fault) -> None:
    """Its signature has expired when it gets there."""
    fault("batch", "SubmitJob", "late", count=1, seconds=SIGNATURE_LIFE + 30)
    began = machine.clock.now()
    assert str(machine.run([1, 2]).submitted) == "1-2"
    assert SIGNATURE_LIFE < machine.clock.now() - began <= AT_MOST
    machine.assert_each_run_has_one_job([1, 2])


@pytest.mark.parametrize("kind", ["error", "error-after"])
def test_after_an_internal_error_only_the_listing_is_waited_for(machine: Any, fault: Fault, kind: str) -> None:
    machine.server.control.delay_listing(59)
    fault("batch", "SubmitJob", kind, count=1)
    began = machine.clock.now()
    assert str(machine.run([1, 2]).submitted) == "1-2"
    assert machine.clock.now() - began <= LISTING_LAG + 40
    machine.server.control.delay_listing(0)
    machine.assert_each_run_has_one_job([1, 2])


@pytest.mark.usefixtures("small_arrays")
def test_throttled_submissions_are_sent_again(machine: Any, fault: Fault) -> None:
    fault("batch", "SubmitJob", "throttle", share=0.3)
    assert len(machine.run(range(24)).submitted) == 24
    assert len(machine.jobs_by_name()) == 12
    machine.assert_each_run_has_one_job(range(24))


def test_submissions_that_are_throttled_for_minutes_are_signed_for_a_new_entry(machine: Any, fault: Fault) -> None:
    fault("batch", "SubmitJob", "throttle", count=25)
    assert str(machine.run([1, 2]).submitted) == "1-2"
    entries = machine.ledger.entries("ada/first")
    assert len(entries) > 1
    assert [entry.slots[0].job for entry in entries[:-1]] == [VOID] * (len(entries) - 1)
    assert machine.said
    machine.assert_each_run_has_one_job([1, 2])


@pytest.mark.usefixtures("small_arrays")
def test_what_was_accepted_before_an_interruption_is_in_the_ledger(
    machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = machine.batch.submit
    answers: list[Any] = []

    def interrupted(request: dict[str, Any], *, sign_until: float) -> Any:
        if answers:
            raise KeyboardInterrupt
        answers.append(submit(request, sign_until=sign_until))
        return answers[0]

    monkeypatch.setattr(machine.batch, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        machine.run([1, 2, 3])
    (entry,) = machine.ledger.entries("ada/first")
    assert [slot.job for slot in entry.slots] == [answers[0].job, None]


@pytest.mark.usefixtures("small_arrays")
def test_what_was_throttled_until_an_interruption_is_known_not_to_be_sent(
    machine: Any, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault("batch", "SubmitJob", "throttle", skip=1)

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(machine, "clock", replace(machine.clock, sleep=interrupted))
    with pytest.raises(KeyboardInterrupt):
        machine.run(range(6))
    (entry,) = machine.ledger.entries("ada/first")
    assert [slot.job for slot in entry.slots] == [*machine.jobs_by_name().values(), VOID, VOID]


@pytest.mark.usefixtures("small_arrays")
def test_what_was_not_sent_when_something_unforeseen_happens_is_known_not_to_be(
    machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = machine.batch.submit

    def failing(request: dict[str, Any], *, sign_until: float) -> Any:
        if machine.calls("batch")["SubmitJob"]:
            raise ValueError("a bug")
        return submit(request, sign_until=sign_until)

    monkeypatch.setattr(machine.batch, "submit", failing)
    with pytest.raises(ValueError, match="a bug"):
        machine.run(range(6))
    (entry,) = machine.ledger.entries("ada/first")
    assert [slot.job for slot in entry.slots] == [*machine.jobs_by_name().values(), None, VOID]


def test_nothing_is_signed_after_the_fence(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that was asleep between the entry and the submission does not send for that entry any more."""
    definition = machine.batch.definition

    def slow(request: dict[str, Any]) -> str:
        machine.clock.sleep(SIGNED_WITHIN + 1)
        return str(definition(request))

    monkeypatch.setattr(machine.batch, "definition", slow)
    assert str(machine.run([1, 2]).submitted) == "1-2"
    assert [entry.slots[0].job == VOID for entry in machine.ledger.entries("ada/first")] == [True, False]
    assert machine.calls("batch")["SubmitJob"] == 1
    machine.assert_each_run_has_one_job([1, 2])


@pytest.mark.usefixtures("small_arrays")
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    ("part", "method"), [("ledger", "put"), ("batch", "definition"), ("batch", "submit"), ("ledger", "record")]
)
def test_a_run_that_was_killed_is_completed_by_the_next(
    make_machine: Callable[[], Any], killed: Killed, part: str, method: str, before: bool
) -> None:
    machine = make_machine()
    with killed(getattr(machine, part), method, before=before):
        machine.run([1, 2, 3])
    again = make_machine()
    began = again.clock.now()
    again.run([1, 2, 3])
    assert again.clock.now() - began <= AT_MOST
    again.assert_each_run_has_one_job([1, 2, 3])


@pytest.mark.usefixtures("small_arrays")
def test_a_run_killed_between_its_arrays_is_completed_by_what_is_missing(
    make_machine: Callable[[], Any], killed: Killed
) -> None:
    machine = make_machine()
    with killed(machine.batch, "submit", before=False, call=4):
        machine.run(range(20))
    outcome = make_machine().run(range(20))
    assert (len(outcome.settled), len(outcome.submitted)) == (8, 12)
    machine.assert_each_run_has_one_job(range(20))


def test_where_the_killed_process_was_of_this_machine_only_the_listing_is_waited_for(
    make_machine: Callable[[], Any], killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, here = make_machine(), Writer.here
    monkeypatch.setattr(Writer, "here", lambda: replace(here(), pid=NO_SUCH_PROCESS))
    with killed(machine.batch, "submit", before=True):
        machine.run([1, 2])
    monkeypatch.setattr(Writer, "here", here)
    began = machine.clock.now()
    assert str(make_machine().run([1, 2]).submitted) == "1-2"
    assert machine.clock.now() - began <= LISTING_LAG + 40
    machine.assert_each_run_has_one_job([1, 2])


def test_what_aws_may_have_forgotten_is_not_sent_again(make_machine: Callable[[], Any], killed: Killed) -> None:
    machine = make_machine()
    with killed(machine.batch, "submit", before=True):
        machine.run([1, 2])
    machine.clock.sleep(8 * 86_400)
    outcome = make_machine().run([1, 2, 3])
    assert (str(outcome.unknown), str(outcome.submitted)) == ("1-2", "3")
    assert machine.status().counts["unknown"] == 2


@pytest.mark.parametrize("operation", ["TransactWriteItems", "UpdateItem"])
@pytest.mark.parametrize("kind", ["drop", "error-after", "throttle"])
def test_a_reply_of_the_ledger_may_be_lost(machine: Any, fault: Fault, operation: str, kind: str) -> None:
    fault("dynamodb", operation, kind, count=1)
    assert str(machine.run([1, 2]).submitted) == "1-2"
    assert len(machine.ledger.entries("ada/first")) == 1
    machine.assert_each_run_has_one_job([1, 2])


def test_of_two_sweeps_of_one_name_the_one_of_which_nothing_was_sent_gives_way(
    machine: Any, make_machine: Callable[[], Any], fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is throttled until its entry is too old; before it puts the next one, another begins."""
    other, put = make_machine(), machine.ledger.put

    def and_another_begins(sweep: str, entry: Any, *, after: Any) -> Any:
        if entry.n == 2:
            machine.server.control.faults.clear()
            assert str(other.run([1, 2, 3], "echo another").submitted) == "1-3"
        return put(sweep, entry, after=after)

    fault("batch", "SubmitJob", "throttle")
    monkeypatch.setattr(machine.ledger, "put", and_another_begins)
    with pytest.raises(UsageError, match="was begun with the command 'echo another'"):
        machine.run([1, 2])
    assert str(Generation(machine.ledger.entries("ada/first")).standing()) == "1-3"
    assert len(machine.jobs_by_name()) == 1


def test_two_at_once_share_the_work(make_machine: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    machines = [make_machine(), make_machine()]
    barrier = Barrier(2)
    for machine in machines:
        put = machine.ledger.put

        def together(sweep: str, entry: Any, *, after: Any, put: Any = put) -> Any:
            if entry.n == 1:
                barrier.wait(20)
            return put(sweep, entry, after=after)

        monkeypatch.setattr(machine.ledger, "put", together)
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda machine, seeds: machine.run(seeds), machines, [[1, 2, 3], [3, 4, 5]]))
    assert sorted(len(outcome.submitted) for outcome in outcomes) == [2, 3]
    machines[0].assert_each_run_has_one_job([1, 2, 3, 4, 5])


@pytest.mark.parametrize("skew", [-200, 200])
@pytest.mark.parametrize("kind", ["drop", "late", "error-after"])
def test_a_clock_that_is_minutes_off_changes_nothing(
    make_machine: Callable[..., Any], fault: Fault, killed: Killed, skew: float, kind: str
) -> None:
    """Killed on a machine whose clock is off, completed on one that is off the other way: AWS's own dates decide."""
    machine = make_machine(skew=skew)
    fault("batch", "SubmitJob", kind, count=1, seconds=80)
    with killed(machine.ledger, "record", before=True):
        machine.run([1, 2])
    make_machine(skew=-skew).run([1, 2])
    machine.assert_each_run_has_one_job([1, 2])


def test_a_job_is_ended_when_another_command_has_decided_that_it_was_never_sent(
    machine: Any, wait_until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a signature that AWS has taken too late, or a listing that lags for more than a minute."""
    submit = machine.batch.submit
    late: list[Answer] = []

    def slowly(request: dict[str, Any], *, sign_until: float) -> Answer:
        answer: Answer = submit(request, sign_until=sign_until)
        if not late:
            late.append(answer)
            machine.ledger.record("ada/first", machine.ledger.entries("ada/first")[0], {0: VOID})
        return answer

    monkeypatch.setattr(machine.batch, "submit", slowly)
    assert str(machine.run([1, 2], command="sleep 60; echo {seed}", attempts=1).submitted) == "1-2"
    first, second = (entry.slots[0].job for entry in machine.ledger.entries("ada/first"))
    assert first == VOID
    jobs = set(machine.jobs_by_name().values())
    [ended] = jobs - {second}
    wait_until(lambda: machine.batch.describe([ended])[ended]["status"] == "FAILED")

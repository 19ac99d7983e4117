"""Waiting until a sweep is over, through whatever happens meanwhile."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from submitter.errors import ConfigurationError, SubmitterError, WaitTimeoutError
from submitter.session import Clock, client_config, open_session
from submitter.session import Watch as WatchCalls
from submitter.status import SweepStatus
from submitter.waiting import wait

FAIL_2 = "test {seed} != 2"
FOR_LONG = "sleep 600; echo {seed}"
Fault = Callable[..., None]


class Watch:
    """Waits by a clock of the test's, and remembers what was told and how long each pause was."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.seen: list[SweepStatus] = []
        self.troubles: list[SubmitterError] = []
        self.pauses: list[float] = []

    def __call__(self, *, clock: Clock | None = None, poll_seconds: float = 0.05, **options: Any) -> SweepStatus:
        clock = clock or Clock()

        def sleep(seconds: float) -> None:
            self.pauses.append(seconds)
            clock.sleep(seconds)

        return wait(
            self.machine.status,
            clock=replace(clock, sleep=sleep),
            poll_seconds=poll_seconds,
            seen=self.seen.append,
            troubled=self.troubles.append,
            **options,
        )


def wait_once(read: Callable[[], SweepStatus]) -> SweepStatus:
    """Wait with no time to do so, and return what was seen."""
    seen: list[SweepStatus] = []
    with pytest.raises(WaitTimeoutError):
        wait(read, clock=Clock(), poll_seconds=1, timeout_seconds=0, seen=seen.append, troubled=lambda _: None)
    return seen[0]


@pytest.fixture
def watch(machine: Any) -> Watch:
    return Watch(machine)


def test_waiting_ends_when_every_run_has_ended(machine: Any, watch: Watch) -> None:
    machine.run([1, 2, 3], command=FAIL_2)
    status = watch()
    assert status.counts == {"succeeded": 2, "failed": 1}
    assert watch.seen[-1] is status


def test_pauses_begin_at_a_second_and_grow(machine: Any, watch: Watch) -> None:
    machine.run([1], command=FOR_LONG)
    with pytest.raises(WaitTimeoutError, match="not over after 100 s"):
        watch(clock=machine.clock, poll_seconds=10, timeout_seconds=100)
    assert watch.pauses[:2] == [1.0, 1.5]
    assert watch.pauses == [*sorted(watch.pauses[:-1]), watch.pauses[-1]]
    assert max(watch.pauses) == 10.0


def test_the_last_look_is_when_the_time_is_up(machine: Any, watch: Watch) -> None:
    machine.run([1], command=FOR_LONG)
    with pytest.raises(WaitTimeoutError, match="not over after 500 s"):
        watch(clock=machine.clock, poll_seconds=3600, timeout_seconds=500)
    *grown, last = watch.pauses
    assert grown == [1.5**n for n in range(len(grown))]
    assert 0 < last < 1.5 ** len(grown)
    assert len(watch.seen) == len(watch.pauses) + 1


def test_failing_fast_stops_at_the_first_failure_while_others_run(machine: Any, watch: Watch) -> None:
    machine.run([1, 2], command="test {seed} != 2 && sleep 600")
    status = watch(fail_fast=True)
    assert status.counts["failed"] == 1
    assert not status.over


@pytest.mark.parametrize("kind", ["throttle", "error", "drop"])
def test_what_aws_does_not_answer_for_a_while_is_told_and_asked_again(
    make_machine: Callable[[], Any], fault: Fault, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Without the SDK's own tries, which come first and take their time."""
    monkeypatch.setattr("submitter.ledger.client_config", partial(client_config, attempts=1))
    machine = make_machine()
    machine.run([1])
    fault("dynamodb", "Query", kind, count=2)
    watch = Watch(machine)
    assert watch().succeeded
    assert len(watch.troubles) == 2


@pytest.mark.parametrize(
    ("service", "kind", "what"),
    [("dynamodb", "stall", "Query of DynamoDB"), ("batch", "throttle", "DescribeJobs of Batch")],
)
def test_a_call_that_takes_long_is_told_of_once(  # noqa: PLR0917 - fixtures
    machine: Any,
    fault: Fault,
    wait_until: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    service: str,
    kind: str,
    what: str,
) -> None:
    said: list[str] = []
    machine.run([1], command=FOR_LONG)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "emulator")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "emulator")
    session = open_session(machine.contract, WatchCalls(said.append, seconds=0.2))
    slow = replace(machine, session=session)
    slow.status()
    fault(service, what.partition(" ")[0], kind, count=3 if kind == "throttle" else 1, seconds=200)
    with ThreadPoolExecutor(1) as pool:
        status = pool.submit(slow.status)
        wait_until(lambda: said)
        machine.clock.sleep(200)
        assert status.result().counts
    assert said == [f"AWS has not answered {what} for 0.2 s, or asks for patience: waiting."]
    machine.cancel()


def test_expired_credentials_are_told_and_waiting_goes_on(
    machine: Any, watch: Watch, fault: Fault, wait_until: Callable[..., Any]
) -> None:
    machine.run([1], command="true; echo {seed}")
    wait_until(lambda: machine.status().over)
    fault("dynamodb", "Query", "expired", count=2)
    assert watch().succeeded
    assert [type(trouble) for trouble in watch.troubles] == [ConfigurationError] * 2


def test_hundreds_of_jobs_are_asked_for_in_chunks_and_a_throttled_chunk_again(machine: Any, fault: Fault) -> None:
    machine.run(range(250), command=FOR_LONG)
    before = machine.calls("batch")
    fault("batch", "DescribeJobs", "throttle", skip=2, count=1)
    status = wait_once(lambda: machine.status(runs=True))
    assert len(status.runs) == 250
    assert (machine.calls("batch") - before)["DescribeJobs"] == 1 + 3 + 1


def test_what_will_not_pass_ends_the_waiting(machine: Any, watch: Watch) -> None:
    machine.run([1])
    machine.session.client("dynamodb").delete_table(TableName="ledger")
    with pytest.raises(Exception, match="ResourceNotFoundException"):
        watch()
    assert watch.troubles == []


def test_the_parent_decides_when_an_array_is_over(machine: Any, watch: Watch) -> None:
    """Its summary lags behind: what it says of an array that has ended is not looked at."""
    machine.server.control.delay_summaries(3600)
    machine.run([1, 2, 3], command=FAIL_2)
    [job] = machine.jobs_by_name().values()
    status = watch()
    parent = machine.batch.describe([job])[job]
    assert (parent["status"], parent["arrayProperties"]["statusSummary"]["PENDING"]) == ("FAILED", 3)
    assert status.counts == {"succeeded": 2, "failed": 1}
    assert all(seen.counts == {"pending": 3} for seen in watch.seen if not seen.over)

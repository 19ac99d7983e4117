"""What runs have logged: every event once, to the end, and a sentence where there is nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from submitter.logs import LogReader

WaitUntil = Callable[..., Any]


def read(machine: Any, job: str, *, follow: bool = False) -> tuple[list[tuple[int, str]], list[str]]:
    said: list[str] = []
    lines = [(line.attempt, line.message) for line in machine.logs.read(job, follow=follow, spot=True, say=said.append)]
    return lines, said


def test_following_ends_with_the_run_and_gives_every_line_once(machine: Any) -> None:
    machine.run([1, 2], command="seq 1 500; sleep 0.3; seq 501 600; echo {seed}")
    lines, _ = read(machine, machine.run_status(2).job, follow=True)
    assert lines == [(1, str(number)) for number in (*range(1, 601), 2)]


def test_more_lines_than_a_page_holds_are_read_in_order(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1], command="seq 1 25000; echo {seed}")
    job = machine.run_status(1).job
    wait_until(lambda: machine.run_status(1).status == "succeeded", seconds=60)
    lines, _ = read(machine, job)
    assert [message for _, message in lines] == [*map(str, range(1, 25_001)), "1"]


def test_following_goes_on_to_the_next_attempt(machine: Any, wait_until: WaitUntil) -> None:
    machine.run(
        [1], command='echo "attempt $AWS_BATCH_JOB_ATTEMPT"; test $AWS_BATCH_JOB_ATTEMPT != 1 || sleep 600; echo {seed}'
    )
    job = machine.run_status(1).job
    wait_until(lambda: read(machine, job)[0] == [(1, "attempt 1")])
    machine.server.control.reclaim(job)
    assert read(machine, job, follow=True)[0] == [(1, "attempt 1"), (2, "attempt 2"), (2, "1")]


def test_a_run_that_waits_has_no_log_yet_and_the_sentence_says_why(machine: Any) -> None:
    machine.run(range(3), command="sleep 600; echo {seed}")
    lines, said = read(machine, machine.run_status(3).job)
    assert lines == []
    assert len(said) == 1
    assert said[0].startswith("There is no log yet, the run is ")


def test_a_run_that_was_ended_before_it_started_has_no_log_and_the_sentence_says_why(
    machine: Any, wait_until: WaitUntil
) -> None:
    machine.run(range(5), command="sleep 600; echo {seed}")
    last = machine.run_status(5).job
    machine.batch.terminate(machine.ledger.entries("ada/first")[0].slots[0].job, "enough of it")
    wait_until(lambda: machine.status().over)
    assert read(machine, last, follow=True) == ([], ["The run has failed without a log: enough of it."])


def test_a_job_that_aws_has_forgotten_is_a_sentence(machine: Any) -> None:
    lines, [sentence] = read(machine, "00000000-0000-0000-0000-000000000000", follow=True)
    assert lines == []
    assert "forgotten" in sentence


PAGES: dict[str | None, tuple[list[str], str]] = {
    None: (["a"], "f/1"),
    "f/1": ([], "f/2"),
    "f/2": (["b", "c"], "f/3"),
    "f/3": ([], "f/3"),
}


class PagedLogs:
    """CloudWatch as it may be: an empty page before one with events. The emulated account has no such pages."""

    def get_log_events(self, *, nextToken: str | None = None, **_: Any) -> dict[str, Any]:  # noqa: N803 - AWS's name
        messages, token = PAGES[nextToken]
        return {"events": [{"timestamp": 0, "message": text} for text in messages], "nextForwardToken": token}


def test_an_empty_page_is_not_the_end(machine: Any, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.run([1])
    wait_until(lambda: machine.run_status(1).status == "succeeded")
    job = machine.run_status(1).job
    reader = LogReader(machine.session, machine.contract.log_group, machine.batch, clock=machine.clock)
    monkeypatch.setattr(reader, "_client", PagedLogs())
    said: list[str] = []
    lines = list(reader.read(job, follow=True, spot=True, say=said.append))
    assert ([line.message for line in lines], said) == (["a", "b", "c"], [])

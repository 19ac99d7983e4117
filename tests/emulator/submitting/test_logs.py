"""What runs have logged: every event once, to the end, and a sentence where there is nothing."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from submitter import events, logs
from submitter.errors import SubmitterError
from submitter.links import Links
from submitter.logs import Job, LogReader, Part

WaitUntil = Callable[..., Any]


def job_of(identifier: str, *, sent_at: float = 0.0) -> Job:
    return Job(id=identifier, spot=True, definition="rlb", sent_at=sent_at)


def read(
    machine: Any, job: str, *, follow: bool = False, sent_at: float = 0.0, **part: Any
) -> tuple[list[tuple[int, str]], list[str]]:
    said: list[str] = []
    lines = machine.logs.read(
        {1: job_of(job, sent_at=sent_at)}, Part(**part), follow=follow, say=lambda _, text: said.append(text)
    )
    return [(line.attempt, line.message) for line in lines], said


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


def test_a_run_that_has_said_nothing_so_far_has_no_log_yet(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1], command="exec sleep 600 # {seed}")
    wait_until(lambda: machine.run_status(1).status == "running")
    assert read(machine, machine.run_status(1).job) == ([], ["There is no log yet, the run is running."])


def test_a_run_whose_waiting_aws_does_not_explain_leads_to_who_does(machine: Any, wait_until: WaitUntil) -> None:
    machine.server.control.set_spot_price("c5a.large", 1.0)
    machine.run([1])
    wait_until(lambda: machine.run_status(1).status == "runnable")
    sentence = "There is no log yet, the run is runnable; `submitter why` tells what it waits for."
    assert read(machine, machine.run_status(1).job) == ([], [sentence])


def test_a_run_that_was_ended_before_it_started_has_no_log_and_the_sentence_says_why(
    machine: Any, wait_until: WaitUntil
) -> None:
    machine.run(range(5), command="sleep 600; echo {seed}")
    last = machine.run_status(5).job
    machine.batch.terminate(machine.ledger.entries("ada/first")[0].slots[0].job, "enough of it")
    wait_until(lambda: machine.status().over)
    assert read(machine, last, follow=True) == ([], ["The run has failed without a log: enough of it."])


def test_of_a_job_that_aws_has_forgotten_one_is_told_where_its_log_is(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1])
    wait_until(lambda: machine.run_status(1).status == "succeeded")
    before = machine.run_status(1)
    machine.clock.sleep(9 * 86_400)
    run = machine.run_status(1)
    said: list[str] = []
    job = Job(id=run.job, spot=True, definition=run.definition, sent_at=run.sent_at)
    assert list(machine.logs.read({1: job}, Part(), follow=True, say=lambda _, text: said.append(text))) == []
    [sentence] = said
    assert "AWS has forgotten this job" in sentence
    sent = machine.ledger.entries("ada/first")[0].at
    assert f"begins after {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(sent))}" in sentence
    found = re.search("`aws logs describe-log-streams --log-group-name (.*) --log-stream-name-prefix (.*)`", sentence)
    assert found is not None
    listed = machine.session.client("logs").describe_log_streams(logGroupName=found[1], logStreamNamePrefix=found[2])
    assert [stream["logStreamName"] for stream in listed["logStreams"]] == [before.log_stream]


def test_a_job_that_aws_does_not_show_yet_is_not_forgotten(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.run([1, 2], command="echo {seed}")
    job, sent_at = machine.run_status(2).job, machine.clock.now()
    describe, shown = machine.batch.describe, sent_at + 30

    def late(ids: Any) -> dict[str, Any]:
        found: dict[str, Any] = describe(ids)
        return found if machine.batch.described_at >= shown else {}

    monkeypatch.setattr(machine.batch, "describe", late)
    sentence = "There is no log yet: AWS does not show the job yet."
    assert read(machine, job, sent_at=sent_at) == ([], [sentence])
    lines, said = read(machine, job, sent_at=sent_at, follow=True)
    assert (lines, said[0]) == ([(1, "2")], sentence)


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
    jobs = {1: job_of(job)}
    lines = list(reader.read(jobs, Part(), follow=True, say=lambda _, text: said.append(text)))
    assert ([line.message for line in lines], said) == (["a", "b", "c"], [])


def test_the_last_lines_are_read_from_the_end_and_following_goes_on_after_them(
    machine: Any, wait_until: WaitUntil
) -> None:
    machine.run([1], command="seq 1 300; sleep 0.5; echo more; echo {seed}")
    job = machine.run_status(1).job
    wait_until(lambda: len(read(machine, job)[0]) == 300)
    assert read(machine, job, tail=3) == ([(1, "298"), (1, "299"), (1, "300")], [])
    assert [message for _, message in read(machine, job, tail=2, follow=True)[0]] == ["299", "300", "more", "1"]
    assert len(read(machine, job, tail=1000)[0]) == 302


def test_lines_are_chosen_by_what_they_say_before_the_last_are_counted(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1], command="seq 1 100; echo {seed}")
    job = machine.run_status(1).job
    wait_until(lambda: machine.run_status(1).status == "succeeded")
    grep = re.compile("^1.$")
    assert [message for _, message in read(machine, job, grep=grep)[0]] == [str(n) for n in range(10, 20)]
    assert [message for _, message in read(machine, job, grep=grep, tail=2)[0]] == ["18", "19"]


def test_lines_since_a_time_are_read_and_no_others(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1], command="echo before; until test -e after; do sleep 0.05; done; echo {seed}")
    job = machine.run_status(1).job
    wait_until(lambda: read(machine, job)[0])
    machine.clock.sleep(600)
    since = int(machine.clock.now() * 1000)
    assert read(machine, job, since_ms=since)[0] == []
    assert read(machine, job, since_ms=since - 900_000)[0] == [(1, "before")]


def test_one_attempt_is_read_and_following_it_ends_with_it(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1], command='echo "attempt $AWS_BATCH_JOB_ATTEMPT"; sleep 600; echo {seed}')
    job = machine.run_status(1).job
    wait_until(lambda: read(machine, job)[0] == [(1, "attempt 1")])
    machine.server.control.reclaim(job)
    wait_until(lambda: (2, "attempt 2") in read(machine, job)[0])
    assert read(machine, job, attempt=1, follow=True) == ([(1, "attempt 1")], [])
    assert read(machine, job, attempt=2)[0] == [(2, "attempt 2")]
    assert read(machine, job, attempt=3) == ([], ["There is no attempt 3 yet: the run has had 2."])


def test_logs_of_several_runs_come_in_the_order_of_time_each_line_once(machine: Any) -> None:
    machine.run([1, 2], command="for n in 1 2 3; do echo {seed}.$n; sleep 0.2; done")
    jobs = {number: job_of(machine.run_status(number).job) for number in (1, 2)}
    lines = list(machine.logs.read(jobs, Part(), follow=True, say=lambda *_: None))
    for number in (1, 2):
        assert [line.message for line in lines if line.run == number] == [f"{number}.{n}" for n in (1, 2, 3)]
    ended = list(machine.logs.read(jobs, Part(), follow=False, say=lambda *_: None))
    assert [line.at_ms for line in ended] == sorted(line.at_ms for line in lines)


def test_links_that_runs_have_printed_are_found_among_thousands_of_lines(machine: Any, wait_until: WaitUntil) -> None:
    link = "https://wandb.ai/lab/project/runs/"
    machine.run([1, 2], command=f"seq 1 2000; echo 'wandb: View run at {link}'{{seed}}; seq 1 2000")
    wait_until(lambda: machine.status().over)
    runs = machine.status(runs=True).runs
    links = Links(machine.session, machine.contract.log_group)
    found = links.read([(run.started_at, run.log_stream) for run in runs] + [(runs[0].started_at, "not/there/yet")])
    assert found == {run.log_stream: f"{link}{run.seed}" for run in runs}
    assert links.read([]) == {}


def test_an_attempt_without_a_log_is_told_with_its_own_end(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1], command="test $AWS_BATCH_JOB_ATTEMPT != 1 || exec sleep 600; echo {seed}; exit 7")
    job = machine.run_status(1).job
    wait_until(lambda: machine.run_status(1).status == "running")
    machine.server.control.reclaim(job)
    wait_until(lambda: machine.status().over)
    sentence = "Attempt 1 ended without a log: Spot interruption: EC2 has reclaimed the instance."
    assert read(machine, job, attempt=1) == ([], [sentence])
    assert read(machine, job, attempt=2)[0] == [(2, "1")]


@pytest.mark.parametrize("part", [{}, {"tail": 1000}, {"tail": 1000, "grep": re.compile("")}])
@pytest.mark.parametrize("operation", ["DescribeJobs", "GetLogEvents"])
@pytest.mark.parametrize("skip", [0, 1, 2])
def test_following_goes_on_after_what_passes_and_gives_every_line_once(
    machine: Any,
    fault: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    *,
    operation: str,
    skip: int,
    part: dict[str, Any],
) -> None:
    for module in (logs, events):
        monkeypatch.setattr(module, "EVENTS_PER_PAGE", 100)
    machine.run([1, 2], command="seq 1 250; sleep 0.3; seq 251 300; echo {seed}")
    jobs = {number: job_of(machine.run_status(number).job) for number in (1, 2)}
    fault("batch" if operation == "DescribeJobs" else "logs", operation, "expired", skip=skip, count=3)
    troubles: list[SubmitterError] = []

    def troubled(error: SubmitterError) -> None:
        troubles.append(error)
        machine.logs.use(machine.session, machine.batch)

    lines = list(machine.logs.read(jobs, Part(**part), follow=True, say=lambda *_: None, troubled=troubled))
    for number in (1, 2):
        messages = [line.message for line in lines if line.run == number]
        assert messages == [*map(str, range(1, 301)), str(number)]
    assert len(troubles) == 3
    assert {error.message for error in troubles} == {"The AWS credentials have expired."}


def test_what_does_not_pass_ends_the_following(machine: Any, fault: Callable[..., None]) -> None:
    machine.run([1])
    fault("logs", "GetLogEvents", "refuse", code="AccessDeniedException", message="no")
    job = job_of(machine.run_status(1).job)
    with pytest.raises(ClientError, match="AccessDenied"):
        list(machine.logs.read({1: job}, Part(), follow=True, say=lambda *_: None, troubled=lambda _: None))


def test_an_event_that_is_shown_seconds_after_the_end_is_not_lost(
    machine: Any, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.run([1])
    wait_until(lambda: machine.run_status(1).status == "succeeded")
    job = machine.run_status(1).job
    stopped = machine.run_status(1).stopped_at / 1000
    reader = LogReader(machine.session, machine.contract.log_group, machine.batch, clock=machine.clock)

    class LateLogs:
        def get_log_events(self, *, nextToken: str = "0", **_: Any) -> dict[str, Any]:  # noqa: N803 - AWS's name
            late = ["late"] if nextToken == "1" and machine.clock.now() > stopped + 7 else []
            messages, token = (["first"], "1") if nextToken == "0" else (late, "2" if late else nextToken)
            return {"events": [{"timestamp": 0, "message": text} for text in messages], "nextForwardToken": token}

    monkeypatch.setattr(reader, "_client", LateLogs())
    lines = reader.read({1: job_of(job)}, Part(), follow=True, say=lambda *_: None)
    assert [line.message for line in lines] == ["first", "late"]

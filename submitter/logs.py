"""CloudWatch Logs: what runs have logged, every event once, across their attempts."""

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from submitter.aws_errors import passing
from submitter.errors import SubmitterError, UsageError
from submitter.events import EVENTS_PER_PAGE, EventStream
from submitter.reasons import FINAL, attempts, log_streams, reason, state
from submitter.session import Clock, client_config
from submitter.settle import REMEMBERED

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_logs import CloudWatchLogsClient

    from submitter.batch import Batch

T = TypeVar("T")

_POLL_SECONDS: Final = 2.0
"""Between two looks at logs that are being followed."""

_SHOWN_SECONDS: Final = 10.0
"""How long after the end of a job CloudWatch may need to show its last events."""

_EVENTS_IN_MEMORY: Final = 200_000
"""When logs are interleaved a page of each is held; with many of them pages are smaller, down to 100 events."""

_SINCE_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, kw_only=True)
class Job:
    """Whose log is read.

    Attributes:
        id: The id of a run's job or array's child.
        spot: Whether its queue runs on Spot instances.
        definition: Name of its job definition.
        sent_at: When it was sent, in seconds since the epoch by the sender's clock.
    """

    id: str
    spot: bool
    definition: str
    sent_at: float


@dataclass(frozen=True, kw_only=True)
class Part:
    """Which part of a log is wanted.

    Attributes:
        attempt: Only this attempt's, counted from 1.
        since_ms: Only events from then on, in milliseconds since the epoch.
        tail: Only so many of the last events that are there, of the newest attempt.
        grep: Only events in which this is found.
    """

    attempt: int | None = None
    since_ms: int | None = None
    tail: int | None = None
    grep: re.Pattern[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Line:
    """One event of a log.

    Attributes:
        run: The number of the run that wrote it.
        job: The id of its job or array's child.
        attempt: Which attempt of the run, from 1.
        at_ms: When, in milliseconds since the epoch.
        message: What it says, without a line end.
    """

    run: int
    job: str
    attempt: int
    at_ms: int
    message: str


class _NotNowError(Exception):
    """AWS does not answer at present: what was not read in this look is read in a later one."""


class LogReader:
    """Reads the logs of jobs in one log group; one reading at a time."""

    def __init__(self, session: "boto3.Session", log_group: str, batch: "Batch", *, clock: Clock | None = None) -> None:
        self._client: CloudWatchLogsClient
        self._batch: Batch
        self.use(session, batch)
        self._group = log_group
        self._clock = clock or Clock()
        self._patient = False
        self._troubles: list[SubmitterError] = []  # of this look; there is one at most

    def use(self, session: "boto3.Session", batch: "Batch") -> None:
        """Go on by other clients, also while something is read: those that there were keep their credentials."""
        self._client = session.client("logs", config=client_config())
        self._batch = batch

    def read(
        self,
        jobs: Mapping[int, Job],
        part: Part,
        *,
        follow: bool,
        say: Callable[[int, str], None],
        troubled: Callable[[SubmitterError], None] | None = None,
    ) -> Iterator[Line]:
        """Yield what the jobs of runs have logged so far, attempt after attempt, those of several runs by time.

        Args:
            jobs: By the runs' numbers.
            part: Which part of the logs.
            follow: Go on until the jobs have ended and all of their logs is read.
            say: Told, with the run's number, in a sentence why there is nothing to read yet, or at all.
            troubled: Told each error that may pass, and then it is tried again; without it the first one is raised.
        """
        limit = max(100, min(EVENTS_PER_PAGE, _EVENTS_IN_MEMORY // max(1, len(jobs))))
        logs = [
            _RunLog(number, job, part, self._stream(part, limit), forgotten=_forgotten(job, self._group), say=say)
            for number, job in jobs.items()
        ]
        self._patient = troubled is not None
        while logs:
            self._troubles.clear()
            with suppress(_NotNowError):
                # The jobs are looked at first: when one had ended by then, the end of its log is really the end.
                details = self._call(lambda: self._batch.describe(log.job.id for log in logs))  # noqa: B023 - now
                date = self._batch.described_at or self._clock.now()
                lines = (log.new_lines(details.get(log.job.id), date, follow=follow) for log in logs)
                yield from merge(*lines, key=attrgetter("at_ms"))
            if troubled is not None and self._troubles:
                troubled(self._troubles[0])
            logs = [log for log in logs if not log.complete]
            if logs:
                self._clock.sleep(_POLL_SECONDS)

    def _stream(self, part: Part, limit: int) -> Callable[[str], EventStream]:
        which: dict[str, Any] = {"logGroupName": self._group}
        if part.since_ms is not None:
            which["startTime"] = part.since_ms

        def page(**more: Any) -> Any:
            return self._call(lambda: self._client.get_log_events(**which, **more))

        return lambda name: EventStream(page, name, limit=limit, whole=part.since_ms is None)

    def _call(self, call: Callable[[], T]) -> T:
        """Return the answer; after a call that AWS did not answer for now the other ones of a look are not made."""
        if not self._troubles:
            try:
                return call()
            except Exception as error:
                trouble = passing(error) if self._patient else None
                if trouble is None:
                    raise
                self._troubles.append(trouble)
        raise _NotNowError


class _RunLog:
    """The log of one run, as far as it was read."""

    def __init__(
        self,
        number: int,
        job: Job,
        part: Part,
        open_stream: Callable[[str], EventStream],
        *,
        forgotten: str,
        say: Callable[[int, str], None],
    ) -> None:
        self.job = job
        self.complete = False
        self._forgotten = forgotten  # what to say then
        self._number, self._part, self._open_stream, self._say = number, part, open_stream, say
        self._stream: EventStream | None = None
        self._read = 0  # attempts whose log is complete
        self._begun = False
        self._last: deque[Line] = deque(maxlen=part.tail)
        self._told = ""

    def new_lines(self, job: Mapping[str, Any] | None, date: float, *, follow: bool) -> Iterator[Line]:
        """Yield what was not yielded before, given the job as it was shown at a date; then say if that is all."""
        with suppress(_NotNowError):
            yield from self._new_lines(job, date, follow=follow)

    def _new_lines(self, job: Mapping[str, Any] | None, date: float, *, follow: bool) -> Iterator[Line]:
        if job is None:
            young = date < self.job.sent_at + REMEMBERED
            self._tell("There is no log yet: AWS does not show the job yet." if young else self._forgotten)
            self.complete = not (young and follow)
            return
        streams = [found for found in log_streams(job) if self._part.attempt in (None, found[0])]
        if not self._begun and self._stream is None and self._part.tail is not None:
            self._read = max(0, len(streams) - 1)
        before = (self._stream, self._stream and self._stream.events)
        while self._read < len(streams):
            attempt, name = streams[self._read]
            self._stream = self._stream or self._open_stream(name)
            yield from self._wanted(attempt, self._stream)
            if self._read + 1 == len(streams):
                break
            self._read, self._stream = self._read + 1, None
        over = job["status"] in FINAL or attempts(job) > (self._part.attempt or attempts(job))
        if self._stream is None or ((over or not follow) and self._stream.silent):
            self._tell(_no_log(job, self._part.attempt, spot=self.job.spot))
        # CloudWatch may show the last events a little late: it is all where a look some time later brings nothing.
        late = date >= _stopped(job, self._part.attempt) + _SHOWN_SECONDS
        quiet = self._stream is None or (late and before == (self._stream, self._stream.events))
        self.complete = not follow or (over and quiet)
        self._begun = True

    def _wanted(self, attempt: int, stream: EventStream) -> Iterator[Line]:
        grep, tail = self._part.grep, None if self._begun else self._part.tail
        events = stream.last_events(tail) if tail is not None and grep is None else stream.new_events()
        run, job = self._number, self.job.id
        found = (
            Line(run=run, job=job, attempt=attempt, at_ms=each["timestamp"], message=each["message"].rstrip("\n"))
            for each in events
        )
        lines = found if grep is None else (line for line in found if grep.search(line.message))
        if tail is None:
            yield from lines
        else:
            self._last.extend(lines)  # after those of a look that broke off
            yield from self._last

    def _tell(self, why: str) -> None:
        if why != self._told:
            self._say(self._number, why)
        self._told = why


def since_ms(text: str, now: float) -> int:
    """Return the time of `30s`, `10m`, `2h`, `1d` ago, or of a date and time, in milliseconds since the epoch.

    Args:
        text: What was typed; a date and time without an offset is local.
        now: Seconds since the epoch.

    Raises:
        UsageError: It is neither, or before the epoch.
    """
    try:
        if ago := re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text, re.ASCII):
            found = int((now - float(ago[1]) * _SINCE_UNITS[ago[2]]) * 1000)
        else:
            found = int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise UsageError(
            f"{text!r} is neither a span nor a time.", "Write it like 30s, 10m, 2h, 1d or 2026-11-30T18:00."
        ) from None
    except OverflowError:
        found = -1
    if found < 0:
        raise UsageError(f"--since {text} is before 1970.", "Leave it out to read all that there is.")
    return found


def _stopped(job: Mapping[str, Any], attempt: int | None) -> float:
    """Return when a job or its attempt ended, in seconds since the epoch; 0 when it has not, or never ran."""
    ended = job.get("attempts", ())
    one = job if attempt is None or attempt > len(ended) else ended[attempt - 1]
    return float(one.get("stoppedAt", 0)) / 1000


def _forgotten(job: Job, group: str) -> str:
    """Return the sentence for a log whose stream's name AWS has forgotten, and how to look for it.

    Source: AWS Batch User Guide, "Use the awslogs log driver": streams are named after the job definition.
    """
    sent = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(job.sent_at))
    return (
        "AWS has forgotten this job, which ended more than a week ago, and with it the name of its log stream. If its "
        f"log is still kept, it is in a stream that begins after {sent}, one of those that `aws logs "
        f"describe-log-streams --log-group-name {group} --log-stream-name-prefix {job.definition}/default/` lists."
    )


def _because(job: Mapping[str, Any], *, spot: bool) -> str:
    """Return the end of a sentence, without its full stop, that says why a job or an attempt is as it is, if known."""
    why = reason(job, spot=spot)
    return f": {why.rstrip('.')}" if why else ""


def never_sent(status: str) -> str:
    """Return the sentence that stands where the log of a run without a job would be."""
    if status == "deciding":
        return "There is no log yet: it is not known yet whether AWS has the run. Ask again in some minutes."
    return f"There is no log: the run is {status}."


def _no_log(job: Mapping[str, Any], attempt: int | None, *, spot: bool) -> str:
    """Return the sentence that stands where a log would be."""
    had, over = attempts(job), job["status"] in FINAL
    if attempt is not None and had < attempt:
        return f"There is no attempt {attempt}{'' if over else ' yet'}: the run has had {had}."
    if attempt is not None and attempt <= len(ended := job.get("attempts", ())):
        return (
            f"Attempt {attempt} ended without a log{_because({**ended[attempt - 1], 'status': 'FAILED'}, spot=spot)}."
        )
    because = _because(job, spot=spot)
    if over:
        ended = "was cancelled" if state(job) == "cancelled" else f"has {job['status'].lower()}"
        return f"The run {ended} without a log{because}."
    if not because and job["status"] in {"SUBMITTED", "PENDING", "RUNNABLE"}:
        because = "; `submitter why` tells what it waits for"
    return f"There is no log yet, the run is {job['status'].lower()}{because}."

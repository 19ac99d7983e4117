"""CloudWatch Logs: what runs have logged, every event once, across their attempts."""

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from submitter.aws_errors import error_code
from submitter.errors import UsageError
from submitter.reasons import FINAL, attempts, log_streams, reason, state
from submitter.session import Clock, client_config
from submitter.settle import REMEMBERED

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_logs.type_defs import OutputLogEventTypeDef

    from submitter.batch import Batch

_POLL_SECONDS: Final = 2.0
"""Between two looks at logs that are being followed."""

_SHOWN_SECONDS: Final = 10.0
"""How long after the end of a job CloudWatch may need to show its last events."""

_EVENTS_PER_PAGE: Final = 10_000
"""GetLogEvents returns at most 10,000 events a call."""

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
        attempt: Which attempt of the run, from 1.
        at_ms: When, in milliseconds since the epoch.
        message: What it says, without a line end.
    """

    run: int
    attempt: int
    at_ms: int
    message: str


class LogReader:
    """Reads the logs of jobs in one log group."""

    def __init__(self, session: "boto3.Session", log_group: str, batch: "Batch", *, clock: Clock | None = None) -> None:
        self._client = session.client("logs", config=client_config())
        self._group = log_group
        self._batch = batch
        self._clock = clock or Clock()

    def read(
        self, jobs: Mapping[int, Job], part: Part, *, follow: bool, say: Callable[[int, str], None]
    ) -> Iterator[Line]:
        """Yield what the jobs of runs have logged so far, attempt after attempt, those of several runs by time.

        Args:
            jobs: By the runs' numbers.
            part: Which part of the logs.
            follow: Go on until the jobs have ended and all of their logs is read.
            say: Told, with the run's number, in a sentence why there is nothing to read yet, or at all.
        """
        limit = max(100, min(_EVENTS_PER_PAGE, _EVENTS_IN_MEMORY // max(1, len(jobs))))
        stream = self._stream(part, limit)
        logs = [
            _RunLog(number, job, part, stream, forgotten=_forgotten(job, self._group), say=say)
            for number, job in jobs.items()
        ]
        while logs:
            # The jobs are looked at first: when one had ended by then, the end of its log is really the end.
            details = self._batch.describe(log.job.id for log in logs)
            date = self._batch.described_at or self._clock.now()
            lines = (log.new_lines(details.get(log.job.id), date, follow=follow) for log in logs)
            yield from merge(*lines, key=attrgetter("at_ms"))
            logs = [log for log in logs if not log.complete]
            if logs:
                self._clock.sleep(_POLL_SECONDS)

    def _stream(self, part: Part, limit: int) -> "Callable[[str], _Stream]":
        return lambda name: _Stream(self._client, self._group, name, since_ms=part.since_ms, limit=limit)


class _RunLog:
    """The log of one run, as far as it was read."""

    def __init__(
        self,
        number: int,
        job: Job,
        part: Part,
        open_stream: "Callable[[str], _Stream]",
        *,
        forgotten: str,
        say: Callable[[int, str], None],
    ) -> None:
        self.job = job
        self.complete = False
        self._forgotten = forgotten  # what to say then
        self._number, self._part, self._open_stream, self._say = number, part, open_stream, say
        self._stream: _Stream | None = None
        self._read = 0  # attempts whose log is complete
        self._begun = False
        self._told = ""

    def new_lines(self, job: Mapping[str, Any] | None, date: float, *, follow: bool) -> Iterator[Line]:
        """Yield what was not yielded before, given the job as it was shown at a date; then say if that is all."""
        if job is None:
            young = date < self.job.sent_at + REMEMBERED
            self._tell("There is no log yet: AWS does not show the job yet." if young else self._forgotten)
            self.complete = not (young and follow)
            return
        streams = [found for found in log_streams(job) if self._part.attempt in (None, found[0])]
        if not self._begun and self._part.tail is not None:
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

    def _wanted(self, attempt: int, stream: "_Stream") -> Iterator[Line]:
        grep, tail = self._part.grep, None if self._begun else self._part.tail
        events = stream.last_events(tail) if tail is not None and grep is None else stream.new_events()
        lines = (
            Line(run=self._number, attempt=attempt, at_ms=event["timestamp"], message=event["message"].rstrip("\n"))
            for event in events
        )
        found = lines if grep is None else (line for line in lines if grep.search(line.message))
        yield from found if tail is None else deque(found, tail)

    def _tell(self, why: str) -> None:
        if why != self._told:
            self._say(self._number, why)
        self._told = why


class _Stream:
    """One log stream and how far it was read.

    Attributes:
        silent: Whether it seems that nothing was ever written to it.
        events: How many events of it were read.
    """

    def __init__(
        self, client: "CloudWatchLogsClient", group: str, name: str, *, since_ms: int | None, limit: int
    ) -> None:
        self._client, self._limit = client, limit
        self._which: Any = {"logGroupName": group, "logStreamName": name}
        if since_ms is not None:
            self._which["startTime"] = since_ms
        self._token: str | None = None
        self.silent = True
        self.events = 0

    def new_events(self) -> "Iterator[OutputLogEventTypeDef]":
        """Yield the events after those that were yielded before.

        A page may be empty although more follow; the end is reached when the token that was sent comes back
        (GetLogEvents in the CloudWatch Logs API reference).
        """
        while (page := self._page(self._token, self._limit, from_head=True)) is not None:
            yield from page["events"]
            before, self._token = self._token, page["nextForwardToken"]
            if before == self._token:
                return

    def last_events(self, count: int) -> "list[OutputLogEventTypeDef]":
        """Return the last events that there are; :meth:`new_events` goes on after them."""
        events: list[OutputLogEventTypeDef] = []
        token = None
        while len(events) < count:
            page = self._page(token, min(count - len(events), _EVENTS_PER_PAGE), from_head=False)
            if page is None:
                break
            self._token = self._token or page["nextForwardToken"]
            events = [*page["events"], *events]
            if token == page["nextBackwardToken"]:
                break
            token = page["nextBackwardToken"]
        return events

    def _page(self, token: str | None, limit: int, *, from_head: bool) -> Any:
        """Return a page, or None for a stream that is announced by Batch and not written to yet."""
        more: Any = {} if token is None else {"nextToken": token}
        try:
            page = self._client.get_log_events(**self._which, limit=limit, startFromHead=from_head, **more)
        except ClientError as error:
            if error_code(error) != "ResourceNotFoundException":
                raise
            return None
        self.events += len(page["events"])
        # Before the time that is asked for there may have been some.
        self.silent = self.silent and not page["events"] and "startTime" not in self._which
        return page


def since_ms(text: str, now: float) -> int:
    """Return the time of `30s`, `10m`, `2h`, `1d` ago, or of a date and time, in milliseconds since the epoch.

    Args:
        text: What was typed; a date and time without an offset is local.
        now: Seconds since the epoch.

    Raises:
        UsageError: It is neither.
    """
    if ago := re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text, re.ASCII):
        return int((now - float(ago[1]) * _SINCE_UNITS[ago[2]]) * 1000)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise UsageError(
            f"{text!r} is neither a span nor a time.", "Write it like 30s, 10m, 2h, 1d or 2026-11-30T18:00."
        ) from None


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


def _no_log(job: Mapping[str, Any], attempt: int | None, *, spot: bool) -> str:
    """Return the sentence that stands where a log would be."""
    had, over = attempts(job), job["status"] in FINAL
    if attempt is not None and had < attempt:
        return f"There is no attempt {attempt}{'' if over else ' yet'}: the run has had {had}."
    why = reason(job, spot=spot)
    because = f": {why}" if why else ""
    if over:
        ended = "was cancelled" if state(job) == "cancelled" else f"has {job['status'].lower()}"
        return f"The run {ended} without a log{because}."
    if not why and job["status"] in {"SUBMITTED", "PENDING", "RUNNABLE"}:
        because = "; `submitter why` tells what it waits for"
    return f"There is no log yet, the run is {job['status'].lower()}{because}."

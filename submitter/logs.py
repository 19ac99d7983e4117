"""CloudWatch Logs: what a run has logged, every event once, across its attempts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from submitter.aws_errors import error_code
from submitter.reasons import FINAL, log_streams, reason
from submitter.session import Clock, client_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    import boto3
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_logs.type_defs import OutputLogEventTypeDef

    from submitter.batch import Batch

_POLL_SECONDS: Final = 2.0
"""Between two looks at a log that is being followed."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One event of a log.

    Attributes:
        attempt: Which attempt of the run wrote it, from 1.
        at_ms: When, in milliseconds since the epoch.
        message: What it says, without a line end.
    """

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

    def read(self, job: str, *, follow: bool, spot: bool, say: Callable[[str], None]) -> Iterator[Line]:
        """Yield what a job, or an array's child, has logged so far, attempt after attempt.

        Args:
            job: The job's id.
            follow: Go on until the job has ended and all of its log is read.
            spot: Whether its queue runs on Spot instances.
            say: Told, in a sentence, why there is nothing to read yet, or at all.
        """
        stream: _Stream | None = None
        read = 0  # attempts whose log is complete
        told = ""
        while True:
            # The job is looked at first: when it had ended by then, the end of its log is really the end.
            if (detail := self._batch.describe([job]).get(job)) is None:
                say("AWS has forgotten this job and where its log is: it ended more than a week ago.")
                return
            streams = log_streams(detail)
            while read < len(streams):
                attempt, name = streams[read]
                stream = stream or _Stream(self._client, self._group, name)
                for event in stream.new_events():
                    yield Line(attempt=attempt, at_ms=event["timestamp"], message=event["message"].rstrip("\n"))
                if read + 1 == len(streams):
                    break
                read, stream = read + 1, None
            over = detail["status"] in FINAL or not follow
            if (stream is None or (over and not stream.exists)) and told != (why := _no_log(detail, spot=spot)):
                say(told := why)
            if over:
                return
            self._clock.sleep(_POLL_SECONDS)


class _Stream:
    """One log stream, read from its head on."""

    def __init__(self, client: "CloudWatchLogsClient", group: str, name: str) -> None:
        self._client, self._group, self._name = client, group, name
        self._token: str | None = None
        self.exists = False

    def new_events(self) -> "Iterator[OutputLogEventTypeDef]":
        """Yield the events after those that were yielded before.

        A page may be empty although more follow; the end is reached when the token that was sent comes back
        (GetLogEvents in the CloudWatch Logs API reference).
        """
        while True:
            token: dict[str, Any] = {} if self._token is None else {"nextToken": self._token}
            try:
                page = self._client.get_log_events(
                    logGroupName=self._group, logStreamName=self._name, startFromHead=True, **token
                )
            except ClientError as error:
                if error_code(error) != "ResourceNotFoundException":
                    raise
                return  # announced by Batch, and not written to yet
            self.exists = True
            yield from page["events"]
            before, self._token = self._token, page["nextForwardToken"]
            if before == self._token:
                return


def _no_log(job: "Mapping[str, Any]", *, spot: bool) -> str:
    """Return the sentence that stands where a log would be."""
    why = reason(job, spot=spot)
    because = f": {why}" if why else ""
    if job["status"] in FINAL:
        return f"The run has {job['status'].lower()} without a log{because}."
    return f"There is no log yet, the run is {job['status'].lower()}{because}."

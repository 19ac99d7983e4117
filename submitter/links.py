"""Where W&B shows runs, as the runs themselves have printed it into their logs."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from submitter.aws_errors import error_code
from submitter.session import client_config

if TYPE_CHECKING:
    import boto3

_STREAMS_PER_CALL: Final = 100
"""FilterLogEvents takes at most 100 log streams."""

_PRINTED_WITHIN_MS: Final = 3_600_000
"""wandb prints the link when a run begins, so an hour of each log is searched, not all of it."""

_FILTER: Final = '"View run"'
_LINK: Final = re.compile(r"View run\b.*?(https?://[^\s\x1b]+)")
"""`wandb: 🚀 View run at https://...` at the start and `View run NAME at: https://...` at the end."""


class Links:
    """Reads W&B links from the logs in one log group."""

    def __init__(self, session: "boto3.Session", log_group: str) -> None:
        self._client = session.client("logs", config=client_config())
        self._group = log_group

    def read(self, streams: Iterable[tuple[int, str]]) -> dict[str, str]:
        """Return the link that was printed into each log stream that has one; a call for every 100 streams.

        Args:
            streams: When it was begun, in milliseconds since the epoch, and its name.
        """
        found: dict[str, str] = {}
        by_time = sorted(streams)
        for start in range(0, len(by_time), _STREAMS_PER_CALL):
            for event in self._events(by_time[start : start + _STREAMS_PER_CALL]):
                if link := _LINK.search(event["message"]):
                    found.setdefault(event["logStreamName"], link[1])
        return found

    def _events(self, streams: list[tuple[int, str]]) -> Iterator[Any]:
        pages = self._client.get_paginator("filter_log_events").paginate(
            logGroupName=self._group,
            logStreamNames=[name for _, name in streams],
            filterPattern=_FILTER,
            startTime=streams[0][0],
            endTime=streams[-1][0] + _PRINTED_WITHIN_MS,
        )
        try:
            for page in pages:
                yield from page["events"]
        except ClientError as error:
            # A stream that Batch has announced and nobody has written to yet makes AWS refuse the whole call.
            if error_code(error) != "ResourceNotFoundException":
                raise
            if len(streams) > 1:
                for half in (streams[: len(streams) // 2], streams[len(streams) // 2 :]):
                    yield from self._events(half)

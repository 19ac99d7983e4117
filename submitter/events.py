"""One log stream of CloudWatch Logs: its events, each once, whichever call for them fails meanwhile."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from submitter.aws_errors import error_code

if TYPE_CHECKING:
    from mypy_boto3_logs.type_defs import OutputLogEventTypeDef

EVENTS_PER_PAGE: Final = 10_000
"""GetLogEvents returns at most 10,000 events a call."""


class EventStream:
    """One log stream and how far it was read.

    Args:
        get: GetLogEvents in the stream's group, from the time on that is asked for.
        name: The stream's.
        limit: How many events a page may have.
        whole: Whether no time is asked for, so that nothing is before the first event.

    Attributes:
        silent: Whether it seems that nothing was ever written to it.
        events: How many events of it were read.
    """

    def __init__(self, get: Callable[..., Any], name: str, *, limit: int, whole: bool) -> None:
        self._get, self._name, self._limit, self._whole = get, name, limit, whole
        self._token: str | None = None
        self.silent = True
        self.events = 0

    def new_events(self) -> "Iterator[OutputLogEventTypeDef]":
        """Yield the events after those that were yielded before.

        A page may be empty although more follow; the end is reached when the token that was sent comes back
        (GetLogEvents in the CloudWatch Logs API reference).
        """
        while (page := self._page(self._token, self._limit, from_head=True)) is not None:
            # Before the call for the next page, which may fail: this one is yielded by then.
            before, self._token = self._token, page["nextForwardToken"]
            yield from page["events"]
            if before == self._token:
                return

    def last_events(self, count: int) -> "list[OutputLogEventTypeDef]":
        """Return the last events that there are; :meth:`new_events` goes on after them."""
        events: list[OutputLogEventTypeDef] = []
        end = token = None
        while len(events) < count:
            page = self._page(token, min(count - len(events), EVENTS_PER_PAGE), from_head=False)
            if page is None:
                break
            end = end or page["nextForwardToken"]
            events = [*page["events"], *events]
            if token == page["nextBackwardToken"]:
                break
            token = page["nextBackwardToken"]
        self._token = end if events else None
        return events

    def _page(self, token: str | None, limit: int, *, from_head: bool) -> Any:
        """Return a page, or None for a stream that is announced by Batch and not written to yet."""
        more: Any = {} if token is None else {"nextToken": token}
        try:
            page = self._get(logStreamName=self._name, limit=limit, startFromHead=from_head, **more)
        except ClientError as error:
            if error_code(error) != "ResourceNotFoundException":
                raise
            return None
        self.events += len(page["events"])
        # Before the time that is asked for there may have been some.
        self.silent = self.silent and self._whole and not page["events"]
        return page

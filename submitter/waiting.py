"""Waiting until a sweep is over, whatever becomes of the network and the credentials meanwhile."""

from collections.abc import Callable
from typing import Final

from submitter.aws_errors import passing
from submitter.errors import SubmitterError, WaitTimeoutError
from submitter.session import Clock
from submitter.status import SweepStatus

FIRST_PAUSE: Final = 1.0
"""Seconds from the first look to the second, so that short runs are not waited for in vain."""

_GROWTH: Final = 1.5
"""Each pause is this much longer than the one before, up to what the user allows."""


def wait(
    read: Callable[[], SweepStatus],
    *,
    clock: Clock,
    poll_seconds: float,
    timeout_seconds: float | None = None,
    fail_fast: bool = False,
    seen: Callable[[SweepStatus], None],
    troubled: Callable[[SubmitterError], None],
) -> SweepStatus:
    """Read again and again until every run is over, and return the last status.

    Args:
        read: Reads the status.
        clock: This machine's.
        poll_seconds: Time between two looks, once pauses have grown to it.
        timeout_seconds: Give up after this long, with a last look at the end of it.
        fail_fast: Return as soon as a run has failed.
        seen: Told each status.
        troubled: Told each error that may pass, while waiting goes on.

    Raises:
        WaitTimeoutError: The time is up.
    """
    until = None if timeout_seconds is None else clock.now() + timeout_seconds
    pause = min(FIRST_PAUSE, poll_seconds)
    while True:
        try:
            status = read()
        except Exception as error:
            if (trouble := passing(error)) is None:
                raise
            troubled(trouble)
        else:
            seen(status)
            if status.over or (fail_fast and status.counts.get("failed")):
                return status
        left = pause if until is None else until - clock.now()
        if left <= 0:
            raise WaitTimeoutError(f"The runs are not over after {timeout_seconds:g} s.", "They go on.")
        clock.sleep(min(pause, left))
        pause = min(pause * _GROWTH, poll_seconds)

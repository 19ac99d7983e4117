"""The account's clock: real time plus whatever tests have advanced it by."""

import asyncio
import time
from contextlib import suppress
from email.utils import formatdate


class Clock:
    """Everything in the emulator that reads the time or waits uses this, so that a test can skip ahead.

    `advance`, `sleep` and `sleep_until` are for the event loop only, the rest for any thread.
    """

    def __init__(self) -> None:
        self.offset = 0.0
        self._moved = asyncio.Event()

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time() + self.offset

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as the Batch API gives times."""
        return int(self.now() * 1000)

    def http_date(self) -> str:
        """The time as a reply's Date header."""
        return formatdate(self.now(), usegmt=True)

    def advance(self, seconds: float) -> None:
        """Move the clock forward and wake every sleeper whose time has come.

        Raises:
            ValueError: `seconds` is negative: an account's time never goes back.
        """
        if seconds < 0:
            raise ValueError(f"the clock cannot go back by {-seconds} seconds")
        self.offset += seconds
        self._moved.set()
        self._moved = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has gone on by `seconds`, in real time or by advances."""
        await self.sleep_until(self.now() + seconds)

    async def sleep_until(self, until: float) -> None:
        """Wait until the clock shows a time, in epoch seconds."""
        while (left := until - self.now()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._moved.wait(), left)

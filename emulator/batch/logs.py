"""From a task's output to events in CloudWatch Logs, as the awslogs driver of Docker makes them."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

LogWriter = Callable[[str, str, list[tuple[int, str]]], None]
"""Puts events, (milliseconds since the epoch, message), into a group's stream and creates the stream when missing."""

# PutLogEvents: at most 10,000 events and 1,048,576 bytes in a batch, each event counted with 26 bytes more.
# The driver cuts a line at 256 KiB less those 26 bytes ("awslogs logging driver", Docker documentation).
BATCH_EVENTS = 10_000
BATCH_BYTES = 1_048_576
EVENT_OVERHEAD = 26
LINE_BYTES = 262_144 - EVENT_OVERHEAD
FLUSH_SECONDS = 0.25
"""How long a line waits for others, in real time; the driver's five seconds would only make people wait."""


class LogStream:
    """Cuts one task's output into lines and puts them in batches into its log stream."""

    def __init__(self, write: LogWriter, now_ms: Callable[[], int], group: str, stream: str) -> None:
        self._write = write
        self._now_ms = now_ms
        self._group = group
        self._stream = stream
        self._rest = b""
        self._events: list[tuple[int, str]] = []
        self._size = 0
        self._flush_later: asyncio.TimerHandle | None = None

    def feed(self, data: bytes) -> None:
        """Take output as it comes; an unfinished line waits for its end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        while len(self._rest) >= LINE_BYTES:
            lines.append(self._rest[:LINE_BYTES])
            self._rest = self._rest[LINE_BYTES:]
        for line in lines:
            self._add(line.removesuffix(b"\r"))
        if self._events and self._flush_later is None:
            self._flush_later = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush)

    def close(self) -> None:
        """Write what is left, an unfinished line too."""
        self._add(self._rest)
        self._flush()

    def _add(self, line: bytes) -> None:
        """Queue a line's events; like the driver, nothing for an empty line, which CloudWatch would refuse."""
        for start in range(0, len(line), LINE_BYTES):
            part = line[start : start + LINE_BYTES]
            if self._size + len(part) + EVENT_OVERHEAD > BATCH_BYTES or len(self._events) == BATCH_EVENTS:
                self._flush()
            self._events.append((self._now_ms(), part.decode(errors="replace")))
            self._size += len(part) + EVENT_OVERHEAD

    def _flush(self) -> None:
        if self._flush_later is not None:
            self._flush_later.cancel()
            self._flush_later = None
        if self._events:
            events, self._events, self._size = self._events, [], 0
            # The driver drops what CloudWatch refuses, as when the group is deleted under a running job.
            with suppress(LookupError):
                self._write(self._group, self._stream, events)

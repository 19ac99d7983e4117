"""Whole processes, ours and the floor's, timed in turns and compared by their medians."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from emulator.calls import CallRecord

GOAL: Final = 1.5
"""The ratio of medians that a comparison should stay below unless it has a goal of its own."""

CommandLine = Callable[[int], Sequence[str]]
"""Makes the command line of a repetition from its number, so that none repeats what another has done."""


@dataclass(frozen=True)
class Result:
    """What came out of one comparison: seconds of each repetition, our calls to AWS by service, and the goal."""

    title: str
    ours: tuple[float, ...]
    floor: tuple[float, ...]
    calls: Mapping[str, int]
    goal: float | None = GOAL

    @property
    def ratio(self) -> float:
        """Our median over the floor's."""
        return median(self.ours) / median(self.floor)

    def row(self) -> str:
        """Return the result as a row of a Markdown table."""
        calls = ", ".join(f"{service} {count}" for service, count in sorted(self.calls.items())) or "none"
        return (
            f"| {self.title} | {median(self.ours):.2f} s | {median(self.floor):.2f} s "
            f"| {self.ratio:.2f} | {self.goal or ''} | {calls} |"
        )


HEADER: Final = "| | ours | floor | ratio | goal | calls to AWS |\n|---|---|---|---|---|---|"


def compare(
    title: str,
    ours: CommandLine,
    floor: CommandLine,
    *,
    repetitions: int,
    environment: Mapping[str, str],
    record: CallRecord,
    goal: float | None = GOAL,
) -> Result:
    """Run both in turns, ours first, so that what else the machine does meets both alike.

    One more pair goes ahead untimed and fills the caches.

    Raises:
        subprocess.CalledProcessError: A command failed; there is nothing to compare.
    """
    times: list[tuple[float, float]] = []
    calls: Counter[str] = Counter()
    for number in range(repetitions + 1):
        record.clear()
        our_time = seconds(ours(number), environment)
        calls = Counter(call.service for call in record.calls())
        times.append((our_time, seconds(floor(number), environment)))
    timed = times[1:]
    return Result(title, tuple(a for a, _ in timed), tuple(b for _, b in timed), calls, goal)


def seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Run a command from start to end and return how long that took, in seconds.

    Raises:
        subprocess.CalledProcessError: It failed; what it said on standard error has been passed on.
    """
    began = time.perf_counter()
    try:
        subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    except subprocess.CalledProcessError as error:
        sys.stderr.buffer.write(error.stderr)
        raise
    return time.perf_counter() - began

"""What planning a large sweep takes, from the options to the requests: `python -m benchmarks.planning [RUNS]`.

RUNS is 10,000 unless given: a grid of three axes and seeds; twice and four times as many follow, by more seeds. Time is
the processor's, the least of several; memory is the most that is held at once.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, Final

from submitter import plan
from submitter.asked import WhatOptions, asked
from submitter.plan import JobSpec

HEADER: Final = "| planning | runs | requests | time | memory |\n|---|---|---|---|---|"

_REPETITIONS: Final = 5
_SPEC: Final = JobSpec(image="trainer", vcpus=1, memory_mib=1800, gpus=0, timeout_seconds=57_600, attempts=6)


def main() -> None:
    """Measure, and print a Markdown table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(HEADER, *rows(runs), sep="\n", flush=True)


def rows(runs: int) -> Iterator[str]:
    """Yield the results as rows of a Markdown table.

    Args:
        runs: How many, a multiple of 2,000.
    """
    for rows_each, grid in (
        (50, ("env-id=a,b,c,d,e", "lr=0.1,0.2,0.3,0.4,0.5", "layers=1,2")),
        (2000, (f"x={numbers(100)}", f"y={numbers(10)}", "layers=1,2")),
    ):
        for many in (runs, 2 * runs, 4 * runs):
            made, seconds, mebibytes = measured(grid, many // rows_each)
            title = f"{rows_each:,} rows of three axes, {many // rows_each:,} seeds"
            yield f"| {title} | {many:,} | {made} | {seconds * 1000:.0f} ms | {mebibytes:.1f} MiB |"


def numbers(count: int) -> str:
    """Return so many values of an axis."""
    return ",".join(f"0.{number:03}" for number in range(1, count + 1))


def measured(grid: tuple[str, ...], seeds: int) -> tuple[int, float, float]:
    """Return how many requests there are, and the seconds and MiB that planning them takes."""

    def work() -> list[dict[str, Any]]:
        return planned(grid, seeds)

    made = len(work())
    seconds = min(timed(work) for _ in range(_REPETITIONS))
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return made, seconds, peak / 2**20


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds of the processor something takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def planned(grid: tuple[str, ...], seeds: int) -> list[dict[str, Any]]:
    """Return the requests of a sweep of which nothing was submitted."""
    what = asked(WhatOptions(command="python train.py", num_seed=seeds, grid=grid))
    arrays = plan.arrays(what.template, "abcdefghij", what.runs.runs(), _SPEC)
    return [
        plan.submit_request(_SPEC, array, name=f"sweep-{index}", queue="c5a-large", definition="definition")
        for index, array in enumerate(arrays)
    ]


if __name__ == "__main__":
    main()

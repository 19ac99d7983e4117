"""How much our commands take over the least that the same work can take: `python -m benchmarks`.

Whole processes against an account on this machine, as ratios of medians within one run, because absolute times mean
little between machines. Every repetition of `submitter run` is the first of its sweep and image: it registers a
definition, as the floor does, and writes the ledger, which the floor does not have.
"""

import argparse
import os
import platform
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import planning
from benchmarks.account import QUEUE, led_to, make_stack
from benchmarks.measure import HEADER, compare
from benchmarks.previews import measure_previews
from benchmarks.reading import measure_reading
from emulator.server import EmulatorServer

HERE = Path(__file__).parent
SUBMITTER = str(Path(sys.executable).parent / "submitter")


def main() -> None:
    """Measure, and print a Markdown table with the machine that it was measured on."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=9, help="timed runs of each command (default: %(default)s)")
    parser.add_argument("part", nargs="?", choices=("submitter", "reading", "preview"), help="one part only")
    arguments = parser.parse_args()
    repetitions = arguments.repetitions
    if repetitions < 1:
        parser.exit(2, "--repetitions must be at least 1.\n")
    print(machine(), HEADER, sep="\n\n", flush=True)
    if arguments.part in (None, "submitter"):
        measure_submitter(repetitions)
    if arguments.part in (None, "reading"):
        with TemporaryDirectory() as folder, EmulatorServer() as server:
            measure_reading(server, Path(folder), repetitions)
    if arguments.part in (None, "preview"):
        with TemporaryDirectory() as folder, EmulatorServer() as server:
            measure_previews(server, Path(folder), repetitions)


def measure_submitter(repetitions: int) -> None:
    """Print a row for each command of `submitter`."""
    with TemporaryDirectory() as folder, EmulatorServer() as server:
        outputs = Path(folder) / "outputs.json"
        make_stack(server, outputs)
        settings: dict[str, Any] = {
            "repetitions": repetitions,
            "environment": led_to(server),
            "record": server.control.record,
        }
        for seeds in (10, 1000, 10_000):
            title = f"`submitter run`, {seeds:,} seeds"
            ours, floor = partial(submitter_run, outputs, seeds), partial(floor_run, outputs, seeds)
            print(compare(title, ours, floor, **settings).row(), flush=True)
        help_floor = [sys.executable, str(HERE / "floor_help.py"), "--help"]
        print(compare("`submitter --help`", lambda _: [SUBMITTER, "--help"], lambda _: help_floor, **settings).row())
    print("", planning.HEADER, *planning.rows(10_000), sep="\n")


def submitter_run(outputs: Path, seeds: int, number: int) -> list[str]:
    """Make the command line that submits a sweep for the first time."""
    new = ["--name", f"s{seeds}-{number}", "--image", f"trainer:{seeds}-{number}", "--command", "true"]
    return [SUBMITTER, "--outputs", str(outputs), "run", "--queue", QUEUE, "--num-seed", str(seeds), *new]


def floor_run(outputs: Path, seeds: int, number: int) -> list[str]:
    """Make the command line that submits as many jobs in plain boto3."""
    return [sys.executable, str(HERE / "floor.py"), str(outputs), QUEUE, f"floor:{seeds}-{number}", str(seeds)]


def machine() -> str:
    """Say what this machine is, in one line."""
    cpu = next(
        (line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    load = os.getloadavg()[0]
    python = f"Python {platform.python_version()}, boto3 {version('boto3')}, click {version('click')}"
    return f"{cpu}, {os.cpu_count()} cores, load {load:.1f} at the start; {python}"


if __name__ == "__main__":
    main()

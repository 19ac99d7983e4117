"""The benchmarks run, and what they count is what the submitter promises."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.measure import seconds
from benchmarks.previews import measure_previews
from benchmarks.reading import measure_reading
from emulator.server import EmulatorServer

CHECKOUT = Path(__file__).parents[2]


def test_a_first_run_of_up_to_10000_seeds_makes_at_most_4_batch_calls() -> None:
    command = [sys.executable, "-m", "benchmarks", "submitter", "--repetitions", "1"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=CHECKOUT)
    rows = [line for line in done.stdout.splitlines() if line.startswith("| `")]
    sizes = ("10", "1,000", "10,000")
    assert [row.split(" | ")[0] for row in rows] == [
        *(f"| `submitter run`, {size} seeds" for size in sizes),
        "| `submitter --help`",
    ]
    batch_calls = [re.search(r"batch (\d+)", row) for row in rows]
    assert [found is not None and 1 <= int(found[1]) <= 4 for found in batch_calls] == [True, True, True, False]
    assert rows[3].endswith("| none |")


def test_looking_at_runs_takes_no_more_calls_than_the_least(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with EmulatorServer() as server:
        measure_reading(server, tmp_path, 1, runs=250, lines=500)
    counts, each, logs = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\| `status`, 250 runs \| .* \| batch 1, dynamodb 1, sts 1 \|", counts)
    assert re.fullmatch(r"\| `status --runs`, 250 runs \| .* \| batch 4, dynamodb 1, sts 1 \|", each)
    assert re.fullmatch(r"\| `logs`, 500 lines \| .* \| batch 2, dynamodb 1, logs 2, sts 1 \|", logs)


def test_previews_are_compared_and_their_time_is_divided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with EmulatorServer() as server:
        measure_previews(server, tmp_path, 1, goals={1: 1.3})
        assert not any(call.changes for call in server.control.record.calls()), "a preview changes nothing"
    row, _, where = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\| `pulumi preview`, 1 type \| [\d.]+ s \| [\d.]+ s \| [\d.]+ \| 1.3 \| .*ec2 \d+.* \|", row)
    assert re.search(
        r"[\d.]+ s pass until the first question .* [\d.]+ s with \d+ questions, and [\d.]+ s after", where
    )


def test_a_command_that_fails_is_not_measured(capfd: pytest.CaptureFixture[str]) -> None:
    """A refusal is quicker than the work: timed, it would look like a success."""
    with pytest.raises(subprocess.CalledProcessError):
        seconds([sys.executable, "-c", "import sys; sys.exit('refused')"], {})
    sys.stderr.flush()
    assert "refused" in capfd.readouterr().err

"""`submitter logs`."""

import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

import click

from submitter import render
from submitter.cli import options
from submitter.cli.output import note
from submitter.errors import UsageError
from submitter.selection import Selection, label
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.cli.connection import Connection
    from submitter.logs import Line, Part
    from submitter.status import SweepStatus


@click.command("logs")
@options.sweep_name
@options.owner
@options.selector
@click.option("-f", "--follow", is_flag=True, help="Go on until the runs have ended, attempt after attempt.")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Only this attempt.")
@click.option("--since", metavar="WHEN", help="Only lines since then: 30s, 10m, 2h or 1d ago, or 2026-11-30T18:00.")
@click.option(
    "--tail", type=click.IntRange(min=1), metavar="N", help="Only the last N lines of each run's newest attempt."
)
@click.option("--grep", metavar="REGEX", help="Only lines in which this is found.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write a file for each run into this folder.",
)
@options.as_json
@click.pass_obj
def logs_command(
    source: StackSource,
    *,
    name: str,
    owner: str | None,
    selection: Selection,
    follow: bool,
    attempt: int | None,
    since: str | None,
    tail: int | None,
    grep: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Print what runs have logged, several runs by time; with --json, one JSON object a line."""
    connection = options.connect(source)
    part = _part(connection, attempt=attempt, since=since, tail=tail, grep=grep)
    status = connection.chosen_runs(connection.full_name(name, owner), selection)
    printer = _Printer(status, as_json=as_json, folder=output)
    # Following needs all at once; files can be filled one after the other, which needs no memory.
    together = [status.runs] if follow or output is None else [(run,) for run in status.runs]
    for runs in together:
        with printer:
            for line in connection.log_lines(runs, part, follow=follow, say=printer.say):
                printer.write(line, flush=follow)
    if output is not None:
        note(f"{render.count(printer.files, 'log')} written into {output}.")


def _part(
    connection: "Connection", *, attempt: int | None, since: str | None, tail: int | None, grep: str | None
) -> "Part":
    from submitter.logs import Part, since_ms  # noqa: PLC0415 - so that --help does not pay for boto3

    try:
        pattern = None if grep is None else re.compile(grep)
    except re.error as error:
        raise UsageError(
            f"--grep {grep} is no regular expression: {error}.",
            "A backslash before a character such as ( takes it as it is.",
        ) from None
    start = None if since is None else since_ms(since, connection.clock.now())
    return Part(attempt=attempt, since_ms=start, tail=tail, grep=pattern)


class _Printer:
    """Prints lines of runs, with a prefix where there are several, or writes them into a file for each run.

    As a context manager it closes the files that were written in the context.
    """

    def __init__(self, status: "SweepStatus", *, as_json: bool, folder: Path | None) -> None:
        self._runs = {run.number: run for run in status.runs}
        self._labels = {run.number: label(run, status.axes) for run in status.runs}
        self._as_json, self._folder = as_json, folder
        self._files: dict[int, IO[str]] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def files(self) -> int:
        """How many files were written."""
        return len(self._files)

    def say(self, number: int, text: str) -> None:
        """Tell, on standard error, why a run has no line."""
        note(text if len(self._runs) == 1 else f"{self._labels[number]} | {text}")

    def write(self, line: "Line", *, flush: bool) -> None:
        """Write a line where it belongs, at once when asked to."""
        file = sys.stdout if self._folder is None else self._file(self._folder, line.run)
        file.write(f"{self._text(line)}\n")
        if flush:
            file.flush()

    def _text(self, line: "Line") -> str:
        if self._as_json:
            values = {"run": line.run, "seed": self._runs[line.run].seed, "attempt": line.attempt, "at_ms": line.at_ms}
            return render.document("log-line", {**values, "message": line.message}, indent=None)
        several = len(self._runs) > 1 and self._folder is None
        return f"{self._labels[line.run]} | {line.message}" if several else line.message

    def _file(self, folder: Path, number: int) -> IO[str]:
        if number not in self._files:
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{number:05}-{re.sub(r'[^A-Za-z0-9.=_-]+', '_', self._labels[number])[:100]}.log"
            self._files[number] = self._open.enter_context((folder / name).open("w", encoding="utf-8"))
        return self._files[number]

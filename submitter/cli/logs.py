"""`submitter logs`."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Self

import click

from submitter import render
from submitter.cli import options
from submitter.cli.output import NONE_FAILED, Teller, note, trouble_text
from submitter.errors import SubmitterError, UsageError
from submitter.numbers import NumberSet
from submitter.selection import Selection, label
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.cli.connection import Connection
    from submitter.logs import Line, Part
    from submitter.status import RunStatus, SweepStatus

_LINES_AT_ONCE: Final = 1000


@click.command("logs")
@options.sweep_name
@options.owner
@options.selector
@click.option("-f", "--follow", is_flag=True, help="Go on until the runs have ended, attempt after attempt.")
@click.option(
    "--job",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of each run's N-th job: a retry sends another one.  [default: the newest]",
)
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
    help="Write a file for each run into this folder: .log, or with --json .jsonl.",
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
    job: int | None,
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
    if not status.runs:
        note(NONE_FAILED)
    tell = Teller(note)

    def trouble(error: SubmitterError) -> None:
        tell(trouble_text(error))

    files = None if output is None else _Files(output)
    printer = _Printer(status, files, as_json=as_json)
    if job is None:
        _tell_of_earlier(status)
    # Following needs all at once; files can be filled one after the other, which needs no memory.
    read = status.runs if job is None else tuple(_of_job(status, job, printer.say))
    together = [read] if follow or files is None else [(run,) for run in read]
    with files or nullcontext(), printer:
        for runs in together:
            for line in connection.log_lines(runs, part, follow=follow, say=printer.say, troubled=trouble):
                printer.write(line, flush=follow)
    if files is not None:
        note(f"{render.count(files.written, 'log') if files.written else 'Nothing was'} written into {output}.")


def _tell_of_earlier(status: "SweepStatus") -> None:
    """Say which runs have earlier jobs, whose logs are not read."""
    had = status.generation.sent()
    again = NumberSet(run.number for run in status.runs if len(had.get(run.number, ())) > 1)
    if again:
        runs = f"{'Run' if len(again) == 1 else 'Runs'} {again}"
        note(f"{runs} had another job before a retry: --job 1 reads what the first one has logged.")


def _of_job(status: "SweepStatus", count: int, say: Callable[[int, str], None]) -> "Iterator[RunStatus]":
    """Yield the runs with their first, second, ... job in place of the newest; tell of those that have had fewer."""
    had = status.generation.sent()
    for run in status.runs:
        if len(jobs := had.get(run.number, [])) < count:
            say(run.number, f"There is no job {count}: the run has had {len(jobs)}.")
            continue
        entry, job = jobs[count - 1]
        yield replace(run, job=job, queue=entry.queue, definition=entry.definition, sent_at=entry.at)


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
    most = None if tail is None else min(tail, sys.maxsize)  # of what Python counts
    return Part(attempt=attempt, since_ms=start, tail=most, grep=pattern)


class _Files:
    """A file for each run in a folder. One is open at a time: there may be more runs than files that may be.

    As a context manager it closes the last one.

    Args:
        folder: Made if it is not there.

    Raises:
        UsageError: Nothing can be written there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: set[str] = set()
        self._file: IO[str] | None = None
        self._open = ""
        with self._refused():
            folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def written(self) -> int:
        """How many files were written."""
        return len(self._names)

    def write(self, name: str, text: str, *, flush: bool) -> None:
        """Add a text to the file of this name, which the first one begins anew."""
        with self._refused():
            if self._file is None or name != self._open:
                self._close()
                mode = "a" if name in self._names else "w"
                self._file = (self._folder / name).open(mode, encoding="utf-8", errors="backslashreplace")
                self._open = name
                self._names.add(name)
            self._file.write(text)
            if flush:
                self._file.flush()

    def _close(self) -> None:
        if self._file is not None:
            with self._refused():
                self._file.close()

    @contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"Cannot write into {self._folder}: {error.strerror}.", "Give another --output."
            ) from error


class _Printer:
    """Prints lines of runs, with a prefix where there are several, or writes them into a file for each run.

    Lines are printed together, which takes a fraction of the time. As a context manager it prints those that are left.
    """

    def __init__(self, status: "SweepStatus", files: _Files | None, *, as_json: bool) -> None:
        self._who = {run.number: {"seed": run.seed, "params": status.params(run)} for run in status.runs}
        self._labels = {run.number: label(run, status.axes) for run in status.runs}
        self._as_json, self._files = as_json, files
        self._waiting: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._print()

    def say(self, number: int, text: str) -> None:
        """Tell, on standard error, why a run has no line."""
        self._print()  # what was read before comes before
        note(text if len(self._who) == 1 else f"{self._labels[number]} | {text}")

    def write(self, line: "Line", *, flush: bool) -> None:
        """Write a line where it belongs, at once when asked to."""
        text = f"{self._text(line)}\n"
        if self._files is not None:
            self._files.write(self._file_name(line.run), text, flush=flush)
            return
        self._waiting.append(text)
        if flush or len(self._waiting) >= _LINES_AT_ONCE:
            self._print()

    def _print(self) -> None:
        texts, self._waiting = self._waiting, []
        if texts:
            click.echo("".join(texts), nl=False)

    def _text(self, line: "Line") -> str:
        if self._as_json:
            values = {"run": line.run, **self._who[line.run], **vars(line)}
            return render.document("log-line", values, indent=None)
        several = len(self._who) > 1 and self._files is None
        return f"{self._labels[line.run]} | {line.message}" if several else line.message

    def _file_name(self, number: int) -> str:
        name = re.sub(r"[^A-Za-z0-9.=_-]+", "_", self._labels[number])[:100]
        return f"{number:05}-{name}.{'jsonl' if self._as_json else 'log'}"

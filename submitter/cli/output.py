"""What several commands tell: notes on standard error, counts, and a status for scripts."""

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from submitter import render
from submitter.errors import EXIT_DECLINED, ConfigurationError, SubmitterError, UsageError
from submitter.names import run_id

if TYPE_CHECKING:
    from submitter.status import RunStatus, SweepStatus

NONE_FAILED: Final = "None of the runs that were asked for has failed or was cancelled."
"""What `--failed` finds then: that is no error."""


def note(text: str, *, prefix: str = "") -> None:
    """Tell a person something that is no result: on standard error.

    Where that cannot be written to, as on a full disk, what the command does goes on without.
    """
    try:
        click.echo(f"{prefix}{text}", err=True)
    except BrokenPipeError:
        raise
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Send to nowhere what a stream could not write and what is written to it yet, also when Python flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def agreed(question: str, *, why: str) -> bool:
    """Ask a person something.

    Args:
        question: What is asked, on standard error.
        why: What asks before what; said where nobody can answer.

    Raises:
        UsageError: There is no terminal.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"{why}, and nobody is there to answer.", "Add --yes.")
    return click.confirm(question, err=True)


def declined() -> int:
    """Say that a question was answered with no, and return the exit code of that."""
    note("Nothing was changed.")
    return EXIT_DECLINED


class Teller:
    """Tells a text, when called with it, unless it was the last one that it told."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell, self._last = tell, ""

    def __call__(self, text: str) -> None:  # noqa: D102 - the class says it
        if text != self._last:
            self._tell(text)
        self._last = text


def trouble_text(trouble: SubmitterError) -> str:
    """Return what to say about an error that may pass while one waits."""
    if isinstance(trouble, ConfigurationError):
        return (
            f"{trouble.message} Log in again in another terminal (`aws sso login`, or new keys in the same profile): "
            "waiting goes on."
        )
    return f"{trouble.message} Waiting goes on."


def counts_text(counts: Mapping[str, int]) -> str:
    """Return `10 runs: 3 running, 7 succeeded`."""
    parts = ", ".join(f"{count:,} {status}" for status, count in sorted(counts.items()) if count)
    return f"{render.count(sum(counts.values()), 'run')}: {parts}"


def point_to_failed(status: "SweepStatus") -> None:
    """Say, where runs have failed, how to read what they have logged."""
    if status.counts.get("failed"):
        note(f"`submitter logs {status.sweep} --failed` prints what the failed ones have logged.")


def status_values(status: "SweepStatus", *, each_run: bool) -> dict[str, Any]:
    """Return a status for a JSON document."""
    values: dict[str, Any] = {"sweep": status.sweep, "counts": dict(status.counts)}
    if each_run:
        values["runs"] = [_run_values(run, status) for run in status.runs]
    return values


def _run_values(run: "RunStatus", status: "SweepStatus") -> dict[str, Any]:
    return {
        "number": run.number,
        "seed": run.seed,
        "params": status.params(run),
        "run_id": run_id(str(status.generation.nonce), run.number),
        "status": run.status,
        "reason": run.reason,
        "jobs": run.jobs,
        "attempts": run.attempts,
        "started_at_ms": run.started_at,
        "stopped_at_ms": run.stopped_at,
        "queue": run.queue,
        "image": run.image,
        "job_id": run.job,
        "log_stream": run.log_stream,
        "wandb_url": run.wandb,
    }

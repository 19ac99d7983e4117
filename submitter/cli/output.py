"""What several commands tell: notes on standard error, counts, and a status for scripts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from submitter import render
from submitter.names import run_id

if TYPE_CHECKING:
    from submitter.status import RunStatus, SweepStatus


def note(text: str, *, prefix: str = "") -> None:
    """Tell a person something that is no result: on standard error."""
    click.echo(f"{prefix}{text}", err=True)


def counts_text(counts: Mapping[str, int]) -> str:
    """Return `10 runs: 3 running, 7 succeeded`."""
    parts = ", ".join(f"{count:,} {status}" for status, count in sorted(counts.items()) if count)
    return f"{render.count(sum(counts.values()), 'run')}: {parts}"


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
        "params": dict(zip(status.axes, run.row, strict=True)),
        "run_id": run_id(str(status.generation.nonce), run.number),
        "status": run.status,
        "reason": run.reason,
        "attempts": run.attempts,
        "started_at_ms": run.started_at,
        "stopped_at_ms": run.stopped_at,
        "queue": run.queue,
        "job_id": run.job,
        "log_stream": run.log_stream,
    }

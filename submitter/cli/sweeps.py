"""Commands about sweeps that exist: list, show, status, wait, logs."""

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from submitter import render
from submitter.cli import options
from submitter.errors import RunsFailedError
from submitter.names import run_id
from submitter.selection import Selection, label
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.cli.connection import Connection
    from submitter.history import Entry, Record
    from submitter.status import RunStatus, SweepStatus


@click.command("list")
@click.option("--all", "everybodys", is_flag=True, help="Everybody's sweeps, not only yours.")
@options.as_json
@click.pass_obj
def list_command(source: StackSource, *, everybodys: bool, as_json: bool) -> None:
    """List the sweeps in the stack's ledger, the newest first."""
    connection = options.connect(source)
    caller = connection.caller
    found = connection.ledger.sweeps(None if everybodys else caller)
    if as_json:
        rows = [
            {"sweep": one.sweep, "runs": one.runs, "created": one.created, "updated": one.updated} | _record(one.record)
            for one in found
        ]
        click.echo(render.document("list", {"sweeps": rows}))
        return
    names = [one.sweep if everybodys else one.sweep.partition("/")[2] for one in found]
    rows_shown = [
        (name, one.runs, _local_time(one.updated), one.record.image, one.record.command.strip().splitlines()[0])
        for name, one in zip(names, found, strict=True)
    ]
    click.echo(render.table(("sweep", "runs", "last submitted", "image", "command"), rows_shown))


@click.command("show")
@options.sweep_name
@options.owner
@options.as_json
@click.pass_obj
def show_command(source: StackSource, *, name: str, owner: str | None, as_json: bool) -> None:
    """Show what a sweep is made of: command, parameters, image, commit, and each submission."""
    connection = options.connect(source)
    sweep, generation = connection.generation(name, owner)
    record = generation.record
    values = {"sweep": sweep, "nonce": generation.nonce, "runs": len(generation.table)}
    if record is not None:
        values |= _record(record)
    if as_json:
        click.echo(render.document("show", {**values, "submissions": [_submission(e) for e in generation.entries]}))
        return
    for key, value in values.items():
        click.echo(f"{key + ':':12}{_shown(value)}")
    for entry in generation.entries:
        at = _local_time(entry.at)
        click.echo(f"{entry.kind} of {at}: runs {entry.runs} on {entry.queue} by {entry.definition}")


@click.command("status")
@options.sweep_name
@options.owner
@click.option("--runs", "each_run", is_flag=True, help="Each run, not only how many.")
@options.as_json
@click.pass_obj
def status_command(source: StackSource, *, name: str, owner: str | None, each_run: bool, as_json: bool) -> None:
    """Show how a sweep's runs stand."""
    connection = options.connect(source)
    status = connection.status.read(connection.full_name(name, owner), runs=each_run)
    if as_json:
        click.echo(render.document("status", status_values(status, each_run=each_run)))
        return
    click.echo(f"{status.sweep}: {counts_text(status.counts)}")
    if each_run:
        axes = _axes(status)
        header = ("run", *axes, "seed", "status", "attempts", "ran for", "reason")
        click.echo(render.table(header, [_run_row(run) for run in status.runs]))


@click.command("wait")
@options.sweep_name
@options.owner
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Give up after this long (exit 124).")
@options.poll
@options.as_json
@click.pass_obj
def wait_command(
    source: StackSource, *, name: str, owner: str | None, timeout: float | None, poll: float, as_json: bool
) -> None:
    """Wait until a sweep's runs have ended; exit 1 if any failed."""
    connection = options.connect(source)
    status = wait_and_tell(connection, connection.full_name(name, owner), poll=poll, timeout=timeout)
    if as_json:
        click.echo(render.document("status", status_values(status, each_run=False)))
    else:
        click.echo(f"{status.sweep}: {counts_text(status.counts)}")
    check_succeeded(status)


@click.command("logs")
@options.sweep_name
@options.owner
@options.seed
@options.where
@options.index
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@options.as_json
@click.pass_obj
def logs_command(
    source: StackSource,
    *,
    name: str,
    owner: str | None,
    seed: int | None,
    where: tuple[str, ...],
    index: int | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Print what runs have logged; with --json, one JSON object a line."""
    connection = options.connect(source)
    status = connection.status.read(connection.full_name(name, owner), runs=True)
    axes = _axes(status)
    selection = Selection(seed=seed, index=index, where=where)
    chosen = [selection.choose_one(status.runs, axes)] if follow else selection.choose(status.runs, axes)
    for run in chosen:
        prefix = f"{label(run, axes)} | " if len(chosen) > 1 else ""
        for line in connection.log_lines(run, follow=follow, say=partial(note, prefix=prefix)):
            if as_json:
                values = {"run": run.number, "seed": run.seed, "attempt": line.attempt, "at_ms": line.at_ms}
                click.echo(render.json_line({**values, "message": line.message}))
            else:
                click.echo(f"{prefix}{line.message}")


def wait_and_tell(connection: "Connection", sweep: str, *, poll: float, timeout: float | None = None) -> "SweepStatus":
    """Wait until the runs have ended, saying on standard error how they stand whenever that changes."""
    told = ""

    def tell(status: "SweepStatus") -> None:
        nonlocal told
        if (text := counts_text(status.counts)) != told:
            note(text)
            told = text

    try:
        return connection.wait(sweep, poll_seconds=poll, timeout_seconds=timeout, seen=tell)
    except KeyboardInterrupt:
        note(f"The runs go on; `submitter status {sweep}` tells how they stand.")
        raise


def check_succeeded(status: "SweepStatus") -> None:
    """Raise what makes the command exit with 1 when a run has not succeeded.

    Raises:
        RunsFailedError: A run failed, or is not known to have succeeded.
    """
    if not status.succeeded:
        raise RunsFailedError(
            f"Not all runs of {status.sweep} succeeded: {counts_text(status.counts)}.",
            f"`submitter status {status.sweep} --runs` tells why, and `submitter logs` what they said.",
        )


def status_values(status: "SweepStatus", *, each_run: bool) -> dict[str, Any]:
    """Return a status for a JSON document."""
    values: dict[str, Any] = {"sweep": status.sweep, "counts": dict(status.counts)}
    if each_run:
        values["runs"] = [_run_values(run, status) for run in status.runs]
    return values


def counts_text(counts: Mapping[str, int]) -> str:
    """Return `10 runs: 3 running, 7 succeeded`."""
    parts = ", ".join(f"{count:,} {status}" for status, count in sorted(counts.items()) if count)
    return f"{render.count(sum(counts.values()), 'run')}: {parts}"


def _run_values(run: "RunStatus", status: "SweepStatus") -> dict[str, Any]:
    return {
        "number": run.number,
        "seed": run.seed,
        "params": dict(zip(_axes(status), run.row, strict=True)),
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


def _run_row(run: "RunStatus") -> tuple[object, ...]:
    ran = None
    if run.started_at is not None:
        until = time.time() if run.stopped_at is None else run.stopped_at / 1000
        ran = render.duration(until - run.started_at / 1000)
    return (run.number, *run.row, run.seed, run.status, run.attempts, ran, run.reason)


def _axes(status: "SweepStatus") -> tuple[str, ...]:
    record = status.generation.record
    return () if record is None else record.axes


def _record(record: "Record") -> dict[str, Any]:
    return {
        "command": record.command,
        "axes": list(record.axes),
        "image": record.image,
        "digest": record.digest,
        "commit": record.commit,
        "dirty": record.dirty,
        "options": dict(record.options),
    }


def _submission(entry: "Entry") -> dict[str, Any]:
    return {
        "n": entry.n,
        "kind": entry.kind,
        "at": entry.at,
        "queue": entry.queue,
        "definition": entry.definition,
        "runs": str(entry.runs),
        "jobs": {slot.name: slot.sent for slot in entry.slots},
    }


def _shown(value: object) -> str:
    match value:
        case None:
            return "-"
        case list():
            return ", ".join(map(str, value)) or "-"
        case dict():
            return ", ".join(f"{key}={each}" for key, each in value.items()) or "-"
        case _:
            return str(value)


def _local_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def note(text: str, *, prefix: str = "") -> None:
    """Tell a person something that is no result: on standard error."""
    click.echo(f"{prefix}{text}", err=True)

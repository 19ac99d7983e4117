"""`submitter status` and `submitter wait`."""

import time
from typing import TYPE_CHECKING

import click

from submitter import render
from submitter.cli import options
from submitter.cli.output import Teller, counts_text, note, status_values, trouble_text
from submitter.errors import RunsFailedError
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.cli.connection import Connection
    from submitter.status import RunStatus, SweepStatus


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
        axes = status.axes
        header = ("run", *axes, "seed", "status", "attempts", "ran for", "reason")
        click.echo(render.table(header, [_run_row(run) for run in status.runs]))


@click.command("wait")
@options.sweep_name
@options.owner
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Give up after this long (exit 124).")
@click.option("--fail-fast", is_flag=True, help="Stop waiting as soon as a run has failed.")
@options.poll
@options.as_json
@click.pass_obj
def wait_command(
    source: StackSource,
    *,
    name: str,
    owner: str | None,
    timeout: float | None,
    fail_fast: bool,
    poll: float,
    as_json: bool,
) -> None:
    """Wait until a sweep's runs have ended; exit 1 if any failed."""
    connection = options.connect(source)
    sweep = connection.full_name(name, owner)
    status = wait_and_tell(connection, sweep, poll=poll, timeout=timeout, fail_fast=fail_fast)
    if as_json:
        click.echo(render.document("status", status_values(status, each_run=False)))
    else:
        click.echo(f"{status.sweep}: {counts_text(status.counts)}")
    check_succeeded(status)


def wait_and_tell(
    connection: "Connection", sweep: str, *, poll: float, timeout: float | None = None, fail_fast: bool = False
) -> "SweepStatus":
    """Wait until the runs have ended, saying on standard error how they stand whenever that changes."""
    tell = Teller(note)
    try:
        return connection.wait(
            sweep,
            poll_seconds=poll,
            timeout_seconds=timeout,
            fail_fast=fail_fast,
            seen=lambda status: tell(counts_text(status.counts)),
            troubled=lambda trouble: tell(trouble_text(trouble)),
        )
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


def _run_row(run: "RunStatus") -> tuple[object, ...]:
    ran = None
    if run.started_at is not None:
        until = time.time() if run.stopped_at is None else run.stopped_at / 1000
        ran = render.duration(until - run.started_at / 1000)
    return (run.number, *run.row, run.seed, run.status, run.attempts, ran, run.reason)

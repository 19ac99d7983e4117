"""`submitter wait`, and `run --wait`."""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from submitter import render
from submitter.cli import options
from submitter.cli.output import Teller, counts_text, note, status_values, trouble_text
from submitter.diagnosis import not_with_aws
from submitter.errors import RunsFailedError
from submitter.selection import FAILED
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.cli.connection import Connection
    from submitter.status import SweepStatus


@click.command("wait")
@options.sweep_name
@options.owner
@click.option("--timeout", type=options.Amount(min=0), metavar="SECONDS", help="Give up after this long (exit 124).")
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
    last: deque[SweepStatus] = deque(maxlen=1)
    try:
        status = wait_and_tell(connection, sweep, poll=poll, timeout=timeout, fail_fast=fail_fast, seen=last.append)
    finally:  # how they stand is told also when the time is up
        for status in last:
            if as_json:
                click.echo(render.document("status", status_values(status, each_run=False)))
            else:
                click.echo(f"{status.sweep}: {counts_text(status.counts)}")
    check_succeeded(status)


def wait_and_tell(
    connection: "Connection",
    sweep: str,
    *,
    poll: float,
    timeout: float | None = None,
    fail_fast: bool = False,
    seen: "Callable[[SweepStatus], None]" = lambda _: None,
) -> "SweepStatus":
    """Wait until the runs have ended, saying on standard error how they stand whenever that changes until then."""
    tell = Teller(note)

    def look(status: "SweepStatus") -> None:
        seen(status)
        if not status.over:  # how they stand at the end is the result
            tell(counts_text(status.counts))

    with runs_go_on(sweep):
        return connection.wait(
            sweep,
            poll_seconds=poll,
            timeout_seconds=timeout,
            fail_fast=fail_fast,
            seen=look,
            troubled=lambda trouble: tell(trouble_text(trouble)),
        )


@contextmanager
def runs_go_on(sweep: str) -> Iterator[None]:
    """Say what Ctrl-C does not do."""
    try:
        yield
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            note("")  # after the ^C
        note(f"The runs go on; `submitter status {sweep}` tells how they stand.")
        raise


def check_succeeded(status: "SweepStatus") -> None:
    """Raise what makes the command exit with 1 when a run has not succeeded.

    Raises:
        RunsFailedError: A run failed, or is not known to have succeeded.
    """
    if not status.succeeded:
        raise RunsFailedError(f"Not all runs of {status.sweep} succeeded.", " ".join(_remedies(status)))


def _remedies(status: "SweepStatus") -> Iterator[str]:
    """Yield, in sentences, what to do about runs that have not succeeded, which depends on what became of them."""
    counts, sweep = status.counts, status.sweep
    logged = f"`submitter logs {sweep} --failed` prints what the failed ones have logged, "
    if not FAILED.isdisjoint(counts):
        yield (
            f"`submitter status {sweep} --runs` tells why, {logged if 'failed' in counts else ''}"
            f"`submitter retry {sweep}` runs them again."
        )
    for finding in not_with_aws(counts):
        yield f"{finding.sentence} {finding.remedy}"

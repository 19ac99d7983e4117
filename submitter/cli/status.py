"""`submitter status`: how runs stand, once or until they are over."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from submitter import render
from submitter.cli import options
from submitter.cli.output import NONE_FAILED, Teller, counts_text, note, point_to_failed, status_values, trouble_text
from submitter.cli.watching import runs_go_on
from submitter.errors import SubmitterError
from submitter.images import pinned
from submitter.live import Live
from submitter.selection import Selection
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.cli.connection import Connection
    from submitter.status import RunStatus, SweepStatus

_BAR: Final = 40
"""Characters of the bar that stands for all runs."""

_ORDER: Final = (
    "failed",
    "running",
    "starting",
    "runnable",
    "pending",
    "submitted",
    "deciding",
    "unknown",
    "cancelled",
    "not submitted",
    "succeeded",
)
"""Which runs are shown where not all fit, and the order of the counts."""


@click.command("status")
@options.sweep_name
@options.owner
@options.selector
@click.option("--runs", is_flag=True, help="Each run, not only how many; so is choosing runs.")
@click.option("--watch", is_flag=True, help="Show it again and again until the runs are over.")
@options.poll
@options.as_json
@click.pass_obj
def status_command(
    source: StackSource,
    *,
    name: str,
    owner: str | None,
    selection: Selection,
    runs: bool,
    watch: bool,
    poll: float,
    as_json: bool,
) -> None:
    """Show how a sweep's runs stand: state, reason, attempts, times and W&B link; --json also tells the logs."""
    connection = options.connect(source)
    sweep = connection.full_name(name, owner)
    each_run = runs or bool(selection)
    if watch:
        _watch(connection, sweep, selection, each_run=each_run, poll=poll, as_json=as_json)
        return
    if each_run:
        status = connection.with_links(connection.chosen_runs(sweep, selection))
    else:
        status = connection.status.read(sweep)
    if as_json:
        click.echo(render.document("status", status_values(status, each_run=each_run)))
        return
    click.echo("\n".join(_headlines(status, selection)))
    if status.runs:
        click.echo(_table(status, status.runs))
    point_to_failed(status)


def _watch(
    connection: "Connection", sweep: str, selection: Selection, *, each_run: bool, poll: float, as_json: bool
) -> None:
    """Show a sweep until it is over: in place on a terminal, else the counts and runs whenever they have changed."""
    live = Live(sys.stdout) if sys.stdout.isatty() and not as_json else None
    tell, complain = Teller(click.echo), Teller(note)
    changed = _Changed()
    frame = ""

    def show(status: "SweepStatus") -> None:
        nonlocal frame
        if live is not None:
            frame = _frame(connection, status, selection, live.rows)
            live.show(frame)
        elif as_json:
            tell(render.document("status", status_values(status, each_run=each_run), indent=None))
        else:
            tell("\n".join(_headlines(status, selection)))
            if news := changed(status):
                click.echo(_table(status, connection.with_links(replace(status, runs=news)).runs))

    def trouble(error: SubmitterError) -> None:
        if live is not None:
            live.show("\n".join([*frame.splitlines()[: live.rows - 1], trouble_text(error)]))
        else:
            complain(trouble_text(error))

    with runs_go_on(sweep):
        chosen = selection if each_run else None
        connection.wait(sweep, selection=chosen, poll_seconds=poll, seen=show, troubled=trouble)


class _Changed:
    """Returns, when called with a status, its runs that do not stand as they did at the call before."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[object, ...]] = {}

    def __call__(self, status: "SweepStatus") -> tuple["RunStatus", ...]:
        now: dict[int, tuple[object, ...]] = {run.number: (run.status, run.attempts, run.reason) for run in status.runs}
        changed = tuple(run for run in status.runs if self._before.get(run.number) != now[run.number])
        self._before = now
        return changed


def _frame(connection: "Connection", status: "SweepStatus", selection: Selection, rows: int) -> str:
    """Return what is shown of a status on a terminal with room for so many lines."""
    first, *more = _headlines(status, selection)
    lines = [f"{time.strftime('%H:%M:%S')}  {first}", *more]
    if not status.runs:
        total = max(1, sum(status.counts.values()))
        bars = [
            (state, count, "#" * max(1, round(_BAR * count / total)))
            for state in _ORDER
            if (count := status.counts.get(state))
        ]
        return "\n".join([*lines, render.table(("state", "runs", ""), bars)])
    room = rows - len(lines) - 1  # under the table's own head
    if len(status.runs) > room:
        room = max(1, room - 1)
    shown = sorted(status.runs, key=lambda run: _ORDER.index(run.status))[:room]
    shown.sort(key=lambda run: run.number)
    linked = connection.with_links(replace(status, runs=tuple(shown)))
    lines.append(_table(status, linked.runs))
    if len(shown) < len(status.runs):
        lines.append(f"... and {len(status.runs) - len(shown):,} more")
    return "\n".join(lines)


def _headlines(status: "SweepStatus", selection: Selection) -> list[str]:
    """Return the counts, and those of the chosen runs where not all are."""
    lines = [f"{status.sweep}: {counts_text(status.counts)}"]
    if selection:
        chosen = Counter(run.status for run in status.runs)
        lines.append(f"Chosen: {counts_text(chosen)}" if chosen else NONE_FAILED)
    return lines


def _table(status: "SweepStatus", runs: Sequence["RunStatus"]) -> str:
    """Return a table of runs; a column that would be empty in all of them is left out, but for the usual ones."""
    record = status.generation.record
    image = None if record is None else pinned(record.image, record.digest)
    columns: dict[str, list[object]] = {"run": [run.number for run in runs]}
    for position, axis in enumerate(status.axes):
        columns[axis] = [run.row[position] for run in runs]
    if any(run.seed is not None for run in runs):
        columns["seed"] = [run.seed for run in runs]
    columns["state"] = [run.status for run in runs]
    if any(run.jobs > 1 for run in runs):
        columns["job"] = [run.jobs for run in runs]
    columns["attempt"] = [None if run.started_at is None else run.attempts for run in runs]
    columns["started"] = [run.started_at and _local_time(run.started_at) for run in runs]
    columns["ran for"] = [_ran_for(run) for run in runs]
    columns["reason"] = [run.reason for run in runs]
    optional: dict[str, list[object]] = {
        "other image": [None if run.image == image else run.image for run in runs],
        "W&B": [run.wandb for run in runs],
    }
    columns |= {name: values for name, values in optional.items() if any(values)}
    return render.table(tuple(columns), list(zip(*columns.values(), strict=True)))


def _ran_for(run: "RunStatus") -> str | None:
    if run.started_at is None:
        return None
    until = time.time() if run.stopped_at is None else run.stopped_at / 1000
    return render.duration(until - run.started_at / 1000)


def _local_time(milliseconds: int) -> str:
    return time.strftime("%m-%d %H:%M:%S", time.localtime(milliseconds / 1000))

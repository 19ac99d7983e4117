"""`submitter cancel`."""

import sys
from typing import TYPE_CHECKING

import click

from submitter import render
from submitter.cli import options
from submitter.cli.output import counts_text, note
from submitter.errors import UsageError
from submitter.selection import Selection
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.status import SweepStatus


@click.command("cancel")
@options.sweep_name
@options.owner
@options.selector
@options.yes
@options.force
@options.as_json
@click.pass_obj
def cancel_command(
    source: StackSource, *, name: str, owner: str | None, selection: Selection, yes: bool, force: bool, as_json: bool
) -> None:
    """End runs of a sweep, whatever they are doing, all of them or those chosen.

    A later `run` does not send them; `retry` does.
    """
    connection = options.connect(source)
    sweep = connection.full_name(name, owner)
    options.check_owner(connection, sweep, force=force)
    status = connection.chosen_runs(sweep, selection) if selection else connection.status.read(sweep)
    if not yes:
        _ask(status)
    cancelled = connection.cancel(status, selection, say=note)
    if as_json:
        click.echo(render.document("cancel", {"sweep": sweep, "cancelled": len(cancelled), "runs": str(cancelled)}))
    else:
        click.echo(f"{sweep}: {render.count(len(cancelled), 'run')} cancelled.")


def _ask(status: "SweepStatus") -> None:
    """Ask whether the runs are to be ended.

    Raises:
        UsageError: Nobody can answer.
        click.Abort: They are not.
    """
    if not sys.stdin.isatty():
        raise UsageError("`cancel` asks before it ends runs, and nobody is there to answer.", "Add --yes.")
    click.confirm(f"{status.sweep}: {counts_text(status.counts)}. End what is not over?", abort=True, err=True)

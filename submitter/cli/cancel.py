"""`submitter cancel`."""

import sys
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from submitter import errors, render
from submitter.cli import options
from submitter.cli.output import counts_text, declined, note
from submitter.errors import UsageError
from submitter.history import Generation
from submitter.numbers import NumberSet
from submitter.selection import Selection
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.cli.connection import Connection
    from submitter.status import SweepStatus

_STAYS: Final = frozenset({"succeeded", "failed", "cancelled"})
"""States that a cancel does not change."""


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
) -> int:
    """End runs of a sweep, whatever they are doing, all of them or those chosen.

    A later `run` does not send them; `retry` does. Answering no exits with 1.
    """
    connection = options.connect(source)
    sweep = connection.full_name(name, owner)
    options.check_owner(connection, sweep, force=force)
    status = connection.chosen_runs(sweep, selection) if selection else connection.status.read(sweep)
    counts = Counter(run.status for run in status.runs) if selection else status.counts
    told = sum(count for state, count in counts.items() if state not in _STAYS)
    cancelled = NumberSet()
    if told or (not selection and _older_under_way(connection, status)):
        if not yes and not _agreed(sweep, counts):
            return declined()
        over = {run.number for run in status.runs if run.status in _STAYS}
        cancelled = NumberSet(connection.cancel(status, selection, say=note) - over)
    if as_json:
        click.echo(render.document("cancel", {"sweep": sweep, "cancelled": told, "runs": str(cancelled)}))
    elif told:
        click.echo(f"{sweep}: {render.count(told, 'run')} told to end.")
    else:
        click.echo(f"{sweep}: nothing is left to be cancelled of {counts_text(counts)}.")
    return errors.EXIT_DONE


def _older_under_way(connection: "Connection", status: "SweepStatus") -> bool:
    """Return whether jobs from before the sweep was begun afresh may not have ended yet: they are cancelled too."""
    entries = connection.ledger.entries(status.sweep)
    older = (Generation(entries, nonce) for nonce in {entry.nonce for entry in entries} - {status.generation.nonce})
    return any(
        not place.slot.ended and not place.slot.runs <= generation.cancelled
        for generation in older
        for place in generation.places()
    )


def _agreed(sweep: str, counts: Mapping[str, int]) -> bool:
    """Ask whether the runs are to be ended.

    Raises:
        UsageError: Nobody can answer.
    """
    if not sys.stdin.isatty():
        raise UsageError("`cancel` asks before it ends runs, and nobody is there to answer.", "Add --yes.")
    return click.confirm(f"{sweep}: {counts_text(counts)}. End what is not over?", err=True)

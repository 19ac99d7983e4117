"""`submitter cancel`."""

from collections import Counter
from typing import Final

import click

from submitter import errors, render
from submitter.cli import options
from submitter.cli.output import agreed, counts_text, declined, note
from submitter.numbers import NumberSet
from submitter.selection import Selection
from submitter.stack import StackSource

_STAYS: Final = frozenset({"succeeded", "failed", "cancelled", "unknown"})
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
    if selection:
        status = connection.chosen_runs(sweep, selection)
        counts, older = Counter(run.status for run in status.runs), 0
    else:
        status = connection.status.read(sweep)
        counts = Counter(status.counts)
        older = connection.under_way(status.entries, but=status.generation.nonce)
    ending = counts.total() - sum(counts[state] for state in _STAYS)
    cancelled = NumberSet()
    if ending or older:
        question = f"{sweep}: {counts_text(counts)}{_and_older(older)}. End what is not over?"
        if not yes and not agreed(question, why="`cancel` asks before it ends runs"):
            return declined()
        over = {r.number for r in status.runs if r.status in _STAYS} if selection else connection.over(status)
        cancelled = NumberSet(connection.cancel(status, selection, say=note) - over)
    told = len(cancelled)
    if as_json:
        click.echo(
            render.document("cancel", {"sweep": sweep, "cancelled": told, "older": older, "runs": str(cancelled)})
        )
    elif told or older:
        click.echo(f"{sweep}: {render.count(told, 'run')}{_and_older(older)} told to end.")
    else:
        of = f" of {counts_text(counts)}" if counts else ""
        click.echo(f"{sweep}: nothing is left to be cancelled{of}.")
    return errors.EXIT_DONE


def _and_older(runs: int) -> str:
    return f", and {runs:,} from before --new" if runs else ""

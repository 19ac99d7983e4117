"""`submitter prune`."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from submitter import render
from submitter.cli import options
from submitter.cli.output import agreed, declined, note
from submitter.errors import EXIT_DONE

if TYPE_CHECKING:
    from submitter.prune import Unneeded
    from submitter.stack import StackSource


@click.command("prune")
@click.option(
    "--sweeps-older-than",
    type=options.Amount(min=0),
    metavar="DAYS",
    help="Also forget sweeps that nobody has submitted to for so long; their W&B runs and logs stay.",
)
@options.yes
@options.force
@options.as_json
@click.pass_obj
def prune_command(
    source: "StackSource", *, sweeps_older_than: float | None, yes: bool, force: bool, as_json: bool
) -> int:
    """Take away job definitions and keys that no unfinished run needs, and old sweeps.

    Other people's sweeps go by --force only. It first shows what it would take away. It needs more than the stack's
    submitter policy: whoever deploys the stack has it.
    """
    connection = options.connect(source)
    pruning, now = connection.pruning, connection.clock.now()
    older_than = None if sweeps_older_than is None else sweeps_older_than * 86400
    unneeded = pruning.look(now=now, older_than=older_than)
    if not force:
        unneeded = _own(unneeded, connection.caller)
    if not as_json or not yes:
        _show(unneeded, as_json=as_json)
    if (as_json and not yes) or (not as_json and not unneeded):
        return EXIT_DONE
    if not as_json:
        _tell_what_is_lost(unneeded)
    if not yes and not agreed("Take them away?", why="`prune` asks before it takes anything away"):
        return declined()
    gone = pruning.take_away(unneeded, now=now, older_than=older_than)
    if as_json:
        _show(gone, as_json=True, gone=True)
    else:
        kept = "" if gone == unneeded else " What has come into use meanwhile is kept."
        note(f"They are gone.{kept}")
    return EXIT_DONE


def _tell_what_is_lost(unneeded: "Unneeded") -> None:
    note("What unfinished runs need stays.")
    if unneeded.labels:
        note("A retry of ended runs that had such a key takes its value from your shell again.")
    if unneeded.sweeps:
        note(
            "Of such a sweep nobody can tell any more which runs it had and how they ended, nor retry or repeat one; "
            "a `run` of that name begins it anew."
        )


def _own(unneeded: "Unneeded", caller: str) -> "Unneeded":
    """Return what can go without other people's sweeps, and say whose those are."""
    own, others = [], Counter[str]()
    for sweep in unneeded.sweeps:
        owner = sweep.partition("/")[0]
        if owner == caller:
            own.append(sweep)
        else:
            others[owner] += 1
    if others:
        whose = ", ".join(f"{number:,} of {owner}" for owner, number in sorted(others.items()))
        note(f"Old sweeps of others stay ({whose}): --force forgets them too.")
    return replace(unneeded, sweeps=tuple(own))


def _show(unneeded: "Unneeded", *, as_json: bool, gone: bool = False) -> None:
    if as_json:
        values: dict[str, Any] = {name: list(found) for name, found in vars(unneeded).items()}
        click.echo(render.document("prune", {"gone": gone, **values}))
        return
    if not unneeded:
        click.echo("Everything is needed.")
    for noun, found in (
        ("job definition", unneeded.definitions),
        ("key", unneeded.labels),
        ("sweep", unneeded.sweeps),
    ):
        if found:
            click.echo(f"{render.count(len(found), noun)}: {', '.join(found)}")

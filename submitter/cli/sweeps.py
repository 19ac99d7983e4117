"""What the ledger tells of sweeps: `submitter list` and `submitter show`."""

import time
from typing import TYPE_CHECKING, Any

import click

from submitter import render
from submitter.cli import options
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.history import Entry, Record


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

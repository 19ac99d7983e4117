"""What the ledger tells of sweeps: `submitter list` and `submitter show`."""

import time
from typing import TYPE_CHECKING, Any, Final

import click

from submitter import render
from submitter.cli import options
from submitter.numbers import NumberSet
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.history import Entry, Generation, Record

_FEW: Final = 12
"""How many values of a parameter people are shown."""


@click.command("list")
@click.option("--mine/--all", "mine", default=True, help="Your sweeps, or everybody's.  [default: mine]")
@options.as_json
@click.pass_obj
def list_command(source: StackSource, *, mine: bool, as_json: bool) -> None:
    """List the sweeps in the stack's ledger, the newest first."""
    connection = options.connect(source)
    caller = connection.caller
    found = connection.ledger.sweeps(caller if mine else None)
    if as_json:
        rows = [
            {"sweep": one.sweep, "runs": one.runs, "created": one.created, "updated": one.updated} | _record(one.record)
            for one in found
        ]
        click.echo(render.document("list", {"sweeps": rows}))
        return
    names = [one.sweep.partition("/")[2] if mine else one.sweep for one in found]
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
    """Show what a sweep is made of, also when AWS has forgotten its jobs: all of it is in the ledger."""
    connection = options.connect(source)
    sweep, generation = connection.generation(name, owner)
    record = generation.record
    values = {
        "sweep": sweep,
        "owner": sweep.partition("/")[0],
        "nonce": generation.nonce,
        "runs": len(generation.table),
    }
    if record is not None:
        values |= _record(record)
    values |= _asked(generation)
    if as_json:
        click.echo(render.document("show", {**values, "submissions": [_submission(e) for e in generation.entries]}))
        return
    for key, value in values.items():
        click.echo(f"{key + ':':12}{_shown(value)}")
    for entry in generation.entries:
        where = f" on {entry.queue} by {entry.definition}" if entry.queue else ""
        click.echo(f"{entry.kind} of {_local_time(entry.at)}: runs {entry.runs}{where}")


def _asked(generation: "Generation") -> dict[str, Any]:
    """Return the values that each parameter has, and the seeds."""
    rows = list(dict.fromkeys(row for block in generation.table.blocks for row in block.rows))
    columns = zip(generation.axes, zip(*rows, strict=True), strict=True) if generation.axes else ()
    seedless = generation.record is not None and generation.record.template().seedless
    blocks = () if seedless else generation.table.blocks
    seeds = NumberSet(seed for block in blocks for seed in block.seeds if seed is not None)
    return {"values": {axis: list(dict.fromkeys(column)) for axis, column in columns}, "seeds": str(seeds)}


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
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value)) or "-"
        case dict():
            return ", ".join(f"{key}={_few(each)}" for key, each in value.items()) or "-"
        case "":
            return "-"
        case _:
            return str(value)


def _few(value: object) -> str:
    """Return a value, of a long list the first ones."""
    if not isinstance(value, list):
        return str(value)
    return "|".join(map(str, value[:_FEW])) + (f"|... ({len(value)} in all)" if len(value) > _FEW else "")


def _local_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))

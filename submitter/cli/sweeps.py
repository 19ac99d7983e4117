"""What the ledger tells of sweeps: `submitter list` and `submitter show`."""

import shlex
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from submitter import render
from submitter.cli import options
from submitter.cli.output import note
from submitter.history import CANCEL
from submitter.numbers import NumberSet, range_text
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.history import Entry, Generation, Record
    from submitter.plan import JobSpec
    from submitter.sweep import Block

_FEW: Final = 12
"""How many values of a parameter, and how many rows of a list, people are shown."""

_TABLE_SAYS: Final = frozenset({"grid", "num_seed", "start_seed", "seeds", "num_jobs"})
"""Options of the first `run` of which the runs tell more, also when the sweep was extended since."""


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
    if not found:
        note("You have no sweep yet; --all lists those of everybody." if mine else "There is no sweep yet.")
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
    values: dict[str, Any] = {
        "sweep": sweep,
        "owner": sweep.partition("/")[0],
        "nonce": generation.nonce,
        "runs": len(generation.table),
    }
    if record is not None:
        values |= _record(record)
        values["options"] = {name: value for name, value in record.options.items() if name not in _TABLE_SAYS}
    values |= _asked(generation)
    if as_json:
        more = {"blocks": _blocks(generation), "submissions": [_submission(entry) for entry in generation.entries]}
        click.echo(render.document("show", {**values, **more}))
        return
    for key, value in values.items():
        click.echo(f"{key + ':':12}{_shown(value)}")
    for line in _listed(generation):
        click.echo(line)
    for entry in generation.entries:
        where = f" on {entry.queue} by {entry.definition}" if entry.queue else ""
        each = f": {_spec_text(entry.spec)}" if entry.spec else ""
        runs = f"{'run' if len(entry.runs) == 1 else 'runs'} {entry.runs}"
        if entry.kind == CANCEL:
            runs += ", those that had not ended"
        click.echo(f"{entry.kind} of {_local_time(entry.at)}: {runs}{where}{each}")


def _asked(generation: "Generation") -> dict[str, Any]:
    """Return the values that each parameter has, and the seeds."""
    rows = list(dict.fromkeys(row for block in generation.table.blocks for row in block.rows))
    columns = zip(generation.axes, zip(*rows, strict=True), strict=True) if generation.axes else ()
    seeds = dict.fromkeys(seed for block in generation.table.blocks for seed in _seeds(generation, block))
    return {"values": {axis: list(dict.fromkeys(column)) for axis, column in columns}, "seeds": range_text(seeds)}


def _seeds(generation: "Generation", block: "Block") -> list[int]:
    """Return a block's seeds; none where they only number equal jobs."""
    if generation.record is not None and generation.record.template().seedless:
        return []
    return [seed for seed in block.seeds if seed is not None]


def _blocks(generation: "Generation") -> list[dict[str, Any]]:
    """Return exactly which runs were asked for: rectangles of rows and seeds, numbered on, the seeds slowest."""
    table = generation.table
    return [
        {
            "runs": str(NumberSet(range(start + 1, start + len(block) + 1))),
            "rows": [dict(zip(generation.axes, row, strict=True)) for row in block.rows],
            "seeds": range_text(_seeds(generation, block)),
        }
        for start, block in zip(table.starts, table.blocks, strict=False)
    ]


def _listed(generation: "Generation") -> Iterator[str]:
    """Yield lines that list the rows, where the runs are not every combination of the values and the seeds."""
    if not (axes := generation.axes):
        return  # the seeds say it, in the order of the runs
    if len(generation.table.blocks) == 1 and len(generation.table.blocks[0].factors) == len(axes):
        return
    for block in _blocks(generation):
        yield f"runs {block['runs']}" + (f", seeds {block['seeds']}:" if block["seeds"] else ":")
        rows = [" ".join(f"{axis}={shlex.quote(value)}" for axis, value in row.items()) for row in block["rows"]]
        yield from (f"  {row}" for row in rows[:_FEW] if row)
        if len(rows) > _FEW:
            yield f"  ... ({len(rows):,} in all)"


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
        "spec": None if entry.spec is None else _spec(entry.spec),
        "runs": str(entry.runs),
        "jobs": {slot.name: slot.sent for slot in entry.slots},
    }


def _spec(spec: "JobSpec") -> dict[str, Any]:
    """Return what each run of a submission gets, defaults and all; secrets are no part of it."""
    return {
        "image": spec.image,
        "vcpus": spec.vcpus,
        "memory_mib": spec.memory_mib,
        "gpus": spec.gpus,
        "timeout_seconds": spec.timeout_seconds,
        "attempts": spec.attempts,
        "retry_on_error": spec.retry_on_error,
        "environment": dict(spec.environment),
    }


def _spec_text(spec: "JobSpec") -> str:
    parts = [
        f"{spec.vcpus} vCPU",
        f"{spec.memory_mib} MiB",
        *([f"{spec.gpus} GPU"] if spec.gpus else []),
        render.count(spec.attempts, "attempt"),
        f"{render.duration(spec.timeout_seconds)} each",
        spec.image,
        *(shlex.quote(f"{name}={value}") for name, value in spec.environment.items()),
    ]
    return ", ".join(parts)


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
        return _shown(value)
    return "|".join(map(str, value[:_FEW])) + (f"|... ({len(value)} in all)" if len(value) > _FEW else "")


def _local_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))

"""`submitter logs`."""

from functools import partial

import click

from submitter import render
from submitter.cli import options
from submitter.cli.output import note
from submitter.selection import Selection, label
from submitter.stack import StackSource


@click.command("logs")
@options.sweep_name
@options.owner
@options.selector
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@options.as_json
@click.pass_obj
def logs_command(
    source: StackSource,
    *,
    name: str,
    owner: str | None,
    selection: Selection,
    follow: bool,
    as_json: bool,
) -> None:
    """Print what runs have logged; with --json, one JSON object a line."""
    connection = options.connect(source)
    status = connection.status.read(connection.full_name(name, owner), runs=True)
    axes = status.axes
    chosen = [selection.choose_one(status.runs, axes)] if follow else selection.choose(status.runs, axes)
    for run in chosen:
        prefix = f"{label(run, axes)} | " if len(chosen) > 1 else ""
        for line in connection.log_lines(run, follow=follow, say=partial(note, prefix=prefix)):
            if as_json:
                values = {"run": run.number, "seed": run.seed, "attempt": line.attempt, "at_ms": line.at_ms}
                click.echo(render.json_line({**values, "message": line.message}))
            else:
                click.echo(f"{prefix}{line.message}")

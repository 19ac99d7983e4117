"""`submitter retry --from-wandb`: what W&B says has crashed runs again under its own ids, which must exist."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import click

from submitter import render
from submitter.cli.again import Limits, changes
from submitter.cli.options import check_owner
from submitter.cli.output import note
from submitter.cli.run import run_command
from submitter.errors import UsageError
from submitter.history import Generation
from submitter.names import digest, safe_name
from submitter.numbers import NumberSet
from submitter.retry import Changes
from submitter.tracking import api_key
from submitter.wandb_runs import WandbRun, find_runs

if TYPE_CHECKING:
    from submitter.cli.connection import Connection
    from submitter.retry import Retried

_MUST: Final = {"WANDB_RESUME": "must"}

_COMMAND: Final = "export WANDB_RUN_ID={id} WANDB_RESUME=must; eval {line}"
"""Of a sweep that is made of W&B runs that no sweep of the ledger has: each row is an id and a command."""


def retry_crashed(
    connection: "Connection", sweep: str | None, project: str, state: str, limits: Limits, *, force: bool
) -> "Iterator[tuple[str, Retried]]":
    """Send again what a W&B project has in a state; yield each sweep with what has become of it.

    Args:
        connection: The way to the stack.
        sweep: Only this sweep's runs; None for those of all sweeps of the caller's, and of none.
        project: ENTITY/PROJECT.
        state: W&B's word.
        limits: What is to be different from the last time.
        force: Whether other people's sweeps are meant too.
    """
    found = find_runs(project, state, api_key=api_key(None, "", os.environ))
    note(f"{project} has {render.count(len(found), 'run')} that W&B calls {state}.")
    ours, others = _sorted_out(connection, sweep, found)
    for name, numbers in ours.items():
        if sweep is None and not force and name.partition("/")[0] != connection.caller:
            note(f"{name} is not yours: its {render.count(len(numbers), 'run')} are left alone without --force.")
            continue
        check_owner(connection, name, force=force)
        what = replace(changes(connection, name, limits), environment=_MUST)
        yield name, connection.retry(name, partial(_these, numbers), what, say=note)
    if others and sweep is None:
        yield _resume_others(connection, project, others, limits)


def _these(numbers: NumberSet, _: Generation) -> NumberSet:
    return numbers


def _sorted_out(
    connection: "Connection", sweep: str | None, found: Sequence[WandbRun]
) -> tuple[dict[str, NumberSet], list[WandbRun]]:
    """Return the numbers of those runs that sweeps in the ledger have, by sweep, and the other runs."""
    if sweep is None:
        sweeps = {one.nonce: one.sweep for one in connection.ledger.sweeps()}
    else:
        sweeps = {str(connection.generation(sweep, None)[1].nonce): sweep}
    ours: dict[str, set[int]] = {}
    others = []
    for run in found:
        nonce, _, number = run.id.rpartition("-")
        if nonce in sweeps and number.isdecimal():
            ours.setdefault(sweeps[nonce], set()).add(int(number))
        else:
            others.append(run)
    return {name: NumberSet(numbers) for name, numbers in ours.items()}, others


def _resume_others(
    connection: "Connection", project: str, runs: Sequence[WandbRun], limits: Limits
) -> "tuple[str, Retried]":
    """Submit runs that no sweep has, as a sweep of their own; send again those of it that have failed.

    Raises:
        UsageError: No queue is named.
        ConfigurationError: W&B does not know how one of them was started.
    """
    if limits.queue is None:
        raise UsageError(f"No sweep has {render.count(len(runs), 'run')} of {project}.", "Name a --queue for them.")
    entity, _, short = project.partition("/")
    name = f"{safe_name(short, 40)}-{digest(project, limits.image or '')}"
    sweep = connection.full_name(name, None)
    before = len(connection.ledger.entries(sweep))
    words = ["--name", name, "--command", _COMMAND, "--no-seed"]
    for option, value in vars(limits).items():
        words += [] if value is None else [f"--{option.replace('_', '-')}", str(value)]
    for variable in (f"WANDB_ENTITY={entity}", f"WANDB_PROJECT={short}"):
        words += ["--env", variable]
    rows = [{"id": run.id, "line": run.command()} for run in runs]
    with TemporaryDirectory() as folder:
        listed = Path(folder) / f"{name}.jsonl"
        listed.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        words += ["--params", str(listed)]
        with (
            run_command.make_context("run", words, parent=click.get_current_context().parent) as context,
            redirect_stdout(sys.stderr),  # what this command has to say comes after it
        ):
            run_command.invoke(context)
    wanted = {run.id for run in runs}

    def choose(generation: Generation) -> NumberSet:
        at = generation.axes.index("id")
        return NumberSet(run.number for run in generation.table.runs() if run.row[at] in wanted)

    retried = connection.retry(sweep, choose, Changes(), say=note)
    sent = (number for number, place in retried.generation.newest().items() if place.entry.n > before)
    return sweep, replace(retried, submitted=NumberSet(sent))

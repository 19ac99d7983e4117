"""`submitter retry --from-wandb`: what W&B says has crashed runs again under its own ids, which must exist."""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from submitter import render
from submitter.cli.again import Limits, retry
from submitter.cli.options import check_owner
from submitter.cli.output import note
from submitter.cli.run import run_command
from submitter.errors import ConfigurationError, UsageError
from submitter.grid import check_value
from submitter.history import Generation, newest_nonce
from submitter.names import digest, safe_name
from submitter.numbers import NumberSet
from submitter.params import Params
from submitter.tracking import api_key
from submitter.wandb_runs import WandbRun, find_runs
from submitter.wrapper import WANDB_RETRY

if TYPE_CHECKING:
    from submitter.cli.connection import Connection
    from submitter.retry import Retried

_MUST: Final = {"WANDB_RESUME": "must"}

_RUN_ID: Final = re.compile(r"(?P<nonce>[^-]+)-(?P<number>[0-9]+)(-r[0-9]+)?(-[0-9]+)?", re.ASCII)
"""What :mod:`submitter.wrapper` makes of a run: with `--wandb-retry new` the retry and the attempt follow."""

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

    Raises:
        UsageError: Runs that no sweep has are among them, and no queue is named; nothing was sent.
    """
    found = find_runs(project, state, api_key=api_key(None, "", os.environ))
    note(f"{project} has {render.count(len(found), 'run')} that W&B calls {state}.")
    ours, others = _sorted_out(connection, sweep, found)
    if others and sweep is None and limits.queue is None:
        raise UsageError(f"No sweep has {render.count(len(others), 'run')} of {project}.", "Name a --queue for them.")
    for name, numbers in ours.items():
        if sweep is None and not force and name.partition("/")[0] != connection.caller:
            note(f"{name} is not yours: its {render.count(len(numbers), 'run')} are left alone without --force.")
            continue
        check_owner(connection, name, force=force)
        requests = connection.generation(name, None)[1].newest_request().values()
        # With that variable each run has a new id.
        renamed = any(request.spec and WANDB_RETRY in request.spec.environment for request in requests)
        yield name, retry(connection, name, partial(_these, numbers), limits, environment={} if renamed else _MUST)
    if others and sweep is None:
        yield _resume_others(connection, project, others, limits)


def _these(numbers: NumberSet, _: Generation) -> NumberSet:
    return numbers


def _sorted_out(
    connection: "Connection", sweep: str | None, found: Sequence[WandbRun]
) -> tuple[dict[str, NumberSet], list[WandbRun]]:
    """Return the numbers of those runs that sweeps in the ledger have, by sweep, and the runs that none ever had."""
    if sweep is not None:
        connection.generation(sweep, None)  # there must be one
    ledger = connection.ledger
    entries = ledger.all_entries() if sweep is None else {sweep: ledger.entries(sweep)}
    sweeps = {entry.nonce: name for name, found in entries.items() for entry in found}
    newest = {newest_nonce(found) for found in entries.values()}
    ours: dict[str, set[int]] = {}
    older: Counter[str] = Counter()
    others = []
    for run in found:
        named = _RUN_ID.fullmatch(run.id)
        if named is None or named["nonce"] not in sweeps:
            others.append(run)
        elif named["nonce"] in newest:
            ours.setdefault(sweeps[named["nonce"]], set()).add(int(named["number"]))
        else:
            older[sweeps[named["nonce"]]] += 1
    for name, count in older.items():
        note(f"{render.count(count, 'run')} of {name} are from before it was begun afresh, and left alone.")
    return {name: NumberSet(numbers) for name, numbers in ours.items()}, others


def _resume_others(
    connection: "Connection", project: str, runs: Sequence[WandbRun], limits: Limits
) -> "tuple[str, Retried]":
    """Submit runs that no sweep has, as a sweep of their own; send again those of it that have failed.

    Raises:
        ConfigurationError: W&B does not know how any of them was started.
    """
    entity, _, short = project.partition("/")
    name = f"{safe_name(short, 40)}-{digest(project, limits.image or '')}"
    sweep = connection.full_name(name, None)
    before = len(connection.ledger.entries(sweep))
    words = ["--name", name, "--command", _COMMAND, "--no-seed"]
    for option, value in vars(limits).items():
        words += [] if value is None else [f"--{option.replace('_', '-')}", str(value)]
    for variable in (f"WANDB_ENTITY={entity}", f"WANDB_PROJECT={short}"):
        words += ["--env", variable]
    rows = tuple((run.id, check_value("line", line)) for run, line in _commands(runs))
    # Without a parent: what variables say about `run` is not about this one.
    with (
        run_command.make_context("run", words, obj=click.get_current_context().obj) as context,
        redirect_stdout(sys.stderr),  # what this command has to say comes after it
    ):
        context.params["params"] = Params(file=project, axes=("id", "line"), rows=rows, seeds=None, repeated=0)
        run_command.invoke(context)
    wanted = {run.id for run in runs}

    def choose(generation: Generation) -> NumberSet:
        at = generation.axes.index("id")
        return NumberSet(run.number for run in generation.table.runs() if run.row[at] in wanted)

    retried = retry(connection, sweep, choose, limits)
    sent = (number for number, place in retried.generation.newest().items() if place.entry.n > before)
    return sweep, replace(retried, submitted=NumberSet(sent))


def _commands(runs: Sequence[WandbRun]) -> "list[tuple[WandbRun, str]]":
    """Return the runs with what started them; those of which W&B does not know it are told and left out.

    Raises:
        ConfigurationError: It knows it of none.
    """
    found = []
    for run in runs:
        try:
            found.append((run, run.command()))
        except ConfigurationError as error:
            if len(runs) == 1:
                raise
            note(f"{error.message} It is left alone.")
    if not found:
        raise ConfigurationError("W&B does not know which program any of these runs was.")
    return found

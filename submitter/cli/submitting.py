"""What `run` tells: what it is about to submit, which options it used, and what has become of the runs."""

import math
from typing import TYPE_CHECKING, Any, Final

import click

from submitter import render
from submitter.cli.output import counts_text, note
from submitter.hints import hints

if TYPE_CHECKING:
    from submitter.history import Record
    from submitter.request import Prepared
    from submitter.status import SweepStatus
    from submitter.submission import Order, Outcome, Outlook

_WIDTH: Final = 200
"""Characters of a command that people are shown."""

_FEW_HOURS: Final = 10
"""Below, parts of an hour are told."""

_NOT_IDENTITY: Final = (
    "queue",
    "num_vcpu",
    "num_memory",
    "num_gpu",
    "num_hours",
    "attempts",
    "retry_on_error",
    "wandb_retry",
    "env",
    "tag",
    "secret",
    "auto_tag",
)
"""Options that may change from one submission of a sweep to the next."""


def announce(prepared: "Prepared", outlook: "Outlook") -> None:
    """Say what is about to be submitted, the most that it can use, and what the first run executes."""
    for remark in (*prepared.asked.repeated, *hints(prepared.record.command, prepared.asked.axes)):
        note(remark)
    spec, queue, due = prepared.spec, prepared.queue, outlook.due
    rest = " and ".join(
        f"{number:,} {'is' if number == 1 else 'are'} {what}"
        for number, what in (
            (outlook.present, "submitted already"),
            (outlook.cancelled, "cancelled, for `submitter retry`"),
            (outlook.undecided, "perhaps submitted, which is looked up first"),
        )
        if number
    )
    if not due:
        nothing = "" if outlook.undecided else "nothing to submit: "
        note(f"{prepared.name}: {nothing}of {render.count(len(prepared.asked.runs), 'run')}, {rest}.")
        return
    runs = len(due)
    at_once = prepared.at_once(runs)
    rounds = math.ceil(runs / at_once)
    note(
        f"{prepared.name}: {render.count(runs, 'more run' if rest else 'run')} on {queue.name}"
        f"{f' ({rest})' if rest else ''}, "
        f"{at_once:,} at once{f' in {rounds:,} rounds' if rounds > 1 else ''}; "
        f"each {spec.vcpus} vCPU, {spec.memory_mib} MiB{f', {spec.gpus} GPU' if spec.gpus else ''}, "
        f"{render.count(spec.attempts, 'attempt')} of {render.duration(spec.timeout_seconds)} at most: "
        f"{_hours(prepared.ceiling_hours(runs))} run-hours are the ceiling."
    )
    first = due[0]
    note(f"The first is: {_one_line(prepared.asked.template.render(first.row, first.seed))}")


def _hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= _FEW_HOURS else f"{hours:.2g}"


def _one_line(command: str) -> str:
    first, *more = command.strip().splitlines()
    return f"{first[:_WIDTH]}..." if more or len(first) > _WIDTH else first


def tell_of_earlier(sweep: str, going: int) -> None:
    """Say what of a sweep goes on beside what is begun afresh."""
    if going:
        note(
            f"From before --new {render.count(going, 'run')} of the sweep {'has' if going == 1 else 'have'} not ended, "
            f"and will go on beside the new ones; `submitter cancel {sweep}` ends all of both."
        )


def report(order: "Order", outcome: "Outcome", status: "SweepStatus | None", *, as_json: bool) -> None:
    """Say what was submitted and, where a status is given, what is done, out and failed."""
    submitted = len(outcome.submitted)
    if outcome.generation.record and (used := _options_used(order.record, outcome.generation.record, submitted)):
        note(used)
    if outcome.unknown:
        note(f"Runs {outcome.unknown} were perhaps sent a week ago and are left alone; --new begins all afresh.")
    if as_json:
        counts = dict(status.counts) if status else None
        click.echo(render.document("run", {**_values(order, outcome), "counts": counts}))
    else:
        click.echo(f"{order.sweep}: {render.count(submitted, 'run')} submitted to {order.queue}.")
        if status:
            click.echo(counts_text(status.counts))


def remind(status: "SweepStatus") -> None:
    """Say how runs that have failed or were cancelled are run again."""
    if again := status.counts.get("failed", 0) + status.counts.get("cancelled", 0):
        note(f"`submitter retry {status.sweep}` runs {'it' if again == 1 else f'the {again:,}'} again.")


def _options_used(asked: "Record", begun: "Record", submitted: int) -> str | None:
    """Say which options differ from those that the sweep was begun with, and which of them its runs have."""
    differing = [name for name in _NOT_IDENTITY if asked.options.get(name) != begun.options.get(name)]
    if not differing:
        return None
    then, now = (", ".join(_option(name, record.options.get(name)) for name in differing) for record in (begun, asked))
    if submitted:
        return f"The sweep was begun with {then}; {render.count(submitted, 'run')} submitted now: {now}."
    return f"Nothing is submitted, so {now} changes nothing; the sweep was begun with {then}."


def _option(name: str, value: object) -> str:
    flag = f"--{name.replace('_', '-')}"
    match value:
        case None:
            return f"no {flag}"
        case True:
            return flag
        case list():
            return " ".join(f"{flag} {each}" for each in value)
        case float():
            return f"{flag} {value:g}"
        case _:
            return f"{flag} {value}"


def _values(order: "Order", outcome: "Outcome") -> dict[str, Any]:
    return {
        "sweep": order.sweep,
        "nonce": outcome.generation.nonce,
        "queue": order.queue,
        "submitted": len(outcome.submitted),
        "already": len(outcome.present) + len(outcome.settled),
        "cancelled": len(outcome.cancelled),
        "unknown": len(outcome.unknown),
        "jobs": {slot.name: slot.sent for entry in outcome.generation.entries for slot in entry.slots if slot.sent},
    }

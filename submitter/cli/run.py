"""`submitter run`."""

from typing import TYPE_CHECKING, Any

import click

from submitter import render
from submitter.cli import options, run_options
from submitter.cli.output import counts_text, note, status_values
from submitter.cli.watching import check_succeeded, wait_and_tell
from submitter.errors import UsageError
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.request import Prepared
    from submitter.submission import Order, Outcome


@click.command("run")
@click.option("--queue", metavar="NAME", help="The job queue, such as c5a-large-spot; `submitter queues` lists them.")
@run_options.what
@run_options.identity
@run_options.each_run
@click.option("--new", is_flag=True, help="Begin the sweep afresh: every run anew, with new W&B ids.")
@click.option("--wait", is_flag=True, help="Wait until the sweep's runs have ended; exit 1 if any failed.")
@options.poll
@options.as_json
@click.pass_obj
def run_command(
    source: StackSource, /, *, queue: str | None, new: bool, wait: bool, poll: float, as_json: bool, **given: Any
) -> None:
    """Submit the runs of a sweep that are not submitted yet: typed twice, it submits once."""
    if queue is None:
        raise UsageError("`run` needs a queue to submit to.", "Give --queue NAME; `submitter queues` lists them.")
    connection = options.connect(source)
    prepared = connection.prepare(queue=queue, **given)
    _announce(prepared)
    order = connection.order(prepared)
    outcome = connection.submit(order, fresh=new, say=note)
    status = None
    if wait:
        status = wait_and_tell(connection, order.sweep, poll=poll)
    elif len(outcome.submitted) < len(outcome.generation.table):
        status = connection.status.read(order.sweep)
    if as_json:
        values = _values(order, outcome)
        click.echo(render.document("run", values | (status_values(status, each_run=False) if status else {})))
    else:
        click.echo(f"{order.sweep}: {render.count(len(outcome.submitted), 'run')} submitted to {order.queue}.")
        if status:
            click.echo(counts_text(status.counts))
    if outcome.unknown:
        note(f"Runs {outcome.unknown} were perhaps sent a week ago and are left alone; --new begins all afresh.")
    if wait and status:
        check_succeeded(status)


def _announce(prepared: "Prepared") -> None:
    """Say what is about to be submitted, and the most that it can use."""
    for repeated in prepared.asked.repeated:
        note(repeated)
    spec, queue = prepared.spec, prepared.queue
    note(
        f"{prepared.name}: {render.count(len(prepared.asked.runs), 'run')} on {queue.name}, {prepared.at_once:,} at once; "
        f"each {spec.vcpus} vCPU, {spec.memory_mib} MiB{f', {spec.gpus} GPU' if spec.gpus else ''}, "
        f"{render.count(spec.attempts, 'attempt')} of {render.duration(spec.timeout_seconds)} at most: "
        f"{prepared.ceiling_hours:,.0f} run-hours are the ceiling."
    )


def _values(order: "Order", outcome: "Outcome") -> dict[str, Any]:
    return {
        "sweep": order.sweep,
        "nonce": outcome.generation.nonce,
        "queue": order.queue,
        "submitted": len(outcome.submitted),
        "already": len(outcome.present) + len(outcome.settled),
        "unknown": len(outcome.unknown),
        "jobs": {slot.name: slot.sent for entry in outcome.generation.entries for slot in entry.slots if slot.sent},
    }

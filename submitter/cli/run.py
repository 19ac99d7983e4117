"""`submitter run`."""

from dataclasses import replace
from typing import Any

import click

from submitter import render
from submitter.cli import options, run_options
from submitter.cli.answers import Answering
from submitter.cli.like import like_another
from submitter.cli.outfit import Extras, outfit
from submitter.cli.output import note
from submitter.cli.submitting import announce, remind, report
from submitter.cli.watching import check_succeeded, wait_and_tell
from submitter.errors import UsageError
from submitter.stack import StackSource


@click.command("run", cls=Answering)
@click.option("--queue", metavar="NAME", help="The job queue, such as c5a-large-spot; `submitter queues` lists them.")
@run_options.what
@run_options.identity
@run_options.each_run
@run_options.image
@run_options.keys
@run_options.place
@click.option(
    "--new",
    is_flag=True,
    allow_from_autoenv=False,
    help="Begin the sweep afresh: every run anew, with new W&B ids.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    allow_from_autoenv=False,
    help="Print the requests that would be sent, as JSON; nothing is changed.",
)
@click.option("--wait", is_flag=True, help="Wait until the sweep's runs have ended; exit 1 if any failed.")
@options.poll
@options.as_json
@click.pass_obj
def run_command(
    source: StackSource,
    /,
    *,
    like: str | None,
    new: bool,
    dry_run: bool,
    wait: bool,
    poll: float,
    as_json: bool,
    **given: Any,
) -> None:
    """Submit the runs of a sweep that are not submitted yet: typed twice, it submits once.

    Without a queue nothing is submitted: the docker lines of a dry run, or with --provider local containers here.
    """
    extras = Extras.take(given)
    if extras.provider == "aws":
        given["queue"] = given["queue"] or extras.job_queue
    if extras.provider == "local" and given["queue"]:
        raise UsageError("--provider local runs the containers here, without a queue.", "Leave out --queue.")
    connection = None
    if like:
        connection = options.connect(source)
        kept = {"secret": extras.secret, "auto_tag": extras.auto_tag}
        given = like_another({**given, **kept}, connection.generation(like, None)[1])
        extras = replace(extras, **{name: given.pop(name) for name in kept})
    if extras.provider == "local" or not (given["queue"] or extras.provider):
        from submitter.cli import here  # noqa: PLC0415 - what it needs, submitting does not

        really = extras.provider == "local" and not dry_run
        (here.run_local if really else here.dry_run)(given, extras, as_json=as_json)
        return
    connection = connection or options.connect(source)
    if given["queue"] is None:
        there = ", ".join(connection.contract.queue_names) or "none"
        raise UsageError("--provider aws needs a queue to submit to.", f"Give --queue NAME; the stack has {there}.")
    prepared = connection.prepare(**given)
    secrets = extras.secrets(prepared.record.command)
    prepared = outfit(connection, prepared, extras, secrets, fresh=new, dry_run=dry_run)
    announce(prepared)
    if dry_run:
        click.echo(render.document("dry-run", connection.dry_run(prepared, fresh=new, say=note)))
        note("Nothing was sent.")
        return
    order = connection.order(prepared)
    outcome = connection.submit(order, secrets, fresh=new, say=note)
    status = None
    if wait:
        note(f"{render.count(len(outcome.submitted), 'run')} submitted.")
        status = wait_and_tell(connection, order.sweep, poll=poll)
    elif len(outcome.submitted) < len(outcome.generation.table):
        status = connection.status.read(order.sweep)
    report(order, outcome, status, as_json=as_json)
    if status:
        (check_succeeded if wait else remind)(status)

"""`submitter run`."""

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from submitter import render
from submitter.cli import options, run_options
from submitter.cli.answers import Answering
from submitter.cli.like import like_another
from submitter.cli.outfit import Extras, outfit
from submitter.cli.output import note
from submitter.cli.submitting import announce, remind, report, tell_of_earlier
from submitter.cli.watching import check_succeeded, wait_and_tell
from submitter.errors import SubmitterError, UsageError
from submitter.history import Generation
from submitter.identity import check_words
from submitter.registry import LookUp
from submitter.stack import StackSource
from submitter.variables import check_secret_names, parse_variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from submitter.cli.connection import Connection
    from submitter.history import Entry
    from submitter.request import Prepared


_FRESH_SECONDS: Final = 2
"""What was read of the ledger longer ago is read again."""


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
    help="Print the requests that would be sent, as JSON, or without a queue docker lines; nothing is changed.",
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
        kept = {"secret": extras.secret, "auto_tag": extras.auto_tag, "pin": extras.pin}
        given = like_another({**given, **kept}, connection.generation(like, None)[1])
        extras = replace(extras, **{name: given.pop(name) for name in kept})
    check_secret_names(extras.secret, parse_variables(given["env"]))
    if extras.provider == "local" or not (given["queue"] or extras.provider):
        from submitter.cli import here  # noqa: PLC0415 - what it needs, submitting does not

        really = extras.provider == "local" and not dry_run
        if wait and not extras.provider and not dry_run:
            raise UsageError("--wait waits for runs on a queue, and none is named.", "Give --queue NAME.")
        if really:
            here.run_local(given, extras, as_json=as_json)
        else:
            here.dry_run(given, extras, write=not dry_run, as_json=as_json)
        return
    connection = connection or options.connect(source)
    if given["queue"] is None:
        there = ", ".join(connection.contract.queue_names) or "none"
        raise UsageError("--provider aws needs a queue to submit to.", f"Give --queue NAME; the stack has {there}.")
    prepared = connection.prepare(**given)
    _submit(connection, prepared, extras, new=new, dry_run=dry_run, wait_poll=poll if wait else None, as_json=as_json)


def _submit(
    connection: "Connection",
    prepared: "Prepared",
    extras: Extras,
    *,
    new: bool,
    dry_run: bool,
    wait_poll: float | None,
    as_json: bool,
) -> None:
    """Submit to a queue; with `wait_poll`, wait then, and look every so many seconds."""
    from submitter.submission import binds, foresee, goes_on_with  # noqa: PLC0415 - so that --help does not pay for boto3

    extras.check_build(prepared.record.image, prepared.queue)
    secrets = extras.secrets(prepared.record.command, prepared.spec.environment)
    # The registry is asked while AWS is; what is to be built it does not have yet.
    with nullcontext() if extras.build else LookUp(prepared.record.image) as look_up:
        known = connection.entries_if_reachable(prepared, note) if dry_run else connection.entries(prepared)
        entries: Sequence[Entry] = known or []
        read_at = connection.clock.now()
        newest = Generation(entries)
        before = newest.record if binds(newest) else None
        if before and not new:
            check_words(connection.full_name(prepared.name, prepared.options.owner), prepared.record, before)
        secret_arn = connection.contract.secret_arn
        prepared = outfit(prepared, extras, secrets, before, look_up, secret_arn=secret_arn, fresh=new, dry_run=dry_run)
    if known is not None and connection.clock.now() > read_at + _FRESH_SECONDS:
        entries = connection.entries(prepared)  # a build takes minutes, in which others may submit, or prune
    order = prepared.order("OWNER" if known is None else connection.caller, connection.contract)
    begun = goes_on_with(entries, order.record, fresh=new)
    own = connection.ended_by_themselves(begun)
    outlook = foresee(order, begun, own)
    if not begun.entries and entries and not new:
        note(f"Nothing of what was begun as {order.sweep} was ever submitted, so it begins afresh.")
    announce(prepared, outlook)
    if dry_run:
        values = connection.dry_run(order, entries, begun, outlook, offline=known is None)
        click.echo(render.document("dry-run", values))
        note("Nothing was sent.")
        return
    if new and entries:
        tell_of_earlier(order.sweep, connection.under_way(entries))
    outcome = connection.submit(order, entries, secrets, own=own, fresh=new, say=note)
    status = None
    try:
        if wait_poll is not None:
            note(f"{render.count(len(outcome.submitted), 'run')} submitted.")
            status = wait_and_tell(connection, order.sweep, poll=wait_poll)
        elif len(outcome.submitted) < len(outcome.generation.table):
            status = connection.status.read(order.sweep, before=outcome.generation.entries)
    except (SubmitterError, KeyboardInterrupt):  # whatever that is, these runs were submitted
        report(order, outcome, None, as_json=as_json)
        raise
    report(order, outcome, status, as_json=as_json)
    if status:
        (remind if wait_poll is None else check_succeeded)(status)

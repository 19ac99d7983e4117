"""`run`: sends what the ledger does not have, nothing twice and nothing lost, whenever it is broken off and repeated.

The protocol: an entry is put before anything is sent, and only where none is; a request is signed within a minute of
that or never; an answer is written once; a slot without an answer is decided by looking its job's name up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from submitter.batch import Batch
from submitter.history import RETRY, RUN, Entry, Generation, Record, Slot, newest_nonce
from submitter.identity import check_same, is_same
from submitter.ledger import Ledger, check_count
from submitter.names import job_name, new_nonce
from submitter.numbers import NumberSet
from submitter.plan import JobSpec, arrays, submit_request
from submitter.sending import Sender
from submitter.session import Clock
from submitter.sweep import Runs, RunTable
from submitter.template import Template
from submitter.wrapper import ARTIFACTS, WANDB_RETRY, WANDB_RETRY_NEW
from submitter.writer import Writer


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a `run`, or a `retry`, asks for.

    Attributes:
        sweep: owner/name.
        wanted: The runs.
        record: What the sweep is, for its first entry.
        template: The command with the places of its values.
        spec: What each job gets.
        queue: Name of the job queue.
        definition: RegisterJobDefinition's arguments.
        kind: Of the entries that it makes.
        artifacts: The S3 bucket that each run has a place of its own in, or None.
    """

    sweep: str
    wanted: RunTable
    record: Record
    template: Template
    spec: JobSpec
    queue: str
    definition: Mapping[str, Any]
    kind: str = RUN
    artifacts: str | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What has become of the wanted runs; the five sets of numbers have no run in common.

    Attributes:
        generation: The entries of the sweep's generation.
        submitted: Sent by this command.
        present: There already.
        settled: Sent by an earlier command that had not seen AWS's answer.
        unknown: Perhaps sent, so long ago that AWS may have forgotten; left alone.
        cancelled: Cancelled, so that only a retry sends them again.
    """

    generation: Generation
    submitted: NumberSet
    present: NumberSet
    settled: NumberSet
    unknown: NumberSet
    cancelled: NumberSet


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What a `run` is about to do, by what the ledger says; the four parts have no run in common.

    Attributes:
        due: The runs that it submits.
        present: How many were submitted.
        undecided: How many were perhaps submitted: it finds that out, and submits those that were not.
        cancelled: How many were cancelled, so that only a retry sends them again.
    """

    due: Runs
    present: int
    undecided: int
    cancelled: int


def binds(generation: Generation) -> bool:
    """Tell whether any run of a generation was sent or may have been: else nobody need go on with what it is."""
    return next(generation.places(), None) is not None


def goes_on_with(entries: Sequence[Entry], asked: Record, *, fresh: bool) -> Generation:
    """Return the generation that a `run` goes on with, an empty one of its own where it begins one.

    It does so by `--new`, and where it is another sweep than one of which nothing was ever sent, every slot being void:
    that all of it was refused must not take the name away from what was meant. Should its command still be at work, its
    next entry or this one is put first, and the other command reads again.
    """
    newest = Generation(entries)
    goes_on = newest.record is not None and (binds(newest) or is_same(asked, newest.record))
    return newest if goes_on and not fresh else Generation(entries, new_nonce())


def foresee(order: Order, generation: Generation, own: NumberSet) -> Outlook:
    """Return what a `run` would do now.

    Args:
        order: What is asked for.
        generation: What there is of the sweep.
        own: The runs that a cancel named, and that had an end of their own.

    Raises:
        UsageError: The sweep was begun with another command, image or axes, or there are too many runs at once.
    """
    check_same(order.sweep, order.record, generation.record)
    due = generation.due(order.wanted)
    check_count(len(due))
    wanted = generation.table.numbers(order.wanted)
    cancelled = NumberSet((generation.cancelled & wanted) - own)
    opens = NumberSet.union(place.slot.runs for place in generation.open_places(wanted))
    undecided = (opens & wanted) - cancelled
    return Outlook(
        due=due,
        present=len(order.wanted) - len(due) - len(undecided) - len(cancelled),
        undecided=len(undecided),
        cancelled=len(cancelled),
    )


def run(
    order: Order,
    *,
    ledger: Ledger,
    batch: Batch,
    clock: Clock,
    entries: Sequence[Entry] | None = None,
    own: NumberSet | None = None,
    fresh: bool = False,
    ready: Callable[[Entry], None] | None = None,
    say: Callable[[str], None],
) -> Outcome:
    """Submit the wanted runs that were not submitted yet; return when every one of them is known to be, or not to be.

    Args:
        order: What is wanted.
        ledger: The stack's.
        batch: The account's.
        clock: This machine's.
        entries: The sweep's entries, where they were read already.
        own: The runs that a cancel named, by those entries, and that had an end of their own.
        fresh: Begin a new generation, in which nothing was submitted (`--new`).
        ready: Called with each entry when the ledger has it, so that `prune` leaves alone what it needs; before
            anything is sent.
        say: Told, in sentences, what the user waits for.

    Raises:
        UsageError: The sweep was begun with another command, image or axes, or is forgotten meanwhile.
        AwsError: AWS refused a job; what it took is in the ledger.
    """
    return _Run(order, ledger, batch, clock, say).work(entries, own or NumberSet(), fresh=fresh, ready=ready)


def draft(
    order: Order, generation: Generation, due: Runs, *, n: int, at: float, by: Writer
) -> tuple[Entry, list[dict[str, Any]]]:
    """Return a new entry for the runs that are due, and each slot's request but for the definition's revision.

    Args:
        order: What is asked for.
        generation: What there is of the sweep.
        due: The runs to be submitted.
        n: The entry's number.
        at: This machine's clock, in seconds since the epoch.
        by: Who writes the entry.

    Raises:
        UsageError: AWS Batch would not take a request, or the ledger not the entry.
    """
    check_count(len(due))
    nonce, definition = str(generation.nonce), order.definition["jobDefinitionName"]
    spec = replace(order.spec, environment={**order.spec.environment, **_own_variables(order, nonce, n)})
    slots, requests = [], []
    for index, array in enumerate(arrays(order.template, nonce, due, spec)):
        name = job_name(order.sweep, nonce, n, index)
        slots.append(Slot(name=name, runs=array.runs.numbers))
        requests.append(submit_request(spec, array, name=name, queue=order.queue, definition=definition))
    entry = Entry(
        n=n,
        nonce=nonce,
        kind=order.kind,
        at=at,
        by=by,
        queue=order.queue,
        definition=definition,
        spec=order.spec,
        runs=due.numbers,
        added=order.wanted.minus(generation.table),
        slots=tuple(slots),
        record=None if generation.entries else order.record,
    )
    return entry, requests


def _own_variables(order: Order, nonce: str, n: int) -> dict[str, str]:
    """Return the variables by which an entry's jobs know their place for artifacts and which ids W&B has seen."""
    variables = {}
    if order.artifacts:
        variables[ARTIFACTS] = f"s3://{order.artifacts}/{order.sweep}/{nonce}"
    if order.kind == RETRY and WANDB_RETRY in order.spec.environment:
        variables[WANDB_RETRY] = f"{WANDB_RETRY_NEW}-r{n}"
    return variables


class _Run:
    """One `run` command."""

    def __init__(self, order: Order, ledger: Ledger, batch: Batch, clock: Clock, say: Callable[[str], None]) -> None:
        self._order, self._ledger = order, ledger
        self._sender = Sender(order.sweep, ledger, batch, clock, say)

    def work(
        self,
        entries: Sequence[Entry] | None,
        own: NumberSet,
        *,
        fresh: bool,
        ready: Callable[[Entry], None] | None,
    ) -> Outcome:
        order, sender = self._order, self._sender
        if entries is None:  # a first `run` needs no read: its put tells when there is something
            entries = self._ledger.entries(order.sweep) if fresh else []
        before = newest_nonce(entries)
        while True:
            generation = goes_on_with(entries, order.record, fresh=fresh and newest_nonce(entries) == before)
            check_same(order.sweep, order.record, generation.record)
            if due := generation.due(order.wanted):
                sender.due |= due.numbers
                entry, requests = draft(order, generation, due, n=len(entries) + 1, at=sender.now(), by=sender.by)
                entries = sender.send(entries, entry, requests, order.definition, ready)
                continue
            wanted = generation.table.numbers(order.wanted)
            if not (places := sender.undecided(generation, wanted)):
                return self._outcome(generation, wanted, own)
            sender.look(places)
            entries = self._ledger.entries_again(order.sweep, entries)

    def _outcome(self, generation: Generation, wanted: NumberSet, own: NumberSet) -> Outcome:
        cancelled = NumberSet((generation.cancelled & wanted) - own)
        left = standing = wanted - cancelled
        submitted = unknown = NumberSet()
        for place in reversed(list(generation.places())):  # a run stands where it was sent last
            here, left = left & place.slot.runs, left - place.slot.runs
            if place.slot.job is None:
                unknown |= here
            elif place.entry.by == self._sender.by:
                submitted |= here
        settled = (self._sender.settled & standing) - submitted - unknown
        return Outcome(
            generation=generation,
            submitted=submitted,
            present=standing - submitted - settled - unknown,
            settled=settled,
            unknown=unknown,
            cancelled=cancelled,
        )

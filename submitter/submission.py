"""`run`: sends what the ledger does not have, nothing twice and nothing lost, whenever it is broken off and repeated.

The protocol: an entry is put before anything is sent, and only where none is; a request is signed within a minute of
that or never; an answer is written once; a slot without an answer is decided by looking its job's name up.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from submitter.batch import Accepted, Batch, Refused, Throttled, TooLate, Unknown
from submitter.errors import SubmitterError, UsageError
from submitter.history import VOID, Entry, Generation, Place, Record, Slot
from submitter.ledger import Ledger
from submitter.names import job_name, new_nonce
from submitter.numbers import NumberSet
from submitter.plan import JobSpec, arrays, submit_request
from submitter.render import duration
from submitter.session import Clock
from submitter.settle import SIGNED_WITHIN, Open, Settling
from submitter.sweep import Runs, RunTable
from submitter.template import Template
from submitter.writer import Writer

_FIRST_LOOK_SECONDS: Final = 5
_LAST_LOOK_SECONDS: Final = 30
"""The wait between two looks at open slots doubles from the first to the last."""

_MAX_BACKOFF_SECONDS: Final = 8.0
_JITTER: Final = secrets.SystemRandom()


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a `run` asks for.

    Attributes:
        sweep: owner/name.
        wanted: The runs.
        record: What the sweep is, for its first entry.
        template: The command with the places of its values.
        spec: What each job gets.
        queue: Name of the job queue.
        definition: RegisterJobDefinition's arguments.
    """

    sweep: str
    wanted: RunTable
    record: Record
    template: Template
    spec: JobSpec
    queue: str
    definition: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What has become of the wanted runs; the four sets of numbers have no run in common.

    Attributes:
        generation: The entries of the sweep's generation.
        submitted: Sent by this command.
        present: There already.
        settled: Sent by an earlier command that had not seen AWS's answer.
        unknown: Perhaps sent, so long ago that AWS may have forgotten; left alone.
    """

    generation: Generation
    submitted: NumberSet
    present: NumberSet
    settled: NumberSet
    unknown: NumberSet


def run(
    order: Order,
    *,
    ledger: Ledger,
    batch: Batch,
    clock: Clock,
    fresh: bool = False,
    say: Callable[[str], None],
) -> Outcome:
    """Submit the wanted runs that were not submitted yet; return when every one of them is known to be, or not to be.

    Args:
        order: What is wanted.
        ledger: The stack's.
        batch: The account's.
        clock: This machine's.
        fresh: Begin a new generation, in which nothing was submitted (`--new`).
        say: Told, in sentences, what the user waits for.

    Raises:
        UsageError: The sweep was begun with another command, image or axes.
        AwsError: AWS refused a job; what it took is in the ledger.
    """
    return _Run(order, ledger, batch, clock, say).work(fresh=fresh)


def check_identity(order: Order, generation: Generation) -> None:
    """Refuse what is another sweep under the same name.

    Raises:
        UsageError: The command, how it gets its values, the image or the axes differ.
    """
    asked, begun = order.record, generation.record
    if begun is None:
        return
    for what, now, then in (
        ("the command", asked.command, begun.command),
        ("the image", asked.image, begun.image),
        ("the axes", ", ".join(asked.axes) or "none", ", ".join(begun.axes) or "none"),
        *((f"--{name}", _option(asked, name), _option(begun, name)) for name in ("arg-style", "seed-flag", "no-seed")),
    ):
        if now != then:
            raise UsageError(
                f"The sweep {order.sweep} was begun with {what} {then!r}, not {now!r}.",
                "Give this one another --name, or begin the sweep afresh with --new.",
            )
    if begun.digest and asked.digest != begun.digest:
        moved = f"{asked.image} has become another image" if asked.digest else f"whether {asked.image} is still that cannot be told here"
        raise UsageError(
            f"The sweep {order.sweep} was begun with {begun.digest}, and {moved}.",
            "Go on with that one by --keep-image, give this one another --name, or begin the sweep afresh with --new.",
        )


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
        UsageError: AWS Batch would not take a request.
    """
    nonce, definition = str(generation.nonce), order.definition["jobDefinitionName"]
    slots, requests = [], []
    for index, array in enumerate(arrays(order.template, nonce, due, order.spec)):
        name = job_name(order.sweep, nonce, n, index)
        slots.append(Slot(name=name, runs=array.runs.numbers))
        requests.append(submit_request(order.spec, array, name=name, queue=order.queue, definition=definition))
    entry = Entry(
        n=n,
        nonce=nonce,
        kind="run",
        at=at,
        by=by,
        queue=order.queue,
        definition=definition,
        runs=due.numbers,
        added=order.wanted.minus(generation.table),
        slots=tuple(slots),
        record=None if generation.entries else order.record,
    )
    return entry, requests


def _option(record: Record, name: str) -> str:
    """Return an option as it was typed; a flag as yes or no."""
    kept = record.options.get(name.replace("-", "_"), False)
    return str({True: "yes", False: "no"}.get(kept, kept))


class _Run:
    """One `run` command."""

    def __init__(self, order: Order, ledger: Ledger, batch: Batch, clock: Clock, say: Callable[[str], None]) -> None:
        self._order, self._ledger, self._batch, self._clock, self._say = order, ledger, batch, clock, say
        self._settling = Settling(order.sweep, ledger, batch)
        self._by = Writer.here()
        self._settled = NumberSet()
        self._definition: str | None = None

    def work(self, *, fresh: bool) -> Outcome:
        sweep = self._order.sweep
        # A first `run` needs no read: its put tells when there is something.
        entries = self._ledger.entries(sweep) if fresh else []
        before, mine, wait = entries[-1].nonce if entries else None, new_nonce(), _FIRST_LOOK_SECONDS
        while True:
            opens = not entries or (fresh and entries[-1].nonce == before)
            generation = Generation(entries, mine if opens else entries[-1].nonce)
            check_identity(self._order, generation)
            if due := generation.due(self._order.wanted):
                entry, requests = draft(
                    self._order, generation, due, n=len(entries) + 1, at=self._clock.now(), by=self._by
                )
                there = self._ledger.put(sweep, entry)
                if there is None or there.by == self._by:
                    entries = [*entries, self._send(entry, requests)]
                else:  # another command was first: read, and think again
                    entries = self._ledger.entries(sweep)
                continue
            wanted = generation.table.numbers(self._order.wanted)
            places = [p for p in generation.open_places(wanted) if p.slot.name not in self._settling.unknown]
            if not places:
                return self._outcome(generation, wanted)
            if seconds := self._look(places):
                self._say(
                    "AWS's answer to an earlier submission was lost: looking whether it made its jobs, "
                    f"for {duration(seconds)} at most."
                )
                self._clock.sleep(wait)
                wait = min(wait * 2, _LAST_LOOK_SECONDS)
            entries = self._ledger.entries(sweep)

    def _send(self, entry: Entry, requests: Sequence[dict[str, Any]]) -> Entry:
        """Send an entry's slots and record all the answers; return the entry as it is then.

        Raises:
            SubmitterError: AWS refused a job; its slot and those after it are void.
        """
        definition = self._definition_for(entry)
        answers: dict[int, str] = {}
        refusal: SubmitterError | None = None
        for index, (slot, request) in enumerate(zip(entry.slots, requests, strict=True)):
            if refusal:
                answers[index] = VOID
                continue
            match self._submit(request | {"jobDefinition": definition}, sign_until=entry.at + SIGNED_WITHIN):
                case Accepted(job):
                    answers[index] = job
                case TooLate():
                    answers[index] = VOID
                case Refused(error):
                    answers[index], refusal = VOID, error
                case Unknown(answered):  # the slot stays open; it is never sent again
                    if answered is not None:
                        self._settling.answered(slot, answered)
        recorded = self._settling.record(entry, answers)
        if refusal:
            raise refusal
        return recorded

    def _definition_for(self, entry: Entry) -> str:
        """Return the job definition's name:revision; when there can be none, the entry is void."""
        try:
            self._definition = self._definition or self._batch.definition(self._order.definition)
        except Exception:
            self._settling.record(entry, dict.fromkeys(range(len(entry.slots)), VOID))
            raise
        return self._definition

    def _submit(self, request: Mapping[str, Any], *, sign_until: float) -> Accepted | Refused | TooLate | Unknown:
        """Send a request until AWS does anything but ask for patience."""
        backoff = 0.5
        while isinstance(answer := self._batch.submit(request, sign_until=sign_until), Throttled):
            if backoff == _MAX_BACKOFF_SECONDS:
                self._say("AWS Batch takes no more submissions at the moment; trying again.")
            self._clock.sleep(backoff * _JITTER.uniform(0.5, 1))
            backoff = min(backoff * 2, _MAX_BACKOFF_SECONDS)
        return answer

    def _look(self, places: Sequence[Place]) -> float:
        """Look once at open slots; return how many seconds it may take until all are decided, 0 when they are."""
        seconds = 0.0
        for place in places:
            found = self._settling.settle(place)
            if isinstance(found, Open):
                seconds = max(seconds, found.seconds)
            elif found.slots[place.index].sent and place.entry.by != self._by:
                self._settled = NumberSet(self._settled | place.slot.runs)
        return seconds

    def _outcome(self, generation: Generation, wanted: NumberSet) -> Outcome:
        newest = generation.newest()
        submitted = NumberSet(number for number in wanted if newest[number].entry.by == self._by)
        unknown = NumberSet(number for number in wanted if newest[number].slot.job is None)
        settled = NumberSet(self._settled & wanted)
        return Outcome(
            generation=generation,
            submitted=submitted,
            present=NumberSet(wanted - submitted - settled - unknown),
            settled=settled,
            unknown=unknown,
        )

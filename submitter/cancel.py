"""`cancel`: ends runs of one sweep, known by the ids that the ledger has of their jobs, and of nothing else.

A cancel is an entry of its own, so that whoever puts one later has read it: a `run` does not send what was cancelled.
Then every job that was sent before it is ended. A cancel that died half way is completed by whoever looks next.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

from submitter.batch import Batch
from submitter.errors import UsageError
from submitter.history import CANCEL, VOID, Choose, Entry, Generation, Place
from submitter.ledger import Ledger
from submitter.numbers import NumberSet
from submitter.reasons import CANCEL_REASON, FINAL
from submitter.session import Clock
from submitter.settle import Cause, Open, Patience, Settling, shown_by
from submitter.writer import Writer

_CHILDREN_SECONDS: Final = 10
"""Until an array that was just submitted has its children, about."""


class Cancels:
    """Ends what was sent before the cancels of one sweep, within one command."""

    def __init__(self, sweep: str, ledger: Ledger, batch: Batch) -> None:
        self._sweep, self._ledger, self._batch = sweep, ledger, batch
        self.settling = Settling(sweep, ledger, batch)

    def carry_out(self, entries: Sequence[Entry]) -> tuple[list[Entry], list[Open]]:
        """Look once at what is left of every cancel: end the jobs that are known, settle slots that are open.

        Returns:
            The entries as they then are, and why cancels cannot be completed yet.
        """
        now = list(entries)
        waiting: list[Open] = []
        for cancel in [entry for entry in entries if entry.kind == CANCEL and not entry.done]:
            opens = []
            for place in [place for place in _before(now, cancel) if place.slot.job is None]:
                found = self.settling.settle(Place(now[place.entry.n - 1], place.index))
                if isinstance(found, Open):
                    opens.append(found)
                else:
                    now[found.n - 1] = found
            opens += self._end(list(_before(now, cancel)), cancel.runs)
            if not opens:
                now[cancel.n - 1] = self._ledger.done(self._sweep, cancel)
            waiting += opens
        return now, waiting

    def _end(self, places: Sequence[Place], runs: NumberSet) -> list[Open]:
        """End the jobs of these runs; return why there may be more of them."""
        known = self._batch.describe(place.slot.sent for place in places if place.slot.sent)
        jobs: list[str] = []
        opens: list[Open] = []
        for place in places:
            job = known.get(place.slot.sent or "")
            if job is None:
                # What should have been shown by now, AWS has forgotten.
                seconds = shown_by(place.entry) - self._batch.described_at + 1
                if place.slot.sent and seconds > 0:
                    opens.append(Open(Cause.NOT_SHOWN, seconds))
                continue
            if job["status"] in FINAL:
                continue
            if place.slot.runs <= runs:
                jobs.append(job["jobId"])
            else:
                if job["status"] == "SUBMITTED":  # its children are made after that
                    opens.append(Open(Cause.NO_CHILDREN, _CHILDREN_SECONDS))
                jobs += [child for number, child in place.jobs().items() if number in runs]
        self._batch.terminate_all(jobs, CANCEL_REASON)
        return opens


def cancel(
    sweep: str,
    choose: Choose,
    *,
    before: Sequence[Entry] = (),
    ledger: Ledger,
    batch: Batch,
    clock: Clock,
    say: Callable[[str], None],
) -> NumberSet:
    """Cancel runs of a sweep, and return when every job of theirs has been ended.

    What is known to have succeeded cannot be cancelled; what is known to have failed can, so that a retry that goes on
    at the same time leaves it alone.

    Args:
        sweep: owner/name.
        choose: Says which runs of the newest generation, and of older ones with jobs that have not ended.
        before: What was read of the sweep when somebody agreed to this; it must be there still.
        ledger: The stack's.
        batch: The account's.
        clock: This machine's.
        say: Told, in sentences, what the user waits for.

    Returns:
        The numbers of those chosen runs that were not over.

    Raises:
        UsageError: There is no such sweep, or it is forgotten meanwhile.
    """
    cancels, by = Cancels(sweep, ledger, batch), Writer.here()
    entries = ledger.entries_again(sweep, before)
    if not entries:
        raise UsageError(f"There is no sweep {sweep}.", "See `submitter list`.")
    while missing := next(_missing(entries, choose), None):
        generation, runs = missing
        entry = Entry(
            n=len(entries) + 1,
            nonce=str(generation.nonce),
            kind=CANCEL,
            at=clock.now(),
            by=by,
            runs=runs,
            asked=ledger.read_at,
        )
        # Where another command was first, what it sent is to be cancelled too.
        if ledger.put(sweep, entry, after=entries[-1]):
            entries = [*entries, entry]
        else:
            entries = ledger.entries_again(sweep, entries)
    last, patience = len(entries), Patience(clock, say)
    while True:
        entries, opens = cancels.carry_out(entries[:last])
        if not opens:
            generation = Generation(entries)
            return NumberSet(choose(generation) - generation.ended("succeeded") - generation.ended("failed"))
        patience.wait(opens)
        entries = ledger.entries_again(sweep, entries)


def under_way(entries: Sequence[Entry], nonces: Set[str], batch: Batch) -> int:
    """Return how many runs of these generations of a sweep have not ended, or may not have."""
    number, jobs = 0, []
    for nonce in nonces:
        generation = Generation(entries, nonce)
        for place in generation.places():
            if place.slot.ended or place.slot.runs <= generation.cancelled:
                continue
            if place.slot.sent:
                jobs.append(place.slot.sent)
            else:
                number += len(place.slot.runs)
    return number + sum(map(_unfinished, batch.describe(jobs).values()))


def _unfinished(job: Mapping[str, Any]) -> int:
    """Return how many runs of a job or array have not ended."""
    if job["status"] in FINAL:
        return 0
    array = job.get("arrayProperties", {})
    over: int = sum(count for status, count in array.get("statusSummary", {}).items() if status in FINAL)
    size: int = array.get("size", 1)
    return size - over


def _missing(entries: Sequence[Entry], choose: Choose) -> Iterator[tuple[Generation, NumberSet]]:
    """Yield the generations that have runs to be cancelled, with all of those runs, the oldest first."""
    newest = Generation(entries).nonce
    for nonce in dict.fromkeys(entry.nonce for entry in entries):
        generation = Generation(entries, nonce)
        under_way = (place for place in generation.places() if not place.slot.ended)
        there = NumberSet(choose(generation) - generation.ended("succeeded"))
        if nonce != newest:
            there = NumberSet(there & NumberSet(number for place in under_way for number in place.slot.runs))
        if not there <= generation.cancelled:
            yield generation, there


def _before(entries: Sequence[Entry], cancel: Entry) -> Iterator[Place]:
    """Yield the slots with runs of a cancel that were or may have been sent before it, and are not known to be over."""
    for entry in entries[: cancel.n - 1]:
        if entry.nonce == cancel.nonce:
            for index, slot in enumerate(entry.slots):
                if slot.job != VOID and not slot.ended and not cancel.runs.isdisjoint(slot.runs):
                    yield Place(entry, index)

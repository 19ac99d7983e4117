"""Sending what an entry of the ledger announces: the half of the protocol that `run` and `retry` share."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from submitter.aws_errors import explain
from submitter.batch import Accepted, Batch, Refused, Throttled, TooLate, Unknown
from submitter.errors import SubmitterError
from submitter.history import SIGNED_WITHIN, VOID, Entry, Generation, Place, Slot
from submitter.ledger import Ledger
from submitter.numbers import NumberSet
from submitter.render import count
from submitter.session import Clock
from submitter.settle import Open, Patience, Settling
from submitter.writer import Writer

_MAX_BACKOFF_SECONDS: Final = 8.0
_AGAIN: Final = "When that is mended, type the same command again: it sends what is left, and nothing twice."
_JITTER: Final = secrets.SystemRandom()


class Sender:
    """Puts entries of one sweep and sends their jobs, within one command.

    Attributes:
        by: Who writes the entries.
        settled: Runs that were found to have been sent by an earlier command.
        due: Runs that the command has set out to send; for those who are told why it did not.
    """

    def __init__(self, sweep: str, ledger: Ledger, batch: Batch, clock: Clock, say: Callable[[str], None]) -> None:
        self.by = Writer.here()
        self.settled = self.due = NumberSet()
        self._sent = self._open = NumberSet()  # of those that are due
        self._sweep, self._ledger, self._batch, self._clock, self._say = sweep, ledger, batch, clock, say
        self._settling = Settling(sweep, ledger, batch)
        self._patience = Patience(clock, say)
        self._definitions: dict[str, str] = {}

    def now(self) -> float:
        """Return this machine's clock, in seconds since the epoch."""
        return self._clock.now()

    def send(
        self,
        entries: Sequence[Entry],
        entry: Entry,
        requests: Sequence[dict[str, Any]],
        definition: Mapping[str, Any],
        ready: Callable[[Entry], None] | None = None,
    ) -> list[Entry]:
        """Put an entry and send its jobs, or neither where another command was first.

        Args:
            entries: The sweep's entries so far.
            entry: The one that follows them.
            requests: SubmitJob's arguments for each of its slots; the definition's revision is put in.
            definition: RegisterJobDefinition's arguments.
            ready: Called with the entry when it is there, before anything is sent.

        Returns:
            The sweep's entries as they then are: to be thought about again.

        Raises:
            SubmitterError: AWS refused a job; its slot and those after it are void.
        """
        with self._counting():
            if self._ledger.put(self._sweep, entry, after=entries[-1] if entries else None):
                self._prepare(entry, definition, ready)
                return [*entries, self._send(entry, requests, definition)]
            return self._ledger.entries_again(self._sweep, entries)

    def undecided(self, generation: Generation, runs: NumberSet) -> list[Place]:
        """Return the slots with any of these runs that are open, and can be decided."""
        return [place for place in generation.open_places(runs) if place.slot.name not in self._settling.unknown]

    def look(self, places: Sequence[Place]) -> None:
        """Look once at open slots, and wait when one of them stays open."""
        with self._counting():
            found = [self._settling.settle(place) for place in places]
        for place, entry in zip(places, found, strict=True):
            if isinstance(entry, Open):
                continue
            sent = entry.slots[place.index].sent is not None
            if place.entry.by == self.by:
                self._count(place.slot, sent=sent)
            elif sent:
                self.settled = NumberSet(self.settled | place.slot.runs)
        self._patience.wait(found)

    def wait(self, why: str) -> None:
        """Wait for something else, saying why."""
        self._patience.sleep(why)

    def _send(self, entry: Entry, requests: Sequence[dict[str, Any]], definition: Mapping[str, Any]) -> Entry:
        """Send an entry's slots and record all the answers; return the entry as it is then."""
        answers = dict.fromkeys(range(len(entry.slots)), VOID)
        try:
            refusal = self._send_each(entry, requests, definition, answers)
        except (Exception, KeyboardInterrupt):  # what is known by then is not to be looked for again
            self._settling.record(entry, answers)
            raise
        finally:
            for index, slot in enumerate(entry.slots):
                self._count(slot, sent=answers[index] != VOID if index in answers else None)
        recorded = self._settling.record(entry, answers)
        if refusal:
            raise refusal
        return recorded

    def _count(self, slot: Slot, *, sent: bool | None) -> None:
        """Note whether a slot's runs were sent; None while nobody knows."""
        self._sent = self._sent | slot.runs if sent else self._sent - slot.runs
        self._open = self._open | slot.runs if sent is None else self._open - slot.runs

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Let what ends the command early say how many runs were submitted by then, and what to do."""
        try:
            yield
        except KeyboardInterrupt:
            if self.due:
                self._say(f"{self._counted()} The same command sends what is left, and nothing twice.")
            raise
        except Exception as error:
            explained = error if isinstance(error, SubmitterError) else explain(error)
            if explained is None or not self.due:
                raise
            remedy = f"{self._counted()} {explained.remedy or _AGAIN}"
            raise type(explained)(explained.message, remedy) from error

    def _counted(self) -> str:
        """Return, in a sentence, how many of the runs that are due were submitted."""
        were = "was" if len(self.due) == 1 else "were"
        unknown = f", of {len(self._open):,} it is not known yet" if self._open else ""
        return f"{len(self._sent):,} of {count(len(self.due), 'run')} {were} submitted{unknown}."

    def _send_each(
        self,
        entry: Entry,
        requests: Sequence[dict[str, Any]],
        definition: Mapping[str, Any],
        answers: dict[int, str],
    ) -> "SubmitterError | None":
        """Send an entry's slots, put their answers by position; return AWS's refusal, after which no more is sent.

        Wherever this is broken off, the answers are what is known: what was not sent stays void, and only a slot whose
        request is under way has none.

        Args:
            entry: Which was put.
            requests: For each of its slots.
            definition: RegisterJobDefinition's arguments.
            answers: Void for every slot.
        """
        revision = self._definitions[entry.definition]
        for index, (slot, request) in enumerate(zip(entry.slots, requests, strict=True)):
            until = entry.at + SIGNED_WITHIN
            answer = self._submit(request | {"jobDefinition": revision}, answers, index, sign_until=until)
            if isinstance(answer, Refused) and "definition" in answer.error.message.lower():
                # `prune` may have taken it away since it was looked up. What is refused has made no job.
                revision = self._definitions[entry.definition] = self._batch.definition(definition)
                answer = self._submit(request | {"jobDefinition": revision}, answers, index, sign_until=until)
            match answer:
                case Refused(error):
                    return error
                case Unknown(answered) if answered is not None:  # the slot stays open; it is never sent again
                    self._settling.answered(slot, answered)
        return None

    def _prepare(self, entry: Entry, definition: Mapping[str, Any], ready: Callable[[Entry], None] | None) -> None:
        """See to it that there is what the jobs need, their definition too; when there cannot be, the entry is void."""
        try:
            if ready is not None:
                ready(entry)
            if entry.definition not in self._definitions:
                self._definitions[entry.definition] = self._batch.definition(definition)
        except (Exception, KeyboardInterrupt):
            self._settling.record(entry, dict.fromkeys(range(len(entry.slots)), VOID))
            raise

    def _submit(
        self, request: Mapping[str, Any], answers: dict[int, str], index: int, *, sign_until: float
    ) -> Accepted | Refused | TooLate | Unknown:
        """Send a slot's request until AWS does anything but ask for patience; put what its answer makes of the slot."""
        backoff = 0.5
        while True:
            del answers[index]
            answer = self._batch.submit(request, sign_until=sign_until)
            if isinstance(answer, Accepted):
                answers[index] = answer.job
            elif not isinstance(answer, Unknown):
                answers[index] = VOID
            if not isinstance(answer, Throttled):
                return answer
            if backoff == _MAX_BACKOFF_SECONDS:
                self._say("AWS Batch takes no more submissions at the moment; trying again.")
            self._clock.sleep(backoff * _JITTER.uniform(0.5, 1))
            backoff = min(backoff * 2, _MAX_BACKOFF_SECONDS)

"""Open slots: finding out whether a SubmitJob whose answer nobody has seen made a job."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Final

from submitter.batch import Batch
from submitter.history import SIGNED_WITHIN, VOID, Entry, Place, Slot
from submitter.ledger import Ledger
from submitter.render import duration
from submitter.session import Clock

SIGNATURE_LIFE: Final = 300
"""Seconds that AWS takes a signature for ("Signature expired" in the IAM user guide)."""

LISTING_LAG: Final = 60
"""Seconds that ListJobs and DescribeJobs may need to show a new job."""

REMEMBERED: Final = 6 * 86400
"""Seconds for which "not listed" means "never made": AWS keeps ended jobs for at least seven days."""


_FIRST_LOOK_SECONDS: Final = 5
_LAST_LOOK_SECONDS: Final = 30
"""The wait between two looks at what is open doubles from the first to the last."""


class Cause(Enum):
    """Why something cannot be decided or done yet, in words."""

    ANSWER_LOST = "AWS's answer to an earlier submission was lost: looking whether it made its jobs"
    NOT_SHOWN = "AWS has accepted a job and does not show it yet: waiting until it can be ended"
    NO_CHILDREN = "AWS has not made the runs of a new array yet: waiting until they can be ended"


@dataclass(frozen=True)
class Open:
    """What cannot be decided or done yet; `seconds` is how long that takes at most."""

    cause: Cause
    seconds: float


def shown_by(entry: Entry) -> float:
    """Return the time, by AWS's clock, after which every job of an entry has been shown.

    The entry is dated by its writer's clock, which is off by no more than a signature's date may be.
    """
    return entry.at + SIGNED_WITHIN + SIGNATURE_LIFE + LISTING_LAG


class Settling:
    """Decides the open slots of one sweep within one command.

    Attributes:
        unknown: Names of the slots that cannot be decided: AWS may have forgotten their jobs, or their queue is gone.
    """

    def __init__(self, sweep: str, ledger: Ledger, batch: Batch) -> None:
        self.unknown: set[str] = set()
        self._sweep, self._ledger, self._batch = sweep, ledger, batch
        self._nothing_under_way: dict[str, float] = {}

    def answered(self, slot: Slot, date: float) -> None:
        """Note that AWS, at `date` by its clock, answered this slot's request with an error: it is not under way."""
        self._nothing_under_way[slot.name] = date

    def record(self, entry: Entry, answers: Mapping[int, str]) -> Entry:
        """Write answers by slot position, end jobs whose slot has another's answer, return the entry as it is then."""
        recorded = self._ledger.record(self._sweep, entry, answers)
        for index, job in answers.items():
            if job not in (VOID, recorded.slots[index].job):
                self._batch.terminate(job, "another command has decided that this job was not submitted")
        return recorded

    def settle(self, place: Place) -> Entry | Open:
        """Look for the job that bears the slot's name.

        Returns:
            The entry with the slot decided, or as it was when it can never be decided (then its name is in
            :attr:`unknown`); :class:`Open` while a request or its listing may still be under way.
        """
        entry, slot = place.entry, place.slot
        gone = entry.by.is_gone()  # asked before the look, so that the look's date is later
        if (found := self._batch.find(entry.queue, slot.name)) is None:
            self.unknown.add(slot.name)
            return entry
        job, date = found
        if job:
            return self.record(entry, {place.index: job})
        if date >= entry.at + REMEMBERED:
            self.unknown.add(slot.name)
            return entry
        if gone:
            self._nothing_under_way.setdefault(slot.name, date)
        decided_after = shown_by(entry)
        if slot.name in self._nothing_under_way:
            decided_after = min(decided_after, self._nothing_under_way[slot.name] + LISTING_LAG)
        if date <= decided_after:
            return Open(Cause.ANSWER_LOST, decided_after - date + 1)
        return self.record(entry, {place.index: VOID})


class Patience:
    """The waits between two looks at what is open, and what is said about them.

    Args:
        clock: This machine's.
        say: Told, in a sentence, what the user waits for.
    """

    def __init__(self, clock: Clock, say: Callable[[str], None]) -> None:
        self._clock, self._say = clock, say
        self._seconds = _FIRST_LOOK_SECONDS

    def wait(self, found: Iterable[Entry | Open]) -> None:
        """Wait when anything that was looked at is still open, each time longer; what may take longest is told."""
        if opens := [one for one in found if isinstance(one, Open)]:
            longest = max(opens, key=attrgetter("seconds"))
            self.sleep(f"{longest.cause.value}, for {duration(longest.seconds)} at most.")

    def sleep(self, why: str) -> None:
        """Say why, and wait."""
        self._say(why)
        self._clock.sleep(self._seconds)
        self._seconds = min(self._seconds * 2, _LAST_LOOK_SECONDS)

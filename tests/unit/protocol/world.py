"""What the submission protocol meets: a ledger whose writes have conditions, and a Batch that is late and forgets.

Everything is a value, so that states can be told apart, and nothing here decides what happens next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Final, NamedTuple

VOID: Final = "-"
"""A slot's job when the slot was never sent and never will be."""

SIGNATURE_LIFE: Final = 300
"""Seconds before and after its date for which AWS takes a signature."""

LISTING_LAG: Final = 60
"""Seconds for which ListJobs and DescribeJobs may not show a new job."""

SIGNED_WITHIN: Final = 60
"""Seconds after its date within which what an entry is about may be signed."""

IDEMPOTENT: Final = 600
"""Seconds for which DynamoDB knows the token of a transaction (TransactWriteItems, DynamoDB API reference)."""

KEPT: Final = 7 * 86400
"""Seconds for which AWS knows a job after its end."""


class Rule(Enum):
    """A rule of the protocol that can be left out, to see whether that does harm."""

    PUT_IF_ABSENT = "an entry is put only where none is"
    PUT_FIRST = "an entry is put before anything is sent"
    FENCE = "nothing is signed for an entry later than a minute after its date"
    SIGNATURE_LIFE = "a name may turn up for as long as its signature is taken"
    LISTING_LAG = "a job may be listed a minute after it was made"
    AWS_CLOCK = "how old an entry is, is told by AWS's clock"
    LOOK_BEFORE_RESENDING = "what got no answer is not sent again"
    RETENTION = "what AWS may have forgotten counts as unknown"
    SETTLE = "run settles what is open"
    RUN_HEEDS_CANCEL = "a plain run does not send what was cancelled"
    RETRY_WHAT_ENDED = "retry takes what has ended or was cancelled and was not sent since"
    RETRY_ONCE = "retry takes what stood so when it began"
    ONE_NEW_GENERATION = "of two --new at once one joins the other's generation"
    CANCEL_IS_WRITTEN = "cancel is an entry"
    CANCEL_SETTLES = "cancel settles what is open"
    STATUS_ENDS_CANCELLED = "status ends what a dead cancel left"
    GONE_HERE = "only a process of this machine can be seen to be gone"
    GONE_LISTING_LAG = "the job of a process that is gone may be listed a minute later"
    WRITE_ONCE = "the first answer of a slot stays"
    FOLLOWS = "an entry is put after the one that its writer has read last"
    PUT_FENCE = "an entry is not put when the signature of a minute after its date is not taken any more"
    SAME_ENTRY = "an answer is written to the entry that it is about, not to another of its number"
    ENDS_WHEN_FORGOTTEN = "a command ends when what it has read is forgotten"
    FORGET_READ = "prune forgets a sweep only as it has read it"
    FORGET_ENDED = "prune forgets a sweep only when its jobs have ended"
    END_LATE_JOB = "who finds another's answer in his slot ends the job that he sent"


class Writer(NamedTuple):
    """The process that runs one command."""

    host: str
    command: str


@dataclass(frozen=True)
class Slot:
    """One SubmitJob."""

    name: str
    runs: frozenset[int]
    job: str | None = None
    ended: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Entry:
    """One act of one command.

    Attributes:
        begins_after: The generation that a --new had seen; for those who watch.
        done: Of a cancel, whether it was carried out; the model does without.
    """

    n: int
    nonce: str
    kind: str
    runs: frozenset[int]
    at: float
    by: Writer
    slots: tuple[Slot, ...] = ()
    begins_after: str | None = None
    done: bool = False

    @property
    def name(self) -> tuple[Writer, int, float]:
        """What no other entry has."""
        return self.by, self.n, self.at


@dataclass(frozen=True)
class Job:
    """A job or an array: `states` are live, ok, failed or ended (by TerminateJob); it is shown from `listed` on."""

    id: str
    name: str
    states: tuple[tuple[int, str], ...]
    listed: float
    done: float | None = None

    @property
    def live(self) -> bool:
        return any(state == "live" for _, state in self.states)


def newest_nonce(log: Sequence[Entry]) -> str:
    """Return the newest generation, which no cancel begins."""
    return next((entry.nonce for entry in reversed(log) if entry.kind != "cancel"), "")


def nonce_of(name: str) -> str:
    """Return the generation that a job's name belongs to."""
    return name.partition("-")[0]


@dataclass(frozen=True)
class Put:
    """Put an entry after the one that `after` has written; None for a sweep's first."""

    entry: Entry
    after: Writer | None = None


@dataclass(frozen=True)
class Query:
    pass


@dataclass(frozen=True)
class Record:
    n: int
    by: Writer
    answers: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class WriteEnded:
    n: int
    by: Writer
    index: int
    ended: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class WriteDone:
    n: int
    by: Writer


@dataclass(frozen=True)
class Forget:
    """Delete the sweep's entries, which these have written."""

    writers: tuple[Writer, ...]


@dataclass(frozen=True)
class Submit:
    name: str
    runs: frozenset[int]
    signed: float


@dataclass(frozen=True)
class Find:
    name: str


@dataclass(frozen=True)
class Describe:
    jobs: frozenset[str]


@dataclass(frozen=True)
class Terminate:
    """Ends these runs of a job, or all of them."""

    job: str
    runs: frozenset[int] | None = None


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class Pause:
    """A point where a process may be held up between two calls."""


Call = Put | Query | Record | WriteEnded | WriteDone | Forget | Submit | Find | Describe | Terminate | Sleep | Pause


class No(Enum):
    """How SubmitJob fails."""

    THROTTLED = auto()
    REFUSED = auto()
    EXPIRED = auto()
    SILENCE = auto()


@dataclass(frozen=True)
class InternalError:
    """SubmitJob was answered with 5xx at this date."""

    date: float


class Fault(Enum):
    """What goes wrong with a call; the second value says whether it acts: yes, no, or later if ever."""

    NONE = "none", True
    THROTTLED = "throttled", False
    REFUSED = "refused", False
    ERROR_MADE = "5xx after acting", True
    ERROR = "5xx", False
    SILENCE_MADE = "no reply, acted", True
    SILENCE = "no reply, not acted", False
    LATE = "no reply, still under way", False

    @property
    def acts(self) -> bool:
        return self.value[1]


class World:
    """The ledger and Batch.

    Args:
        off: Rules that are left out.
        signature_life: How long AWS really takes a signature.

    Attributes:
        forgotten: Names of the slots of entries that were deleted, once for each time that any were.
    """

    def __init__(self, *, off: frozenset[Rule] = frozenset(), signature_life: float = SIGNATURE_LIFE) -> None:
        self.now = 0.0
        self.off = off
        self.log: list[Entry] = []
        self.jobs: list[Job] = []
        self.forgotten: list[str] = []
        self._puts: dict[tuple[Writer, int, float], float] = {}
        self.calls: list[Call] = []
        self._signature_life = signature_life

    def perform(self, call: Call, fault: Fault, lag: float) -> Any:
        """Carry a call out at once, or not, and return its reply."""
        self.calls.append(call)
        match call:
            case Submit():
                return self._submit(call, fault, lag)
            case Find(name):
                listed = [j.id for j in self.jobs if j.name == name and j.listed <= self.now and self.knows(j)]
                return next(iter(listed), None), self.now
            case Describe(ids):
                shown = [j for j in self.jobs if j.id in ids and j.listed <= self.now and self.knows(j)]
                return tuple((job.id, job.states) for job in shown), self.now
            case Terminate(job, runs):
                return self.end(job, "ended", runs)
            case _:
                return self._perform_on_ledger(call)

    def _perform_on_ledger(self, call: Call) -> Any:
        match call:
            case Put(entry, after):
                return self.put(entry, after)
            case Query():
                return tuple(self.log)
            case Forget(writers):
                return self._forget(writers)
            case Record(n, by, answers):
                jobs = dict(answers)
                once = Rule.WRITE_ONCE not in self.off
                return self._change(
                    n, by, lambda i, slot: replace(slot, job=slot.job if once and slot.job else jobs.get(i, slot.job))
                )
            case WriteEnded(n, by, index, ended):
                return self._change(
                    n, by, lambda i, slot: replace(slot, ended=ended) if i == index and not slot.ended else slot
                )
            case WriteDone(n, by):
                if done := self._change(n, by, lambda _, slot: slot):
                    self.log[n - 1] = done = replace(done, done=True)
                return done
        return None

    def knows(self, job: Job) -> bool:
        """Whether AWS still knows a job."""
        return job.done is None or self.now < job.done + KEPT

    def end(self, job_id: str, state: str, runs: frozenset[int] | None = None) -> None:
        """End those runs of a job that are live, or all of them."""
        index, job = next((index, job) for index, job in enumerate(self.jobs) if job.id == job_id)
        states = tuple(
            (run, state if now == "live" and (runs is None or run in runs) else now) for run, now in job.states
        )
        self.jobs[index] = job = replace(job, states=states)
        if job.done is None and not job.live:
            self.jobs[index] = replace(job, done=self.now)

    def accepts(self, entry: Entry, after: Writer | None) -> bool:
        """Whether an entry would be put now."""
        if self._is_past(entry) or self.is_repeated(entry):
            return False
        if entry.n <= len(self.log) and Rule.PUT_IF_ABSENT not in self.off:
            return False
        follows = self.log[entry.n - 2].by if 2 <= entry.n <= len(self.log) + 1 else None
        return follows == after or Rule.FOLLOWS in self.off

    def put(self, entry: Entry, after: Writer | None) -> "bool | No":
        """Put an entry; tell whether it is there."""
        if self._is_past(entry):
            return No.EXPIRED
        if self.is_repeated(entry):
            return True
        if self.accepts(entry, after):
            self.log[entry.n - 1 : entry.n] = [entry]
            self._puts[entry.name] = self.now
            return True
        return entry.n <= len(self.log) and self.log[entry.n - 1].by == entry.by

    def is_repeated(self, entry: Entry) -> bool:
        """Whether an entry's put, a transaction with a token, was made some minutes ago: then it is not made again."""
        made = self._puts.get(entry.name)
        return made is not None and self.now <= made + IDEMPOTENT

    def _is_past(self, entry: Entry) -> bool:
        """Whether no signature is taken any more that was made for an entry's put within a minute of its date."""
        return self.now > entry.at + SIGNED_WITHIN + self._signature_life and Rule.PUT_FENCE not in self.off

    def create(self, name: str, runs: frozenset[int], lag: float) -> str:
        """Make a job."""
        job = Job(f"job{len(self.jobs)}", name, tuple((run, "live") for run in sorted(runs)), self.now + lag)
        self.jobs.append(job)
        return job.id

    def _submit(self, call: Submit, fault: Fault, lag: float) -> "str | No | InternalError":
        job = ""
        if fault.acts:
            if abs(self.now - call.signed) > self._signature_life:
                return No.EXPIRED
            job = self.create(call.name, call.runs, lag)
        match fault:
            case Fault.NONE:
                return job
            case Fault.THROTTLED:
                return No.THROTTLED
            case Fault.REFUSED:
                return No.REFUSED
            case Fault.ERROR | Fault.ERROR_MADE:
                return InternalError(self.now)
            case _:
                return No.SILENCE

    def _forget(self, writers: tuple[Writer, ...]) -> bool:
        if tuple(entry.by for entry in self.log) != writers and Rule.FORGET_READ not in self.off:
            return False
        self.forgotten += [slot.name for entry in self.log for slot in entry.slots]
        self.log.clear()
        return True

    def _change(self, n: int, by: Writer, change: Callable[[int, Slot], Slot]) -> Entry | None:
        """Change an entry's slots; return it, or None where that entry is there no more."""
        if n > len(self.log) or (self.log[n - 1].by != by and Rule.SAME_ENTRY not in self.off):
            return None
        entry = self.log[n - 1]
        self.log[n - 1] = replace(entry, slots=tuple(change(i, slot) for i, slot in enumerate(entry.slots)))
        return self.log[n - 1]

"""The submission protocol as a model: what run, retry, cancel, status and prune do, one remote call at a time.

A command is a generator that yields its calls and is sent their replies. The real `submitter.submission` is the same
for `run`; `real.py` beside this lets it take a command's place.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from submitter.history import SIGNED_WITHIN
from submitter.settle import LISTING_LAG, REMEMBERED, SIGNATURE_LIFE
from tests.unit.protocol.world import (
    VOID,
    Call,
    Describe,
    Entry,
    Find,
    Forget,
    InternalError,
    No,
    Pause,
    Put,
    Query,
    Record,
    Rule,
    Sleep,
    Slot,
    Submit,
    Terminate,
    WriteEnded,
    Writer,
    newest_nonce,
)

T = TypeVar("T")
Steps = Generator[Call, Any, T]

RUNS_PER_SLOT = 2


@dataclass(frozen=True)
class Ask:
    """What a user types: run, retry, cancel, status or prune, about these runs."""

    kind: str
    want: frozenset[int] = frozenset()
    fresh: bool = False


@dataclass
class Context:
    """A process that runs a command: who it is, and what it can see without a call.

    Attributes:
        by: The process.
        off: Rules that it leaves out.
        clock: Its machine's clock.
        gone: Whether a process runs no more.
        first_wait: Seconds between its first two looks at open slots.
        first: How many entries there were when it began, or its own cancel's number; for those who watch.
        unknown: Names that nobody can decide any more.
        failed: Whether AWS refused a job.
    """

    by: Writer
    off: frozenset[Rule]
    clock: Callable[[], float]
    gone: Callable[[Writer], bool]
    first_wait: float = 5
    first: int | None = None
    unknown: set[str] = field(default_factory=set)
    failed: bool = False


class GivenUpError(Exception):
    """What the command is about is there no more, or it was held up for too long: it ends."""


class Standing(NamedTuple):
    """The newest word on a run: its entry's number, the newest slot it is in, and whether it was cancelled since."""

    n: int
    slot: Slot | None
    cancelled: bool


def standing(log: Sequence[Entry], nonce: str, run: int) -> Standing:
    """Return the newest word on a run."""
    n, cancelled = 0, False
    for entry in reversed(log):
        if entry.nonce != nonce:
            continue
        if entry.kind == "cancel" and run in entry.runs:
            n, cancelled = max(n, entry.n), True
        for slot in entry.slots:
            if run in slot.runs and slot.job != VOID:
                return Standing(max(n, entry.n), slot, cancelled)
    return Standing(n, None, cancelled)


class Command:
    """What the commands have in common."""

    def __init__(self, ask: Ask, context: Context) -> None:
        self.ask, self.me = ask, context
        self._quiet: dict[str, float] = {}
        self._wait = context.first_wait

    def steps(self) -> Steps[None]:
        """Yield the command's calls."""
        raise NotImplementedError

    def to_the_end(self) -> Steps[None]:
        """Yield the command's calls, until it gives up."""
        try:
            yield from self.steps()
        except GivenUpError:
            self.me.failed = True

    def put(self, log: Sequence[Entry], entry: Entry) -> Steps[bool]:
        """Put an entry after those that were read; tell whether it is there."""
        there: bool | No = yield Put(entry, log[-1].by if log else None)
        if isinstance(there, No):
            raise GivenUpError
        return there

    def change(self, call: Record | WriteEnded) -> Steps[Entry]:
        """Change an entry; return it as it then is."""
        now: Entry | None = yield call
        if now is None:
            raise GivenUpError
        return now

    def read_again(self, before: Sequence[Entry]) -> Steps[tuple[Entry, ...]]:
        """Read the entries, of which some were read before."""
        log: tuple[Entry, ...] = yield Query()
        forgotten = [entry.by for entry in before] != [entry.by for entry in log[: len(before)]]
        if forgotten and self.on(Rule.ENDS_WHEN_FORGOTTEN):
            raise GivenUpError
        return log

    def on(self, rule: Rule) -> bool:
        """Whether a rule is heeded."""
        return rule not in self.me.off

    def record(self, entry: Entry, answers: dict[int, str]) -> Steps[Entry]:
        """Write the answers; end the job whose slot has another's."""
        now = entry
        if answers:
            now = yield from self.change(Record(entry.n, entry.by, tuple(answers.items())))
        for index, job in answers.items():
            if job not in (VOID, now.slots[index].job) and self.on(Rule.END_LATE_JOB):
                yield Terminate(job, now.slots[index].runs)
        return now

    def settle(self, entry: Entry, index: int) -> Steps[Entry]:
        """Decide an open slot, if that can be done by now."""
        slot = entry.slots[index]
        here = entry.by.host == self.me.by.host or not self.on(Rule.GONE_HERE)
        gone = here and self.me.gone(entry.by)
        job, date = yield Find(slot.name)
        if not self.on(Rule.AWS_CLOCK):
            date = self.me.clock()
        if job:
            return (yield from self.record(entry, {index: job}))
        if date >= entry.at + REMEMBERED and self.on(Rule.RETENTION):
            self.me.unknown.add(slot.name)
            return entry
        lag = LISTING_LAG if self.on(Rule.LISTING_LAG) else 0
        quiet = entry.at + SIGNED_WITHIN + (SIGNATURE_LIFE if self.on(Rule.SIGNATURE_LIFE) else 0)
        if gone:
            self._quiet.setdefault(slot.name, date)
            lag = lag if self.on(Rule.GONE_LISTING_LAG) else -1
        if min(quiet, self._quiet.get(slot.name, quiet)) + lag < date:
            return (yield from self.record(entry, {index: VOID}))
        return entry

    def open_slots(
        self, log: Iterable[Entry], want: frozenset[int], nonce: str | None = None
    ) -> list[tuple[Entry, int]]:
        """Return the slots with any of these runs that are not decided, of one generation or of all."""
        return [
            (entry, index)
            for entry in log
            if nonce in (None, entry.nonce)
            for index, slot in enumerate(entry.slots)
            if slot.job is None and slot.runs & want and slot.name not in self.me.unknown
        ]

    def look(self, log: Sequence[Entry], slots: Iterable[tuple[Entry, int]]) -> Steps[tuple[Entry, ...]]:
        """Look at open slots once, wait, and read again."""
        for entry, index in slots:
            yield from self.settle(entry, index)
        yield Sleep(self._wait)
        self._wait = min(self._wait * 2, 6 * self.me.first_wait)
        return (yield from self.read_again(log))


class Work(Command):
    """run and retry: send what is due until every wanted run stands in a slot with a job, or is cancelled."""

    def steps(self) -> Steps[None]:
        ask, me = self.ask, self.me
        log: tuple[Entry, ...] = ()
        if ask.kind == "retry" or ask.fresh:  # the put of a first run tells when there is something
            log = yield Query()
        before, made = newest_nonce(log), False
        me.first = len(log)
        while not me.failed:
            another = not made and not self.on(Rule.ONE_NEW_GENERATION)
            opens = not log or (ask.fresh and (newest_nonce(log) == before or another))
            nonce = me.by.command if opens else newest_nonce(log)
            if due := (yield from self._due(log, nonce)):
                entry = self._entry(len(log) + 1, nonce, due, before)
                early = None
                if not self.on(Rule.PUT_FIRST):
                    early = yield Submit(entry.slots[0].name, entry.slots[0].runs, entry.at)
                if not (yield from self.put(log, entry)):  # another was first: read, and think again
                    log = yield from self.read_again(log)
                    continue
                made = True
                sent = self._send(entry) if early is None else self.record(entry, _jobs({0: early}))
                log = (*log, (yield from sent))
                continue
            slots = self.open_slots(log, ask.want, nonce)
            if not slots or not self.on(Rule.SETTLE):
                return
            log = yield from self.look(log, slots)

    def _due(self, log: Sequence[Entry], nonce: str) -> Steps[frozenset[int]]:
        stands = {run: standing(log, nonce, run) for run in self.ask.want}
        if self.ask.kind == "run":
            return frozenset(
                run
                for run, (_, slot, cancelled) in stands.items()
                if not slot and not (cancelled and self.on(Rule.RUN_HEEDS_CANCEL))
            )
        latest = (self.me.first or 0) if self.on(Rule.RETRY_ONCE) else len(log)
        old = {run: stand for run, stand in stands.items() if 0 < stand.n <= latest}
        jobs = frozenset(stand.slot.job for stand in old.values() if stand.slot and stand.slot.job)
        found = dict((yield Describe(jobs))[0] if jobs else ())
        due = set()
        for run, (_, slot, cancelled) in old.items():
            state = dict(found.get(slot.job, slot.ended)).get(run) if slot else None
            ended = state in ("failed", "ended")
            if ended or (cancelled and (not slot or not self.on(Rule.RETRY_WHAT_ENDED))):
                due.add(run)
        return frozenset(due)

    def _entry(self, n: int, nonce: str, due: frozenset[int], before: str) -> Entry:
        rows = sorted(due)
        parts = [frozenset(rows[start : start + RUNS_PER_SLOT]) for start in range(0, len(rows), RUNS_PER_SLOT)]
        slots = tuple(Slot(f"{nonce}-{n}-{index}", runs) for index, runs in enumerate(parts))
        return Entry(
            n, nonce, self.ask.kind, due, self.me.clock(), self.me.by, slots, before if self.ask.fresh else None
        )

    def _send(self, entry: Entry) -> Steps[Entry]:
        """Send an entry's slots, none again without a plain No, then write all the answers in one update."""
        answers: dict[int, str] = {}
        for index, slot in enumerate(entry.slots):
            reply = VOID if self.me.failed else (yield from self._submit(entry, slot))
            if isinstance(reply, InternalError):  # left open, but nothing is under way
                self._quiet[slot.name] = reply.date
            self.me.failed |= reply is No.REFUSED
            answers |= _jobs({index: reply})
        return (yield from self.record(entry, answers))

    def _submit(self, entry: Entry, slot: Slot) -> Steps[object]:
        again = {No.THROTTLED} if self.on(Rule.LOOK_BEFORE_RESENDING) else {No.THROTTLED, No.SILENCE}
        while True:
            yield Pause()
            signed = self.me.clock()
            if signed > entry.at + SIGNED_WITHIN and self.on(Rule.FENCE):
                return VOID
            if (reply := (yield Submit(slot.name, slot.runs, signed))) not in again:
                return reply
            yield Sleep(1)


class Cancel(Command):
    """cancel: an entry of its own, so that whoever puts later has read it; then end what was sent before it."""

    def steps(self) -> Steps[None]:
        want, me = self.ask.want, self.me
        log: tuple[Entry, ...] = yield Query()
        while self.on(Rule.CANCEL_IS_WRITTEN) and (missing := next(self._missing(log), None)):
            entry = Entry(len(log) + 1, *missing, me.clock(), me.by)
            log = (*log, entry) if (yield from self.put(log, entry)) else (yield from self.read_again(log))
        me.first = before = len(log)
        sent: set[str] = set()
        while True:
            for slot in (slot for entry in log[:before] for slot in entry.slots if slot.runs & want):
                if slot.job not in (None, VOID) and slot.job not in sent:
                    sent.add(slot.job)
                    yield Terminate(slot.job, slot.runs & want)
            slots = self.open_slots(log[:before], want)
            if not slots or not self.on(Rule.CANCEL_SETTLES):
                return
            log = yield from self.look(log, slots)

    def _missing(self, log: Sequence[Entry]) -> Iterator[tuple[str, str, frozenset[int]]]:
        """Yield the generations in which runs are to be cancelled, with those runs."""
        for nonce in dict.fromkeys(entry.nonce for entry in log):
            runs = frozenset(run for entry in log if entry.nonce == nonce for run in entry.runs & self.ask.want)
            if not all(standing(log, nonce, run).cancelled for run in runs):
                yield nonce, "cancel", runs


class Status(Command):
    """status: settles what is open, ends what a dead cancel left, writes down what is final."""

    def steps(self) -> Steps[None]:
        log: list[Entry] = list((yield Query()))
        every = frozenset(run for entry in log for run in entry.runs)
        for entry, index in self.open_slots(log, every):
            log[entry.n - 1] = yield from self.settle(log[entry.n - 1], index)
        sent = [
            (entry, index, slot)
            for entry in log
            for index, slot in enumerate(entry.slots)
            if slot.job not in (None, VOID) and not slot.ended
        ]
        found = dict((yield Describe(frozenset(slot.job for _, _, slot in sent if slot.job)))[0] if sent else ())
        for entry, index, slot in sent:
            states = found.get(slot.job, ())
            cancelled = frozenset(
                run
                for later in log[entry.n :]
                if (later.kind, later.nonce) == ("cancel", entry.nonce)
                for run in later.runs
            )
            left = frozenset(run for run, state in states if state == "live" and run in cancelled)
            if left and self.on(Rule.STATUS_ENDS_CANCELLED):
                yield Terminate(slot.job or "", left)
            elif states and all(state != "live" for _, state in states):
                yield from self.change(WriteEnded(entry.n, entry.by, index, states))


class Prune(Command):
    """prune: forgets the sweep when nothing of it can go on any more."""

    def steps(self) -> Steps[None]:
        log: tuple[Entry, ...] = yield Query()
        slots = [(entry, slot) for entry in log for slot in entry.slots if slot.job != VOID and not slot.ended]
        found, date = yield Describe(frozenset(slot.job for _, slot in slots if slot.job))
        states = dict(found)
        unfinished = False
        for entry, slot in slots:
            if slot.job in states:
                unfinished |= any(state == "live" for _, state in states[slot.job])
            else:
                unfinished |= entry.at > date - REMEMBERED
                if slot.job is None:
                    unfinished |= (yield Find(slot.name))[0] is not None
        if log and not (unfinished and self.on(Rule.FORGET_ENDED)):
            yield Forget(tuple(entry.by for entry in log))


def steps(ask: Ask, context: Context) -> Steps[None]:
    """Begin a command."""
    kinds: dict[str, type[Command]] = {"cancel": Cancel, "status": Status, "prune": Prune}
    return kinds.get(ask.kind, Work)(ask, context).to_the_end()


def _jobs(replies: dict[int, object]) -> dict[int, str]:
    """Return the answers that can be written: a job, or that there is none; silence and 5xx leave a slot open."""
    known = {index: VOID if reply in (No.REFUSED, No.EXPIRED) else reply for index, reply in replies.items()}
    return {index: reply for index, reply in known.items() if isinstance(reply, str)}

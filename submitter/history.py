"""What the ledger's entries say about a sweep: its runs, their numbers, and in which job each of them stands. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from submitter.errors import ConfigurationError
from submitter.numbers import NumberSet
from submitter.plan import JobSpec
from submitter.sweep import Run, Runs, RunTable
from submitter.template import Template
from submitter.writer import Writer

VOID: Final = "-"
"""A slot's job when the slot was never sent and never will be."""

SIGNED_WITHIN: Final = 60
"""Seconds after an entry's `at` within which its put and its requests may be signed, by the writer's own clock."""

RUN: Final = "run"
RETRY: Final = "retry"
CANCEL: Final = "cancel"
KINDS: Final = frozenset({RUN, RETRY, CANCEL})
"""What an entry can be."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a sweep is, written once with the entry that opens a generation.

    Attributes:
        command: The user's command, as typed.
        axes: Names of the parameters, in the order of the values in each row.
        image: The image, as given.
        digest: The image's digest, when it was known.
        commit: The git commit that the command was typed at, when there was one.
        dirty: Whether the working tree differed from that commit.
        options: The other options used, by name: numbers, texts and lists of texts.
    """

    command: str
    axes: tuple[str, ...]
    image: str
    digest: str | None = None
    commit: str | None = None
    dirty: bool | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def template(self) -> Template:
        """Return the command with the places of its values."""
        return Template.parse(
            self.command,
            self.axes,
            arg_style=self.options.get("arg_style", "flag"),
            seed_flag=None if self.options.get("no_seed") else self.options.get("seed_flag", "--seed"),
        )


@dataclass(frozen=True, kw_only=True)
class Ended:
    """Runs that ended in the same way: `state` is `succeeded`, `failed` or `cancelled`, `reason` is in words."""

    state: str
    reason: str | None
    runs: NumberSet


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One SubmitJob: a plain job, or an array whose index i is the i-th number of `runs`.

    Attributes:
        name: The job's name, used for this one SubmitJob in the life of the account.
        runs: Numbers of its runs.
        job: The job's id; None while nobody knows; :data:`VOID`.
        ended: How its runs ended, once all have; empty before. For when AWS has forgotten the job.
    """

    name: str
    runs: NumberSet
    job: str | None = None
    ended: tuple[Ended, ...] = ()

    @property
    def sent(self) -> str | None:
        """The job's id, when there is one."""
        return None if self.job == VOID else self.job


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One act of one command, one item of the ledger.

    Attributes:
        n: 1, 2, 3, ... within the sweep.
        nonce: The generation; `--new` begins another.
        kind: See :data:`KINDS`. A cancel has no slots, and tells whoever puts later that its runs are to end.
        at: Seconds since the epoch by the writer's clock; nothing is signed for this entry later than a minute after.
        by: Who wrote it.
        queue: The job queue that its jobs are sent to.
        definition: Name of their job definition.
        spec: What each of them gets, as it was asked for.
        runs: Numbers of the runs that the act is about.
        added: Those of them that no entry of the generation had before; their numbers follow those that it had.
        slots: Its SubmitJob calls.
        record: What the sweep is; on the entry that opens a generation.
        asked: Of a cancel, when it was made by AWS's clock, which dates the ends of jobs; None where that is not known.
        done: Of a cancel, whether every job that was sent before it has been ended.
    """

    n: int
    nonce: str
    kind: str
    at: float
    by: Writer
    queue: str = ""
    definition: str = ""
    spec: JobSpec | None = None
    runs: NumberSet
    added: RunTable = field(default_factory=RunTable)
    slots: tuple[Slot, ...] = ()
    record: Record | None = None
    asked: float | None = None
    done: bool = False


@dataclass(frozen=True)
class Place:
    """Where a slot is: the entry, and the slot's position in it."""

    entry: Entry
    index: int

    @property
    def slot(self) -> Slot:
        """The slot itself."""
        return self.entry.slots[self.index]

    def jobs(self) -> dict[int, str]:
        """Return, for each run, the id of its job or array's child; nothing while it is not known."""
        job, runs = self.slot.sent, self.slot.runs
        if job is None or len(runs) == 1:
            return {} if job is None else {runs[0]: job}
        return {number: f"{job}:{index}" for index, number in enumerate(runs)}

    def numbers(self) -> dict[str, int]:
        """Return, for the id of each job or child, its run."""
        return {job: number for number, job in self.jobs().items()}


def newest_nonce(entries: Sequence[Entry]) -> str | None:
    """Return the nonce of the sweep's newest generation: a cancel may be about an older one, and begins none."""
    return next((entry.nonce for entry in reversed(entries) if entry.kind != CANCEL), None)


def check_whole(sweep: str, entries: Sequence[Entry]) -> None:
    """Refuse a sweep with entries missing, of which nobody can say what was sent.

    No command takes single ones away, but a person can in DynamoDB's console.

    Args:
        sweep: owner/name.
        entries: What the ledger has of it, in order.

    Raises:
        ConfigurationError: They are not numbered 1, 2, 3, ..., or a generation does not begin with its record.
    """
    begun = {entry.nonce for entry in entries if entry.record}
    numbers = NumberSet(entry.n for entry in entries)
    if numbers != NumberSet(range(1, len(entries) + 1)) or not all(entry.nonce in begun for entry in entries):
        raise ConfigurationError(
            f"The ledger has lost entries of the sweep {sweep}: it has {numbers} of them.",
            "Submit under another --name; `submitter prune --sweeps-older-than DAYS` forgets what is left of this one.",
        )


class Generation:
    """The entries of a sweep that belong together: all since the first `run`, or since the last `run --new`.

    Args:
        entries: The sweep's entries in order; those of other generations are left out.
        nonce: The generation; the newest one's when not given.
    """

    def __init__(self, entries: Sequence[Entry], nonce: str | None = None) -> None:
        self.nonce = nonce or newest_nonce(entries)
        self.entries = tuple(entry for entry in entries if entry.nonce == self.nonce)

    @cached_property
    def record(self) -> Record | None:
        """What the sweep is; None before anything was put."""
        return next((entry.record for entry in self.entries if entry.record), None)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the sweep's parameters, in the order of the values in each row."""
        return self.record.axes if self.record else ()

    @cached_property
    def table(self) -> RunTable:
        """Every run that was asked for, in the order in which it first was: the run at index i has the number i + 1."""
        table = RunTable()
        for entry in self.entries:
            table += entry.added
        return table

    def runs(self, numbers: NumberSet | None = None) -> Sequence[Run]:
        """Return the runs with these numbers, or all of them, as people know them: only those of a seed have one."""
        runs = self.table.runs(numbers)
        return runs.unseeded() if self.record is not None and self.record.template().seedless else runs

    def places(self) -> Iterator[Place]:
        """Yield every slot that was sent or may have been, oldest first."""
        for entry in self.entries:
            for index, slot in enumerate(entry.slots):
                if slot.job != VOID:
                    yield Place(entry, index)

    def standing(self) -> NumberSet:
        """Return the runs that were sent or may have been."""
        return NumberSet.union(place.slot.runs for place in self.places())

    @cached_property
    def told_to_end(self) -> dict[int, float]:
        """For each run that was cancelled and not sent since, when that was first asked for, by AWS's clock."""
        told: dict[int, float] = {}
        for entry in self.entries:
            if entry.kind == CANCEL:
                at = entry.at if entry.asked is None else entry.asked
                told = {**dict.fromkeys(entry.runs, at), **told}
            elif told:
                for slot in entry.slots:
                    if slot.job != VOID:
                        for number in slot.runs:
                            told.pop(number, None)
        return told

    @cached_property
    def cancelled(self) -> NumberSet:
        """The runs that were cancelled and not sent since."""
        return NumberSet(self.told_to_end)

    def ended(self, state: str) -> NumberSet:
        """Return the runs whose newest job was seen to end in this state."""
        return NumberSet(
            number
            for number, place in self.newest().items()
            if any(how.state == state and number in how.runs for how in place.slot.ended)
        )

    def newest_word(self) -> dict[int, int]:
        """Return, for each run that was sent or cancelled, the `n` of the newest entry that did so."""
        words: dict[int, int] = {}
        for entry in self.entries:
            sent = [number for slot in entry.slots if slot.job != VOID for number in slot.runs]
            words.update(dict.fromkeys(entry.runs if entry.kind == CANCEL else sent, entry.n))
        return words

    def newest_request(self) -> dict[int, Entry]:
        """Return, for each run, how it was run: the newest entry that sent it, or asked for it where none has sent it.

        What was asked for and refused changes nothing.
        """
        asked = {number: entry for entry in self.entries if entry.kind != CANCEL for number in entry.runs}
        return asked | {number: place.entry for place in self.places() for number in place.slot.runs}

    def due(self, wanted: RunTable) -> Runs:
        """Return those of the wanted runs that a `run` sends: they stand nowhere, and were not cancelled.

        They come with their numbers: new ones follow those there are.
        """
        table = self.table + wanted.minus(self.table)
        return Runs(table, NumberSet(table.numbers(wanted) - self.standing() - self.cancelled))

    def open_places(self, runs: NumberSet) -> list[Place]:
        """Return the slots with any of these runs of which nobody knows whether they were sent."""
        return [p for p in self.places() if p.slot.job is None and not runs.isdisjoint(p.slot.runs)]

    def sent(self) -> dict[int, list[tuple[Entry, str]]]:
        """Return, for each run that was sent, the ids of its jobs or arrays' children with their entries, oldest first.

        A `retry` sends a run again.
        """
        found: dict[int, list[tuple[Entry, str]]] = {}
        for place in self.places():
            for number, job in place.jobs().items():
                found.setdefault(number, []).append((place.entry, job))
        return found

    def newest(self) -> dict[int, Place]:
        """Return, for each run that stands somewhere, the newest slot that it stands in."""
        return {number: place for place in self.places() for number in place.slot.runs}

    def newest_places(self) -> list[tuple[Place, NumberSet]]:
        """Return the newest slots of all runs that stand somewhere, each once, with the runs whose newest it is."""
        found: dict[str, tuple[Place, list[int]]] = {}
        for number, place in self.newest().items():
            found.setdefault(place.slot.name, (place, []))[1].append(number)
        return [(place, NumberSet(numbers)) for place, numbers in found.values()]


Choose = Callable[[Generation], NumberSet]
"""Which runs of a generation a cancel or a retry is about."""

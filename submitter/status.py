"""How a sweep's runs stand: the ledger and Batch, put together.

A parent's own status decides whether its array is final, since its summary of the children may lag behind. What is
seen to be final goes into the ledger, because AWS forgets jobs about a week after their end.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from submitter.batch import Batch
from submitter.cancel import Cancels
from submitter.errors import UsageError
from submitter.history import Ended, Entry, Generation, Place
from submitter.ledger import Ledger
from submitter.numbers import NumberSet
from submitter.reasons import FINAL, attempts, log_streams, reason, state
from submitter.settle import LISTING_LAG, REMEMBERED, Open
from submitter.sweep import Row, Run

if TYPE_CHECKING:
    from infra.outputs import StackOutputs

DECIDING: Final = "deciding"
"""Whether a job was sent is not known yet; a later look decides it."""

UNKNOWN: Final = "unknown"
"""AWS has forgotten the job, or whether there was one, before anybody saw how it ended."""

NOT_SUBMITTED: Final = "not submitted"
"""Asked for, and AWS refused or the submission was broken off: `run` sends it."""

CANCELLED: Final = "cancelled"
"""Ended by `cancel`, or cancelled before it was submitted."""

OVER: Final = frozenset({"succeeded", "failed", CANCELLED, UNKNOWN, NOT_SUBMITTED})
"""The states that do not change by themselves; the others are Batch's statuses in lower case, and :data:`DECIDING`."""

Choose = Callable[[Generation], Sequence[Run]]
"""Chooses runs of a sweep by what the ledger says of it."""

_MAX_REASONS: Final = 20
"""Different reasons that the ledger keeps for one array; the runs of rarer ones are kept without."""


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """How one run stands.

    Attributes:
        number: The run's number in its sweep.
        row: Its parameters, in the order of the sweep's axes.
        seed: Its seed; None where the command has none.
        status: See :data:`OVER`.
        reason: Why, in words.
        jobs: How many jobs it has had: a retry sends another one.
        attempts: How many attempts of the newest job have begun; None when AWS has forgotten.
        started_at: When its newest attempt started, in milliseconds since the epoch.
        stopped_at: When it ended, likewise.
        job: Id of its job or array's child.
        queue: The job queue that it was sent to.
        definition: Name of the job definition that it was sent with.
        sent_at: When it was sent, in seconds since the epoch by the sender's clock.
        image: The image that it was sent with.
        log_stream: The newest attempt's log stream.
        wandb: Where W&B shows it, when that was looked for in the log.
    """

    number: int
    row: Row
    seed: int | None
    status: str
    reason: str | None = None
    jobs: int = 0
    attempts: int | None = None
    started_at: int | None = None
    stopped_at: int | None = None
    job: str | None = None
    queue: str | None = None
    definition: str | None = None
    sent_at: float | None = None
    image: str | None = None
    log_stream: str | None = None
    wandb: str | None = None


@dataclass(frozen=True, kw_only=True)
class SweepStatus:
    """How a sweep's runs stand.

    Attributes:
        sweep: owner/name.
        generation: Its newest generation: record, runs and slots.
        entries: What the ledger has of all of its generations.
        counts: How many runs have each status; statuses that no run has are left out.
        runs: Each run by number, or those that were chosen; empty unless asked for.
        under_way: Whether a job of it has not ended, by the status of the job itself. The summary that an array gives
            of its children may be ahead of it or lag behind.
    """

    sweep: str
    generation: Generation
    counts: Mapping[str, int]
    runs: tuple[RunStatus, ...] = ()
    entries: Sequence[Entry] = ()
    under_way: bool = False

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of each run's row."""
        return self.generation.axes

    def params(self, run: RunStatus) -> dict[str, str]:
        """Return a run's parameters by their names."""
        return dict(zip(self.axes, run.row, strict=True))

    @property
    def over(self) -> bool:
        """Whether no run will change its status by itself."""
        return not self.under_way and OVER.issuperset(self.counts)

    @property
    def succeeded(self) -> bool:
        """Whether every run has succeeded."""
        return set(self.counts) <= {"succeeded"}


class StatusReader:
    """Reads how sweeps stand; needs nothing but the stack."""

    def __init__(self, contract: "StackOutputs", ledger: Ledger, batch: Batch) -> None:
        self._contract, self._ledger, self._batch = contract, ledger, batch

    def read(
        self, sweep: str, *, runs: bool = False, choose: Choose | None = None, before: Sequence[Entry] = ()
    ) -> SweepStatus:
        """Return how the newest generation of a sweep stands, and write down what is final.

        Args:
            sweep: owner/name.
            runs: Whether to tell each run's story; costs a call for every 100 runs.
            choose: Which runs' stories; all when not given. The counts are of all runs all the same.
            before: What was read of the sweep before; it must be there still.

        Raises:
            UsageError: There is no such sweep, or it is forgotten since it was read before.
        """
        entries = self._ledger.entries_again(sweep, before)
        if not entries:
            raise UsageError(f"There is no sweep {sweep}.", "See `submitter list`.")
        entries, unknown = self._settled(sweep, entries)
        seen = Generation(entries)
        places = [place for place, _ in seen.newest_places()]
        parents = self._batch.describe(p.slot.sent for p in places if p.slot.sent and not p.slot.ended)
        date = self._batch.described_at
        for place in places:
            parent = parents.get(place.slot.sent or "")
            if parent and parent["status"] in FINAL and (ended := self._ended(place, parent, seen.told_to_end)):
                entries = _with(entries, self._ledger.ended(sweep, place.entry, place.index, ended))
        generation = Generation(entries)
        look = _Look(generation, parents, unknown, spot=self._spot, failed=self._failed, date=date)
        under_way = any(parent["status"] not in FINAL for parent in parents.values())
        told: tuple[RunStatus, ...] = ()
        if runs:
            chosen = generation.runs() if choose is None else choose(generation)
            jobs = look.jobs()
            told = look.runs(chosen, self._batch.describe(jobs[run.number] for run in chosen if run.number in jobs))
        return SweepStatus(
            sweep=sweep,
            generation=generation,
            entries=entries,
            counts=Counter(run.status for run in told) if runs and choose is None else look.counts(),
            runs=told,
            under_way=under_way,
        )

    def _settled(self, sweep: str, entries: Sequence[Entry]) -> tuple[list[Entry], set[str]]:
        """Complete cancels, and look once at every open slot.

        Returns:
            The entries, and the names of the slots that nobody can decide any more.
        """
        cancels = Cancels(sweep, self._ledger, self._batch)
        settling = cancels.settling
        now, _ = cancels.carry_out(entries)
        generation = Generation(now)
        for place in generation.open_places(generation.standing()):
            current = Place(now[place.entry.n - 1], place.index)
            if not isinstance(found := settling.settle(current), Open):
                now = _with(now, found)
        return now, settling.unknown

    def _ended(self, place: Place, parent: Mapping[str, Any], told: Mapping[int, float]) -> tuple[Ended, ...]:
        """Return how the runs of a job that has ended ended, or nothing when that cannot be told for certain."""
        runs = place.slot.runs
        spot = self._spot(place.entry.queue)
        if parent["status"] == "SUCCEEDED":
            return (Ended(state="succeeded", reason=None, runs=runs),)
        ids = place.jobs()
        children: dict[str, Mapping[str, Any]] = {}
        if len(runs) > 1:
            children = {c["jobId"]: c for status in FINAL for c in self._batch.children(parent["jobId"], status)}
            children.update(self._batch.describe(child for child in ids.values() if child not in children))
            missing = [child for child in ids.values() if children.get(child, {}).get("status") not in FINAL]
            stopped = parent.get("stoppedAt", 0) / 1000
            # Its listing lags behind: a later look will tell, unless the array ended before it had all its children.
            if children and missing and not 0 < stopped + LISTING_LAG < self._batch.described_at:
                return ()
        ends = {}
        for number, child in ids.items():
            job = found if (found := children.get(child)) and found["status"] in FINAL else parent
            at = told.get(number)
            ends[number] = state(job, told=at), reason(job, spot=spot, told=at)
        return _grouped(ends)

    def _failed(self, place: Place, told: Mapping[int, float]) -> NumberSet:
        """Return which runs of an array under way have failed by themselves, up to 1,000 of its failed ones a call."""
        numbers = place.numbers()
        children = self._batch.children(str(place.slot.sent), "FAILED")
        known = ((numbers[child["jobId"]], child) for child in children)
        return NumberSet(n for n, child in known if state(child, told=told.get(n)) == "failed")

    def _spot(self, queue: str) -> bool:
        found = self._contract.queues.get(queue)
        return found is not None and found.purchase == "spot"


class _Look:
    """One look at a generation: what the ledger and Batch say together."""

    def __init__(
        self,
        generation: Generation,
        parents: Mapping[str, Mapping[str, Any]],
        unknown: set[str],
        *,
        spot: Callable[[str], bool],
        failed: Callable[[Place, Mapping[int, float]], NumberSet],
        date: float,
    ) -> None:
        self._generation, self._parents, self._unknown = generation, parents, unknown
        self._spot, self._failed = spot, failed
        self._date = date  # AWS's, of the parents
        self._newest = generation.newest()

    def counts(self) -> Counter[str]:
        """Return how many runs have each status, by the parents' summaries where arrays are under way."""
        counts: Counter[str] = Counter()
        for number in range(1, len(self._generation.table) + 1):
            if number not in self._newest:
                counts[self._nowhere(number)] += 1
        for place, numbers in self._generation.newest_places():
            counts += self._slot_counts(place, numbers)
        return counts

    def _slot_counts(self, place: Place, numbers: NumberSet) -> Counter[str]:
        slot = place.slot
        if slot.ended:
            states = {number: ended.state for ended in slot.ended for number in ended.runs}
            return Counter(states[number] for number in numbers)
        status = self._whole(place)
        if status == "failed":  # which of its children have failed cannot be told yet
            return Counter({DECIDING: len(numbers)})
        summary = self._parents.get(slot.sent or "", {}).get("arrayProperties", {}).get("statusSummary", {})
        counts = Counter({name.lower(): count for name, count in summary.items() if count})
        counts["failed"] -= len(slot.runs) - len(numbers)  # what was sent again since had failed here
        if counts["failed"] < 0 or not 0 < counts.total() <= len(numbers):
            return Counter({status: len(numbers)})
        counts[status] += len(numbers) - counts.total()  # children that are not made yet
        asked = self._generation.cancelled & numbers
        if asked and counts["failed"]:
            # The summary does not tell cancelled ones from failed ones. The list of them may be some moments newer.
            failed = min(counts["failed"], len(self._failed(place, self._generation.told_to_end) & numbers))
            cancelled = min(counts["failed"] - failed, len(asked))
            counts["failed"] -= cancelled
            counts[CANCELLED] += cancelled
        return +counts

    def _nowhere(self, number: int) -> str:
        """Return the status of a run that stands in no slot."""
        return CANCELLED if number in self._generation.cancelled else NOT_SUBMITTED

    def _whole(self, place: Place) -> str:
        """Return the status of a slot as a whole."""
        if place.slot.job is None:
            return UNKNOWN if place.slot.name in self._unknown else DECIDING
        parent = self._parents.get(place.slot.sent or "")
        if parent:
            return str(parent["status"]).lower()
        # What is younger than that AWS has not forgotten, and does not show yet.
        return UNKNOWN if self._date >= place.entry.at + REMEMBERED else "submitted"

    def jobs(self) -> dict[int, str]:
        """Return the id of each run's newest job or array's child."""
        places = self._generation.newest_places()
        return {number: job for place, here in places for number, job in place.jobs().items() if number in here}

    def runs(self, chosen: Iterable[Run], details: Mapping[str, Mapping[str, Any]]) -> tuple[RunStatus, ...]:
        """Return each run's story, from the details of its job where AWS has them, else from the ledger."""
        jobs, sent = self.jobs(), self._generation.sent()
        ended = {
            (place.slot.name, number): end
            for place in self._newest.values()
            for end in place.slot.ended
            for number in end.runs
        }
        told = []
        for number, row, seed in chosen:
            place, job = self._newest.get(number), jobs.get(number)
            if place is None:
                told.append(RunStatus(number=number, row=row, seed=seed, status=self._nowhere(number)))
                continue
            run = RunStatus(
                number=number,
                row=row,
                seed=seed,
                status=self._whole(place),
                jobs=len(sent.get(number, ())),
                job=job,
                queue=place.entry.queue,
                definition=place.entry.definition,
                sent_at=place.entry.at,
                image=place.entry.spec.image if place.entry.spec else None,
            )
            if detail := details.get(job or ""):
                at = self._generation.told_to_end.get(number)
                run = _detailed(run, detail, spot=self._spot(place.entry.queue), told=at)
            elif parent := self._parents.get(place.slot.sent or ""):  # a child that is not made yet
                run = replace(run, reason=reason(parent, spot=self._spot(place.entry.queue)), attempts=0)
            if end := ended.get((place.slot.name, number)):
                # The ledger keeps the most frequent reasons only, and AWS its own for a week.
                known = run.reason if run.status == end.state else None
                run = replace(run, status=end.state, reason=end.reason or known)
            told.append(run)
        return tuple(told)


def _with(entries: Sequence[Entry], changed: Entry) -> list[Entry]:
    return [changed if entry.n == changed.n else entry for entry in entries]


def _grouped(runs: Mapping[int, tuple[str, str | None]]) -> tuple[Ended, ...]:
    """Return the runs by how they ended, with the most frequent reasons."""
    kept = {how for how, _ in Counter(runs.values()).most_common(_MAX_REASONS)}
    groups: dict[tuple[str, str | None], list[int]] = {}
    for number, how in runs.items():
        groups.setdefault(how if how in kept else (how[0], None), []).append(number)
    return tuple(Ended(state=state, reason=why, runs=NumberSet(n)) for (state, why), n in groups.items())


def _detailed(run: RunStatus, job: Mapping[str, Any], *, spot: bool, told: float | None) -> RunStatus:
    streams = log_streams(job)
    return replace(
        run,
        status=state(job, told=told),
        reason=reason(job, spot=spot, told=told),
        attempts=attempts(job),
        started_at=job.get("startedAt"),
        stopped_at=job.get("stoppedAt"),
        log_stream=streams[-1][1] if streams else None,
    )

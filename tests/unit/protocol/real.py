"""The submitter's own code as a client of the model's world: run, retry, cancel, status and prune as they are.

Each command runs in a thread that stands still at every call until the execution goes on, so that exactly one moves.
In place of DynamoDB and Batch it has the model's ledger and Batch; everything above `submitter.ledger` and
`submitter.batch` is real. What those two make of lost replies and errors is tested against the emulated account.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

from submitter import history, plan, sending, submission
from submitter import writer as writers
from submitter.batch import Accepted, Answer, Batch, Refused, Throttled, TooLate, Unknown
from submitter.cancel import cancel
from submitter.errors import AwsError, SubmitterError, UsageError
from submitter.history import Ended, Generation
from submitter.ledger import Ledger
from submitter.numbers import NumberSet
from submitter.plan import job_definition
from submitter.prune import Pruning
from submitter.reasons import CANCEL_REASON
from submitter.retry import Changes, Retry
from submitter.secrets import SecretStore
from submitter.session import Clock
from submitter.settle import REMEMBERED
from submitter.status import StatusReader
from submitter.submission import Order
from submitter.sweep import RunTable
from tests.unit.protocol import world as model
from tests.unit.protocol.commands import RUNS_PER_SLOT, Ask, Context, Steps
from tests.unit.protocol.entries import (
    CONTRACT,
    QUEUE,
    RECORD,
    SPEC,
    STATES,
    SWEEP,
    ended_of,
    model_name,
    to_model,
    to_real,
    writer,
)
from tests.unit.protocol.world import Call, InternalError, No

if TYPE_CHECKING:
    from mypy_boto3_batch.literals import JobStatusType
    from mypy_boto3_batch.type_defs import JobDetailTypeDef, JobSummaryTypeDef

T = TypeVar("T")


class _KilledError(BaseException):
    """The process ends here."""


class RealCommand(threading.Thread):
    """One command of the submitter, which hands its calls over and waits for their replies."""

    def __init__(self, ask: Ask, context: Context) -> None:
        super().__init__(name=context.by.command, daemon=True)
        self.context = context
        self._ask = ask
        self._calls: SimpleQueue[Call | BaseException | None] = SimpleQueue()
        self._replies: SimpleQueue[Any] = SimpleQueue()

    def steps(self) -> Steps[None]:
        """Yield the calls and pass the replies on; the end of the steps is the end of the thread."""
        self.start()
        try:
            while (call := self._calls.get()) is not None:
                if isinstance(call, BaseException):
                    raise call
                self._replies.put((yield call))
        finally:
            self._replies.put(_KilledError)
            self.join()

    def call(self, call: Call) -> Any:
        """Let the execution carry a call out when it sees fit; called in the command's thread."""
        self._calls.put(call)
        if (reply := self._replies.get()) is _KilledError:
            raise _KilledError
        return reply

    def run(self) -> None:
        """Be the process."""
        end: BaseException | None = None
        try:
            self._work()
        except SubmitterError:
            self.context.failed = True
        except _KilledError:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised in the execution
            end = error
        self._calls.put(end)

    def _work(self) -> None:
        ask, want = self._ask, sorted(self._ask.want)
        clock = Clock(now=self.context.clock, sleep=lambda seconds: self.call(model.Sleep(seconds)))
        ledger = _Ledger(self, ask)
        batch = _Batch(self, ledger)
        reader = StatusReader(CONTRACT, ledger, batch)

        def choose(generation: Generation) -> NumberSet:
            return NumberSet(number for number in want if number <= len(generation.table))

        def say(_: str) -> None:
            pass

        match ask.kind:
            case "run":
                order = Order(
                    sweep=SWEEP,
                    wanted=RunTable.product([()], want),
                    record=RECORD,
                    template=RECORD.template(),
                    spec=SPEC,
                    queue=QUEUE,
                    definition=job_definition(SPEC, CONTRACT),
                )
                submission.run(order, ledger=ledger, batch=batch, clock=clock, fresh=ask.fresh, say=say)
            case "retry":
                shared = {"ledger": ledger, "batch": batch, "reader": reader, "clock": clock, "say": say}
                Retry(SWEEP, choose, Changes(), contract=CONTRACT, **cast("Any", shared)).work()
            case "cancel":
                cancel(SWEEP, choose, ledger=ledger, batch=batch, clock=clock, say=say)
            case "prune":
                pruning, now = Pruning(ledger, batch, _Secrets(), CONTRACT.job_role_arn), clock.now()
                pruning.take_away(pruning.look(now=now, older_than=-1e9), now=now, older_than=-1e9)
            case _:
                reader.read(SWEEP)


def steps(ask: Ask, context: Context) -> Steps[None]:
    """Begin a command of the submitter; takes the place of the model's."""
    return RealCommand(ask, context).steps()


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes be what the execution says, arrays be small, and chance be none."""

    def here(_: type[writers.Writer]) -> writers.Writer:
        return writer(_current().context.by)

    def is_gone(self: writers.Writer) -> bool:
        me = _current().context
        return self.host == me.by.host and me.gone(model.Writer(self.host, self.token))

    monkeypatch.setattr(writers.Writer, "here", classmethod(here))
    monkeypatch.setattr(writers.Writer, "is_gone", is_gone)
    monkeypatch.setattr(submission, "new_nonce", lambda: _current().context.by.command)
    monkeypatch.setattr(sending, "_JITTER", _NoChance)
    monkeypatch.setattr(plan, "MAX_ARRAY", RUNS_PER_SLOT)


class _NoChance:
    @staticmethod
    def uniform(_: float, high: float) -> float:
        return high


def _current() -> RealCommand:
    thread = threading.current_thread()
    assert isinstance(thread, RealCommand)
    return thread


class _Ledger(Ledger):
    """The model's ledger, for one command."""

    def __init__(self, command: RealCommand, ask: Ask) -> None:
        self.slots: dict[str, model.Slot] = {}
        self.dates: dict[str, float] = {}
        self.reading = True
        self._command, self._ask = command, ask
        self._before: str | None = None
        self._reads = 0

    def put(self, sweep: str, entry: history.Entry, *, after: history.Entry | None) -> bool:  # noqa: ARG002
        follows = None if after is None else _by(after)
        there: bool | No = self._command.call(model.Put(to_model(entry, self._before), follows))
        if isinstance(there, No):
            raise AwsError("too late")
        self._see([to_model(entry, None)])
        if there:
            self._watch(entry.n)
        return there

    def all_entries(self) -> dict[str, list[history.Entry]]:
        entries = self.entries(SWEEP)
        return {SWEEP: entries} if entries else {}

    def forget(self, sweep: str, entries: Sequence[history.Entry]) -> bool:  # noqa: ARG002
        gone: bool = self._command.call(model.Forget(tuple(map(_by, entries))))
        return gone

    def entries(self, sweep: str) -> list[history.Entry]:  # noqa: ARG002
        log: tuple[model.Entry, ...] = self._command.call(model.Query())
        if self._ask.fresh and self._before is None:
            self._before = model.newest_nonce(log)
        self._reads += 1
        self._watch(len(log))
        self._see(log)
        return to_real(log)

    def record(self, sweep: str, entry: history.Entry, answers: Mapping[int, str]) -> history.Entry:  # noqa: ARG002
        return self._changed(entry, model.Record(entry.n, _by(entry), tuple(answers.items()))) if answers else entry

    def ended(self, sweep: str, entry: history.Entry, index: int, ended: tuple[Ended, ...]) -> history.Entry:  # noqa: ARG002
        names = {real: state for state, real in STATES.items()}
        states = tuple(sorted((run, names[one.state]) for one in ended for run in one.runs))
        return self._changed(entry, model.WriteEnded(entry.n, _by(entry), index, states))

    def done(self, sweep: str, entry: history.Entry) -> history.Entry:  # noqa: ARG002
        return self._changed(entry, model.WriteDone(entry.n, _by(entry)))

    def _changed(self, entry: history.Entry, call: Call) -> history.Entry:
        now: model.Entry | None = self._command.call(call)
        if now is None:
            raise UsageError("somebody has forgotten it")
        slots = (
            replace(mine, job=slot.job, ended=ended_of(slot)) for mine, slot in zip(entry.slots, now.slots, strict=True)
        )
        return replace(entry, slots=tuple(slots), done=now.done)

    def _watch(self, entries: int) -> None:
        """Tell those who watch what the command took for its beginning: see `Context.first`."""
        if (self._ask.kind == "retry" and self._reads == 1) or (self._ask.kind == "cancel" and self.reading):
            self._command.context.first = entries

    def _see(self, log: Iterable[model.Entry]) -> None:
        for entry in log:
            for slot in entry.slots:
                self.slots[slot.name], self.dates[slot.name] = slot, entry.at


def _by(entry: history.Entry) -> model.Writer:
    return model.Writer(entry.by.host, entry.by.token)


class _Secrets(SecretStore):
    """No secret has a label."""

    def __init__(self) -> None:
        pass

    def labels(self) -> set[str]:
        return set()


class _Batch(Batch):
    """The model's Batch, for one command."""

    def __init__(self, command: RealCommand, ledger: _Ledger) -> None:
        self.described_at = 0.0
        self._command, self._ledger = command, ledger
        self._runs: dict[str, tuple[int, ...]] = {}

    def definition(self, request: Mapping[str, Any]) -> str:
        return f"{request['jobDefinitionName']}:1"

    def definitions(self, role: str) -> list[str]:  # noqa: ARG002
        return []

    def submit(self, request: Mapping[str, Any], *, sign_until: float) -> Answer:
        self._command.call(model.Pause())
        signed = self._command.context.clock()
        if signed > sign_until:
            return TooLate()
        name = model_name(request["jobName"])
        match self._command.call(model.Submit(name, self._ledger.slots[name].runs, signed)):
            case No.THROTTLED:
                return Throttled()
            case No.REFUSED | No.EXPIRED:
                return Refused(AwsError("no"))
            case No.SILENCE:
                return Unknown(None)
            case InternalError(date):
                return Unknown(date)
            case job:
                return Accepted(job)

    def find(self, queue: str, name: str) -> tuple[str | None, float]:  # noqa: ARG002
        self._ledger.reading = False
        name = model_name(name)
        job, date = self._command.call(model.Find(name))
        if job is None and date >= self._ledger.dates[name] + REMEMBERED:
            self._command.context.unknown.add(name)
        return job, date

    def describe(self, ids: Iterable[str]) -> "dict[str, JobDetailTypeDef]":
        self._ledger.reading = False
        wanted = list(ids)
        parents = self._look(frozenset(one.partition(":")[0] for one in wanted))
        found: dict[str, Any] = {}
        for one in wanted:
            job, _, index = one.partition(":")
            if states := parents.get(job):
                found[one] = {"jobId": one, **(_status([states[int(index)]] if index else states))}
        return found

    def children(self, job: str, status: "JobStatusType") -> "Iterator[JobSummaryTypeDef]":
        for index, state in enumerate(self._look(frozenset({job})).get(job, ())):
            if (child := _status([state]))["status"] == status:
                yield cast("JobSummaryTypeDef", {"jobId": f"{job}:{index}", **child})

    def terminate(self, job: str, reason: str) -> None:  # noqa: ARG002
        parent, _, index = job.partition(":")
        self._command.call(model.Terminate(parent, frozenset({self._runs[parent][int(index)]}) if index else None))

    def terminate_all(self, jobs: Sequence[str], reason: str) -> None:
        for job in jobs:
            self.terminate(job, reason)

    def _look(self, jobs: frozenset[str]) -> dict[str, list[str]]:
        if not jobs:
            return {}
        found: tuple[tuple[str, tuple[tuple[int, str], ...]], ...]
        found, self.described_at = self._command.call(model.Describe(jobs))
        self._runs.update({job: tuple(run for run, _ in states) for job, states in found})
        return {job: [state for _, state in states] for job, states in found}


def _status(states: Sequence[str]) -> dict[str, Any]:
    """Return how Batch puts it when a job, or the children of an array, are in these states."""
    if "live" in states:
        return {"status": "RUNNING"}
    if set(states) == {"ok"}:
        return {"status": "SUCCEEDED"}
    if set(states) == {"ended"}:
        return {"status": "FAILED", "statusReason": CANCEL_REASON}
    return {"status": "FAILED", "container": {"exitCode": 1}}

"""Executions: clients whose commands are taken step by step, and what may never happen, looked at as it happens."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

from tests.unit.protocol import commands
from tests.unit.protocol.actions import Action, Delay, Deliver, End, Hold, Kill, Pass, Reply, Step
from tests.unit.protocol.commands import Ask, Context, Steps, standing
from tests.unit.protocol.world import (
    LISTING_LAG,
    VOID,
    Call,
    Fault,
    Job,
    Put,
    Sleep,
    Submit,
    World,
    Writer,
    newest_nonce,
    nonce_of,
)


class ViolationError(Exception):
    """Something happened that the protocol promises never to happen."""


TWICE: Final = "a second job of a run that has one"
UNDECIDED: Final = "run returns, and whether a run was sent is not known"
LOST: Final = "a wanted run without a job"
NOT_IN_LEDGER: Final = "a job that the ledger does not know"
ON_AFTER_CANCEL: Final = "a job of a cancelled run goes on"
SENT_AFTER_CANCEL: Final = "a cancelled run is sent"
RETRIED_TWICE: Final = "two retries of one failure"
TWO_GENERATIONS: Final = "two --new at once begin two generations"
ENDLESS: Final = "no end"
GAP: Final = "an entry without those before it"


Make = Callable[[Ask, Context], Steps[None]]


@dataclass
class Client:
    """A person at a machine: what they type, one command after the other, and the command that runs.

    Attributes:
        name: Its name.
        asks: The commands still to come.
        host: The machine.
        skew: Seconds that its clock is off.
        wake: When it goes on.
        make: Makes a command's steps: the model's, or those of the real code.
        forgotten: How often entries had been forgotten when the command began.
        told: Stands for all that the commands were told, and when they looked at a clock.
    """

    name: str
    asks: tuple[Ask, ...]
    host: str = ""
    skew: float = 0
    wake: float = 0
    make: Make = commands.steps
    forgotten: int = 0
    told: int = 0
    running: Steps[None] | None = None
    call: Call | None = None
    ask: Ask | None = None
    context: Context | None = None
    barred: set[tuple[str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.host = self.host or self.name

    @property
    def over(self) -> bool:
        return self.call is None


class Execution:
    """A world with clients.

    Args:
        world: The ledger and Batch.
        clients: Who is there.
        first_wait: Seconds between a command's first two looks.
        strict: Whether what may never happen ends the execution.
    """

    def __init__(
        self, world: World, clients: Collection[Client], *, first_wait: float = 5, strict: bool = True
    ) -> None:
        self.world, self.clients = world, list(clients)
        self.under_way: list[tuple[Writer, Call]] = []
        self.overlaps = 0
        self._first_wait, self._strict = first_wait, strict
        self._running: set[Writer] = set()
        commands_on = Counter(client.host for client in clients for _ in client.asks)
        self._shared = {host for host, commands in commands_on.items() if commands > 1}
        self._gone: list[tuple[str, frozenset[int]]] = []
        asks = [ask for client in clients for ask in client.asks]
        self.wanted = frozenset(run for ask in asks if ask.kind == "run" for run in ask.want)
        self.cancelled = frozenset(run for ask in asks if ask.kind == "cancel" for run in ask.want)
        self._number = 0
        for client in clients:
            self._next(client)

    @property
    def over(self) -> bool:
        return all(client.over for client in self.clients) and not self.under_way

    def overdue(self) -> list[int]:
        """Return what must arrive or be lost now.

        Where a process can be seen to be gone, by another on its machine, nothing of it is under way when it is.
        """
        gone = [writer.host in self._shared and writer not in self._running for writer, _ in self.under_way]
        return [index for index, is_gone in enumerate(gone) if is_gone]

    def apply(self, action: Action) -> None:  # noqa: C901 - one case an action
        """Let an action happen."""
        world = self.world
        match action:
            case Step(index, fault, lag):
                client = self.clients[index]
                call = _there(client.call)
                if fault is Fault.LATE:
                    self.under_way.append((_there(client.context).by, call))
                self._resume(client, self._perform(client, call, fault, lag))
            case Reply(index):
                self._perform(self.clients[index], _there(self.clients[index].call), Fault.NONE, LISTING_LAG)
            case Delay(index):
                client = self.clients[index]
                self.under_way.append((_there(client.context).by, _there(client.call)))
            case Deliver(index, arrives, lag):
                _, call = self.under_way.pop(index)
                if arrives:
                    self._perform(None, call, Fault.NONE, lag)
            case End(job, state):
                world.end(job, state)
            case Kill(index):
                self._kill(self.clients[index])
            case Hold(index, seconds):
                self.clients[index].wake = max(self.clients[index].wake, world.now + seconds)
            case Pass(seconds):
                world.now = self._waking() if seconds is None else world.now + seconds

    def _waking(self) -> float:
        return min((client.wake for client in self.clients if not client.over), default=self.world.now)

    def alone(self, ask: Ask) -> Context:
        """Let one undisturbed client type a command, to its end."""
        self._number += 1
        client = Client(f"z{self._number}", (ask,))
        self.clients = [client]
        self._next(client)
        context: Context = _there(client.context)
        while not client.over:
            self.apply(Step(0) if client.wake <= self.world.now else Pass())
        return context

    def bars(self) -> object:
        """Return what is looked for besides the world's state, for telling executions apart."""
        return tuple(self._gone), tuple(frozenset(client.barred) for client in self.clients)

    def close(self) -> None:
        """Kill every client."""
        for client in self.clients:
            self._kill(client)

    def check(self) -> None:
        """All is quiet: what must hold then, and after one more `run` and a `status`.

        Raises:
            ViolationError: It does not.
        """
        world = self.world
        slots = {slot.name: slot for entry in world.log for slot in entry.slots}
        if any(job.name not in slots or slots[job.name].job not in (None, job.id) for job in self._jobs()):
            raise ViolationError(NOT_IN_LEDGER)
        unknown = self.alone(Ask("run", self.wanted)).unknown
        lost = {run for entry in world.log for slot in entry.slots if slot.name in unknown for run in slot.runs}
        for run in self.wanted:
            jobs = [dict(job.states) for job in world.jobs if nonce_of(job.name) == newest_nonce(world.log)]
            states = [states[run] for states in jobs if run in states]
            good = sum(state in ("live", "ok") for state in states)
            if good > 1:
                raise ViolationError(TWICE)
            if not good and "failed" not in states and run not in self.cancelled | lost:
                raise ViolationError(LOST)
        world.now += LISTING_LAG
        self.alone(Ask("status"))
        where = {slot.name: (entry, slot) for entry in world.log for slot in entry.slots}
        for job in self._jobs():
            if job.name not in where or (world.knows(job) and where[job.name][1].job != job.id):
                raise ViolationError(NOT_IN_LEDGER)
            entry, _ = where[job.name]
            cancels = [e for e in world.log[entry.n :] if (e.kind, e.nonce) == ("cancel", entry.nonce)]
            if any(state == "live" and run in cancel.runs for run, state in job.states for cancel in cancels):
                raise ViolationError(ON_AFTER_CANCEL)

    def _jobs(self) -> list[Job]:
        """Return the jobs that must be in the ledger: those that have ended, it may have forgotten."""
        return [job for job in self.world.jobs if job.name not in self.world.forgotten or job.live]

    def _next(self, client: Client) -> None:
        """Begin a client's next command."""
        while client.over and client.asks:
            client.ask, client.asks = client.asks[0], client.asks[1:]
            by = Writer(client.host, f"{client.name}{len(client.asks)}")
            self._running.add(by)
            client.context = Context(
                by=by,
                off=self.world.off,
                clock=lambda: self._look_at_clock(client) + client.skew,
                gone=lambda writer: self._see(client, writer),
                first_wait=self._first_wait,
            )
            client.barred, client.forgotten = set(), len(self.world.forgotten)
            client.running = client.make(client.ask, client.context)
            self._go_on(client, None)

    def _resume(self, client: Client, reply: Any) -> None:
        client.told = hash((client.told, reply))
        self._go_on(client, reply)
        self._next(client)

    def _go_on(self, client: Client, reply: Any) -> None:
        try:
            client.call = _there(client.running).send(reply)
        except StopIteration:
            client.call = None
            self._running.discard(_there(client.context).by)
            self._returned(client)
        if isinstance(client.call, Sleep):
            client.wake = self.world.now + client.call.seconds

    def _kill(self, client: Client) -> None:
        client.asks = ()
        if client.running and not client.over:
            client.call = None
            client.running.close()
            self._running.discard(_there(client.context).by)

    def _look_at_clock(self, client: Client) -> float:
        client.told = hash((client.told, self.world.now))
        return self.world.now

    def _see(self, client: Client, writer: Writer) -> bool:
        client.told = hash((client.told, gone := writer not in self._running))
        return gone

    def _wrong(self, what: str) -> None:
        if self._strict:
            raise ViolationError(what)

    def _perform(self, client: Client | None, call: Call, fault: Fault, lag: float) -> Any:
        if isinstance(call, Put):
            self._before_put(client, call)
        before = len(self.world.jobs)
        taken = [job for job in self.world.jobs if any(state in ("live", "ok") for _, state in job.states)]
        reply = self.world.perform(call, fault, lag)
        if isinstance(call, Submit) and len(self.world.jobs) > before:
            self._made(call, {(nonce_of(j.name), run) for j in taken for run, s in j.states if s in ("live", "ok")})
        return reply

    def _made(self, call: Submit, taken: set[tuple[str, int]]) -> None:
        if any((nonce_of(call.name), run) in taken for run in call.runs):
            self.overlaps += 1
            self._wrong(TWICE)
        if any(call.name == name and call.runs & runs for name, runs in self._gone):
            self._wrong(ON_AFTER_CANCEL)

    def _before_put(self, client: Client | None, call: Put) -> None:
        log, entry = self.world.log, call.entry
        if not self.world.accepts(entry, call.after):
            return
        if entry.n > len(log) + 1:
            self._wrong(GAP)
        stands = [standing(log, entry.nonce, run) for run in entry.runs]
        if entry.kind == "run" and any(stand.cancelled for stand in stands):
            self._wrong(SENT_AFTER_CANCEL)
        if client and entry.kind != "cancel" and any((entry.nonce, run) in client.barred for run in entry.runs):
            self._wrong(SENT_AFTER_CANCEL)
        first = client.context.first if client and client.context else None
        if entry.kind == "retry" and first is not None and any(stand.n > first for stand in stands):
            self._wrong(RETRIED_TWICE)
        seen = entry.begins_after
        if seen is not None and seen != newest_nonce(log) != entry.nonce and seen in {"", *(e.nonce for e in log)}:
            self._wrong(TWO_GENERATIONS)

    def _returned(self, client: Client) -> None:
        ask, me = _there(client.ask), _there(client.context)
        if len(self.world.forgotten) > client.forgotten:  # of what it was about
            return
        if ask.kind == "run" and not me.failed:
            self._run_returned(ask, me)
        elif ask.kind == "cancel" and me.first is not None and not me.failed:
            self._cancel_returned(ask, me)

    def _run_returned(self, ask: Ask, me: Context) -> None:
        """When run returns, every wanted run of a generation has a job, was cancelled, or is said to be unknown."""
        known: dict[str, set[int]] = {}
        for entry in self.world.log:
            runs = known.setdefault(entry.nonce, set())
            runs.update(entry.runs if entry.kind == "cancel" else ())
            for slot in entry.slots:
                if slot.name in me.unknown or slot.job not in (None, VOID):
                    runs |= slot.runs
        if not any(ask.want <= runs for runs in known.values()):
            self._wrong(UNDECIDED)

    def _cancel_returned(self, ask: Ask, me: Context) -> None:
        """When cancel returns, what was in the ledger before it has ended, and nobody under way sends it again."""
        before = self.world.log[: me.first]
        self._gone += [(s.name, ask.want) for entry in before for s in entry.slots if s.name not in me.unknown]
        live = {(job.name, run) for job in self.world.jobs for run, state in job.states if state == "live"}
        if any((name, run) in live for name, runs in self._gone for run in runs):
            self._wrong(ON_AFTER_CANCEL)
        cancels: dict[tuple[str, int], int] = {}
        for entry in before:
            for run in entry.runs & ask.want:
                if entry.kind == "cancel":
                    cancels[entry.nonce, run] = entry.n
                else:
                    cancels.setdefault((entry.nonce, run), len(before) + 1)
        for other in self.clients:
            if other.ask and other.context and not other.over:
                began = len(before) if other.context.first is None else other.context.first
                barred = (run for run, n in cancels.items() if other.ask.kind == "run" or began < n)
                other.barred.update(barred)


def _there(value: Any) -> Any:
    assert value is not None
    return value

"""Which executions are looked at: many at random, and all of small cases.

`python -m tests.unit.protocol.explore [EXECUTIONS] [--exhaustive]` looks at more than the tests do.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from tests.unit.protocol.actions import Action, Delay, Deliver, End, Hold, Kill, Pass, Reply, Step, faults_of
from tests.unit.protocol.commands import Ask, steps
from tests.unit.protocol.executions import ENDLESS, Client, Execution, Make, ViolationError
from tests.unit.protocol.world import (
    KEPT,
    LISTING_LAG,
    SIGNATURE_LIFE,
    Fault,
    Pause,
    Rule,
    Submit,
    World,
)

LONG: Final = 60 + SIGNATURE_LIFE + LISTING_LAG + 1
"""Seconds after which an open slot can be decided."""

_JUMPS: Final = (0.1, 1, 5, 30, 61, SIGNATURE_LIFE, LONG)
_HOLDS: Final = (5, 50, 61, SIGNATURE_LIFE, LONG, 2000)
_MOST_ACTIONS: Final = 5000


class Chance:
    """An execution at random.

    Args:
        seed: Decides everything.
        world: The world.
        kills: How many processes may be killed.
        kinds: What is typed; the first client begins with the first kind.
        make: Makes commands' steps.
        strict: Whether what may never happen ends the execution.
    """

    def __init__(
        self,
        seed: int,
        world: World,
        *,
        kills: int = 2,
        kinds: tuple[str, ...] = ("run", "run", "retry", "cancel", "status", "prune"),
        make: Make = steps,
        strict: bool = True,
    ) -> None:
        self._random = chance = random.Random(seed)  # noqa: S311 - a number names the execution
        self._kills = kills
        first = (Ask("run", self._some()), *(self._ask(kinds) for _ in range(chance.choice((0, 0, 1)))))
        others = [chance.choice((1, 1, 2)) for _ in range(chance.choice((1, 2, 2, 3)))]
        asks = [first, *(tuple(self._ask(kinds) for _ in range(count)) for count in others)]
        host = chance.choice(("", "", "shared"))
        clients = [
            Client(
                name,
                typed,
                host=host if chance.random() < 0.7 else "",
                skew=chance.choice((0, 0, 0, -200, 200)),
                wake=chance.choice((0, 0, 1, 100, 500)),
                make=make,
            )
            for name, typed in zip("abcd", asks, strict=False)
        ]
        self.execution = Execution(world, clients, strict=strict)

    def play(self) -> Execution:
        """Let it happen, to its end.

        Raises:
            ViolationError: What may never happen has happened.
        """
        try:
            for _ in range(_MOST_ACTIONS):
                if self.execution.over:
                    return self.execution
                self.execution.apply(self._action())
        finally:
            self.execution.close()
        raise ViolationError(ENDLESS)

    def _some(self) -> frozenset[int]:
        return frozenset(range(1, 1 + self._random.choice((1, 1, 2, 3, 4))))

    def _ask(self, kinds: tuple[str, ...]) -> Ask:
        kind = self._random.choice(kinds)
        fresh = kind == "run" and self._random.random() < 0.15
        return Ask(kind, frozenset() if kind in ("status", "prune") else self._some(), fresh)

    def _action(self) -> Action:
        it, chance = self.execution, self._random
        if overdue := it.overdue():
            return self._deliver(overdue[0])
        dice = chance.random()
        alive = [index for index, client in enumerate(it.clients) if not client.over]
        if it.under_way and (dice < 0.1 or not alive):
            return self._deliver(chance.randrange(len(it.under_way)))
        if dice < 0.115 and (live := [job.id for job in it.world.jobs if job.live]):
            return End(chance.choice(live), chance.choice(("ok", "failed")))
        if dice < 0.19:
            return Pass(chance.choice(_JUMPS) if chance.random() < 0.97 else KEPT + 86400)
        if dice < 0.27:
            return Hold(chance.choice(alive), chance.choice(_HOLDS))
        if dice < 0.295 and self._kills:
            self._kills -= 1
            return Kill(chance.choice(alive))
        ready = [index for index in alive if it.clients[index].wake <= it.world.now]
        if not ready:
            return Pass()
        index, lag = chance.choice(ready), chance.choice((0, 1, LISTING_LAG))
        call = it.clients[index].call
        wrong = faults_of(call) if call else ()
        if not wrong or chance.random() >= (0.35 if isinstance(call, Submit) else 0.05):
            return Step(index, lag=lag)
        fault = chance.choice(wrong)
        return Step(index, fault, lag) if isinstance(fault, Fault) else fault(index)

    def _deliver(self, index: int) -> Deliver:
        return Deliver(index, self._random.random() < 0.8, self._random.choice((0, 1, LISTING_LAG)))


def at_random(seed: int, off: frozenset[Rule] = frozenset()) -> str | None:
    """Return what is wrong with one execution at random, or None."""
    try:
        Chance(seed, World(off=off)).play().check()
    except ViolationError as violation:
        return str(violation)
    except IndexError:  # without put-if-absent the ledger loses entries
        return "the ledger has lost an entry"
    return None


@dataclass(frozen=True)
class Case:
    """A small case: who types what, and how many kills, faults, jumps in time and ends of jobs there are."""

    asks: tuple[tuple[Ask, ...], ...]
    kills: int = 0
    faults: int = 0
    jumps: int = 0
    ends: int = 0
    host: str = ""

    def begin(self, off: frozenset[Rule]) -> Execution:
        clients = [Client(name, asks, host=self.host) for name, asks in zip("abc", self.asks, strict=False)]
        return Execution(World(off=off), clients, first_wait=150)

    def after(self, action: Action) -> "Case":
        """Return what may still happen after an action."""
        match action:
            case Kill():
                return replace(self, kills=self.kills - 1)
            case Pass(seconds) if seconds is not None:
                return replace(self, jumps=self.jumps - 1)
            case End():
                return replace(self, ends=self.ends - 1)
            case Reply() | Delay():
                return replace(self, faults=self.faults - 1)
            case Step(fault=fault) if fault is not Fault.NONE:
                return replace(self, faults=self.faults - 1)
            case _:
                return self

    def options(self, it: Execution, lag: float) -> Iterator[Action]:
        """Yield everything that can happen now."""
        if overdue := it.overdue():
            yield from (Deliver(overdue[0], arrives, lag) for arrives in (True, False))
            return
        alive = [index for index, client in enumerate(it.clients) if not client.over]
        ready = [index for index in alive if it.clients[index].wake <= it.world.now]
        for index in range(len(it.under_way)):
            yield from (Deliver(index, arrives, lag) for arrives in (True, False))
        for index in ready:
            yield Step(index, lag=lag)
            call = it.clients[index].call
            for fault in faults_of(call) if call and self.faults else ():
                yield Step(index, fault, lag) if isinstance(fault, Fault) else fault(index)
        if alive and not ready:
            yield Pass()
        if self.kills:
            yield from (Kill(index) for index in alive if not isinstance(it.clients[index].call, Pause))
        if self.jumps and alive:
            yield from (Pass(61), Pass(LONG), *((Pass(KEPT + 86400),) if self.ends else ()))
        if self.ends:
            yield from (End(job.id, state) for job in it.world.jobs if job.live for state in ("ok", "failed"))


@dataclass(frozen=True)
class Found:
    """What looking at all executions of a case found."""

    states: int
    endings: int
    violation: str | None = None
    path: tuple[Action, ...] = ()


def exhaustively(case: Case, off: frozenset[Rule] = frozenset()) -> Found:
    """Look at every state that a case can come to; stop at the first violation.

    States are told apart by the world and by what each client was told, and when it looked at a clock.
    """
    states = endings = 0
    for lag in (LISTING_LAG, 0):
        seen: set[int] = set()
        todo: list[tuple[Action, ...]] = [()]
        while todo:
            path = todo.pop()
            it, left = case.begin(off), case
            try:
                for action in path:
                    it.apply(action)
                    left = left.after(action)
                while not it.over:
                    if (mark := _mark(it, left)) in seen:
                        break
                    seen.add(mark)
                    *others, action = left.options(it, lag)
                    todo += [(*path, other) for other in others]
                    path = (*path, action)
                    it.apply(action)
                    left = left.after(action)
                else:
                    endings += 1
                    it.check()
            except ViolationError as violation:
                return Found(states + len(seen), endings, str(violation), path)
        states += len(seen)
    return Found(states, endings)


def _mark(it: Execution, left: Case) -> int:
    clients = tuple((client.told, client.wake, client.over) for client in it.clients)
    world = it.world
    return hash((world.now, clients, tuple(it.under_way), tuple(world.log), tuple(world.jobs), it.bars(), left))


RUN, RUN_3, RUN_NEW = (
    Ask("run", frozenset({1})),
    Ask("run", frozenset({1, 2, 3})),
    Ask("run", frozenset({1}), fresh=True),
)
RETRY, CANCEL, CANCEL_3 = (
    Ask("retry", frozenset({1})),
    Ask("cancel", frozenset({1})),
    Ask("cancel", frozenset({1, 2, 3})),
)
STATUS, PRUNE = Ask("status"), Ask("prune")

SMALL: Final = (
    Case(((RUN,), (RUN,)), kills=1, jumps=1),
    Case(((RUN,), (RUN,)), kills=1, faults=1),
    Case(((RUN,), (RUN,)), kills=1, jumps=1, host="shared"),
    Case(((RUN_NEW,), (RUN_NEW,)), kills=1),
    Case(((RUN,), (CANCEL,)), kills=1, jumps=1),
    Case(((RUN,), (STATUS,)), kills=1, faults=1),
    Case(((RUN, RUN_3), (PRUNE,)), kills=1, ends=1),
)
"""What the tests look at."""

LARGER: Final = (
    Case(((RUN_NEW,), (RUN_NEW,)), kills=1, faults=1),
    Case(((RUN,), (STATUS,)), kills=1, faults=1, jumps=1),
    Case(((RUN,), (RUN,)), kills=1, faults=1, jumps=1),
    Case(((RUN,), (RUN,)), kills=1, faults=1, jumps=1, host="shared"),
    Case(((RUN,), (RUN,)), kills=1, jumps=2),
    Case(((RUN,), (RUN_3,)), kills=1, faults=1),
    Case(((RUN,), (RUN_3,)), faults=1, jumps=1),
    Case(((RUN_3,), (CANCEL_3,)), kills=1, jumps=1),
    Case(((RUN,), (CANCEL,)), kills=1, faults=1, jumps=1),
    Case(((RUN,), (CANCEL, STATUS)), kills=1, faults=1),
    Case(((RUN,), (RUN,), (CANCEL,)), kills=1, jumps=1),
    Case(((RUN,), (RUN,), (RUN,)), kills=1, jumps=1),
    Case(((RUN, RETRY), (RETRY,)), kills=1, faults=1, ends=1),
    Case(((RUN, CANCEL), (RETRY,)), kills=1, jumps=1, ends=1),
    Case(((RUN, RETRY), (RUN,)), kills=1, faults=1, ends=1),
    Case(((RUN, RUN_3), (PRUNE,)), kills=1, faults=1, jumps=1, ends=1),
    Case(((RUN, STATUS), (PRUNE, RUN)), kills=1, ends=2),
    Case(((RUN, CANCEL), (PRUNE, RUN_3)), kills=1, ends=1),
)
"""What takes minutes."""


def main() -> None:
    """Look at many executions and print what was found; exit 1 when something was."""
    parser = argparse.ArgumentParser(prog="python -m tests.unit.protocol.explore", description=main.__doc__)
    parser.add_argument("executions", type=int, nargs="?", default=100_000, help="at random (default: %(default)s)")
    parser.add_argument("--exhaustive", action="store_true", help="all executions of the larger cases, too")
    asked = parser.parse_args()
    began = time.monotonic()
    found = Counter(at_random(seed) for seed in range(asked.executions))
    none = found.pop(None, 0)
    print(
        f"at random: {none:,} without, {found.total():,} with a violation {dict(found) or ''}, "
        f"{time.monotonic() - began:.0f} s",
        flush=True,
    )
    for case in (*SMALL, *(LARGER if asked.exhaustive else ())):
        result = exhaustively(case)
        print(
            f"{case}: {result.states:,} states, {result.endings:,} endings, violation: {result.violation}", flush=True
        )
        found.update([result.violation] if result.violation else [])
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

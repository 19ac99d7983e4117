"""The submitter's own run, retry, cancel and status in the model's world, alone and beside the model's."""

import os
from typing import Any, Final

import pytest

from submitter import cancel, sending, settle
from submitter.cancel import Cancels
from submitter.history import Generation
from submitter.numbers import NumberSet
from submitter.prune import Pruning
from tests.unit.protocol import commands, real
from tests.unit.protocol.commands import Ask, Context, Steps
from tests.unit.protocol.executions import Make, ViolationError
from tests.unit.protocol.explore import Chance
from tests.unit.protocol.world import World

EXECUTIONS: Final = int(os.environ.get("PROTOCOL_EXECUTIONS", "3000")) // 4

BROKEN: Final[dict[str, tuple[object, str, Any]]] = {
    "signed at any time": (sending, "SIGNED_WITHIN", 10**9),
    "a name decided while its signature is taken": (settle, "SIGNATURE_LIFE", 0),
    "a name decided before it is listed": (settle, "LISTING_LAG", -1),
    "sent again when AWS may have forgotten": (settle, "REMEMBERED", 10**9),
    "open slots left open": (sending.Sender, "undecided", lambda *_: []),
    "cancels not heeded": (Generation, "cancelled", NumberSet()),
    "cancels not carried out": (Cancels, "carry_out", lambda _, entries: (list(entries), [])),
    "a cancel done before AWS shows its jobs": (cancel, "shown_by", lambda _: 0),
    "forgotten while jobs go on": (Pruning, "_unfinished", lambda *_: {}),
    "another retry not seen": (Generation, "newest_word", lambda _: dict.fromkeys(range(1, 5), 0)),
}
"""Where, and what is put there in place of what is right."""


@pytest.fixture(autouse=True)
def _processes(monkeypatch: pytest.MonkeyPatch) -> None:
    real.install(monkeypatch)


def wrong(seed: int, make: Make = real.steps) -> str | None:
    try:
        Chance(seed, World(), make=make).play().check()
    except ViolationError as violation:
        return str(violation)
    return None


def test_the_submitter_keeps_what_is_promised_in_executions_at_random() -> None:
    assert {seed: found for seed in range(EXECUTIONS) if (found := wrong(seed))} == {}


def test_the_submitter_and_the_model_s_clients_work_side_by_side() -> None:
    def mixed(ask: Ask, context: Context) -> Steps[None]:
        make: Make = real.steps if sum(context.by.command.encode()) % 2 else commands.steps
        return make(ask, context)

    assert {seed: found for seed in range(EXECUTIONS // 2) if (found := wrong(seed, mixed))} == {}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_in_the_submitter_is_seen(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, instead = BROKEN[what]
    monkeypatch.setattr(where, name, instead)
    assert any(wrong(seed) for seed in range(500))

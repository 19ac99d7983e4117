"""The model of the submission protocol: nothing twice and nothing lost, whatever happens when; and each rule is needed.

PROTOCOL_EXECUTIONS says how many random executions are looked at; `explore.py` looks at more and larger cases.
"""

import os
from typing import Final

import pytest

from tests.unit.protocol.actions import End, Hold, Pass, Step
from tests.unit.protocol.commands import Ask
from tests.unit.protocol.executions import TWICE, Client, Execution, ViolationError
from tests.unit.protocol.explore import LONG, SMALL, Case, at_random, exhaustively
from tests.unit.protocol.world import IDEMPOTENT, LISTING_LAG, VOID, Fault, Put, Query, Record, Rule, Submit, World

EXECUTIONS: Final = int(os.environ.get("PROTOCOL_EXECUTIONS", "3000"))

RUN: Final = Ask("run", frozenset({1}))

PRUNE: Final = Ask("prune")

BEYOND_PROMISES: Final = (Rule.WRITE_ONCE, Rule.END_LATE_JOB)
"""Rules that matter only when AWS does not keep its own."""

RARE: Final = {
    Rule.ONE_NEW_GENERATION: Case(((Ask("run", frozenset({1}), fresh=True),),) * 2),
    Rule.GONE_HERE: Case(((RUN,), (RUN,)), kills=1, faults=1),
    Rule.GONE_LISTING_LAG: Case(((RUN,), (RUN,)), kills=1, jumps=1, host="shared"),
    Rule.ENDS_WHEN_FORGOTTEN: Case(((RUN,), (PRUNE,)), faults=1, jumps=1, ends=1),
    Rule.SAME_ENTRY: Case(((RUN, Ask("status")), (PRUNE, RUN, PRUNE)), ends=1),
}
"""Where leaving out a rule is seen sooner in a small case than at random."""


def test_executions_at_random_keep_what_is_promised() -> None:
    assert {seed: wrong for seed in range(EXECUTIONS) if (wrong := at_random(seed))} == {}


@pytest.mark.parametrize("number", range(len(SMALL)))
def test_every_execution_of_a_small_case_keeps_what_is_promised(number: int) -> None:
    found = exhaustively(SMALL[number])
    assert (found.violation, found.path) == (None, ())
    assert found.endings > 100


@pytest.mark.parametrize(
    "rule", [rule for rule in Rule if rule not in (*BEYOND_PROMISES, Rule.PUT_FENCE)], ids=lambda rule: rule.name
)
def test_leaving_out_a_rule_does_harm(rule: Rule) -> None:
    off = frozenset({rule})
    wrong = exhaustively(RARE[rule], off).violation if rule in RARE else None
    assert wrong or any(at_random(seed, off) for seed in range(1000)), rule.value


def late_job(*off: Rule) -> Execution:
    """Let a job be listed much later than AWS promises, while its sender is held up before it writes the job down."""
    it = Execution(World(off=frozenset(off)), [Client("a", (RUN,)), Client("b", (RUN,))], strict=False)
    while not isinstance(it.clients[0].call, Record):
        it.apply(Step(0, lag=5000))
    it.apply(Hold(0, 5000))
    while not it.over:
        ready = [index for index, client in enumerate(it.clients) if not client.over and client.wake <= it.world.now]
        it.apply(Step(ready[-1]) if ready else Pass())
    return it


def test_beyond_what_aws_promises_the_sender_ends_its_own_late_job() -> None:
    it = late_job()
    assert it.overlaps == 1
    assert [(slot.job == VOID) for entry in it.world.log for slot in entry.slots] == [True, False]
    assert [job.live for job in it.world.jobs] == [False, True]


@pytest.mark.parametrize("rule", BEYOND_PROMISES, ids=lambda rule: rule.name)
def test_without_it_the_late_job_stays(rule: Rule) -> None:
    assert sum(job.live for job in late_job(rule).world.jobs) == 2, TWICE


def put_again_when_forgotten(*off: Rule) -> Execution:
    """Let the reply to a first put be lost, and it be sent again when the sweep has been run to its end and forgotten.

    By then DynamoDB has forgotten, too, that the put was made.
    """
    it = Execution(World(off=frozenset(off)), [Client("a", (RUN,)), Client("b", (RUN, PRUNE))])
    it.world.perform(it.clients[0].call or Query(), Fault.NONE, 0)
    it.apply(Hold(0, LONG + IDEMPOTENT))
    while not it.over:
        for job in [job for job in it.world.jobs if job.live]:
            it.apply(End(job.id, "ok"))
        ready = [index for index, client in enumerate(it.clients) if not client.over and client.wake <= it.world.now]
        it.apply(Step(ready[-1], lag=0) if ready else Pass())
    return it


def test_a_put_does_not_begin_again_what_is_forgotten() -> None:
    it = put_again_when_forgotten()
    assert (len(it.world.jobs), it.world.log) == (1, [])


def test_a_put_at_any_time_would() -> None:
    with pytest.raises(ViolationError, match=TWICE):
        put_again_when_forgotten(Rule.PUT_FENCE)


def calls_of(it: Execution, ask: Ask) -> list[str]:
    it.world.calls.clear()
    it.alone(ask)
    return [type(call).__name__ for call in it.world.calls if type(call).__name__ not in ("Pause", "Sleep")]


def test_undisturbed_commands_make_few_calls() -> None:
    it = Execution(World(), [])
    assert calls_of(it, Ask("run", frozenset({1, 2}))) == ["Put", "Submit", "Record"]
    assert calls_of(it, Ask("run", frozenset({1, 2}))) == ["Put", "Query"]
    assert calls_of(it, Ask("run", frozenset(range(1, 6)))) == ["Put", "Query", "Put", "Submit", "Submit", "Record"]
    assert calls_of(it, Ask("status")) == ["Query", "Describe"]
    assert calls_of(it, Ask("cancel", frozenset({1, 2}))) == ["Query", "Put", "Terminate"]
    it.apply(Pass(LISTING_LAG))
    assert calls_of(it, Ask("retry", frozenset({1, 2}))) == ["Query", "Describe", "Put", "Submit", "Record"]


def test_one_s_own_put_whose_reply_was_lost_costs_no_wait() -> None:
    it = Execution(World(), [Client("a", (RUN,))])
    it.world.perform(it.clients[0].call or Query(), Fault.NONE, 0)  # carried out, and the client does not hear of it
    while not it.over:
        it.apply(Step(0) if it.clients[0].wake <= it.world.now else Pass())
    assert it.world.now == 0
    assert [type(call) for call in it.world.calls].count(Put) == 2
    assert [type(call) for call in it.world.calls].count(Submit) == 1

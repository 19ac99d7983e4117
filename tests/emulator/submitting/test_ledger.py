"""The ledger's table: its conditions, and what a person sees in it."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.endpoint import Endpoint
from botocore.exceptions import ClientError

from submitter.errors import AwsError, ConfigurationError, UsageError
from submitter.history import VOID, Ended, Entry, Record, Slot
from submitter.ledger import Ledger
from submitter.numbers import NumberSet
from submitter.session import Clock
from submitter.sweep import RunTable
from submitter.writer import Writer

SWEEP = "ada/first"
AT = 1_796_000_000.125


@pytest.fixture
def machine(machine: Any) -> Any:
    """A machine whose ledger is written to at that time."""
    machine.ledger = Ledger(machine.session, "ledger", Clock(now=lambda: AT))
    return machine


@pytest.fixture
def entry() -> Entry:
    return Entry(
        n=1,
        nonce="abcdefghij",
        kind="run",
        at=AT,
        by=Writer.here(),
        queue="c5a-large-spot",
        definition="rl-batch-trainer",
        runs=NumberSet(range(1, 7)),
        added=RunTable.product([("CartPole-v1",), ("a 'b'",)], [1, 2, 3]),
        slots=(
            Slot(name="first-abcdefghij-1-0", runs=NumberSet(range(1, 4))),
            Slot(name="first-abcdefghij-1-1", runs=NumberSet(range(4, 7))),
        ),
        record=Record(
            command="python train.py",
            axes=("env-id",),
            image="trainer:1",
            options={"hours": 0.5, "gpus": 0, "tags": ["a"]},
        ),
    )


def test_an_entry_is_read_as_it_was_put(machine: Any, entry: Entry) -> None:
    assert machine.ledger.put(SWEEP, entry, after=None)
    assert machine.ledger.entries(SWEEP) == [entry]


def test_a_person_can_read_an_item(machine: Any, entry: Entry) -> None:
    machine.ledger.put(SWEEP, entry, after=None)
    key = {"sweep": {"S": SWEEP}, "n": {"N": "1"}}
    item = machine.session.client("dynamodb").get_item(TableName="ledger", Key=key)["Item"]
    assert item["at"] == {"S": "2026-11-30T00:53:20.125+00:00"}
    assert item["runs"] == {"S": "1-6"}
    assert item["slots"]["L"][1] == {"M": {"name": {"S": "first-abcdefghij-1-1"}, "runs": {"S": "4-6"}}}
    assert item["record"]["M"]["options"]["M"]["hours"] == {"N": "0.5"}


def test_an_entry_never_takes_the_place_of_another(machine: Any, entry: Entry) -> None:
    machine.ledger.put(SWEEP, entry, after=None)
    other = replace(entry, nonce="zzzzzzzzzz", by=Writer.here())
    assert not machine.ledger.put(SWEEP, other, after=None)
    assert machine.ledger.entries(SWEEP) == [entry]


def test_an_entry_is_put_after_the_one_that_was_read_and_no_other(machine: Any, entry: Entry) -> None:
    """Somebody may have forgotten the sweep since, and another begun it again."""
    second = replace(entry, n=2, record=None, by=Writer.here())
    assert not machine.ledger.put(SWEEP, second, after=entry)
    machine.ledger.put(SWEEP, replace(entry, by=Writer.here()), after=None)
    assert not machine.ledger.put(SWEEP, second, after=entry)
    assert len(machine.ledger.entries(SWEEP)) == 1


def test_a_put_that_is_sent_again_finds_itself(machine: Any, entry: Entry) -> None:
    second = replace(entry, n=2, record=None, by=Writer.here())
    assert [machine.ledger.put(SWEEP, entry, after=None) for _ in range(2)] == [True, True]
    assert [machine.ledger.put(SWEEP, second, after=entry) for _ in range(2)] == [True, True]
    assert machine.ledger.entries(SWEEP) == [entry, second]


def test_a_put_is_not_signed_a_minute_after_its_date(machine: Any, entry: Entry) -> None:
    with pytest.raises(AwsError, match="could not be written to within a minute"):
        machine.ledger.put(SWEEP, replace(entry, at=AT - 61), after=None)
    assert machine.ledger.entries(SWEEP) == []


@pytest.mark.parametrize(
    ("operation", "code", "reasons"),
    [
        ("UpdateItem", "TransactionConflictException", []),
        ("TransactWriteItems", "TransactionCanceledException", [{"Code": "None"}, {"Code": "TransactionConflict"}]),
    ],
)
@pytest.mark.parametrize("busy", [2, 100])
def test_what_others_are_writing_is_written_again(
    *,
    machine: Any,
    entry: Entry,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    code: str,
    reasons: list[dict[str, str]],
    busy: int,
) -> None:
    """DynamoDB refuses a write to an item that a transaction has at the moment, and boto3 leaves that to its caller."""
    waits: list[float] = []
    monkeypatch.setattr("submitter.ledger.time", SimpleNamespace(sleep=waits.append))  # not every thread's
    machine.ledger.put(SWEEP, entry, after=None)
    make_request = Endpoint.make_request

    def request(endpoint: Endpoint, model: Any, arguments: Any) -> Any:
        if model.name != operation or len(waits) >= busy:
            return make_request(endpoint, model, arguments)
        error = {"Error": {"Code": code, "Message": "busy"}, "CancellationReasons": reasons}
        return SimpleNamespace(status_code=400), {**error, "ResponseMetadata": {"HTTPStatusCode": 400}}

    monkeypatch.setattr(Endpoint, "make_request", request)

    def write() -> object:
        if operation == "UpdateItem":
            return machine.ledger.record(SWEEP, entry, {0: "job-a"})
        return machine.ledger.put(SWEEP, replace(entry, n=2, record=None, by=Writer.here()), after=entry)

    if busy == 2:
        assert write()
        assert len(waits) == 2
    else:
        with pytest.raises(ClientError, match="busy"):
            write()
        assert len(waits) < 10


def test_the_first_answer_stays(machine: Any, entry: Entry) -> None:
    machine.ledger.put(SWEEP, entry, after=None)
    machine.ledger.record(SWEEP, entry, {0: "job-a"})
    recorded = machine.ledger.record(SWEEP, entry, {0: VOID, 1: "job-b"})
    assert [slot.job for slot in recorded.slots] == ["job-a", "job-b"]
    assert machine.ledger.entries(SWEEP) == [recorded]


def test_hundreds_of_answers_are_recorded(machine: Any, entry: Entry) -> None:
    slots = tuple(Slot(name=f"slot-{index}", runs=NumberSet([index + 1])) for index in range(300))
    entry = replace(entry, slots=slots)
    machine.ledger.put(SWEEP, entry, after=None)
    recorded = machine.ledger.record(SWEEP, entry, {index: f"job-{index}" for index in range(300)})
    assert [slot.job for slot in recorded.slots] == [f"job-{index}" for index in range(300)]


def test_how_runs_ended_is_written_once(machine: Any, entry: Entry) -> None:
    machine.ledger.put(SWEEP, entry, after=None)
    ended = (
        Ended(state="succeeded", reason=None, runs=NumberSet([1, 3])),
        Ended(state="failed", reason="exit code 1", runs=NumberSet([2])),
    )
    machine.ledger.ended(SWEEP, entry, 0, ended)
    again = machine.ledger.ended(SWEEP, entry, 0, (Ended(state="failed", reason=None, runs=entry.slots[0].runs),))
    assert again.slots[0].ended == ended
    assert again.slots[1].ended == ()


def test_a_sweep_of_more_than_a_page_is_read_whole(machine: Any, entry: Entry) -> None:
    """A page of DynamoDB is 1 MB."""
    rows = [(f"{number:04}" + "x" * 300,) for number in range(1000)]
    large = replace(entry, runs=NumberSet(range(1, 1001)), added=RunTable.product(rows, [1]))
    for n in range(1, 5):
        machine.ledger.put(SWEEP, replace(large, n=n), after=replace(large, n=n - 1) if n > 1 else None)
    assert [found.n for found in machine.ledger.entries(SWEEP)] == [1, 2, 3, 4]
    assert machine.ledger.sweeps()[0].runs == 1000


def test_an_entry_that_is_too_large_is_refused_before_it_is_put(machine: Any, entry: Entry) -> None:
    rows = [(f"{number:04}" + "x" * 300,) for number in range(1500)]
    before = machine.calls("dynamodb")
    with pytest.raises(UsageError, match="do not fit one entry"):
        machine.ledger.put(
            SWEEP, replace(entry, runs=NumberSet(range(1, 1501)), added=RunTable.product(rows, [1])), after=None
        )
    assert machine.calls("dynamodb") == before


def test_sweeps_are_listed_by_owner_the_newest_first(machine: Any, entry: Entry) -> None:
    machine.ledger.put("ada/old", entry, after=None)
    machine.ledger.put("ada/new", replace(entry, at=entry.at + 10), after=None)
    machine.ledger.put("adam/other", entry, after=None)
    more = replace(entry, n=2, runs=NumberSet([7]), record=None, at=entry.at + 20)
    machine.ledger.put("ada/old", more, after=entry)
    assert [found.sweep for found in machine.ledger.sweeps("ada")] == ["ada/old", "ada/new"]
    old = machine.ledger.sweeps("ada")[0]
    assert (old.runs, old.created, old.updated, old.record) == (7, entry.at, more.at, entry.record)
    assert len(machine.ledger.sweeps()) == 3


def test_an_entry_of_a_newer_submitter_is_not_misread(machine: Any, entry: Entry) -> None:
    machine.ledger.put(SWEEP, replace(entry, kind="fork"), after=None)
    with pytest.raises(ConfigurationError, match="newer submitter"):
        machine.ledger.entries(SWEEP)


@pytest.mark.parametrize("attribute", ["spec", "record", "by"])
def test_fields_that_only_a_newer_submitter_knows_are_not_left_out(machine: Any, entry: Entry, attribute: str) -> None:
    machine.ledger.put(SWEEP, replace(entry, spec=machine.order().spec), after=None)
    machine.session.client("dynamodb").update_item(
        TableName="ledger",
        Key={"sweep": {"S": SWEEP}, "n": {"N": "1"}},
        UpdateExpression="SET #a.#f = :v",
        ExpressionAttributeNames={"#a": attribute, "#f": "invented"},
        ExpressionAttributeValues={":v": {"S": "x"}},
    )
    with pytest.raises(ConfigurationError, match="newer submitter"):
        machine.ledger.entries(SWEEP)
    if attribute == "record":
        with pytest.raises(ConfigurationError, match="newer submitter"):
            machine.ledger.sweeps()


@pytest.mark.parametrize("write", ["record", "ended", "done"])
def test_what_has_been_forgotten_is_not_written_to(machine: Any, entry: Entry, write: str) -> None:
    """DynamoDB would make an item of nothing but the change, which no reader of the table could make out."""
    machine.ledger.put(SWEEP, entry, after=None)
    assert machine.ledger.forget(SWEEP, [entry])
    ended = (Ended(state="failed", reason=None, runs=entry.slots[0].runs),)
    arguments: dict[str, tuple[Any, ...]] = {"record": ({0: "job-a"},), "ended": (0, ended), "done": ()}
    with pytest.raises(UsageError, match="has forgotten the sweep ada/first"):
        getattr(machine.ledger, write)(SWEEP, entry, *arguments[write])
    assert machine.session.client("dynamodb").scan(TableName="ledger")["Items"] == []


def test_what_is_no_entry_does_not_hide_everybodys_sweeps(machine: Any, entry: Entry) -> None:
    machine.ledger.put("ada/good", entry, after=None)
    machine.ledger.put("ada/headless", replace(entry, record=None), after=None)
    machine.session.client("dynamodb").put_item(
        TableName="ledger", Item={"sweep": {"S": "ada/key-only"}, "n": {"N": "1"}, "done": {"BOOL": True}}
    )
    assert [found.sweep for found in machine.ledger.sweeps()] == ["ada/good"]
    assert set(machine.ledger.all_entries()) == {"ada/good", "ada/headless"}


def test_reasons_that_do_not_fit_an_entry_any_more_are_left_out(
    machine: Any, entry: Entry, fault: Callable[..., None]
) -> None:
    machine.ledger.put(SWEEP, entry, after=None)
    message = "Item size to update has exceeded the maximum allowed size"
    fault("dynamodb", "UpdateItem", "refuse", code="ValidationException", message=message, count=1)
    ended = tuple(Ended(state="failed", reason=f"exit code {n}", runs=NumberSet([n])) for n in (1, 2, 3))
    written = machine.ledger.ended(SWEEP, entry, 0, ended)
    assert written.slots[0].ended == (Ended(state="failed", reason=None, runs=NumberSet([1, 2, 3])),)

"""What the entries of a sweep say, without a ledger or a Batch."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from submitter.history import CANCEL, VOID, Ended, Entry, Generation, Place, Slot, newest_nonce
from submitter.numbers import NumberSet
from submitter.sweep import RunTable
from submitter.writer import Writer

BY = Writer(host="here", pid=1, started="1", token="a")


def entry(n: int, *, nonce: str = "one", added: RunTable, slots: tuple[Slot, ...]) -> Entry:
    return Entry(
        n=n,
        nonce=nonce,
        kind="run",
        at=0,
        by=BY,
        queue="c5a-large-spot",
        definition="definition",
        runs=NumberSet(number for slot in slots for number in slot.runs),
        added=added,
        slots=slots,
    )


def seeds(*numbers: int) -> RunTable:
    return RunTable.product([()], numbers)


def slot(name: str, runs: str, job: str | None) -> Slot:
    return Slot(name=name, runs=NumberSet.parse(runs), job=job)


def test_more_seeds_are_numbered_after_those_there_are() -> None:
    generation = Generation([entry(1, added=seeds(5, 6), slots=(slot("a", "1-2", "job"),))])
    due = generation.due(seeds(5, 1, 6, 2))
    assert [(run.number, run.seed) for run in due] == [(3, 1), (4, 2)]


def test_a_run_that_was_refused_keeps_its_number_when_it_is_sent_again() -> None:
    generation = Generation([entry(1, added=seeds(5, 6), slots=(slot("a", "1", "job"), slot("b", "2", VOID)))])
    assert [(run.number, run.seed) for run in generation.due(seeds(6, 7))] == [(2, 6), (3, 7)]


def test_a_run_whose_answer_is_unknown_is_not_due() -> None:
    generation = Generation([entry(1, added=seeds(5, 6), slots=(slot("a", "1-2", None),))])
    assert not generation.due(seeds(5, 6))
    assert [place.slot.name for place in generation.open_places(NumberSet([2]))] == ["a"]
    assert not generation.open_places(NumberSet([3]))


def test_a_generation_knows_nothing_of_another() -> None:
    entries = [
        entry(1, added=seeds(1, 2), slots=(slot("a", "1-2", "job1"),)),
        entry(2, nonce="two", added=seeds(2), slots=(slot("b", "1", "job2"),)),
    ]
    assert [(run.number, run.seed) for run in Generation(entries).due(seeds(1, 2))] == [(2, 1)]
    assert not Generation(entries, "one").due(seeds(1, 2))


def test_the_newest_slot_of_a_run_counts() -> None:
    entries = [
        entry(1, added=seeds(1, 2), slots=(slot("a", "1-2", "job1"),)),
        entry(2, added=RunTable(), slots=(slot("b", "2", "job2"), slot("c", "1", VOID))),
    ]
    assert {number: place.slot.name for number, place in Generation(entries).newest().items()} == {1: "a", 2: "b"}


def test_a_run_is_found_by_its_place_in_the_array() -> None:
    array = entry(1, added=seeds(1, 2, 3), slots=(slot("a", "1,3", "job1"), slot("b", "2", "job2")))
    assert Place(array, 0).jobs() == {1: "job1:0", 3: "job1:1"}
    assert Place(array, 1).jobs() == {2: "job2"}
    assert Place(replace(array, slots=(slot("a", "1", VOID),)), 0).jobs() == {}


ASKED = st.lists(
    st.tuples(st.lists(st.sampled_from("abc"), min_size=1), st.lists(st.integers(0, 4), min_size=1)), min_size=1
)


@given(ASKED, st.data())
def test_whatever_is_asked_and_refused_no_run_is_due_twice_or_changes_its_number(
    asked: list[tuple[list[str], list[int]]], data: st.DataObject
) -> None:
    """The pure half of the protocol: any sequence of `run` commands; AWS takes, refuses or does not answer each job."""
    entries: list[Entry] = []
    numbers: dict[object, int] = {}
    standing: set[int] = set()
    for rows, wanted_seeds in asked:
        generation = Generation(entries)
        wanted = RunTable.product([(row,) for row in rows], wanted_seeds)
        due = generation.due(wanted)
        for run in due:
            assert numbers.setdefault((run.row, run.seed), run.number) == run.number
        assert standing.isdisjoint(due.numbers)
        assert standing.issuperset({numbers[pair] for pair in wanted} - due.numbers)
        if not due:
            continue
        slots = []
        for start in range(0, len(due), 2):
            job = data.draw(st.sampled_from(["job", None, VOID]))
            slots.append(Slot(name=f"{len(entries)}-{start}", runs=due[start : start + 2].numbers, job=job))
            standing |= set() if job == VOID else set(slots[-1].runs)
        entries.append(entry(len(entries) + 1, added=wanted.minus(generation.table), slots=tuple(slots)))
    assert sorted(numbers.values()) == list(range(1, len(numbers) + 1))
    assert set(Generation(entries).standing()) == standing


def cancel(n: int, runs: str, nonce: str = "one") -> Entry:
    return Entry(n=n, nonce=nonce, kind=CANCEL, at=0, by=BY, runs=NumberSet.parse(runs))


def test_what_was_cancelled_is_not_due_until_it_is_sent_again() -> None:
    """Run 2 was refused before the cancel, so that it stands nowhere."""
    entries = [entry(1, added=seeds(5, 6), slots=(slot("a", "1", "job"), slot("b", "2", VOID))), cancel(2, "1-2")]
    generation = Generation(entries)
    assert str(generation.cancelled) == "1-2"
    assert [(run.number, run.seed) for run in generation.due(seeds(5, 6, 7))] == [(3, 7)]
    again = Generation([*entries, entry(3, added=RunTable(), slots=(slot("c", "2", None), slot("d", "1", VOID)))])
    assert str(again.cancelled) == "1"
    assert again.newest_word() == {1: 2, 2: 3}


def test_a_cancel_begins_no_generation() -> None:
    entries = [
        entry(1, added=seeds(1), slots=(slot("a", "1", "job"),)),
        entry(2, nonce="two", added=seeds(1), slots=(slot("b", "1", "job2"),)),
        cancel(3, "1"),
    ]
    assert newest_nonce(entries) == Generation(entries).nonce == "two"
    assert not Generation(entries).cancelled
    assert str(Generation(entries, "one").cancelled) == "1"


def test_how_a_run_is_run_is_told_by_the_newest_entry_that_sent_it_or_else_asked_for_it() -> None:
    entries = [
        entry(1, added=seeds(1, 2), slots=(slot("a", "1-2", "job"),)),
        cancel(2, "1-2"),
        entry(3, added=RunTable(), slots=(slot("b", "2", VOID),)),
        entry(4, added=seeds(3, 4), slots=(slot("c", "3-4", VOID),)),
        entry(5, added=RunTable(), slots=(slot("d", "3", VOID),)),
    ]
    requests = Generation(entries).newest_request()
    assert {number: request.n for number, request in requests.items()} == {1: 1, 2: 1, 3: 5, 4: 4}


def test_only_the_end_of_the_newest_job_counts() -> None:
    failed = (Ended(state="failed", reason=None, runs=NumberSet([1, 2])),)
    first = entry(1, added=seeds(1, 2), slots=(replace(slot("a", "1-2", "job"), ended=failed),))
    assert str(Generation([first]).ended("failed")) == "1-2"
    second = entry(2, added=RunTable(), slots=(slot("b", "2", "job2"),))
    assert str(Generation([first, second]).ended("failed")) == "1"

"""Choosing runs of a sweep."""

import pytest

from submitter.errors import UsageError
from submitter.numbers import NumberSet
from submitter.selection import Selection, label
from submitter.status import RunStatus
from submitter.sweep import RunTable

AXES = ("env-id", "lr")
RUNS = RunTable.product([("CartPole-v1", "0.1"), ("Acrobot-v1", "0.1")], [1, 2]).runs()


@pytest.mark.parametrize(
    ("selection", "numbers"),
    [
        (Selection(), [1, 2, 3, 4]),
        (Selection(seed=NumberSet([2])), [3, 4]),
        (Selection(index=NumberSet([4])), [4]),
        (Selection(index=NumberSet([1, 3, 4]), seed=NumberSet([2])), [3, 4]),
        (Selection(where=("env-id=Acrobot-v1",)), [2, 4]),
        (Selection(where=("env-id=Acrobot-v1,seed=2",)), [4]),
        (Selection(where=("env-id=Acrobot-v1", "lr=0.1"), seed=NumberSet([1])), [2]),
    ],
)
def test_a_run_meets_every_condition(selection: Selection, numbers: list[int]) -> None:
    assert [run.number for run in selection.choose(RUNS, AXES)] == numbers


@pytest.mark.parametrize(
    "selection", [Selection(seed=NumberSet([3])), Selection(index=NumberSet([5])), Selection(where=("lr=0.2",))]
)
def test_where_no_run_is_like_that_the_choices_are_listed(selection: Selection) -> None:
    with pytest.raises(UsageError) as refused:
        selection.choose(RUNS, AXES)
    assert "1 (env-id=CartPole-v1 lr=0.1 seed=1)" in str(refused.value.remedy)


@pytest.mark.parametrize("text", ["colour=red", "CartPole-v1", "=1"])
def test_a_condition_on_what_the_sweep_does_not_have_names_what_it_has(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        Selection(where=(text,)).choose(RUNS, AXES)
    assert "env-id=VALUE, lr=VALUE, seed=VALUE" in str(refused.value.remedy)


def test_an_ambiguous_choice_of_one_lists_the_candidates() -> None:
    with pytest.raises(UsageError) as refused:
        Selection(seed=NumberSet([2])).choose_one(RUNS, AXES)
    assert "3 (env-id=CartPole-v1 lr=0.1 seed=2), 4 (env-id=Acrobot-v1 lr=0.1 seed=2)" in str(refused.value.remedy)


def test_runs_of_a_command_without_a_seed_are_told_apart_by_their_numbers() -> None:
    """The table tells equal jobs apart by numbers where seeds would stand: nobody is shown those."""
    plain = RunTable.from_pairs([((), None), ((), 2), ((), 3)]).runs().unseeded()
    assert [label(run, ()) for run in plain] == ["run=1", "run=2", "run=3"]
    with pytest.raises(UsageError) as refused:
        Selection().choose_one(plain, ())
    assert refused.value.remedy == "Choose with --index or --where among: 1, 2, 3."
    rows = RunTable.product([("a",), ("b",)], [None, 2]).runs().unseeded()
    assert [label(run, ("x",)) for run in rows] == ["x=a run=1", "x=b run=2", "x=a run=3", "x=b run=4"]
    assert [run.number for run in Selection(where=("x=b",)).choose(rows, ("x",))] == [2, 4]
    with pytest.raises(UsageError) as refused:
        Selection(where=("x=b",)).choose_one(rows, ("x",))
    assert refused.value.remedy == "Choose with --index or --where among: 2 (x=b), 4 (x=b)."


@pytest.mark.parametrize(
    ("selection", "axes", "message", "remedy"),
    [
        (
            Selection(seed=NumberSet([2])),
            ("x",),
            "The runs of the sweep have no seed.",
            "Choose them with --index or --where.",
        ),
        (
            Selection(where=("seed=2",)),
            ("x",),
            "--where seed=2 does not name a parameter",
            "Write one of x=VALUE.",
        ),
        (Selection(where=("seed=2",)), (), "--where seed=2 does not name a parameter", "It has none"),
    ],
)
def test_runs_without_a_seed_cannot_be_chosen_by_one(
    selection: Selection, axes: tuple[str, ...], message: str, remedy: str
) -> None:
    runs = RunTable.product([("a",) * len(axes)], [None, 2]).runs().unseeded()
    with pytest.raises(UsageError, match=message) as refused:
        selection.choose(runs, axes)
    assert str(refused.value.remedy).startswith(remedy)


def test_failed_are_those_that_failed_or_were_cancelled() -> None:
    runs = [RunStatus(number=n, row=(), seed=n, status=s) for n, s in enumerate(("succeeded", "failed", "cancelled"))]
    assert [run.status for run in Selection(failed=True).choose(runs, ())] == ["failed", "cancelled"]
    assert not Selection()
    assert Selection(failed=True)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('layers="64,64"', 2),
        ('layers="64,64",seed=1', 2),
        ('seed=1, layers="64,64"', 2),
        ("layers=64", 1),
        ('layers="say ""hi"""', 3),
        ("layers=", 4),
        ('layers=""', 4),
        ("layers=a=b", 5),
    ],
)
def test_a_value_with_a_comma_is_quoted_as_in_a_grid(text: str, number: int) -> None:
    runs = RunTable.product([("64",), ("64,64",), ('say "hi"',), ("",), ("a=b",)], [1]).runs()
    assert [run.number for run in Selection(where=(text,)).choose(runs, ("layers",))] == [number]


def test_a_condition_that_is_not_well_quoted_is_refused() -> None:
    with pytest.raises(UsageError, match="not well quoted"):
        Selection(where=('env-id="Acrobot-v1',)).choose(RUNS, AXES)

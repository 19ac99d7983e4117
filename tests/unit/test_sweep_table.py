import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submitter.grid import Axis, grid_rows
from submitter.numbers import NumberSet
from submitter.sweep import NO_ROWS, Pair, Run, RunTable

FEW = settings(max_examples=80, derandomize=True, deadline=None)
rows = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"))
pair_lists = st.lists(st.tuples(rows, st.none() | st.integers(0, 5)))
tables = st.builds(RunTable.from_pairs, pair_lists)


def test_seeds_are_slowest_so_that_half_a_sweep_is_whole_seeds() -> None:
    table = RunTable.product([("a",), ("b",)], [1, 2])
    assert list(table) == [(("a",), 1), (("b",), 1), (("a",), 2), (("b",), 2)]
    assert table.runs()[2] == Run(3, ("a",), 2)


def test_a_sweep_without_axes_has_one_run_a_seed() -> None:
    assert list(RunTable.product(NO_ROWS, [3, 4])) == [((), 3), ((), 4)]
    assert list(RunTable.product(NO_ROWS, [None])) == [((), None)]


@FEW
@given(pair_lists)
def test_a_table_holds_its_pairs_once_each(pairs: list[Pair]) -> None:
    table = RunTable.from_pairs(pairs)
    assert set(table) == set(pairs)
    assert len(table) == len(list(table)) == len(set(pairs))
    assert [table[index] for index in range(len(table))] == list(table)
    assert [table.number(pair) for pair in table] == list(range(1, len(table) + 1))
    assert table[1:3] == list(table)[1:3]


@FEW
@given(tables, tables)
def test_minus_leaves_what_the_other_has_not(left: RunTable, right: RunTable) -> None:
    rest = left.minus(right)
    assert set(rest) == set(left) - set(right)
    assert all((pair in right) == (pair in set(right)) for pair in left)


@FEW
@given(tables, tables)
def test_an_extended_table_keeps_the_numbers_that_runs_had(old: RunTable, wanted: RunTable) -> None:
    new = old + wanted.minus(old)
    assert list(new)[: len(old)] == list(old)
    assert set(new) == set(old) | set(wanted)
    numbers = new.numbers(wanted)
    assert {(run.row, run.seed) for run in new.runs(numbers)} == set(wanted)
    assert [run.number for run in new.runs(numbers)] == list(numbers)


@FEW
@given(tables)
def test_a_table_comes_back_from_json(table: RunTable) -> None:
    again = RunTable.from_json(json.loads(json.dumps(table.to_json())))
    assert again == table
    assert hash(again) == hash(table)
    assert list(again) == list(table)


def test_a_large_grid_stays_small_in_json_also_when_it_was_extended() -> None:
    """The ledger's item holds at most 400 KB, and it is written with every submission."""
    grid = grid_rows([Axis("a", tuple("0123456789")), Axis("b", tuple("0123456789")), Axis("c", tuple("0123456789"))])
    table = RunTable.product(grid, range(1, 11))
    assert len(table) == 10_000
    assert len(json.dumps(table.to_json())) < 400
    more = RunTable.product(grid, range(1, 21)).minus(table)
    assert more == RunTable.product(grid, range(11, 21))
    assert len(json.dumps(more.to_json())) < 400


def test_another_value_of_an_axis_adds_a_rectangle() -> None:
    seeds = range(1, 101)
    old = RunTable.product(grid_rows([Axis("a", ("1", "2")), Axis("b", ("x", "y"))]), seeds)
    new = RunTable.product(grid_rows([Axis("a", ("1", "2", "3")), Axis("b", ("x", "y"))]), seeds)
    assert new.minus(old).to_json() == [{"rows": [[["3"]], [["x"], ["y"]]], "seeds": "1-100"}]


@FEW
@given(tables, st.data())
def test_runs_are_chosen_by_number_and_sliced_like_a_list(table: RunTable, data: st.DataObject) -> None:
    numbers = NumberSet(data.draw(st.sets(st.sampled_from(range(1, len(table) + 1))))) if table else NumberSet()
    runs = table.runs(numbers)
    listed = [Run(number, *table[number - 1]) for number in numbers]
    assert list(runs) == [runs[index] for index in range(len(runs))] == listed
    assert list(runs[1:4]) == listed[1:4]
    assert list(runs[::2]) == listed[::2]
    with pytest.raises(IndexError):
        runs[len(runs)]

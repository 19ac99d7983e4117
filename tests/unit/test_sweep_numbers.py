import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submitter.errors import UsageError
from submitter.numbers import MAX_NUMBER, NumberSet, Seeds, parse_seeds, seeds_from

FEW = settings(max_examples=60, derandomize=True, deadline=None)
numbers = st.lists(st.integers(0, 60) | st.integers(0, MAX_NUMBER))


@pytest.mark.parametrize(
    ("text", "values", "repeated"),
    [
        ("1-3,7", (1, 2, 3, 7), ()),
        ("7, 1-3", (7, 1, 2, 3), ()),
        ("0,0,1", (0, 1), (0,)),
        ("1-3,2", (1, 2, 3), (2,)),
        ("5,5,5", (5,), (5,)),
        ("007", (7,), ()),
        (str(MAX_NUMBER), (MAX_NUMBER,), ()),
    ],
)
def test_seeds_keep_their_order_and_repeats_are_taken_once_and_reported(
    text: str, values: tuple[int, ...], repeated: tuple[int, ...]
) -> None:
    assert parse_seeds(text) == Seeds(values, repeated)


@pytest.mark.parametrize(
    "text", ["", " ", "3-1", "a", "-1", "1-", "1,,2", "1.5", "1 2", "٣", "1-2-3", str(MAX_NUMBER + 1), "1-9999999999"]
)
def test_what_is_no_list_of_seeds_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_seeds(text)


def test_what_several_commands_have_recorded_may_be_more_than_one_command_takes() -> None:
    assert len(NumberSet.parse("1-3000000")) == 3_000_000
    with pytest.raises(UsageError, match="more than one command takes"):
        NumberSet.parse("1-3000000", typed=True)


def test_a_range_that_runs_backwards_is_answered_with_the_right_one() -> None:
    with pytest.raises(UsageError, match="1-3"):
        parse_seeds("3-1")


def test_num_seed_counts_from_the_start_seed() -> None:
    assert seeds_from(3) == Seeds((1, 2, 3))
    assert seeds_from(2, 0) == Seeds((0, 1))


@pytest.mark.parametrize(("count", "start"), [(0, 1), (-1, 1), (1, -1), (2, MAX_NUMBER), (2_000_000, 1)])
def test_no_seeds_and_impossible_ones_are_refused(count: int, start: int) -> None:
    with pytest.raises(UsageError):
        seeds_from(count, start)


@FEW
@given(numbers)
def test_a_number_set_is_the_set_of_its_numbers_in_order(items: list[int]) -> None:
    found = NumberSet(items)
    assert list(found) == sorted(set(items))
    assert [found[index] for index in range(len(found))] == sorted(set(items))
    assert NumberSet.parse(str(found)) == found
    assert hash(NumberSet.parse(str(found))) == hash(found)
    assert all(item in found for item in items)
    assert [found.count_to(item) for item in items] == [sum(n <= item for n in set(items)) for item in items]


@FEW
@given(numbers, numbers)
def test_number_sets_have_the_operations_of_sets(left: list[int], right: list[int]) -> None:
    a, b = NumberSet(left), NumberSet(right)
    assert list(a | b) == sorted({*left, *right})
    assert list(a & b) == sorted({*left} & {*right})
    assert list(a - b) == sorted({*left} - {*right})
    assert list(NumberSet.union([a, b, a])) == sorted({*left, *right})
    assert (a <= b) == ({*left} <= {*right})
    assert (a == b) == ({*left} == {*right}) == (a == {*right})
    assert a.isdisjoint(b) == {*left}.isdisjoint(right)


def test_a_number_set_writes_neighbours_as_a_range() -> None:
    assert str(NumberSet([3, 1, 2, 7])) == "1-3,7"
    assert str(NumberSet(range(1, 10_001))) == "1-10000"
    assert str(NumberSet()) == ""
    with pytest.raises(IndexError):
        NumberSet([1])[1]

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submitter.errors import UsageError
from submitter.grid import Axis, grid_rows, parse_grid


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("env-id=CartPole-v1,Acrobot-v1", ("CartPole-v1", "Acrobot-v1")),
        ("env-id=CartPole-v1, Acrobot-v1", ("CartPole-v1", "Acrobot-v1")),
        ('env-id="a,b",c', ("a,b", "c")),
        ('env-id=" a ","say ""hi"""', (" a ", 'say "hi"')),
        ('env-id=""', ("",)),
        ('env-id={"k":1}', ('{"k":1}',)),
        ("env-id=x=1,$HOME,-1", ("x=1", "$HOME", "-1")),
    ],
)
def test_an_axis_is_a_name_and_values_as_in_a_csv_file(option: str, values: tuple[str, ...]) -> None:
    assert parse_grid([option]) == [Axis("env-id", values)]


@pytest.mark.parametrize(
    "option",
    [
        "",
        "a",
        "a=",
        "=b",
        "a=b,,c",
        "a=b,",
        'a="x"y',
        'a="x',
        "a=b,b",
        "--a=b",
        "seed=1",
        "a b=c",
        "é=1",
        "a=x\0y",
        "a=\ud800",
    ],
)
def test_an_axis_that_is_empty_repeats_itself_or_has_no_usable_name_is_refused(option: str) -> None:
    with pytest.raises(UsageError):
        parse_grid([option])


def test_the_same_axis_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="given twice"):
        parse_grid(["a=1", "b=1", "a=2"])


def test_seed_as_an_axis_is_answered_with_the_seed_options() -> None:
    with pytest.raises(UsageError, match="--seeds"):
        parse_grid(["seed=1,2"])


def test_rows_are_all_combinations_with_the_last_axis_fastest() -> None:
    assert grid_rows(parse_grid(["a=1,2", "b=x,y"])) == [("1", "x"), ("1", "y"), ("2", "x"), ("2", "y")]
    assert grid_rows([]) == [()]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), min_size=1, unique=True))
def test_whatever_a_csv_writer_quotes_comes_back(values: list[str]) -> None:
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow(values)
    assert parse_grid([f"a={line.getvalue()}"]) == [Axis("a", tuple(values))]

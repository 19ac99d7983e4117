"""Runs from a file."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submitter.asked import Asked, Like, WhatOptions, asked
from submitter.errors import UsageError
from submitter.params import parse_params
from submitter.sweep import RunTable

values = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def ask(text: str | None = None, *, file: str = "runs.csv", **options: Any) -> Asked:
    params = None if text is None else parse_params(text, file)
    return asked(WhatOptions(command="python train.py", params=params, **options))


def commands(what: Asked) -> list[str]:
    return [what.template.render(row, seed) for row, seed in what.runs]


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.tuples(values, values), min_size=1, max_size=5, unique=True))
def test_values_of_json_lines_arrive_unchanged(rows: list[tuple[str, str]]) -> None:
    text = "\n".join(json.dumps({"a": a, "b": b}) for a, b in rows)
    assert parse_params(text, "runs.jsonl").rows == tuple(rows)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.tuples(values, values), min_size=1, max_size=5, unique=True))
def test_values_of_a_csv_file_arrive_unchanged(rows: list[tuple[str, str]]) -> None:
    lines = ["a,b", *(",".join('"' + value.replace('"', '""') + '"' for value in row) for row in rows)]
    assert parse_params("\r\n".join(lines) + "\r\n", "runs.csv").rows == tuple(rows)


def test_numbers_and_names_of_json_stay_as_they_are_written() -> None:
    read = parse_params(
        '{"lr": 1e-3, "n": 10, "cuda": true, "x": null}\n\n{"n": 1.50, "lr": 0, "x": "", "cuda": false}', "-"
    )
    assert read.axes == ("lr", "n", "cuda", "x")
    assert read.rows == (("1e-3", "10", "true", "null"), ("0", "1.50", "false", ""))


def test_a_file_without_a_known_ending_is_read_by_its_first_character() -> None:
    assert parse_params('{"a": 1}', "-").axes == ("a",)
    assert parse_params("\ufeffa\n1\n", "-").axes == ("a",)


def test_a_row_is_a_run_for_each_seed_and_combination_of_the_grid() -> None:
    what = ask("lr,gamma\n0.1,0.9\n0.2,0.99\n", num_seed=2, grid=("env-id=A,B",))
    assert what.axes == ("lr", "gamma", "env-id")
    assert commands(what) == [
        f"python train.py --lr {lr} --gamma {gamma} --env-id {env} --seed {seed}"
        for seed in (1, 2)
        for lr, gamma in (("0.1", "0.9"), ("0.2", "0.99"))
        for env in ("A", "B")
    ]


def test_a_column_of_seeds_gives_each_row_its_own() -> None:
    what = ask("seed,lr\n7,0.1\n8,0.2\n7,0.2\n", grid=("env-id=A,B",))
    assert sorted(what.runs) == sorted(
        ((lr, env), seed) for seed, lr in ((7, "0.1"), (8, "0.2"), (7, "0.2")) for env in ("A", "B")
    )


def test_rows_that_are_there_twice_are_taken_once_and_said_so() -> None:
    what = ask("lr\n0.1\n0.1\n0.2\n", seeds="3,3")
    assert len(what.runs) == 2
    assert [text.partition(":")[0] for text in what.repeated] == [
        "Seeds named more than once are taken once",
        "Rows of the file that are there more than once are taken once",
    ]


def test_equal_jobs_have_no_seed_in_their_command() -> None:
    assert commands(ask(no_seed=True, num_jobs=3)) == ["python train.py"] * 3
    assert commands(ask(no_seed=True)) == ["python train.py"]
    three = ask("lr\n1\n2\n", no_seed=True, num_jobs=3)
    assert RunTable.from_json(three.runs.to_json()) == three.runs
    assert len(three.runs.minus(ask("lr\n1\n2\n", no_seed=True).runs)) == 4, "more jobs go on from the one there was"
    like = ask("lr\n3\n", no_seed=True, like=Like(("lr",), three.runs)).runs
    assert list(RunTable.from_json(like.to_json())) == [(("3",), seed) for seed in (None, 2, 3)]
    assert commands(ask("lr\n1\n2\n", no_seed=True)) == ["python train.py --lr 1", "python train.py --lr 2"]


def test_another_sweeps_runs_stand_for_those_that_are_not_given() -> None:
    table = RunTable.product([("A",), ("B",)], [1]) + RunTable.product([("C",)], [2])
    other = Like(("env-id",), table)
    assert ask(like=other).runs == table
    assert ask(like=other, seeds="5").runs == RunTable.product([("A",), ("B",), ("C",)], [5])
    what = ask(like=other, grid=("lr=0.1",))
    assert (what.axes, what.runs) == (("lr",), RunTable.product([("0.1",)], [1, 2]))


def test_without_seeds_there_is_one_run_of_each_row_that_another_sweep_has() -> None:
    other = Like(("env-id",), RunTable.product([("A",), ("B",)], [1, 2, 3]))
    once = ["python train.py --env-id A", "python train.py --env-id B"]
    assert commands(ask(like=other, no_seed=True)) == once
    assert commands(ask(like=other, no_seed=True, num_jobs=2)) == once * 2
    assert commands(ask(like=other, no_seed=True, grid=("lr=1",))) == ["python train.py --lr 1"]
    without = Like(("env-id",), ask(no_seed=True, num_jobs=3, grid=("env-id=A,B",)).runs)
    assert ask(like=without, no_seed=True).runs == without.table


@pytest.mark.parametrize(
    "options",
    [
        {"grid": tuple(f"a{axis}={','.join(map(str, range(1000)))}" for axis in range(3))},
        {"grid": ("a=" + ",".join(map(str, range(1001))),), "num_seed": 1000},
        {"grid": ("a=" + ",".join(map(str, range(1001))),), "no_seed": True, "num_jobs": 1000},
        {"grid": ("a=" + ",".join(map(str, range(1001))),), "text": "b\n" + "".join(f"{row}\n" for row in range(1000))},
        {"like": Like((), RunTable.product([()], range(1000))), "grid": ("a=" + ",".join(map(str, range(1001))),)},
    ],
)
def test_more_runs_than_anybody_means_are_refused_before_they_are_made(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"runs are more than one command takes") as refusal:
        ask(**options)
    assert refusal.value.remedy == "Ask for at most 1,000,000."


@pytest.mark.parametrize(
    ("text", "file", "sentence"),
    [
        ("", "r.csv", "r.csv has no runs."),
        ("a,b\n", "r.csv", "r.csv has no runs."),
        ("a,b\n1\n", "r.csv", "Line 2 of r.csv: it has 1 values, and the header has 2 names."),
        ("a,a\n1,2\n", "r.csv", "Line 1 of r.csv: a is there twice."),
        ("a\n\n1\n\n", "r.csv", "Line 2 of r.csv: it is empty."),
        ('a\n"1\n', "r.csv", "Line 2 of r.csv: unexpected end of data."),
        ("--lr\n1\n", "r.csv", "Line 1 of r.csv: '--lr' is not a name for an axis."),
        ('\n{"a b": 1}', "r.jsonl", "Line 2 of r.jsonl: 'a b' is not a name for an axis."),
        (f"seed\n1\n{10**20}\n", "r.csv", f"Line 3 of r.csv: {10**20} is too large."),
        ('{"a": 1}\n{"a": ' + "[" * 100_000, "r.jsonl", "Line 2 of r.jsonl: its brackets are nested too deeply."),
        ("seed\nx\n", "r.csv", "Line 2 of r.csv: 'x' is not a seed."),
        ('{"a": 1}\n{"b": 1}', "r.jsonl", "Line 2 of r.jsonl: its parameters differ from the first line's by a, b."),
        ('{"a": [1]}', "r.jsonl", "Line 1 of r.jsonl: a is no single value."),
        ('{"a": {}}', "r.jsonl", "Line 1 of r.jsonl: a is no single value."),
        ('{"a": 1, "a": 2}', "r.jsonl", "Line 1 of r.jsonl: a is there twice."),
        ("[1]", "r.jsonl", "Line 1 of r.jsonl: it is no JSON object."),
        ('{"a": 1', "r.jsonl", "Line 1 of r.jsonl: it is not JSON: Expecting ',' delimiter."),
        ('{"a": "\\u0000"}', "r.jsonl", "Line 1 of r.jsonl: a value of a is not valid text: '\\x00'."),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_with_its_line(text: str, file: str, sentence: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_params(text, file)
    assert refusal.value.message == sentence
    assert refusal.value.remedy
    assert "--grid" not in refusal.value.remedy


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        (None, {"no_seed": True, "num_seed": 2}, "--no-seed leaves no place for seeds."),
        (None, {"num_jobs": 2}, "--num-jobs is for commands without a seed."),
        (None, {"no_seed": True, "num_jobs": 0}, "--num-jobs 0 asks for no run."),
        ("lr\n1\n", {"grid": ("lr=2",)}, "lr is in the file and in --grid."),
        ("seed\n1\n", {"seeds": "2"}, "The file has a column of seeds, and the command line asks for others."),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    text: str | None, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match="^" + sentence):
        ask(text, **options)

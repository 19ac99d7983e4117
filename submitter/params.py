"""Runs listed in a file: `--params FILE`, a CSV file with a header or one JSON object a line. A row is a run. Pure."""

import csv
import io
import json
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from submitter.errors import UsageError
from submitter.grid import check_axis_name, check_value
from submitter.numbers import parse_seeds
from submitter.sweep import Row
from submitter.template import SEED

_HOW_JSON: Final = 'Write one object a line, such as {"env-id": "CartPole-v1", "learning-rate": 0.001}.'
_HOW_NAMED: Final = "Name parameters as the program does, without the dashes: letters, digits and _.@/+-."


@dataclass(frozen=True, kw_only=True)
class Params:
    """What a file asks for.

    Attributes:
        file: The file's name.
        axes: Names of the parameters.
        rows: The values of each row, each combination of row and seed once.
        seeds: The seed of each row, where the file has a column `seed`; else None.
        repeated: How many rows were left out because they were there before.
    """

    file: str
    axes: tuple[str, ...]
    rows: tuple[Row, ...]
    seeds: tuple[int, ...] | None
    repeated: int


@dataclass(frozen=True)
class _Line:
    number: int
    values: dict[str, str]


def parse_params(text: str, file: str) -> Params:
    """Read a file of parameters; values stay as they are written, numbers of JSON too.

    Args:
        text: What is in the file.
        file: Its name, whose end says how to read it; for others than .csv and .jsonl, a first `{` means JSON.

    Raises:
        UsageError: It is neither, has no rows, or a row has other parameters than the first one.
    """
    text = text.removeprefix("\ufeff")
    as_json = file.endswith(".jsonl") or (not file.endswith(".csv") and text.lstrip().startswith("{"))
    lines = list(_json_lines(text, file) if as_json else _csv_lines(text, file))
    if not lines:
        raise UsageError(f"{file} has no runs.", "Write one a line; a CSV file has the parameters' names above them.")
    names = [name for name in lines[0].values if name != SEED]
    with _refusals_of(file, lines[0].number if as_json else 1, _HOW_NAMED):
        for name in names:
            check_axis_name(name)
    pairs: dict[tuple[Row, int | None], None] = {}
    for line in lines:
        with _refusals_of(file, line.number):
            row = tuple(check_value(name, line.values[name]) for name in names)
            pairs[row, _seed(line)] = None
    return Params(
        file=file,
        axes=tuple(names),
        rows=tuple(row for row, _ in pairs),
        seeds=tuple(seed for _, seed in pairs if seed is not None) or None,
        repeated=len(lines) - len(pairs),
    )


@contextmanager
def _refusals_of(file: str, line: int, remedy: str | None = None) -> Iterator[None]:
    """Say where in a file it is what is refused, with another remedy where the one for the command line is of no use.

    Raises:
        UsageError: It was refused.
    """
    try:
        yield
    except UsageError as error:
        words = error.message[0].lower() + error.message[1:].removesuffix(".")
        _refuse(file, line, words, remedy or error.remedy)


def _seed(line: _Line) -> int | None:
    if (text := line.values.get(SEED)) is None:
        return None
    seeds = parse_seeds(text) if text.strip().isdecimal() else None
    if seeds is None:
        raise UsageError(f"{text!r} is not a seed.", "Write a whole number, or leave the column out.")
    return seeds.values[0]


def _csv_lines(text: str, file: str) -> Iterator[_Line]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = next(reader, [])
        if repeated := {name for name in names if names.count(name) > 1}:
            _refuse(file, 1, f"{', '.join(sorted(repeated))} is there twice", "Give each column a name of its own.")
        empty = None
        for values in reader:
            if not values:
                empty = reader.line_num
                continue
            if empty and len(names) == 1:
                _refuse(file, empty, "it is empty", 'Write "" for an empty value, or remove the line.')
            if len(values) != len(names):
                has = f"it has {len(values)} values, and the header has {len(names)} names"
                _refuse(file, reader.line_num, has, "Put values with commas in double quotes.")
            yield _Line(reader.line_num, dict(zip(names, values, strict=True)))
    except csv.Error as error:
        _refuse(file, reader.line_num, str(error), "Write it as spreadsheets save CSV files.")


def _json_lines(text: str, file: str) -> Iterator[_Line]:
    names: Set[str] | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            # Numbers stay as they are written: 1e-3 is 1e-3.
            values = json.loads(line, object_pairs_hook=list, parse_float=str, parse_int=str)
        except json.JSONDecodeError as error:
            _refuse(file, number, f"it is not JSON: {error.msg}", _HOW_JSON)
        except RecursionError:
            _refuse(file, number, "its brackets are nested too deeply", _HOW_JSON)
        if not line.lstrip().startswith("{"):
            _refuse(file, number, "it is no JSON object", _HOW_JSON)
        found = _texts(values, file, number)
        names = found.keys() if names is None else names
        if found.keys() != names:
            other = ", ".join(sorted(found.keys() ^ names))
            _refuse(file, number, f"its parameters differ from the first line's by {other}", "Give all lines the same.")
        yield _Line(number, found)


def _texts(pairs: Sequence[tuple[str, Any]], file: str, number: int) -> dict[str, str]:
    texts = {}
    for name, value in pairs:
        if name in texts:
            _refuse(file, number, f"{name} is there twice", "Give each parameter one value.")
        if isinstance(value, list):
            _refuse(file, number, f"{name} is no single value", "Put a value that is JSON itself in quotes, as a text.")
        texts[name] = value if isinstance(value, str) else json.dumps(value)
    return texts


def _refuse(file: str, line: int, what: str, remedy: str | None) -> NoReturn:
    raise UsageError(f"Line {line} of {file}: {what}.", remedy)

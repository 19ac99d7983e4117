"""Tables, documents and figures of speech."""

import json

import pytest

from submitter import render


def test_a_table_aligns_numbers_to_the_right_and_words_to_the_left() -> None:
    shown = render.table(("name", "runs", "log"), [("a", 10, None), ("long-name", 2, "x")])
    assert shown.splitlines() == ["name       runs  log", "a            10  -", "long-name     2  x"]


def test_a_table_without_rows_is_its_header() -> None:
    assert render.table(("name", "runs"), []) == "name  runs"


def test_a_document_names_its_schema_first() -> None:
    assert list(json.loads(render.document("run", {"submitted": 0}))) == ["schema", "submitted"]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (7620, "2 h 07 min"), (-3, "0 s")]
)
def test_a_duration_has_at_most_two_units(seconds: float, words: str) -> None:
    assert render.duration(seconds) == words


def test_one_is_singular() -> None:
    assert [render.count(number, "run") for number in (0, 1, 1234)] == ["0 runs", "1 run", "1,234 runs"]

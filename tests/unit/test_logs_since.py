"""Since when lines of a log are wanted."""

from datetime import UTC, datetime

import pytest

from submitter.errors import UsageError
from submitter.logs import since_ms

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds_ago"), [("30s", 30), ("10m", 600), ("1.5h", 5400), ("2d", 172_800), ("0s", 0)]
)
def test_a_span_is_counted_back_from_now(text: str, seconds_ago: float) -> None:
    assert since_ms(text, NOW) == (NOW - seconds_ago) * 1000


@pytest.mark.parametrize("text", ["2026-11-30T18:00:00Z", "2026-11-30T20:00+02:00"])
def test_a_time_has_its_offset(text: str) -> None:
    assert since_ms(text, NOW) == datetime(2026, 11, 30, 18, tzinfo=UTC).timestamp() * 1000


def test_a_time_without_an_offset_is_local() -> None:
    assert since_ms("2026-11-30T18:00", NOW) == datetime(2026, 11, 30, 18).astimezone().timestamp() * 1000


@pytest.mark.parametrize("text", ["", "10", "ten minutes", "-5m", "10 m"])
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match="neither a span nor a time"):
        since_ms(text, NOW)


@pytest.mark.parametrize("text", ["1960-01-01", "99999999d", "9" * 400 + "d", "0001-01-01T00:00:00+23:00"])
def test_what_is_before_the_epoch_aws_would_not_take(text: str) -> None:
    with pytest.raises(UsageError, match="is before 1970"):
        since_ms(text, NOW)

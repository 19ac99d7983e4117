"""How results look: tables for people, JSON documents for scripts."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return left-aligned columns, two spaces apart; numbers are right-aligned and None is shown as `-`."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    numeric = [
        any(isinstance(value, int | float) for value in column)
        and all(value is None or isinstance(value, int | float) for value in column)
        for column in (zip(*rows, strict=True) if rows else [()] * len(header))
    ]
    lines = [
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in [list(header), *cells]
    ]
    return "\n".join(lines)


def document(kind: str, values: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """Return a JSON document whose `schema` names its kind and version, so that scripts can tell what they read.

    Without an indent it is one line, for a stream of them.
    """
    return json.dumps({"schema": f"rl-batch/{kind}/v1", **values}, indent=indent, ensure_ascii=False)


def count(number: int, noun: str) -> str:
    """Return `1 run`, `3 runs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return `42 s`, `3 min 05 s`, `2 h 07 min`: two units at most."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    return str(value)

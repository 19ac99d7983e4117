"""The axes of a sweep as people write them: `--grid env-id=CartPole-v1,Acrobot-v1`."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

from submitter.errors import UsageError
from submitter.sweep import Row
from submitter.texts import is_text

_AXIS_NAME: Final = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9_.@/+-]*", re.ASCII)
_VALUE: Final = re.compile(r'\s*(?:"((?:[^"]|"")*)"|(?!")([^,]*?))\s*(?=,|\Z)')
_HOW: Final = "Write it like --grid env-id=CartPole-v1,Acrobot-v1."


class Axis(NamedTuple):
    """One dimension of a grid."""

    name: str
    values: tuple[str, ...]


def parse_grid(options: Sequence[str]) -> list[Axis]:
    """Read the `--grid` options, one axis each.

    Values are separated by commas. One that holds a comma, or blanks at its ends, is put in double quotes, in which
    `""` is a quote, as in a CSV file.

    Raises:
        UsageError: No name or no value, an axis or a value named twice, a name that no option could have.
    """
    axes = [_parse_axis(option) for option in options]
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"The axis {name} is given twice.", "Give all its values in one --grid.")
    return axes


def grid_rows(axes: Sequence[Axis]) -> list[Row]:
    """Return every combination of the axes' values, the last axis fastest; without axes the one empty row."""
    return list(product(*(axis.values for axis in axes)))


def check_axis_name(name: str) -> str:
    """Return the name of an axis.

    Raises:
        UsageError: It is empty, `seed`, or not what an option can be called.
    """
    if name == "seed":
        raise UsageError("seed is no axis: every sweep has it.", "Use --seeds or --num-seed.")
    if not _AXIS_NAME.fullmatch(name):
        remedy = f"Leave the dashes out: {name.lstrip('-')}=..." if name.startswith("-") else _HOW
        raise UsageError(f"{name!r} is not a name for an axis.", remedy)
    return name


def check_seed_flag(flag: str) -> None:
    """Check the name of the option that a command has for its seed.

    Raises:
        UsageError: No option could have it.
    """
    if not _AXIS_NAME.fullmatch(flag.lstrip("-")):
        raise UsageError(f"--seed-flag {flag!r} is not an option's name.", "Write it like --seed-flag --random-seed.")


def check_value(name: str, value: str) -> str:
    """Return a value of an axis.

    Raises:
        UsageError: It holds what no program can get as an argument.
    """
    if not is_text(value):
        raise UsageError(f"A value of {name} is not valid text: {value!r}.", "Write it in UTF-8, without NUL.")
    return value


def _parse_axis(option: str) -> Axis:
    name, equals, text = option.partition("=")
    if not equals:
        raise UsageError(f"--grid {option!r} has no values.", _HOW)
    check_axis_name(name)
    values = Counter(check_value(name, value) for value in _split(name, text))
    if repeated := [value for value, times in values.items() if times > 1]:
        raise UsageError(f"The axis {name} has the value {repeated[0]} twice.", "Name each value once.")
    return Axis(name, tuple(values))


def next_value(text: str, at: int) -> tuple[str, int] | None:
    """Return the value that begins at this position, and the position of the comma or the end after it.

    Returns:
        None when it is not well quoted.
    """
    if (match := _VALUE.match(text, at)) is None:
        return None
    quoted, plain = match.groups()
    return plain if quoted is None else quoted.replace('""', '"'), match.end()


def _split(name: str, text: str) -> list[str]:
    values, at = [], 0
    while at <= len(text):
        if (found := next_value(text, at)) is None:
            raise UsageError(f"A value of {name} is not well quoted.", 'A quote inside of quotes is written as "".')
        value, end = found
        if not text[at:end].strip():
            raise UsageError(f"The axis {name} has an empty value.", f'{_HOW} An empty value is written as "".')
        values.append(value)
        at = end + 1
    return values

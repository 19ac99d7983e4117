"""Where a secret's value could be read by others: all that is typed for a sweep and kept, shown or handed on. Pure."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from submitter.sweep import RunTable

_QUOTING: Final = re.compile(r"\\\n|[\"'\\]")
"""What a shell takes out of a word; a backslash takes the end of the line with it."""


def readable(*values: object, runs: RunTable) -> Iterator[str]:
    """Yield every text that the values hold, those of a sweep's runs, and what a shell would make of each.

    Args:
        values: Texts, and collections of texts however deep, with the names in them; anything else has none.
        runs: The runs.
    """
    rows = (factor for block in runs.blocks for factor in block.factors)
    for text in _texts([*values, *rows]):
        yield text
        if _QUOTING.search(text):
            yield _QUOTING.sub("", text)
            yield from _words(text)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, Iterable):
        for each in value:
            yield from _texts(each)


def _words(text: str) -> list[str]:
    """Return the words of a command, which may hold quotes themselves; none where it is not well quoted."""
    try:
        return shlex.split(text)
    except ValueError:
        return []

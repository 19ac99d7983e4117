"""A block of text on a terminal that is drawn over itself."""

import shutil
from typing import IO


class Live:
    """Shows one text in the place of the one before.

    The terminal's state is never changed, so that it is right however the program ends.

    Args:
        terminal: Where the text goes.
    """

    def __init__(self, terminal: IO[str]) -> None:
        self._terminal = terminal
        self._lengths: list[int] = []

    @property
    def rows(self) -> int:
        """How many lines fit."""
        return max(1, shutil.get_terminal_size().lines - 1)

    def show(self, text: str) -> None:
        """Draw a text, cut to what fits, over the one before."""
        width = shutil.get_terminal_size().columns
        lines = [line[: width - 1] for line in text.splitlines()[: self.rows]]
        # A terminal that was made narrower meanwhile has wrapped what it shows.
        up = sum(max(1, -(-length // width)) for length in self._lengths)
        back = f"\x1b[{up}A\r" if up else ""
        self._terminal.write(back + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
        self._terminal.flush()
        self._lengths = [len(line) for line in lines]

"""A block of text that is drawn over itself, as a terminal shows it."""

import io
import re

import pytest

from submitter.live import Live


class Screen(io.StringIO):
    """A terminal that knows what is used: lines, cursor up, and clearing to the end of the line or the screen."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = [""]
        self.row = 0

    def write(self, text: str) -> int:
        for up, clear, end, plain in re.findall(r"\x1b\[(\d+)A\r|(\x1b\[K)|(\x1b\[J)|(\n|[^\x1b\n]+)", text):
            if up:
                self.row -= int(up)
                assert self.row >= 0
            elif clear:
                self.lines[self.row] = self.lines[self.row][: self.column]
            elif end:
                del self.lines[self.row :]
                self.lines.append("")
            elif plain == "\n":
                self.row += 1
                self.lines.extend([""] * (self.row + 1 - len(self.lines)))
            else:
                self.lines[self.row] = plain + self.lines[self.row][len(plain) :]
                self.column = len(plain)
        return len(text)

    column = 0


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "5")
    return Screen()


def test_a_text_takes_the_place_of_the_one_before(screen: Screen) -> None:
    live = Live(screen)
    live.show("three long lines\nare\nshown")
    live.show("two\nshort ones")
    assert screen.lines == ["two", "short ones", ""]
    live.show("and\nmore\nagain")
    assert screen.lines == ["and", "more", "again", ""]


def test_what_was_there_before_stays(screen: Screen) -> None:
    screen.write("$ submitter status\n")
    live = Live(screen)
    live.show("one")
    live.show("two")
    assert screen.lines == ["$ submitter status", "two", ""]


def test_what_does_not_fit_is_cut_so_that_the_screen_does_not_scroll(screen: Screen) -> None:
    live = Live(screen)
    for _ in range(2):
        live.show("\n".join(str(number) * 30 for number in range(9)))
    assert screen.lines == [*(str(number) * 19 for number in range(live.rows)), ""]


def test_lines_that_a_narrower_terminal_has_wrapped_are_drawn_over(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live(screen)
    live.show("0123456789012345678\nb")
    screen.lines, screen.row = ["0123456789", "012345678", "b", ""], 3
    monkeypatch.setenv("COLUMNS", "10")
    live.show("new")
    assert screen.lines == ["new", ""]

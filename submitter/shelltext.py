"""Where a command's text is quoted, and whether words may be added at its end.

A reader for the part of the shell's language that matters for these two questions, not a judge of the command: what it
does not understand it reports as a reason not to append, and the user then says where values belong.
"""

import re
import shlex
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Final

_HEREDOC: Final = re.compile(r"<<(-?)[ \t]*((?:\\.|'[^'\n]*'|\"[^\"\n]*\"|[^\s;&|<>()'\"\\])+)")
_CLOSERS: Final = frozenset({"done", "fi", "esac", "}"})
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_SAFE: Final = re.compile(r"[A-Za-z0-9@%+=:,./_-]+", re.ASCII)
_DOUBLE_SPECIAL: Final = re.compile(r'[\\"$`]')


class Context(Enum):
    """How the shell reads a place in the text."""

    PLAIN = "outside of quotes"
    SINGLE = "in single quotes"
    DOUBLE = "in double quotes"
    OTHER = "in a here-document, comment, arithmetic, ${...}, $'...' or backquotes"


def is_safe(value: str) -> bool:
    """Whether a value means itself in every context."""
    return _SAFE.fullmatch(value) is not None


def quote(value: str, context: Context) -> str:
    """Return text that stands for the value at a place of that context; in OTHER only a safe value can stand."""
    if is_safe(value):
        return value
    match context:
        case Context.PLAIN:
            return shlex.quote(value)
        case Context.SINGLE:
            return value.replace("'", "'\\''")
        case Context.DOUBLE:
            return _DOUBLE_SPECIAL.sub(r"\\\g<0>", value)
        case Context.OTHER:
            raise ValueError(f"{value!r} cannot be quoted {context.value}")


@dataclass
class ShellText:
    """What a command's text says of itself.

    Attributes:
        contexts: The context of each character.
        commands: The words of each simple command at the top level, as they are written.
        trouble: Why a word added at the end would not become an argument of the last command, or None.
    """

    contexts: list[Context] = field(default_factory=list)
    commands: list[list[str]] = field(default_factory=lambda: [[]])
    trouble: str | None = None


def read(text: str) -> ShellText:
    """Read the text of a command, without its final line break."""
    reader = _Reader(text)
    try:
        reader.command()
    except _UnfinishedError as unfinished:
        reader.found.trouble = f"it has {unfinished} that does not end"
    found = reader.found
    found.contexts += [Context.OTHER] * (len(text) - len(found.contexts))
    found.trouble = found.trouble or _bad_end(found.commands[-1])
    return found


def _bad_end(words: list[str]) -> str | None:
    """Return what is wrong with the last simple command as a place for more arguments."""
    if not words:
        return "it ends in an operator"
    if words[-1] in _CLOSERS:
        return f"it ends in {words[-1]}"
    if re.search("[<>][|&]?$", words[-1]):
        return "it ends in a redirection without a file"
    for program, option in pairwise(words):
        if program.rpartition("/")[2] in _SHELLS and re.fullmatch("-[a-z]*c", option):
            return f"its arguments would go to {program} {option}, not to the program in the quotes"
    return None


class _UnfinishedError(Exception):
    """The text ends inside of something; the message names it."""


class _Reader:
    """Reads the text once from left to right; `found.contexts` is as long as what has been read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found = ShellText()
        self.word: int | None = None
        self.heredocs: list[tuple[str, bool]] = []

    @property
    def at(self) -> int:
        return len(self.found.contexts)

    def ahead(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.at)

    def take(self, context: Context, count: int = 1) -> None:
        self.found.contexts += [context] * min(count, len(self.text) - self.at)

    def take_until(self, end: str, context: Context, what: str) -> None:
        """Take everything up to and with `end`."""
        stop = self.text.find(end, self.at)
        if stop < 0:
            raise _UnfinishedError(what)
        self.take(context, stop + len(end) - self.at)

    def trouble(self, reason: str) -> None:
        self.found.trouble = self.found.trouble or reason

    def end_word(self) -> None:
        if self.word is not None:
            self.found.commands[-1].append(self.text[self.word : self.at])
            self.word = None

    def end_command(self, operator: str) -> None:
        self.end_word()
        self.take(Context.PLAIN, len(operator))
        self.found.commands.append([])

    def command(self) -> None:
        """Read the top level to the end of the text."""
        depth = 0
        while self.at < len(self.text):
            if self.ahead("("):
                if (self.word is not None or self.found.commands[-1]) and not self.ahead("()"):
                    self.trouble("it has a ( after a word")
                self.end_command("(")
                depth += 1
            elif self.ahead(")"):
                self.end_command(")")
                depth -= 1
                if not self.text[self.at :].strip():
                    self.trouble("it ends in )")
                if depth < 0:
                    self.trouble("it has a ) without its (")
            elif not self.separator():
                self.part_of_word()
        self.end_word()
        if depth > 0:
            raise _UnfinishedError("a parenthesis")
        if self.heredocs:
            raise _UnfinishedError("a here-document")

    def separator(self) -> bool:
        """Read what stands between words, if the text goes on with that."""
        before = self.text[self.at - 1 : self.at]
        if self.ahead(" ") or self.ahead("\t"):
            self.end_word()
            self.take(Context.PLAIN)
        elif self.ahead("\n"):
            self.line_break()
        elif self.ahead("#") and self.word is None:
            self.trouble("it has a comment")
            self.take(Context.OTHER, len(self.text[self.at :].partition("\n")[0]))
        elif self.ahead("&&"):
            self.end_command("&&")
        elif self.ahead("&") and before not in ("<", ">") and not self.ahead("&>"):
            self.trouble("it runs something in the background with &")
            self.end_command("&")
        elif self.ahead("|") and before != ">":
            self.trouble("it has a |")
            self.end_command("||" if self.ahead("||") else "|")
        elif self.ahead(";"):
            self.end_command(";")
        else:
            return False
        return True

    def line_break(self) -> None:
        said_something = any(self.found.commands) or self.word is not None
        if said_something and self.text[self.at :].strip():
            self.trouble("it has several lines")
        self.end_word()
        self.take(Context.PLAIN)
        if self.heredocs:
            self.heredoc_bodies()
        if said_something:
            self.found.commands.append([])

    def part_of_word(self) -> None:
        """Read a piece of a word, a redirection, or the start of a here-document."""
        if self.ahead("\\\n"):
            self.take(Context.PLAIN, 2)
            return
        if self.word is None:
            self.word = self.at
        if self.ahead("<<<"):
            self.take(Context.PLAIN, 3)
        elif self.ahead("<<") and (match := _HEREDOC.match(self.text, self.at)):
            self.trouble("it has a here-document")
            self.heredocs.append((shlex.split(match[2])[0] if match[2] else "", bool(match[1])))
            self.take(Context.PLAIN, len(match[0]))
        elif self.ahead("<(") or self.ahead(">("):
            self.take(Context.PLAIN, 2)
            self.substitution()
        else:
            self.quoted_or_plain()

    def quoted_or_plain(self) -> None:
        """Read one quoted stretch, expansion or character outside of double quotes."""
        if self.ahead("\\"):
            self.escape(Context.PLAIN)
        elif self.ahead("'"):
            self.take(Context.PLAIN)
            self.take_until("'", Context.SINGLE, "a quote (')")
        elif self.ahead('"'):
            self.double_quotes()
        elif self.ahead("$'"):
            self.ansi_quotes()
        elif self.ahead("$"):
            self.expansion(Context.PLAIN)
        elif self.ahead("`"):
            self.backquotes()
        else:
            self.take(Context.PLAIN)

    def escape(self, context: Context) -> None:
        if self.at == len(self.text) - 1:
            raise _UnfinishedError("a line after a backslash")
        self.take(context)
        self.take(Context.OTHER)

    def double_quotes(self) -> None:
        self.take(Context.PLAIN)
        while not self.ahead('"'):
            if self.at >= len(self.text):
                raise _UnfinishedError('a quote (")')
            if self.ahead("\\"):
                self.escape(Context.DOUBLE)
            elif self.ahead("$"):
                self.expansion(Context.DOUBLE)
            elif self.ahead("`"):
                self.backquotes()
            else:
                self.take(Context.DOUBLE)
        self.take(Context.PLAIN)

    def ansi_quotes(self) -> None:
        self.take(Context.PLAIN, 2)
        while not self.ahead("'"):
            if self.at >= len(self.text):
                raise _UnfinishedError("a quote ($')")
            self.take(Context.OTHER, 2 if self.ahead("\\") else 1)
        self.take(Context.PLAIN)

    def backquotes(self) -> None:
        self.take(Context.PLAIN)
        while not self.ahead("`"):
            if self.at >= len(self.text):
                raise _UnfinishedError("a backquote")
            self.take(Context.OTHER, 2 if self.ahead("\\") else 1)
        self.take(Context.PLAIN)

    def expansion(self, context: Context) -> None:
        """Read what begins with a dollar sign."""
        if self.ahead("$(("):
            self.arithmetic()
        elif self.ahead("$("):
            self.take(Context.PLAIN, 2)
            self.substitution()
        elif self.ahead("${"):
            self.take(Context.OTHER, 2)
            self.braces()
        else:  # $$ is whole: what follows begins nothing with it
            self.take(context, 2 if self.ahead("$$") else 1)

    def arithmetic(self) -> None:
        self.take(Context.OTHER, 3)
        depth = 2
        while depth:
            if self.at >= len(self.text):
                raise _UnfinishedError("$((")
            depth += self.ahead("(") - self.ahead(")")
            self.take(Context.OTHER)

    def substitution(self) -> None:
        """Read the command in $(...), which is quoted by itself, to its closing parenthesis."""
        depth = 1
        while depth:
            if self.at >= len(self.text):
                raise _UnfinishedError("$(")
            if self.ahead("(") or self.ahead(")"):
                depth += 1 if self.ahead("(") else -1
                self.take(Context.PLAIN)
            elif self.ahead("#") and self.text[self.at - 1] in " \t\n;(":
                self.take_until("\n", Context.OTHER, "$(")
            else:
                self.quoted_or_plain()

    def braces(self) -> None:
        """Read ${...} to its closing brace."""
        while not self.ahead("}"):
            if self.at >= len(self.text):
                raise _UnfinishedError("${")
            if self.ahead("\\"):
                self.escape(Context.OTHER)
            elif self.ahead('"'):
                self.double_quotes()
            elif self.ahead("$"):
                self.expansion(Context.OTHER)
            else:
                self.take(Context.OTHER)
        self.take(Context.OTHER)

    def heredoc_bodies(self) -> None:
        for delimiter, tabs in self.heredocs:
            while True:
                if self.at >= len(self.text):
                    raise _UnfinishedError("a here-document")
                line, newline, _ = self.text[self.at :].partition("\n")
                self.take(Context.OTHER, len(line + newline))
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
        self.heredocs.clear()

"""The user's command as a template: the text of each run is the command with its values where they belong."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from submitter.errors import UsageError
from submitter.numbers import parse_number
from submitter.shelltext import Context, ShellText, is_safe, quote, read
from submitter.sweep import Row

ArgStyle = Literal["flag", "equals", "hydra"]

SEED: Final = "seed"

_JOINTS: Final = {"flag": (" --", " "), "equals": (" --", "="), "hydra": (" ", "=")}


class Blank(NamedTuple):
    """A place for the value of an axis, or of `seed`."""

    name: str
    context: Context


@dataclass(frozen=True)
class Template:
    """A command with places for the values of a run.

    Attributes:
        pieces: The command's text, cut at the places for values.
        axes: Names of the axes, in the order of a row's values.
        own_seed: The seed that the command itself gives with `--seed 7`, else None.
        seedless: Whether the runs have no seed: then nothing tells equal jobs apart, such as W&B agents.
    """

    pieces: tuple[str | Blank, ...]
    axes: tuple[str, ...]
    own_seed: int | None
    seedless: bool = False

    @classmethod
    def parse(
        cls, command: str, axes: Sequence[str], *, arg_style: ArgStyle = "flag", seed_flag: str | None = "--seed"
    ) -> "Template":
        """Read the user's command.

        `{seed}` and `{axis}` are places for values, `{{seed}}` is a literal `{seed}`, `${seed}` is the shell's, and
        every other brace stays as it is. What is not named so is added at the end: `--axis VALUE` (flag),
        `--axis=VALUE` (equals) or `axis=VALUE` (hydra), the seed last.

        Args:
            command: The text for the container's shell.
            axes: Names of the axes.
            arg_style: How values are added at the end.
            seed_flag: The option for the seed; None for runs without a seed.

        Raises:
            UsageError: There is no command, values cannot be added at its end, or it has a seed that is no number.
        """
        if not command.strip():
            raise UsageError("The command is empty.", 'Give one, such as --command "python train.py".')
        if command.startswith("-"):
            raise UsageError(f"The command begins with an option: {command}", "Begin it with the program to run.")
        if "\0" in command:
            raise UsageError("The command holds a NUL character.", "Remove it.")
        shell = read(command.rstrip("\r\n"))
        pieces = _cut(command, (*axes, SEED), shell)
        named = {piece.name for piece in pieces if isinstance(piece, Blank)}
        if seed_flag is None and SEED in named:
            raise UsageError("The command names {seed}, but the runs have no seed.", "Remove one or the other.")
        own_seed = None if seed_flag is None else _own_seed(shell, _seed_option(seed_flag, arg_style), SEED in named)
        missing = [
            (axis, f"{_JOINTS[arg_style][0]}{axis}{_JOINTS[arg_style][1]}") for axis in axes if axis not in named
        ]
        if seed_flag is not None and own_seed is None and SEED not in named:
            missing.append((SEED, f" {_seed_option(seed_flag, arg_style)}{_JOINTS[arg_style][1]}"))
        if missing:
            if shell.trouble:
                names = ", ".join(f"{{{name}}}" for name, _ in missing)
                raise UsageError(
                    f"Nothing can be added at the end of the command: {shell.trouble}.",
                    f"Write {names} where it belongs in the command.",
                )
            pieces = _cut(command.rstrip("\r\n"), (*axes, SEED), shell)
            pieces += [part for name, joint in missing for part in (joint, Blank(name, Context.PLAIN))]
        return cls(_joined(pieces), tuple(axes), own_seed, seedless=seed_flag is None)

    def seeds(self, asked: tuple[int, ...] | None) -> tuple[int, ...]:
        """Return the seeds to run: those asked for, else the command's own, else seed 1.

        Args:
            asked: The seeds of the seed options, None when there were none.

        Raises:
            UsageError: Seeds were asked for of a command that has one of its own.
        """
        if self.own_seed is None:
            return (1,) if asked is None else asked
        if asked is None:
            return (self.own_seed,)
        raise UsageError(
            f"The command has its own seed, {self.own_seed}, and the options ask for others.",
            "Remove it from the command, or leave out the seed options.",
        )

    def value(self, blank: Blank, row: Row, seed: int | None) -> str:
        """Return the value of one run for a place."""
        return str(seed) if blank.name == SEED else row[self.axes.index(blank.name)]

    def render(self, row: Row, seed: int | None) -> str:
        """Return the command of one run, the text that the shell gets.

        Raises:
            UsageError: A value cannot be quoted where the command names it.
        """
        return "".join(
            piece if isinstance(piece, str) else quoted(piece, self.value(piece, row, seed)) for piece in self.pieces
        )


def quoted(blank: Blank, value: str) -> str:
    """Return the text that stands in a place for a value.

    Raises:
        UsageError: The value cannot be quoted there.
    """
    if blank.context is Context.OTHER and not is_safe(value):
        raise UsageError(
            f"The value {value!r} of {blank.name} cannot be written {blank.context.value}.",
            f"Write {{{blank.name}}} outside of that, as an argument or in quotes.",
        )
    return quote(value, blank.context)


def _cut(text: str, names: Sequence[str], shell: ShellText) -> list[str | Blank]:
    """Return the text cut at the places for these names."""
    any_name = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    pieces: list[str | Blank] = []
    end = 0
    for match in re.finditer(rf"\{{\{{({any_name})\}}\}}|(?<!\$)\{{({any_name})\}}", text):
        pieces.append(text[end : match.start()])
        literal, name = match.groups()
        pieces.append(f"{{{literal}}}" if literal else Blank(name, shell.contexts[match.start()]))
        end = match.end()
    return [*pieces, text[end:]]


def _joined(pieces: Sequence[str | Blank]) -> tuple[str | Blank, ...]:
    """Return the pieces with neighbouring texts made one and empty ones left out."""
    joined: list[str | Blank] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece:
            joined.append(piece)
    return tuple(joined)


def _seed_option(seed_flag: str, arg_style: ArgStyle) -> str:
    return seed_flag.lstrip("-") if arg_style == "hydra" else seed_flag


def _own_seed(shell: ShellText, option: str, named: bool) -> int | None:
    """Return the seed that the command gives itself; `{seed}` as its value is none.

    Raises:
        UsageError: It gives several, or one that is not a number or larger than any shell's.
    """
    values = []
    for words in shell.commands:
        for word, following in zip(words, [*words[1:], ""], strict=False):
            if word == option and option.startswith("-"):
                values.append(following)
            elif word.startswith(f"{option}="):
                values.append(word.partition("=")[2])
    values = [value.strip("\"'") for value in values if not (named and "{seed}" in value)]
    if not values:
        return None
    if len(values) > 1 or not re.fullmatch("[0-9]+", values[0], re.ASCII):
        raise UsageError(
            f"The command sets {option} to {' and '.join(values) or 'nothing'}, which is not one number.",
            f"Write {option} {{seed}} in its place, or ask for runs without a seed.",
        )
    return parse_number(values[0])

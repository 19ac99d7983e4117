"""Choosing runs of a sweep: `--seed 3`, `--seed 1-3,7`, `--where env-id=Hopper-v4`, `--index 137`, `--failed`. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from submitter.errors import UsageError
from submitter.grid import next_value
from submitter.numbers import NumberSet
from submitter.sweep import Row
from submitter.template import SEED

FAILED: Final = frozenset({"failed", "cancelled"})
"""The statuses that `--failed` chooses."""

_MOST_CHOICES: Final = 10
"""How many runs a refusal lists."""


class Choosable(Protocol):
    """What has a run's number, parameters and seed."""

    @property
    def number(self) -> int:
        """The run's number in its sweep."""

    @property
    def row(self) -> Row:
        """Its parameters, in the order of the sweep's axes."""

    @property
    def seed(self) -> int | None:
        """Its seed; None where the command has none."""


RunT = TypeVar("RunT", bound=Choosable)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Conditions that a run must meet, all of them; without any, every run does.

    Attributes:
        seed: Seeds that the run may have; empty for any.
        index: Numbers that it may have; empty for any.
        where: `axis=value` texts, or several in one with commas between, values quoted as those of `--grid` are;
            `seed=3` is one too.
        failed: Whether it must have failed or have been cancelled; only for runs whose status is known.
    """

    seed: NumberSet = field(default_factory=NumberSet)
    index: NumberSet = field(default_factory=NumberSet)
    where: tuple[str, ...] = ()
    failed: bool = False

    def __bool__(self) -> bool:
        """Whether there is any condition."""
        return self != Selection()

    def choose(self, runs: Sequence[RunT], axes: Sequence[str]) -> list[RunT]:
        """Return the runs that meet the conditions; none where those that meet all others have not failed.

        Raises:
            UsageError: A condition names no axis of the sweep, or no run meets all of them but `failed`.
        """
        seeded = any(run.seed is not None for run in runs)
        if self.seed and not seeded:
            raise UsageError("The runs of the sweep have no seed.", "Choose them with --index or --where.")
        names = (*axes, SEED) if seeded else axes
        conditions = [condition for text in self.where for condition in _conditions(text, names)]
        chosen = [
            run
            for run in runs
            if (not self.seed or run.seed in self.seed)
            and (not self.index or run.number in self.index)
            and all(values_of(run, axes).get(name) == value for name, value in conditions)
        ]
        if not chosen:
            raise UsageError("No run of the sweep is like that.", f"There are: {_choices(runs, axes)}.")
        return [run for run in chosen if getattr(run, "status", None) in FAILED] if self.failed else chosen

    def choose_one(self, runs: Sequence[RunT], axes: Sequence[str]) -> RunT:
        """Return the one run that meets the conditions.

        Raises:
            UsageError: As :meth:`choose`, or none has failed, or several runs are like that.
        """
        chosen = self.choose(runs, axes)
        if not chosen:
            raise UsageError("None of these runs has failed or was cancelled.", "Leave out --failed.")
        if len(chosen) > 1:
            how = "--index, --seed or --where" if chosen[0].seed is not None else "--index or --where"
            raise UsageError(
                f"{len(chosen):,} runs are like that, and only one can be chosen.",
                f"Choose with {how} among: {_choices(chosen, axes)}.",
            )
        return chosen[0]


def values_of(run: Choosable, axes: Sequence[str]) -> dict[str, str]:
    """Return a run's parameters and its seed, if it has one, by name."""
    values = dict(zip(axes, run.row, strict=True))
    return values if run.seed is None else {**values, SEED: str(run.seed)}


def label(run: Choosable, axes: Sequence[str]) -> str:
    """Return what tells a run from the others of its sweep: `env-id=CartPole-v1 seed=3`, or without seeds `run=3`."""
    return " ".join([*_values(run, axes), *([f"run={run.number}"] if run.seed is None else [])])


def _values(run: Choosable, axes: Sequence[str]) -> list[str]:
    return [f"{name}={value}" for name, value in values_of(run, axes).items()]


def _conditions(text: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    at = 0
    while at <= len(text):
        name, equals, _ = text[at:].partition("=")
        if not equals or name.strip() not in names:
            written = ", ".join(f"{name}=VALUE" for name in names)
            raise UsageError(
                f"--where {text} does not name a parameter of the sweep.",
                f"Write one of {written}." if names else "It has none; choose with --index.",
            )
        if (found := next_value(text, at + len(name) + 1)) is None:
            raise UsageError(f"--where {text} is not well quoted.", 'A quote inside of quotes is written as "".')
        value, end = found
        yield name.strip(), value
        at = end + 1


def _choices(runs: Sequence[Choosable], axes: Sequence[str]) -> str:
    values = [(run.number, " ".join(_values(run, axes))) for run in runs[:_MOST_CHOICES]]
    shown = [f"{number} ({text})" if text else str(number) for number, text in values]
    return ", ".join(shown) + (", ..." if len(runs) > _MOST_CHOICES else "")

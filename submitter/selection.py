"""Choosing runs of a sweep: `--seed 3`, `--where env-id=Hopper-v4`, `--index 137`, `--failed`. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from submitter.errors import UsageError
from submitter.sweep import Row

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
        """Its seed."""


RunT = TypeVar("RunT", bound=Choosable)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Conditions that a run must meet, all of them; without any, every run does.

    Attributes:
        seed: The run's seed.
        index: The run's number.
        where: `axis=value` texts; `seed=3` is one too.
        failed: Whether it must have failed or have been cancelled; only for runs whose status is known.
    """

    seed: int | None = None
    index: int | None = None
    where: tuple[str, ...] = ()
    failed: bool = False

    def __bool__(self) -> bool:
        """Whether there is any condition."""
        return self != Selection()

    def choose(self, runs: Sequence[RunT], axes: Sequence[str]) -> list[RunT]:
        """Return the runs that meet the conditions.

        Raises:
            UsageError: A condition names no axis of the sweep, or no run meets all of them.
        """
        conditions = [_condition(text, axes) for part in self.where for text in part.split(",")]
        chosen = [
            run
            for run in runs
            if (self.seed is None or run.seed == self.seed)
            and (self.index is None or run.number == self.index)
            and all(values_of(run, axes)[name] == value for name, value in conditions)
            and (not self.failed or getattr(run, "status", None) in FAILED)
        ]
        if not chosen:
            raise UsageError("No run of the sweep is like that.", f"There are: {_choices(runs, axes)}.")
        return chosen

    def choose_one(self, runs: Sequence[RunT], axes: Sequence[str]) -> RunT:
        """Return the one run that meets the conditions.

        Raises:
            UsageError: As :meth:`choose`, or several runs do.
        """
        chosen = self.choose(runs, axes)
        if len(chosen) > 1:
            raise UsageError(
                f"{len(chosen):,} runs are like that, and only one can be chosen.",
                f"Choose with --index, --seed or --where among: {_choices(chosen, axes)}.",
            )
        return chosen[0]


def values_of(run: Choosable, axes: Sequence[str]) -> dict[str, str]:
    """Return a run's parameters and its seed by name."""
    values = dict(zip(axes, run.row, strict=True))
    return values if run.seed is None else {**values, "seed": str(run.seed)}


def label(run: Choosable, axes: Sequence[str]) -> str:
    """Return what tells a run from the others of its sweep: `env-id=CartPole-v1 seed=3`."""
    return " ".join(f"{name}={value}" for name, value in values_of(run, axes).items()) or f"run {run.number}"


def _condition(text: str, axes: Sequence[str]) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or name not in {*axes, "seed"}:
        raise UsageError(
            f"--where {text} does not name a parameter of the sweep.",
            f"Write one of {', '.join(f'{axis}=VALUE' for axis in (*axes, 'seed'))}.",
        )
    return name, value


def _choices(runs: Sequence[Choosable], axes: Sequence[str]) -> str:
    shown = [f"{run.number} ({label(run, axes)})" for run in runs[:_MOST_CHOICES]]
    return ", ".join(shown) + (", ..." if len(runs) > _MOST_CHOICES else "")

"""What several commands share: options, each defined once, and the way to the account."""

import math
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from submitter.errors import UsageError
from submitter.numbers import NumberSet
from submitter.selection import Selection
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.cli.connection import Connection

sweep_name = click.argument("name", metavar="NAME")

owner = click.option(
    "--owner",
    metavar="OWNER",
    help="Whose sweep it is; NAME may also be OWNER/NAME.  [default: the AWS caller's name]",
)


class _Numbers(click.ParamType):  # type: ignore[type-arg] # generic in newer releases only
    """Numbers and ranges, as `run --seeds` has them; the empty text of a variable that is not set does not mean all."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> NumberSet:
        if isinstance(value, NumberSet):
            return value
        numbers = NumberSet.parse(value, typed=True)
        return numbers or self.fail("it is empty: write numbers, such as 3 or 1-3,7.", param, ctx)


class Line(click.types.StringParamType):
    """A text of an option that may be repeated: where it comes from an environment variable, each line is one."""

    def split_envvar_value(self, rv: str) -> list[str]:
        """Return the lines that are not blank; click takes the text apart at each blank."""
        return [line for line in rv.split("\n") if line.strip()]


class Amount(click.FloatRange):
    """A number from a least one on."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, which `nan` is not, though nothing is less than it."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


_seed = click.option(
    "--seed", type=_Numbers(), metavar="1-3,7", multiple=True, help="Only the runs with this seed, or one of these."
)

_where = click.option(
    "--where",
    type=Line(),
    metavar="AXIS=VALUE",
    multiple=True,
    help="Only the runs with this value, such as env-id=Hopper-v4.",
)

_index = click.option(
    "--index", type=_Numbers(), metavar="1-3,7", multiple=True, help="Only the run with this number, or one of these."
)

_failed = click.option("--failed", is_flag=True, help="Only the runs that have failed or were cancelled.")


def as_json(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--json`; the command gets it as `as_json`. The parameter is named as the option, as every other one is.

    click makes the names of environment variables from those of parameters.
    """

    @click.option("--json", is_flag=True, help="Print one JSON document, for scripts.")
    @wraps(function)
    def printing(*args: Any, json: bool, **kwargs: Any) -> Any:
        return function(*args, as_json=json, **kwargs)

    return printing


def selector(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose runs of a sweep; the command gets them as one argument, `selection`."""

    @_seed
    @_where
    @_index
    @_failed
    @wraps(function)
    def selecting(
        *args: Any,
        seed: tuple[NumberSet, ...],
        where: tuple[str, ...],
        index: tuple[NumberSet, ...],
        failed: bool,
        **kwargs: Any,
    ) -> Any:
        seeds, numbers = NumberSet.union(seed), NumberSet.union(index)
        return function(*args, selection=Selection(seed=seeds, where=where, index=numbers, failed=failed), **kwargs)

    return selecting


yes = click.option("--yes", is_flag=True, allow_from_autoenv=False, help="Do not ask.")

force = click.option("--force", is_flag=True, allow_from_autoenv=False, help="Also if the sweep is somebody else's.")

poll = click.option(
    "--poll",
    type=Amount(min=0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Pause between two looks at AWS; the first ones are shorter.",
)


def connect(source: StackSource) -> "Connection":
    """Return the way to the stack and its account. Here and nowhere else boto3 is imported."""
    from submitter.cli.connection import Connection  # noqa: PLC0415 - so that --help does not pay for boto3

    return Connection(source)


def check_owner(connection: "Connection", sweep: str, *, force: bool) -> None:
    """Refuse to change somebody else's sweep, unless that is meant.

    Raises:
        UsageError: The sweep, owner/name, is not the caller's, or there is none.
    """
    owner = sweep.partition("/")[0]
    if owner != connection.caller and not force:
        connection.generation(sweep, None)  # nobody's is nobody else's
        raise UsageError(f"The sweep {sweep} is {owner}'s, and you are {connection.caller}.", "Add --force to go on.")

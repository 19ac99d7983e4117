"""`run --like OTHER`: the options of another sweep in place of those that were not typed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from submitter.asked import Like

if TYPE_CHECKING:
    from submitter.history import Generation

_OWN: Final = frozenset({"name", "owner"})
_SEEDS: Final = frozenset({"num_seed", "start_seed", "seeds", "no_seed", "num_jobs"})
_AS_RUNS: Final[Mapping[str, Any]] = {"grid": (), "params": None} | dict.fromkeys(_SEEDS - {"no_seed"})
"""Options of which the other sweep's runs tell more than what its first `run` was given; what they are without it."""


def like_another(given: Mapping[str, Any], other: "Generation") -> dict[str, Any]:
    """Return the options with the other sweep's in place of those that the command line does not have.

    Its rows and seeds are those that it has now, also when it was extended since it was begun.
    """
    context = click.get_current_context()
    typed = {name for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    # More equal jobs say nothing about whether the command has a seed.
    kept = typed | _OWN | (_SEEDS if typed & _SEEDS - {"num_jobs"} else set())
    options = dict(given)
    if (record := other.record) is not None:
        known = {**record.options, "command": record.command, "image": record.image, **_AS_RUNS}
        for name in (given.keys() & known.keys()) - kept:
            options[name] = tuple(known[name]) if isinstance(given[name], tuple) else known[name]
    return {**options, "like": Like(other.axes, other.table)}

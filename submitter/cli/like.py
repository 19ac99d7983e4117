"""`run --like OTHER`: the options of another sweep in place of those that were not typed."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

import click
from click.core import ParameterSource

from submitter.asked import Like
from submitter.history import Generation
from submitter.request import RunOptions

_SEEDS: Final = frozenset({"num_seed", "start_seed", "seeds", "no_seed", "num_jobs"})
_OWN: Final = frozenset({"name", "owner"})
_AS_RUNS: Final = frozenset({"grid", "params"}) | _SEEDS - {"no_seed"}
"""Options of which the other sweep's table tells more than what its first `run` was given."""


def like_another(given: Mapping[str, Any], generation: Generation) -> dict[str, Any]:
    """Return the options with the other sweep's in place of those that the command line does not have.

    Its rows and seeds are those that it has now, also when it was extended since it was begun.

    Args:
        given: The options by name.
        generation: The other sweep.
    """
    context = click.get_current_context()
    typed = {name for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if (record := generation.record) is None:
        return dict(given)
    known = {**record.options, "command": record.command, "image": record.image}
    options = dict(given)
    for field in fields(RunOptions):
        name = field.name
        if name not in given or name in typed | _OWN or (name in _SEEDS and typed & _SEEDS):
            continue
        options[name] = None if name in _AS_RUNS else known.get(name)
        if isinstance(given[name], tuple):
            options[name] = tuple(options[name] or ())
        elif isinstance(given[name], bool):
            options[name] = bool(options[name])
    return {**options, "like": Like(record.axes, generation.table)}

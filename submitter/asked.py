"""Which runs were asked for: seeds, grid axes, rows of a file, or the runs of another sweep. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from submitter.errors import UsageError
from submitter.grid import check_seed_flag, grid_rows, parse_grid
from submitter.numbers import Seeds, check_count, parse_seeds, seeds_from
from submitter.params import Params
from submitter.sweep import NO_ROWS, Row, RunTable
from submitter.template import ArgStyle, Template


@dataclass(frozen=True)
class Like:
    """Another sweep's runs: the names of its axes, and its table."""

    axes: tuple[str, ...]
    table: RunTable

    @property
    def seedless(self) -> bool:
        """Whether its command has no seed."""
        return any(None in block.seeds for block in self.table.blocks)


@dataclass(frozen=True, kw_only=True)
class WhatOptions:
    """The options of `run` that say which runs there are; None is what was not given.

    Attributes:
        command: The command, with or without places for values.
        num_seed: How many seeds.
        start_seed: The first of them.
        seeds: Seeds as ranges, `1-3,7`.
        no_seed: Whether the command has no seed.
        num_jobs: How many equal jobs, of a command without a seed.
        grid: `axis=value,value` texts.
        params: A file's rows.
        arg_style: How values are added to the command.
        seed_flag: The command's option for the seed.
        like: Another sweep, whose rows and seeds stand for those not given.
    """

    command: str
    num_seed: int | None = None
    start_seed: int | None = None
    seeds: str | None = None
    no_seed: bool = False
    num_jobs: int | None = None
    grid: tuple[str, ...] = ()
    params: Params | None = None
    arg_style: ArgStyle = "flag"
    seed_flag: str = "--seed"
    like: Like | None = None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The runs that were asked for.

    Attributes:
        axes: Names of the parameters, in the order of each row's values.
        template: The command with the places of its values.
        runs: The runs.
        repeated: What was asked for more than once and is taken once, in words.
    """

    axes: tuple[str, ...]
    template: Template
    runs: RunTable
    repeated: tuple[str, ...]


def asked(options: WhatOptions) -> Asked:
    """Read the options.

    Raises:
        UsageError: They contradict each other, or one of them is not well written.
    """
    check_seed_flag(options.seed_flag)
    axes, rows = _rows(options)
    template = Template.parse(
        options.command, axes, arg_style=options.arg_style, seed_flag=None if options.no_seed else options.seed_flag
    )
    given = _seeds(options)
    repeated = []
    if given and given.repeated:
        repeated.append(f"Seeds named more than once are taken once: {', '.join(map(str, given.repeated))}.")
    if options.params and options.params.repeated:
        repeated.append(f"Rows of the file that are there more than once are taken once: {options.params.repeated}.")
    return Asked(axes=axes, template=template, runs=_table(options, template, rows, given), repeated=tuple(repeated))


def _rows(options: WhatOptions) -> tuple[tuple[str, ...], Sequence[Row]]:
    """Return the names of the axes and the rows: of the file and the grid together, else of the other sweep."""
    if options.like and not options.params and not options.grid:
        return options.like.axes, tuple(dict.fromkeys(row for row, _ in options.like.table))
    axes = parse_grid(options.grid)
    listed_rows = options.params.rows if options.params else NO_ROWS
    check_count(prod(len(axis.values) for axis in axes) * len(listed_rows), "runs")
    names, rows = tuple(axis.name for axis in axes), grid_rows(axes)
    if options.params is None:
        return names, rows
    if twice := set(names) & set(options.params.axes):
        raise UsageError(f"{', '.join(sorted(twice))} is in the file and in --grid.", "Leave it out of one of them.")
    return options.params.axes + names, [listed + more for listed, more in product(listed_rows, rows)]


def _seeds(options: WhatOptions) -> Seeds | None:
    """Return the seeds of the seed options; numbers of equal jobs where the command has no seed."""
    ranged = options.num_seed is not None or options.start_seed is not None
    if options.no_seed:
        if ranged or options.seeds is not None:
            raise UsageError("--no-seed leaves no place for seeds.", "Leave out the seed options, or --no-seed.")
        return None if options.num_jobs is None else _jobs(options.num_jobs)
    if options.num_jobs is not None:
        raise UsageError("--num-jobs is for commands without a seed.", "Give --no-seed too, or --num-seed instead.")
    if options.seeds is not None:
        if ranged:
            raise UsageError("--seeds already says which seeds.", "Leave out --num-seed and --start-seed.")
        return parse_seeds(options.seeds)
    if not ranged:
        return None
    return seeds_from(
        1 if options.num_seed is None else options.num_seed, 1 if options.start_seed is None else options.start_seed
    )


def _jobs(count: int) -> Seeds:
    if count < 1:
        raise UsageError(f"--num-jobs {count} asks for no run.", "Give 1 or more.")
    return seeds_from(count)


def _table(options: WhatOptions, template: Template, rows: Sequence[Row], given: Seeds | None) -> RunTable:
    params, like = options.params, options.like
    if params and params.seeds:
        if given or options.no_seed or template.own_seed is not None:
            raise UsageError("The file has a column of seeds, and the command line asks for others.", "Leave out one.")
        width = len(rows) // len(params.rows)  # how many combinations of the grid each row of the file is taken with
        return RunTable.from_pairs((row, params.seeds[index // width]) for index, row in enumerate(rows))
    if like and given is None and template.own_seed is None and like.seedless == options.no_seed:
        if not params and not options.grid:
            return like.table
        return _every(rows, tuple(dict.fromkeys(seed for _, seed in like.table)))
    if options.no_seed:
        # The first of equal jobs is the one that there is without --num-jobs.
        return _every(rows, (None, *(given.values[1:] if given else ())))
    return _every(rows, template.seeds(given.values if given else None))


def _every(rows: Sequence[Row], seeds: Sequence[int | None]) -> RunTable:
    """Return every row with every seed.

    Raises:
        UsageError: They are too many.
    """
    check_count(len(rows) * len(seeds), "runs")
    if None in seeds:  # equal jobs
        return RunTable.from_pairs((row, seed) for seed in seeds for row in rows)
    return RunTable.product(rows, seeds)

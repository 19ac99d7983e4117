"""The runs of a sweep: which rows of parameters with which seeds, kept as small as they were asked for.

A run is the command with one row of parameters and one seed. Runs are numbered 1, 2, 3, ... in the order in which the
sweep was first asked for them, so a table that grows only at its end gives each run its number for good.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, product
from math import prod
from typing import Any, Final, NamedTuple, Self, overload

from submitter.numbers import NumberSet, parse_ranges, range_text

Row = tuple[str, ...]
"""The values of one run, in the order of the sweep's axes."""

Pair = tuple[Row, int | None]
"""What tells one run of a sweep from another: its row and its seed."""

NO_ROWS: Final[tuple[Row, ...]] = ((),)
"""The one empty row of a sweep without axes."""


class Run(NamedTuple):
    """One run of a sweep; `number` counts from 1."""

    number: int
    row: Row
    seed: int | None


@dataclass(frozen=True)
class Block:
    """A rectangle of runs: every row with every seed, the seeds slowest.

    The rows are themselves the product of `factors`: one for each axis of a grid, or a single one that lists the rows
    of a parameter file.
    """

    factors: tuple[tuple[Row, ...], ...]
    seeds: tuple[int | None, ...]

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows in order, the last axis fastest."""
        return tuple(tuple(chain.from_iterable(parts)) for parts in product(*self.factors))

    @cached_property
    def row_index(self) -> Mapping[Row, int]:
        """The position of each row."""
        return {row: position for position, row in enumerate(self.rows)}

    @cached_property
    def seed_index(self) -> Mapping[int | None, int]:
        """The position of each seed."""
        return {seed: position for position, seed in enumerate(self.seeds)}

    def __len__(self) -> int:
        return prod(map(len, self.factors)) * len(self.seeds)

    def __iter__(self) -> Iterator[Pair]:
        return ((row, seed) for seed in self.seeds for row in self.rows)

    def __getitem__(self, index: int) -> Pair:
        seed, row = divmod(index, len(self.rows))
        return self.rows[row], self.seeds[seed]

    def position(self, pair: Pair) -> int | None:
        """Return where the run stands in this block, or None."""
        row, seed = self.row_index.get(pair[0]), self.seed_index.get(pair[1])
        return None if row is None or seed is None else seed * len(self.rows) + row


class RunTable(Sequence[Pair]):
    """An immutable table of (row, seed) pairs made of rectangular blocks; the run at index i has the number i + 1."""

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self.blocks = tuple(block for block in blocks if len(block))
        self.starts = tuple(accumulate(map(len, self.blocks), initial=0))

    @classmethod
    def product(cls, rows: Iterable[Row], seeds: Iterable[int | None]) -> Self:
        """Return every row with every seed, the seeds slowest; repeats count once. `[None]` is "without a seed"."""
        return cls([Block(_factors(tuple(dict.fromkeys(rows))), tuple(dict.fromkeys(seeds)))])

    @classmethod
    def from_pairs(cls, pairs: Iterable[Pair]) -> Self:
        """Return the table of these pairs, each once: the seeds slowest, seeds and rows in their order of appearance.

        Neighbouring seeds with the same rows become one block.
        """
        by_seed: dict[int | None, dict[Row, None]] = {}
        for row, seed in pairs:
            by_seed.setdefault(seed, {})[row] = None
        groups: list[tuple[tuple[Row, ...], list[int | None]]] = []
        for seed, found in by_seed.items():
            rows = tuple(found)
            if groups and groups[-1][0] == rows and None not in (seed, groups[-1][1][0]):
                groups[-1][1].append(seed)
            else:
                groups.append((rows, [seed]))
        return cls(Block(_factors(rows), tuple(seeds)) for rows, seeds in groups)

    def __len__(self) -> int:
        return self.starts[-1]

    def __iter__(self) -> Iterator[Pair]:
        return chain.from_iterable(self.blocks)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> list[Pair]: ...
    def __getitem__(self, index: int | slice) -> Pair | list[Pair]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        block = bisect_right(self.starts, at) - 1
        return self.blocks[block][at - self.starts[block]]

    def __contains__(self, pair: object) -> bool:
        return isinstance(pair, tuple) and len(pair) == 2 and self.number(pair) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunTable) and (self.blocks == other.blocks or list(self) == list(other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"RunTable.from_json({self.to_json()!r})"

    def __add__(self, other: "RunTable") -> "RunTable":
        """Return this table with the other one's runs at its end, as they are numbered when a sweep is extended."""
        return RunTable(self.blocks + other.blocks)

    def number(self, pair: Pair) -> int | None:
        """Return the number of a run, counted from 1, or None when the table does not hold it."""
        for start, block in zip(self.starts, self.blocks, strict=False):
            if (position := block.position(pair)) is not None:
                return start + position + 1
        return None

    def numbers(self, wanted: "RunTable") -> NumberSet:
        """Return the numbers that the wanted runs have here; runs that are not here have none."""
        if wanted.blocks == self.blocks:
            return self.runs().numbers
        return NumberSet(number for pair in wanted if (number := self.number(pair)) is not None)

    def minus(self, other: "RunTable") -> "RunTable":
        """Return the runs that the other table does not hold, in order."""
        if not other:
            return self
        blocks = (block for block in self.blocks if block not in other.blocks)
        return RunTable.from_pairs(pair for pair in chain.from_iterable(blocks) if other.number(pair) is None)

    def runs(self, numbers: NumberSet | None = None) -> "Runs":
        """Return the runs with these numbers, or all of them."""
        return Runs(self, NumberSet(range(1, len(self) + 1)) if numbers is None else numbers)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the table as plain JSON; :meth:`from_json` reads it."""
        return [
            {"rows": [[list(row) for row in factor] for factor in block.factors], "seeds": _seeds_text(block.seeds)}
            for block in self.blocks
        ]

    @classmethod
    def from_json(cls, blocks: Iterable[Mapping[str, Any]]) -> Self:
        """Read what :meth:`to_json` has written."""
        return cls(
            Block(tuple(tuple(map(tuple, factor)) for factor in block["rows"]), _seeds(block["seeds"]))
            for block in blocks
        )


@dataclass(frozen=True)
class Runs(Sequence[Run]):
    """Runs of one table, chosen by number and ordered by it."""

    table: RunTable
    numbers: NumberSet

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Run]:
        return (Run(number, *self.table[number - 1]) for number in self.numbers)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> "Runs": ...
    def __getitem__(self, index: int | slice) -> "Run | Runs":
        if isinstance(index, slice):
            places = range(*index.indices(len(self)))
            if places.step != 1 or not places:
                return Runs(self.table, NumberSet(self.numbers[at] for at in places))
            between = range(self.numbers[places[0]], self.numbers[places[-1]] + 1)
            return Runs(self.table, self.numbers & NumberSet(between))
        number = self.numbers[range(len(self))[index]]
        return Run(number, *self.table[number - 1])

    def unseeded(self) -> list[Run]:
        """Return the runs of a command without a seed: what the table tells equal jobs apart by is none."""
        return [run._replace(seed=None) for run in self]


def _factors(rows: tuple[Row, ...]) -> tuple[tuple[Row, ...], ...]:
    """Return the rows as a product of their columns where they are one, else as the single factor that they are."""
    columns = [tuple(dict.fromkeys(column)) for column in zip(*rows, strict=True)]
    if prod(map(len, columns)) == len(rows) and all(map(tuple.__eq__, product(*columns), rows)):
        return tuple(tuple((value,) for value in column) for column in columns)
    return (rows,)


def _seeds_text(seeds: tuple[int | None, ...]) -> str | None:
    return None if seeds == (None,) else range_text(seed for seed in seeds if seed is not None)


def _seeds(text: str | None) -> tuple[int | None, ...]:
    if text is None:
        return (None,)
    return tuple(seed for first, last in parse_ranges(text) for seed in range(first, last + 1))

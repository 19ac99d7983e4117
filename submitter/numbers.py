"""Whole numbers as people write them: the numbers of runs (`1-3,7`) and the seeds of a sweep."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple

from submitter.errors import UsageError

MAX_NUMBER: Final = 2**63 - 1
"""The largest number that every shell's arithmetic can hold."""

MAX_COUNT: Final = 1_000_000
"""More seeds or runs than this in one command line are taken for a slip of the finger."""

_RANGE: Final = re.compile(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?", re.ASCII)


class NumberSet(Set[int]):
    """An immutable set of numbers, 0 or more, kept as ranges, so that 10,000 consecutive ones cost no more than two.

    It is ordered, has the operators of sets (`|`, `&`, `-`, `<=`) and gives its i-th number by `[i]`. `str` writes it
    as `1-3,7`, which :meth:`parse` reads.
    """

    __slots__ = ("_ends", "ranges")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self.ranges: tuple[tuple[int, int], ...]
        if isinstance(numbers, NumberSet):
            self.ranges = numbers.ranges
        elif isinstance(numbers, range) and numbers.step == 1:
            self.ranges = ((numbers.start, numbers.stop - 1),) if numbers else ()
        else:
            self.ranges = tuple(_ranges(sorted(set(numbers))))
        self._count()

    def _count(self) -> None:
        self._ends = list(accumulate(last - first + 1 for first, last in self.ranges))

    @classmethod
    def _of(cls, ranges: Iterable[tuple[int, int]]) -> "NumberSet":
        """Return the set of these inclusive ranges, which may overlap and stand in any order."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(ranges):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        found = cls()
        found.ranges = tuple(merged)
        found._count()
        return found

    @classmethod
    def parse(cls, text: str, *, typed: bool = False) -> "NumberSet":
        """Read `1-3,7`; the empty text is the empty set.

        Raises:
            UsageError: As :func:`parse_ranges`.
        """
        return cls._of(parse_ranges(text, typed=typed)) if text.strip() else cls()

    def __str__(self) -> str:
        return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in self.ranges)

    def __repr__(self) -> str:
        return f"NumberSet.parse({str(self)!r})"

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[int]:
        for first, last in self.ranges:
            yield from range(first, last + 1)

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        at = bisect_right(self.ranges, number, key=lambda ends: ends[0]) - 1
        return at >= 0 and number <= self.ranges[at][1]

    def __getitem__(self, index: int) -> int:
        if not 0 <= index < len(self):
            raise IndexError(index)
        at = bisect_right(self._ends, index)
        return self.ranges[at][1] - (self._ends[at] - 1 - index)

    @classmethod
    def union(cls, sets: Iterable["NumberSet"]) -> "NumberSet":
        """Return the numbers that are in any of the sets."""
        return cls._of(chain.from_iterable(each.ranges for each in sets))

    def __eq__(self, other: object) -> bool:
        return self.ranges == other.ranges if isinstance(other, NumberSet) else super().__eq__(other)

    def __le__(self, other: Set[Any]) -> bool:
        return not self - other

    def __or__(self, other: Set[Any]) -> "NumberSet":
        return NumberSet._of(self.ranges + NumberSet(other).ranges)

    def __and__(self, other: Set[Any]) -> "NumberSet":
        return NumberSet._of(self._shared(NumberSet(other)))

    def __sub__(self, other: Set[Any]) -> "NumberSet":
        left, rest = [], list(reversed(self.ranges))
        for first, last in NumberSet(other).ranges:
            while rest and rest[-1][0] <= last:
                begin, end = rest.pop()
                if begin < first:
                    left.append((begin, min(end, first - 1)))
                if end > last:
                    rest.append((last + 1, end))
        return NumberSet._of([*left, *rest])

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        """Tell whether no number is in both."""
        return next(self._shared(NumberSet(other)), None) is None

    def _shared(self, other: "NumberSet") -> Iterator[tuple[int, int]]:
        """Yield the ranges that are in both."""
        mine, others = 0, 0
        while mine < len(self.ranges) and others < len(other.ranges):
            (first, last), (begin, end) = self.ranges[mine], other.ranges[others]
            if max(first, begin) <= min(last, end):
                yield max(first, begin), min(last, end)
            if last < end:
                mine += 1
            else:
                others += 1

    def count_to(self, number: int) -> int:
        """Return how many of the numbers are at most `number`."""
        at = bisect_right(self.ranges, number, key=lambda ends: ends[0]) - 1
        return 0 if at < 0 else self._ends[at] - max(0, self.ranges[at][1] - number)

    def __hash__(self) -> int:
        return hash(self.ranges)


class Seeds(NamedTuple):
    """Seeds in the order in which they were asked for, each once, and those that were asked for more than once."""

    values: tuple[int, ...]
    repeated: tuple[int, ...] = ()


def parse_seeds(text: str) -> Seeds:
    """Read the seeds of `--seeds 1-3,7`. A seed that is named twice is taken once and reported in `repeated`.

    Raises:
        UsageError: Nothing in it, not a number, a falling range, or more than a million seeds.
    """
    asked = [seed for first, last in parse_ranges(text, typed=True) for seed in range(first, last + 1)]
    times = Counter(asked)
    return Seeds(tuple(times), tuple(seed for seed in times if times[seed] > 1))


def seeds_from(num_seed: int, start_seed: int = 1) -> Seeds:
    """Return the seeds of `--num-seed N --start-seed S`: S, S+1, ..., S+N-1.

    Raises:
        UsageError: No seed at all, or a seed that no shell or program takes.
    """
    if num_seed < 1:
        raise UsageError(f"--num-seed {num_seed} asks for no run.", "Give 1 or more.")
    if start_seed < 0 or start_seed + num_seed - 1 > MAX_NUMBER:
        raise UsageError(f"--start-seed {start_seed} is not a seed.", f"Give a number from 0 to {MAX_NUMBER}.")
    check_count(num_seed)
    return Seeds(tuple(range(start_seed, start_seed + num_seed)))


def parse_ranges(text: str, *, typed: bool = False) -> list[tuple[int, int]]:
    """Read `1-3,7` as inclusive ranges in the order written.

    Args:
        text: The numbers.
        typed: Whether a person wrote them, in one command line; what is recorded may have more, of several.

    Raises:
        UsageError: Not a list of numbers and rising ranges, or typed, and more than a million numbers.
    """
    ranges = []
    for part in text.split(","):
        if not (match := _RANGE.fullmatch(part)):
            raise UsageError(f"{text!r} is not a list of numbers.", "Write it like 1-3,7.")
        first, last = parse_number(match[1]), parse_number(match[2] or match[1])
        if last < first:
            raise UsageError(f"The range {part.strip()} runs backwards.", f"Write {last}-{first}.")
        ranges.append((first, last))
    if typed:
        check_count(sum(last - first + 1 for first, last in ranges))
    return ranges


def parse_number(digits: str) -> int:
    """Read a number.

    Raises:
        UsageError: It is larger than :data:`MAX_NUMBER`.
    """
    # Python reads some thousand digits at most.
    if len(digits.lstrip("0")) > len(str(MAX_NUMBER)) or (number := int(digits.lstrip("0") or "0")) > MAX_NUMBER:
        shown = digits if len(digits) < 40 else f"{digits[:20]}... with {len(digits)} digits"
        raise UsageError(f"{shown} is too large.", f"The largest number is {MAX_NUMBER}.")
    return number


def range_text(numbers: Iterable[int]) -> str:
    """Write numbers as `7,1-3`, keeping their order."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in _ranges(numbers))


def check_count(count: int, what: str = "numbers") -> None:
    """Check how many of something one command asks for, before they are made.

    Raises:
        UsageError: Too many.
    """
    if count > MAX_COUNT:
        raise UsageError(f"{count:,} {what} are more than one command takes.", f"Ask for at most {MAX_COUNT:,}.")


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges

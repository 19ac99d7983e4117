"""What jobs of all regions run on: as many of them at once as there are cores."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Cores:
    """The cores that are free; `when_freed` holds those who are told of each that is given back."""

    def __init__(self, number: int) -> None:
        self.free = number
        self.when_freed: list[Callable[[], None]] = []

    def take(self) -> None:
        """Use a core."""
        self.free -= 1

    def give_back(self) -> None:
        """Use a core no more."""
        self.free += 1
        for tell in self.when_freed:
            tell()

"""The short time that Batch needs between a request and its effect, so that clients meet CREATING and DELETING."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from emulator.clock import Clock
    from emulator.loop import LoopThread

T = TypeVar("T")

# Long enough for a client to see the state in between, short enough not to be felt.
MOMENT = 0.03


class Transitions:
    """Runs the ends of transitions on the event loop.

    Attributes:
        moment: How long a transition takes, in seconds of the account's clock.
    """

    def __init__(self, loop: "LoopThread", clock: "Clock") -> None:
        self._loop = loop
        self._clock = clock
        self.moment = MOMENT

    def later(self, end: Callable[[T], object], record: T, seconds: float | None = None) -> None:
        """Call `end(record)` in a moment, or after some time of the account's clock; on the loop's thread only."""
        pause = self.moment if seconds is None else seconds

        async def wait() -> None:
            await self._clock.sleep(pause)
            end(record)

        self._loop.spawn(wait())

"""The regions of an account: what has a region is apart in each, and AWS Batch is made there when it is first used."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.account import Account
    from emulator.batch.api import Batch


class Regions:
    """The account as it is seen in each region, and Batch of every region where it has been used.

    Args:
        home: The account in its own region, whose Batch is made at once.
        make: Makes Batch of a region.
    """

    def __init__(self, home: "Account", make: Callable[["Account"], "Batch"]) -> None:
        self._home = home
        self._make = make
        self._batches = {home.region: make(home)}
        self._lock = threading.Lock()

    def account(self, region: str) -> "Account":
        """Return the account as it is seen in a region."""
        return self._home.in_region(region)

    def batch(self, region: str) -> "Batch":
        """Return AWS Batch of a region."""
        with self._lock:
            if region not in self._batches:
                self._batches[region] = self._make(self.account(region))
            return self._batches[region]

    @property
    def batches(self) -> "list[Batch]":
        """AWS Batch of every region that has been used, the account's own first."""
        with self._lock:
            return list(self._batches.values())

"""The regions of an account: AWS Batch is apart in each, and made there when it is first used."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.account import Account
    from emulator.batch.api import Batch


class Regions:
    """Batch of every region that has been used, and the account as it is seen there.

    Args:
        home: The account in its own region, whose Batch is made at once.
        make: Makes Batch of a region.
    """

    def __init__(self, home: "Account", make: Callable[["Account"], "Batch"]) -> None:
        self._home = home
        self._make = make
        self._made = {home.region: (home, make(home))}
        self._lock = threading.Lock()

    def _region(self, name: str) -> "tuple[Account, Batch]":
        with self._lock:
            if name not in self._made:
                account = self._home.in_region(name)
                self._made[name] = account, self._make(account)
            return self._made[name]

    def account(self, region: str) -> "Account":
        """Return the account as it is seen in a region."""
        return self._region(region)[0]

    def batch(self, region: str) -> "Batch":
        """Return AWS Batch of a region."""
        return self._region(region)[1]

    @property
    def batches(self) -> "list[Batch]":
        """AWS Batch of every region that has been used, the account's own first."""
        with self._lock:
            return [batch for _, batch in self._made.values()]

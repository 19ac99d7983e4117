"""`prune`: what nobody needs any more, and taking it away: job definitions, labels of secrets, old sweeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from submitter.batch import Batch
from submitter.history import VOID, Entry, Slot
from submitter.ledger import Ledger
from submitter.reasons import FINAL
from submitter.secrets import SecretStore, labels_of
from submitter.settle import REMEMBERED


@dataclass(frozen=True, kw_only=True)
class Unneeded:
    """What can go.

    Attributes:
        definitions: Job definitions of the stack, as name:revision, that no unfinished run has.
        labels: Labels of the stack's secret that no unfinished run refers to.
        sweeps: Sweeps without an unfinished run that nobody has submitted to for as long as was asked.
    """

    definitions: tuple[str, ...]
    labels: tuple[str, ...]
    sweeps: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.definitions or self.labels or self.sweeps)


class Pruning:
    """Looks through a stack and takes away what is not needed.

    Args:
        ledger: The stack's.
        batch: The account's.
        secrets: The stack's.
        job_role_arn: The stack's role of jobs, which its definitions are known by.
    """

    def __init__(self, ledger: Ledger, batch: Batch, secrets: SecretStore, job_role_arn: str) -> None:
        self._ledger, self._batch, self._secrets, self._role = ledger, batch, secrets, job_role_arn

    def look(self, *, now: float, older_than: float | None) -> Unneeded:
        """Return what is not needed.

        Args:
            now: This machine's clock, in seconds since the epoch.
            older_than: Seconds since its newest entry after which a sweep is not needed; None to keep all.
        """
        return self._look(self._ledger.all_entries(), now=now, older_than=older_than)

    def _look(self, sweeps: Mapping[str, Sequence[Entry]], *, now: float, older_than: float | None) -> Unneeded:
        unfinished = self._unfinished(sweeps, now)
        used = {entry.definition for entries in unfinished.values() for entry in entries}
        return Unneeded(
            definitions=tuple(one for one in self._batch.definitions(self._role) if one.rpartition(":")[0] not in used),
            labels=tuple(sorted(self._secrets.labels() - _labels(unfinished))),
            sweeps=tuple(
                sweep
                for sweep, entries in sorted(sweeps.items())
                if older_than is not None and entries[-1].at < now - older_than and sweep not in unfinished
            ),
        )

    def labels_in_use(self, now: float) -> set[str]:
        """Return the labels of secrets that unfinished runs refer to. Reads the whole ledger.

        Args:
            now: This machine's clock, in seconds since the epoch.
        """
        return _labels(self._unfinished(self._ledger.all_entries(), now))

    def take_away(self, unneeded: Unneeded, *, now: float, older_than: float | None) -> Unneeded:
        """Take away what is unneeded also when looked at again, since people submit while somebody thinks it over.

        What somebody comes to need at this very moment: a label is given back (:meth:`SecretStore.remove`), a
        definition is registered again by their `run`, and a sweep is forgotten only as it was read, or nobody would
        know of the jobs that were sent since. Labels go first, so that the look is as young as can be.

        Returns:
            What is gone.
        """
        sweeps = self._ledger.all_entries()
        again = self._look(sweeps, now=now, older_than=older_than)
        labels = [one for one in unneeded.labels if one in again.labels]
        removed = self._secrets.remove(labels, lambda: self.labels_in_use(now)) if labels else set()
        old = [one for one in unneeded.sweeps if one in again.sweeps]
        gone = Unneeded(
            definitions=tuple(one for one in unneeded.definitions if one in again.definitions),
            labels=tuple(one for one in labels if one in removed),
            sweeps=tuple(one for one in old if self._ledger.forget(one, sweeps[one])),
        )
        for definition in gone.definitions:
            self._batch.deregister(definition)
        return gone

    def _unfinished(self, sweeps: Mapping[str, Sequence[Entry]], now: float) -> dict[str, list[Entry]]:
        """Return, for each sweep with jobs that may still run, their entries.

        A job that AWS does not show has ended when it is old enough to be forgotten, and else may be about to be shown.
        One whose id nobody has seen is looked for by its name.
        """
        slots = [
            (sweep, entry, slot)
            for sweep, entries in sweeps.items()
            for entry in entries
            for slot in entry.slots
            if slot.job != VOID and not slot.ended
        ]
        known = self._batch.describe(slot.job for _, _, slot in slots if slot.job)
        unfinished: dict[str, list[Entry]] = {}
        for sweep, entry, slot in slots:
            if job := known.get(slot.job or ""):
                goes_on = job["status"] not in FINAL
            else:
                goes_on = entry.at > now - REMEMBERED or (slot.job is None and self._is_listed(entry, slot))
            if goes_on:
                unfinished.setdefault(sweep, []).append(entry)
        return unfinished

    def _is_listed(self, entry: Entry, slot: Slot) -> bool:
        found = self._batch.find(entry.queue, slot.name)
        return found is not None and found[0] is not None


def _labels(unfinished: Mapping[str, Sequence[Entry]]) -> set[str]:
    specs = (entry.spec for entries in unfinished.values() for entry in entries)
    return {label for spec in specs if spec for label in labels_of(spec.secrets)}

"""Which runs of a sweep have ended already, and which of those that a cancel named had an end of their own.

Nothing is written: `status` does that.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from submitter.batch import Batch
from submitter.history import Generation, Place
from submitter.numbers import NumberSet
from submitter.reasons import FINAL, state
from submitter.settle import REMEMBERED


def over(generation: Generation, batch: Batch) -> NumberSet:
    """Return the runs that a cancel does not end: those that have ended, were cancelled, or AWS has forgotten."""
    found = [generation.cancelled]
    places = generation.newest_places()
    parents = batch.describe(place.slot.sent for place, _ in places if place.slot.sent and not place.slot.ended)
    for place, here in places:
        parent = parents.get(place.slot.sent or "")
        forgotten = parent is None and batch.described_at >= place.entry.at + REMEMBERED
        if place.slot.ended or (forgotten if parent is None else parent["status"] in FINAL):
            found.append(here)
        elif parent:
            found.append(here & NumberSet(number for number, _ in _ended_jobs(place, parent, batch)))
    return NumberSet.union(found)


def by_themselves(generation: Generation, batch: Batch) -> NumberSet:
    """Return the runs that a cancel named and did not end: they had succeeded or failed before it came to them."""
    told, named = generation.told_to_end, generation.cancelled
    found = [generation.ended("succeeded") & named, generation.ended("failed") & named]
    places = [
        (place, here & named)
        for place, here in generation.newest_places()
        if place.slot.sent and not place.slot.ended and not named.isdisjoint(here)
    ]
    parents = batch.describe(place.slot.sent for place, _ in places if place.slot.sent)
    for place, here in places:
        if parent := parents.get(place.slot.sent or ""):
            ended = _ended_jobs(place, parent, batch)
            found.append(here & NumberSet(n for n, job in ended if state(job, told=told.get(n)) != "cancelled"))
    return NumberSet.union(found)


def _ended_jobs(place: Place, parent: Mapping[str, Any], batch: Batch) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the runs of a slot that have ended, each with its job or its array's child."""
    if len(place.slot.runs) == 1:
        if parent["status"] in FINAL:
            yield place.slot.runs[0], parent
        return
    numbers = place.numbers()
    for status in sorted(FINAL):
        for child in batch.children(parent["jobId"], status):
            yield numbers[child["jobId"]], child

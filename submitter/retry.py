"""`retry`: sends again what had failed or been cancelled when the command began, as the same runs with the same ids.

What another retry has taken up meanwhile is left to it, and a run is sent only when its earlier job has ended.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from submitter import capacity
from submitter.errors import UsageError
from submitter.history import RETRY, Choose, Entry, Generation, Place
from submitter.numbers import NumberSet
from submitter.plan import JobSpec, default_attempts, job_definition
from submitter.reasons import FINAL
from submitter.render import count
from submitter.request import find_queue, share_identifier
from submitter.sending import Sender
from submitter.submission import Order, draft
from submitter.sweep import Runs, RunTable

if TYPE_CHECKING:
    from infra.outputs import Queue, StackOutputs
    from submitter.batch import Batch
    from submitter.ledger import Ledger
    from submitter.session import Clock
    from submitter.status import StatusReader


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What is to be different from the last time; None is as it was.

    Attributes:
        image: The container image.
        memory_mib: Memory of a run in MiB.
        gpus: GPUs of a run.
        timeout_seconds: Time limit of an attempt.
        queue: Name of the job queue.
        environment: Variables on top of those that there were.
        secrets: Where the values of secrets are that are kept no more where they were.
    """

    image: str | None = None
    memory_mib: int | None = None
    gpus: int | None = None
    timeout_seconds: int | None = None
    queue: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)

    def apply(self, spec: JobSpec, queue: "Queue", owner: str, *, before: "Queue | None" = None) -> JobSpec:
        """Return what each job gets on this queue.

        Attempts that were the default of the queue `before` become the default of this one.

        Raises:
            UsageError: It could never be placed there.
        """
        was_default = before is not None and spec.attempts == default_attempts(before.purchase)
        changed = replace(
            spec,
            image=self.image or spec.image,
            memory_mib=spec.memory_mib if self.memory_mib is None else self.memory_mib,
            gpus=spec.gpus if self.gpus is None else self.gpus,
            timeout_seconds=self.timeout_seconds or spec.timeout_seconds,
            attempts=default_attempts(queue.purchase) if was_default else spec.attempts,
            environment={**spec.environment, **self.environment},
            secrets={name: self.secrets.get(name, value) for name, value in spec.secrets.items()},
            share=share_identifier(owner, queue),
        )
        capacity.check_fits(queue, vcpus=changed.vcpus, memory_mib=changed.memory_mib, gpus=changed.gpus)
        return changed


@dataclass(frozen=True, kw_only=True)
class Retried:
    """What has become of a retry.

    Attributes:
        generation: The entries of the sweep's generation.
        submitted: Runs that were sent by this command.
        unknown: Runs that were perhaps sent, so long ago that AWS may have forgotten; left alone.
    """

    generation: Generation
    submitted: NumberSet
    unknown: NumberSet


class Retry:
    """One `retry` command.

    Args:
        sweep: owner/name.
        choose: Says which runs may be sent again.
        changes: What is to be different.
        contract: The stack's.
        ledger: The stack's.
        batch: The account's.
        reader: Reads how the sweep stands.
        clock: This machine's.
        ready: Called with each entry when the ledger has it, before anything is sent.
        say: Told, in sentences, what the user waits for.
    """

    def __init__(
        self,
        sweep: str,
        choose: Choose,
        changes: Changes,
        *,
        contract: "StackOutputs",
        ledger: "Ledger",
        batch: "Batch",
        reader: "StatusReader",
        clock: "Clock",
        ready: Callable[[Entry], None] | None = None,
        say: Callable[[str], None],
    ) -> None:
        self._sweep, self._choose, self._changes, self._contract = sweep, choose, changes, contract
        self._ledger, self._batch, self._reader, self._ready = ledger, batch, reader, ready
        self._sender = Sender(sweep, ledger, batch, clock, say)

    def work(self) -> Retried:
        """Send what is due until every run of it is known to have been sent.

        Raises:
            UsageError: There is no such sweep, it is begun afresh or forgotten meanwhile, or a change cannot work.
            AwsError: AWS refused a job; what it took is in the ledger.
        """
        entries = list(self._reader.read(self._sweep).entries)  # what has ended is written down
        began, nonce = len(entries), Generation(entries).nonce
        wanted = self._choose(Generation(entries))
        while True:
            generation = Generation(entries)
            if generation.nonce != nonce:
                raise UsageError(f"{self._sweep} was begun afresh meanwhile.", "See `submitter status`.")
            untouched = {number for number, n in generation.newest_word().items() if n <= began and number in wanted}
            due, ending = self._due(generation, untouched)
            self._sender.due |= due
            # All of them are drafted before any is sent: what cannot work is refused as a whole.
            if drafts := [self._draft(order, generation, len(entries) + 1) for order in self._orders(generation, due)]:
                order, entry, requests = drafts[0]
                entries = self._sender.send(entries, entry, requests, order.definition, self._ready)
                continue
            if places := self._sender.undecided(generation, wanted):
                self._sender.look(places)
            elif ending:
                self._sender.wait(f"Waiting until what was cancelled has ended: {count(len(ending), 'run')}.")
            else:
                return self._outcome(generation, wanted)
            entries = list(self._reader.read(self._sweep, before=entries).entries)

    def _draft(self, order: Order, generation: Generation, n: int) -> tuple[Order, Entry, list[dict[str, Any]]]:
        runs = Runs(generation.table, generation.table.numbers(order.wanted))
        return order, *draft(order, generation, runs, n=n, at=self._sender.now(), by=self._sender.by)

    def _due(self, generation: Generation, numbers: set[int]) -> tuple[NumberSet, NumberSet]:
        """Return which of these runs are to be sent now, and which when their cancelled jobs have ended."""
        newest, cancelled = generation.newest(), generation.cancelled
        due = {number for number in numbers if number not in newest and number in cancelled}
        ending: set[int] = set()
        places = [
            (place, here)
            for place, runs in generation.newest_places()
            if place.slot.sent and (here := numbers.intersection(runs))
        ]
        parents = self._batch.describe(job for place, _ in places if (job := place.slot.sent) and not place.slot.ended)
        for place, here in places:
            failed, over = self._ended(place, parents.get(place.slot.sent or ""), bool(here & cancelled))
            due |= here & failed
            ending |= (here & cancelled) - failed - over
        return NumberSet(due), NumberSet(ending)

    def _ended(self, place: Place, parent: Any, cancelled: bool) -> tuple[set[int], set[int]]:
        """Return which runs of a job are known to have failed, and which need not be waited for.

        Args:
            place: The job's slot.
            parent: What Batch knows of the job or its array; None when it has forgotten.
            cancelled: Whether any of the runs was cancelled: only then those that succeeded are looked up.
        """
        runs = place.slot.runs
        if place.slot.ended:
            return {n for ended in place.slot.ended if ended.state != "succeeded" for n in ended.runs}, set(runs)
        if parent is None:
            return set(), set(runs)
        if len(runs) == 1:
            final = set(runs) if parent["status"] in FINAL else set()
            return final if parent["status"] == "FAILED" else set(), final
        job = parent["jobId"]
        numbers = place.numbers()
        failed = {numbers[child["jobId"]] for child in self._batch.children(job, "FAILED")}
        if not cancelled:
            return failed, set()
        return failed, {numbers[child["jobId"]] for child in self._batch.children(job, "SUCCEEDED")}

    def _orders(self, generation: Generation, due: NumberSet) -> Iterator[Order]:
        """Yield the due runs, those together that were asked for with the same queue and resources."""
        record, requests = generation.record, generation.newest_request()
        groups: list[tuple[Entry, list[int]]] = []
        for number in due:
            request = requests[number]
            for like, numbers in groups:
                if (like.queue, like.spec) == (request.queue, request.spec):
                    numbers.append(number)
                    break
            else:
                groups.append((request, [number]))
        for request, numbers in groups:
            if record is None or request.spec is None:
                continue
            queue = find_queue(self._contract, self._changes.queue or request.queue)
            before = self._contract.queues.get(request.queue)
            spec = self._changes.apply(request.spec, queue, self._sweep.partition("/")[0], before=before)
            yield Order(
                sweep=self._sweep,
                wanted=RunTable.from_pairs(generation.table[number - 1] for number in numbers),
                record=record,
                template=record.template(),
                spec=spec,
                queue=queue.name,
                definition=job_definition(spec, self._contract),
                kind=RETRY,
                artifacts=self._contract.artifacts_bucket,
            )

    def _outcome(self, generation: Generation, wanted: NumberSet) -> Retried:
        newest = {number: place for number, place in generation.newest().items() if number in wanted}
        return Retried(
            generation=generation,
            submitted=NumberSet(n for n, place in newest.items() if place.entry.by == self._sender.by),
            unknown=NumberSet(n for n, place in newest.items() if place.slot.job is None),
        )

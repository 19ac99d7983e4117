"""The jobs of one queue that may be placed, in the order in which Batch tries them."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from itertools import chain

from emulator.batch.model import RUNNABLE, AnyJob, ArrayJob, Job
from emulator.batch.placement import Wait


class WaitingJobs:
    """A queue's RUNNABLE jobs: a deque of jobs and arrays for each share identifier; a FIFO queue has one.

    Only the job at the head is tried, as in Batch, where a job that cannot be placed blocks its queue. On a fair-share
    queue the head is that of the share that uses the fewest vCPUs.
    """

    def __init__(self) -> None:
        self._shares: defaultdict[str, deque[AnyJob]] = defaultdict(deque)
        self._vcpus_in_use: Counter[str] = Counter()
        self._blocked: tuple[Job, Wait] | None = None
        self._blocked_since = 0.0

    def append(self, job: AnyJob) -> None:
        """Add what has become RUNNABLE."""
        self._shares[job.spec.share or ""].append(job)

    def put_back(self, job: Job) -> None:
        """Add a job that is to be tried again, before the others since it was submitted before them."""
        self._shares[job.spec.share or ""].appendleft(job)

    def head(self) -> Job | None:
        """The job to try next."""
        heads = [(self._vcpus_in_use[share], head) for share in self._shares if (head := self._head_of(share))]
        return min(heads, key=lambda pair: pair[0])[1] if heads else None

    def _head_of(self, share: str) -> Job | None:
        jobs = self._shares[share]
        while jobs:
            first = jobs[0]
            if isinstance(first, Job):
                if first.status == RUNNABLE:
                    return first
                jobs.popleft()
                continue
            while first.next_index < first.size:
                child = first.child(first.next_index)
                if child.status == RUNNABLE:
                    return child
                first.next_index += 1
            jobs.popleft()
        return None

    def placed(self, job: Job) -> None:
        """Take the head away: it is no longer RUNNABLE, which `head` sees; count what its share uses."""
        self._vcpus_in_use[job.spec.share or ""] += job.spec.need.vcpus
        self._unblock()

    def released(self, job: Job) -> None:
        """Count what a share no longer uses."""
        self._vcpus_in_use[job.spec.share or ""] -= job.spec.need.vcpus

    def blocked(self, job: Job, wait: Wait, now: float) -> float:
        """Note why the head cannot be placed; returns since when that has been so, in seconds since the epoch."""
        if self._blocked != (job, wait):
            self._unblock()
            self._blocked, self._blocked_since = (job, wait), now
        if now >= self._blocked_since + wait.after_seconds:
            job.status_reason = str(wait) or None
        return self._blocked_since

    def _unblock(self) -> None:
        """Say no more of a job that was the head; one that is not RUNNABLE any more has a reason of its own."""
        if self._blocked is not None and self._blocked[0].status == RUNNABLE:
            self._blocked[0].status_reason = None
        self._blocked = None

    def front(self) -> Iterator[Job]:
        """The RUNNABLE jobs in the order of the deques."""
        for job in chain.from_iterable(self._shares.values()):
            if isinstance(job, ArrayJob):
                children = (job.child(index) for index in range(job.next_index, job.size))
                yield from (child for child in children if child.status == RUNNABLE)
            elif job.status == RUNNABLE:
                yield job

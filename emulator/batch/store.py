"""Every job that the account still knows: by id, and by queue in the order of submission."""

import uuid
from collections import defaultdict, deque
from collections.abc import Iterator

from emulator.batch.model import FINAL, AnyJob, ArrayJob, Job, Spec

KEPT_MS = 7 * 24 * 3600 * 1000
"""How long a job is known after its end; "Job states" in the Batch user guide promises at least seven days."""


class JobStore:
    """The jobs; what has ended longer ago than AWS keeps it is forgotten at the next look."""

    def __init__(self) -> None:
        self._jobs: dict[str, AnyJob] = {}
        self._by_queue: defaultdict[str, dict[str, AnyJob]] = defaultdict(dict)
        self._ended: deque[AnyJob] = deque()
        self._serial = 0

    def add(self, spec: Spec, size: int | None, now_ms: int) -> AnyJob:
        """Make the record of a submission; `size` is that of an array, or None for a plain job."""
        self._serial += 1
        job_id = str(uuid.uuid4())
        job: AnyJob
        if size is None:
            job = Job(id=job_id, spec=spec, status="SUBMITTED", created_at=now_ms, serial=self._serial)
        else:
            job = ArrayJob(id=job_id, spec=spec, size=size, created_at=now_ms, serial=self._serial)
        self._jobs[job_id] = self._by_queue[spec.queue][job_id] = job
        return job

    def get(self, job_id: str) -> AnyJob | None:
        """Find a job, an array or, by `parent:index`, a child."""
        parent, colon, index = job_id.partition(":")
        job = self._jobs.get(parent)
        if not colon:
            return job
        known = isinstance(job, ArrayJob) and index.isdecimal() and str(int(index)) == index and int(index) < job.size
        return job.child(int(index)) if known and isinstance(job, ArrayJob) else None

    def newest_first(self, queue: str) -> Iterator[AnyJob]:
        """Plain jobs and parents of a queue."""
        return reversed(self._by_queue[queue].values())

    def unfinished(self, queue: str) -> int:
        """Count the jobs of a queue that have not ended, an array by its children."""
        waiting = (job for job in self._by_queue[queue].values() if job.status not in FINAL)
        return sum(
            job.size - job.counts["SUCCEEDED"] - job.counts["FAILED"] if isinstance(job, ArrayJob) else 1
            for job in waiting
        )

    def ended(self, job: AnyJob) -> None:
        """Note that a plain job or a parent has ended, so that it can be forgotten in time."""
        self._ended.append(job)

    def forget(self, now_ms: int) -> None:
        """Drop what ended too long ago."""
        while self._ended and (self._ended[0].stopped_at or 0) + KEPT_MS <= now_ms:
            job = self._ended.popleft()
            del self._jobs[job.id], self._by_queue[job.spec.queue][job.id]

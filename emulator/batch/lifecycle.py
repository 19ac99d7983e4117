"""Moves jobs from state to state and keeps what follows from it: array parents, counters, dependent jobs.

Source: Batch user guide, "Job states", "Array jobs", "Job dependencies".
"""

from collections import defaultdict, deque
from collections.abc import Callable

from emulator.batch.model import (
    FAILED,
    FINAL,
    PENDING,
    RUNNABLE,
    RUNNING,
    SUBMITTED,
    SUCCEEDED,
    WAITING,
    AnyJob,
    ArrayJob,
    Job,
)
from emulator.batch.store import JobStore

CHILD_FAILED = "Array Child Job failed"
DEPENDENCY_FAILED = "Dependent Job failed"


class Lifecycle:
    """Applies state changes.

    `keeps_summaries` says whether arrays remember what their summaries were, for an account whose summaries lag.

    Args:
        store: Where dependencies are found and ends are noted.
        now_ms: The account's time.
        runnable: Told of each job, or array as a whole, that may be placed from now on.
    """

    def __init__(self, store: JobStore, now_ms: Callable[[], int], runnable: Callable[[AnyJob], None]) -> None:
        self._store = store
        self._now_ms = now_ms
        self._runnable = runnable
        self._dependents: defaultdict[str, list[AnyJob]] = defaultdict(list)
        self._ended: deque[AnyJob] = deque()
        self._telling = False
        self.keeps_summaries = False

    def admit(self, job: AnyJob) -> None:
        """Take a job out of SUBMITTED: to RUNNABLE, to PENDING for its dependencies, or to FAILED at once."""
        if job.status != SUBMITTED:
            return
        if job.spec.refusal:
            self.fail_waiting(job, job.spec.refusal)
            return
        self.move(job, PENDING)
        for dependency in job.spec.depends_on:
            if "jobId" in dependency and self._status_of(dependency["jobId"]) not in FINAL:
                self._dependents[dependency["jobId"]].append(job)
        self._consider(job)

    def move(self, job: AnyJob, status: str, reason: str | None = None) -> None:
        """Put a job into a state, with its times and with the counters and the end of its array."""
        now = self._now_ms()
        if isinstance(job, Job) and job.array is not None:
            self._keep_summary(job.array, now)
            job.array.counts[job.status] -= 1
            job.array.counts[status] += 1
        job.status, job.status_reason = status, reason
        if status == RUNNING:
            job.started_at = now
            if isinstance(job, Job) and job.array is not None and job.array.started_at is None:
                job.array.started_at = now
        if status in FINAL:
            job.stopped_at = now
            self._ended.append(job)
            self._tell()

    def _tell(self) -> None:
        """Let go on, or fail, what depends on jobs that have ended.

        One after the other, not by recursion: the end of one job can be that of thousands in a row.
        """
        if self._telling:
            return
        self._telling = True
        try:
            while self._ended:
                job = self._ended.popleft()
                if isinstance(job, Job) and job.array is not None:
                    self._child_ended(job, job.array)
                else:
                    self._store.ended(job)
                    for dependent in self._dependents.pop(job.id, ()):
                        self._consider(dependent)
        finally:
            self._telling = False

    def fail_waiting(self, job: AnyJob, reason: str, *, cancelled: bool = False, terminated: bool = False) -> None:
        """Fail a job that has not been placed; of an array every such child."""
        if job.status in FINAL or (isinstance(job, Job) and job.status not in WAITING):
            return
        job.cancelled |= cancelled
        job.terminated |= terminated
        if isinstance(job, Job):
            self.move(job, FAILED, reason)
            return
        if job.status == SUBMITTED:
            job.status = PENDING
        job.status_reason = reason
        for index in range(job.size):
            self.fail_waiting(job.child(index), reason, cancelled=cancelled, terminated=terminated)

    def _child_ended(self, child: Job, array: ArrayJob) -> None:
        ended = array.counts[SUCCEEDED] + array.counts[FAILED]
        for dependent in tuple(self._dependents.get(array.id, ())):
            if isinstance(dependent, ArrayJob) and _by_child(dependent):
                self._consider_child(dependent, child.serial)
        if _by_child(array):
            self._consider_child(array, child.serial + 1)
        if ended < array.size or array.status in FINAL:
            return
        if array.counts[FAILED]:
            # A reason is there when somebody ended the array; it says more than that children failed.
            self.move(array, FAILED, array.status_reason or CHILD_FAILED)
        else:
            self.move(array, SUCCEEDED)

    def _consider(self, job: AnyJob) -> None:
        """Let a PENDING job go on, or fail, when the jobs that it depends on as wholes have ended."""
        if job.status != PENDING or (isinstance(job, ArrayJob) and job.untouched_status != PENDING):
            return
        states = {self._status_of(dependency["jobId"]) for dependency in _whole(job)}
        if FAILED in states:
            self.fail_waiting(job, DEPENDENCY_FAILED)
        elif states <= {SUCCEEDED}:
            self._release(job)

    def _release(self, job: AnyJob) -> None:
        if isinstance(job, Job):
            self.move(job, RUNNABLE)
        elif _by_child(job):
            for index in range(job.size):
                self._consider_child(job, index)
            return
        else:
            for child in job.children.values():
                if child.status == PENDING:
                    self.move(child, RUNNABLE)
            self._keep_summary(job, self._now_ms())
            job.untouched_status = RUNNABLE
        self._runnable(job)

    def _keep_summary(self, array: ArrayJob, now: int) -> None:
        """Let an array remember its summary before it changes."""
        if self.keeps_summaries:
            array.past.append((now, array.summary()))

    def _consider_child(self, array: ArrayJob, index: int) -> None:
        """Do for one child what :meth:`_consider` does for a job: N_TO_N and SEQUENTIAL dependencies."""
        if index >= array.size or array.child(index).status != PENDING:
            return
        states = {self._status_of(dependency["jobId"]) for dependency in _whole(array)}
        for dependency in array.spec.depends_on:
            if dependency.get("type") == "N_TO_N":
                states.add(self._status_of(f"{dependency['jobId']}:{index}"))
            elif dependency.get("type") == "SEQUENTIAL" and index > 0:
                states.add(array.child(index - 1).status)
        child = array.child(index)
        if FAILED in states:
            self.move(child, FAILED, DEPENDENCY_FAILED)
        elif states <= {SUCCEEDED}:
            self.move(child, RUNNABLE)
            self._runnable(child)

    def _status_of(self, job_id: str) -> str:
        """Read a dependency's state; one that AWS has forgotten since holds nobody up."""
        job = self._store.get(job_id)
        return job.status if job else SUCCEEDED


def _by_child(job: ArrayJob) -> bool:
    """Whether each child waits for a child of another array, or for the one before it."""
    return any("type" in dependency for dependency in job.spec.depends_on)


def _whole(job: AnyJob) -> list[dict[str, str]]:
    return [dict(dependency) for dependency in job.spec.depends_on if "type" not in dependency]

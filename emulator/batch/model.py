"""Jobs and array jobs as the scheduler keeps them. Times are milliseconds since the epoch, as in the API."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from emulator.batch.placement import Host, Need

SUBMITTED, PENDING, RUNNABLE, STARTING = "SUBMITTED", "PENDING", "RUNNABLE", "STARTING"
RUNNING, SUCCEEDED, FAILED = "RUNNING", "SUCCEEDED", "FAILED"
STATUSES = (SUBMITTED, PENDING, RUNNABLE, STARTING, RUNNING, SUCCEEDED, FAILED)
FINAL: Set[str] = frozenset({SUCCEEDED, FAILED})
WAITING: Set[str] = frozenset({SUBMITTED, PENDING, RUNNABLE})


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What was submitted, merged with its job definition; shared by all children of an array.

    `container` has the API's shape of ContainerDetail without what running adds; `definition_name` is the part of a
    log stream's name; `refusal` is why the job fails without being run, or empty.
    """

    name: str
    queue: str
    queue_arn: str
    definition_arn: str
    definition_name: str
    container: Mapping[str, Any]
    need: Need
    retry_strategy: Mapping[str, Any]
    timeout_seconds: int | None
    parameters: Mapping[str, str]
    depends_on: tuple[Mapping[str, str], ...]
    share: str | None
    scheduling_priority: int | None
    tags: dict[str, str]
    propagate_tags: bool
    refusal: str


@dataclass(kw_only=True, slots=True)
class Attempt:
    """One attempt at a job on a host; `exit_code` is None when no process of it ran to an end."""

    task_id: str
    host: Host
    started_at: int | None = None
    stopped_at: int | None = None
    exit_code: int | None = None
    reason: str | None = None
    status_reason: str | None = None


@dataclass(kw_only=True, slots=True, eq=False)
class Job:
    """A job that runs one container at a time: a plain job, or one child of an array.

    `serial` orders jobs by their submission, children by their index. `current` is the attempt under way.
    """

    id: str
    spec: Spec
    status: str
    created_at: int
    serial: int
    array: "ArrayJob | None" = None
    index: int | None = None
    status_reason: str | None = None
    started_at: int | None = None
    stopped_at: int | None = None
    attempts: list[Attempt] = field(default_factory=list)
    current: Attempt | None = None
    cancelled: bool = False
    terminated: bool = False

    @property
    def latest(self) -> Attempt | None:
        """The attempt under way, else the last one."""
        return self.current or (self.attempts[-1] if self.attempts else None)


@dataclass(kw_only=True, slots=True, eq=False)
class ArrayJob:
    """The parent of an array. A child's record is made when something first happens to it.

    The children without a record share `untouched_status`. `next_index` is the first index that was never placed.
    `past` holds what the summary was, oldest first, each with the time until which it was so.
    """

    id: str
    spec: Spec
    size: int
    created_at: int
    serial: int
    status: str = SUBMITTED
    status_reason: str | None = None
    started_at: int | None = None
    stopped_at: int | None = None
    cancelled: bool = False
    terminated: bool = False
    untouched_status: str = PENDING
    next_index: int = 0
    children: dict[int, Job] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    past: deque[tuple[int, dict[str, int]]] = field(default_factory=deque)

    def child(self, index: int) -> Job:
        """Return a child's record, made if nothing has happened to it yet."""
        child = self.children.get(index)
        if child is None:
            child = self.children[index] = Job(
                id=f"{self.id}:{index}",
                spec=self.spec,
                status=self.untouched_status,
                created_at=self.created_at,
                serial=index,
                array=self,
                index=index,
            )
            self.counts[child.status] += 1
        return child

    def with_status(self, status: str) -> Iterator[Job]:
        """The children of one status, by index."""
        for index in range(self.size):
            child = self.children.get(index)
            if (child.status if child else self.untouched_status) == status:
                yield self.child(index)

    def summary(self, at: int | None = None) -> dict[str, int]:
        """Count the children by status, for every status: now, or as `past` has it of an earlier time."""
        if at is not None:
            for until, then in self.past:
                if at < until:
                    return then
        counts = {status: self.counts[status] for status in STATUSES}
        counts[self.untouched_status] += self.size - len(self.children)
        return counts


AnyJob = Job | ArrayJob

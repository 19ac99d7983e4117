"""What AWS shows of runs that wait: their jobs, the queue, its environments, its head, and prices where they matter."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from submitter.aws_errors import is_denial
from submitter.batch import Batch
from submitter.facts import Environment, Head, Need, Price, Waiting
from submitter.history import Generation
from submitter.names import SWEEP_TAG
from submitter.session import Clock

if TYPE_CHECKING:
    from mypy_boto3_batch.literals import JobStatusType

    from infra.outputs import StackOutputs

WAITING: Final = ("submitted", "pending", "runnable", "starting")
"""Batch's statuses of a run that has been submitted and does not run yet."""

_CHILD_WAITS: Final[tuple["JobStatusType", ...]] = ("RUNNABLE", "STARTING", "SUBMITTED", "PENDING")
_CHILD_GOES_ON: Final[tuple["JobStatusType", ...]] = ("RUNNING", "SUCCEEDED", "FAILED")

Job = Mapping[str, Any]


class Evidence:
    """Reads what explains waiting.

    Args:
        contract: The stack's outputs.
        batch: AWS Batch.
        price: Reads what an instance type costs.
        clock: This machine's.
    """

    def __init__(self, contract: "StackOutputs", batch: Batch, price: Callable[[str], Price], clock: Clock) -> None:
        self._contract, self._batch, self._price, self._clock = contract, batch, price, clock

    def waiting(self, sweep: str, generation: Generation) -> list[Waiting]:
        """Return what is known about the runs of the sweep's generation that wait, queue by queue."""
        places = {place.slot.sent: place for place in generation.newest().values() if place.slot.sent}
        jobs = self._batch.describe(job for job, place in places.items() if not place.slot.ended)
        by_queue: dict[str, list[Job]] = {}
        for job in jobs.values():
            if _waiting_runs(job):
                by_queue.setdefault(places[job["jobId"]].entry.queue, []).append(job)
        return [self._on_queue(name, found, sweep, set(places)) for name, found in by_queue.items()]

    def _on_queue(self, name: str, jobs: Sequence[Job], sweep: str, own: set[str]) -> Waiting:
        queue: Mapping[str, Any] = self._batch.queues([name]).get(name, {})
        hardware = self._contract.queues.get(name)
        arns = [each["computeEnvironment"] for each in queue.get("computeEnvironmentOrder", ())]
        environments = tuple(_environment(each) for each in self._batch.environments(arns))
        head, front_known = self._head(name, sweep, own) if queue else (None, False)
        lagging = [job for job in jobs if self._lags(job)]
        cheap = any(each.spot and each.bid_percentage < 100 for each in environments)
        return Waiting(
            queue=name,
            hardware=hardware,
            exists=bool(queue),
            state=queue.get("state", ""),
            status=queue.get("status", ""),
            status_reason=queue.get("statusReason", ""),
            limits={each["reason"]: each["maxTimeSeconds"] for each in queue.get("jobStateTimeLimitActions", ())},
            environments=environments,
            runs=sum((_waiting_runs(job) for job in jobs if job not in lagging), Counter()),
            lagging=sum(_waiting_runs(job).total() for job in lagging),
            waited_seconds=self._clock.now() - min(job["createdAt"] for job in jobs) / 1000,
            need=_need(jobs[0]),
            head=head,
            front_known=front_known,
            price=self._price(hardware.instance_type) if cheap and hardware else None,
        )

    def _lags(self, job: Job) -> bool:
        """Tell whether an array counts runs as waiting, and lists others, but none that waits."""
        if "arrayProperties" not in job or job["status"] != "PENDING":
            return False
        listed = (next(self._batch.children(job["jobId"], status), None) for status in _CHILD_WAITS)
        gone_on = (next(self._batch.children(job["jobId"], status), None) for status in _CHILD_GOES_ON)
        return not any(listed) and any(gone_on)

    def _head(self, queue: str, sweep: str, own: set[str]) -> tuple[Head | None, bool]:
        """Return the queue's first job, and whether that could be read: older policies do not allow it."""
        try:
            job = self._batch.head(queue)
        except ClientError as error:
            if not is_denial(error):
                raise
            return None, False
        if job is None:
            return None, True
        array = job.partition(":")[0]
        found = self._batch.describe(dict.fromkeys((job, array)))
        if job not in found:
            return None, True
        of_sweep = found[array].get("tags", {}).get(SWEEP_TAG) if array in found else None
        return Head(
            job=job,
            sweep=of_sweep,
            own=array in own,
            older=array not in own and of_sweep == sweep,
            need=_need(found[job]),
            status_reason=found[job].get("statusReason", "") if found[job]["status"] == "RUNNABLE" else "",
        ), True


def reasons_of_ended(generation: Generation) -> dict[str, dict[str, int]]:
    """Return how many runs that stand where they last stood have ended for which reason, queue by queue."""
    found: dict[str, Counter[str]] = {}
    for number, place in generation.newest().items():
        for ended in place.slot.ended:
            if ended.reason and number in ended.runs:
                found.setdefault(place.entry.queue, Counter())[ended.reason] += 1
    return {queue: dict(counts) for queue, counts in found.items()}


def _waiting_runs(job: Job) -> Counter[str]:
    """Count the runs of a job or array that wait, by status."""
    array = job.get("arrayProperties", {})
    counts = Counter({name.lower(): count for name, count in array.get("statusSummary", {}).items()})
    counts = counts if counts.total() else Counter({job["status"].lower(): array.get("size", 1)})
    return Counter({status: counts[status] for status in WAITING if counts[status]})


def _need(job: Job) -> Need:
    needs = {each["type"]: int(float(each["value"])) for each in job["container"].get("resourceRequirements", ())}
    return Need(vcpus=needs.get("VCPU", 1), memory_mib=needs.get("MEMORY", 0), gpus=needs.get("GPU", 0))


def _environment(described: Mapping[str, Any]) -> Environment:
    resources = described["computeResources"]
    return Environment(
        name=described["computeEnvironmentName"],
        state=described["state"],
        status=described["status"],
        status_reason=described.get("statusReason", ""),
        spot=resources["type"] == "SPOT",
        bid_percentage=resources.get("bidPercentage") or 100,
        max_vcpus=resources["maxvCpus"],
        desired_vcpus=resources.get("desiredvCpus", 0),
        service_role=described.get("serviceRole", ""),
    )

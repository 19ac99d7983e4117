"""The operations on jobs, each a method that runs on the event loop."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from emulator.batch.describe import job_arn, job_detail, job_summary
from emulator.batch.model import RUNNING, AnyJob, ArrayJob
from emulator.batch.refusals import plainly_refused
from emulator.batch.submission import read_submission

if TYPE_CHECKING:
    from emulator.account import Account
    from emulator.batch.scheduler import Scheduler
    from emulator.batch.state import State
    from emulator.clock import Clock

_MOST_DESCRIBED = 100
_MOST_IN_BULK = 50
_MOST_LISTED = 1000
_MOST_FILTERED = 100
_LONGEST_REASON = 1024
_FRONT = 100


class Jobs:
    """SubmitJob and what looks at jobs or ends them.

    `listing_delay_seconds` is how long a new job is missing from ListJobs, `summary_delay_seconds` how old the summary
    is that DescribeJobs shows of an array's children: both lag in AWS, and the control endpoint can make it seen.
    """

    def __init__(self, state: "State", account: "Account", scheduler: "Scheduler", clock: "Clock") -> None:
        self.listing_delay_seconds = 0.0
        self.summary_delay_seconds = 0.0
        self._state = state
        self._account = account
        self._scheduler = scheduler
        self._clock = clock

    def submit_job(self, **request: Any) -> dict[str, Any]:
        """Take a job or an array of jobs."""
        spec, size = read_submission(request, self._state, self._scheduler.store)
        job = self._scheduler.submit(spec, size)
        return {"jobArn": job_arn(job, self._account.arn), "jobName": spec.name, "jobId": job.id}

    def describe_jobs(self, jobs: list[str]) -> dict[str, Any]:
        """Describe up to 100 jobs by id, children too; ids that are not known are left out."""
        if len(jobs) > _MOST_DESCRIBED:
            raise plainly_refused(f"The number of jobs to describe must be at most {_MOST_DESCRIBED}.")
        found = [job for job_id in dict.fromkeys(jobs) if (job := self._find(job_id)) is not None]
        summary_at = self._clock.now_ms() - int(self.summary_delay_seconds * 1000)
        return {"jobs": [job_detail(job, self._account.arn, summary_at) for job in found]}

    def list_jobs(
        self,
        *,
        jobQueue: str | None = None,  # noqa: N803
        arrayJobId: str | None = None,  # noqa: N803
        multiNodeJobId: str | None = None,  # noqa: N803
        jobStatus: str | None = None,  # noqa: N803
        maxResults: int | None = None,  # noqa: N803
        nextToken: str | None = None,  # noqa: N803
        filters: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """List a queue's jobs, newest first, or an array's children by index; without a state only RUNNING ones."""
        if [jobQueue, arrayJobId, multiNodeJobId].count(None) != 2:
            raise plainly_refused("Exactly one of jobQueue, arrayJobId and multiNodeJobId must be specified.")
        if multiNodeJobId is not None:
            raise plainly_refused("Multi-node parallel jobs are not part of this emulated account.")
        most = _MOST_FILTERED if filters else _MOST_LISTED
        if maxResults is not None and maxResults < 1:
            raise plainly_refused("maxResults must be at least 1.")
        after = _token(nextToken)
        self._forget()
        if arrayJobId is not None:
            found = self._children(arrayJobId, jobStatus or RUNNING, after)
        else:
            found = self._of_queue(jobQueue or "", _matcher(filters, jobStatus or RUNNING), after)
        page = list(islice(found, min(maxResults or most, most) + 1))
        more = {"nextToken": str(page[-2].serial)} if len(page) > min(maxResults or most, most) else {}
        shown = page[:-1] if more else page
        return {"jobSummaryList": [job_summary(job, self._account.arn) for job in shown], **more}

    def cancel_job(self, jobId: str, reason: str) -> dict[str, Any]:  # noqa: N803
        """Fail a job that has not reached STARTING; to others nothing happens and nothing is said."""
        self._end(jobId, reason, self._scheduler.cancel)
        return {}

    def terminate_job(self, jobId: str, reason: str) -> dict[str, Any]:  # noqa: N803
        """End a job in any state; of an array all children."""
        self._end(jobId, reason, self._scheduler.terminate)
        return {}

    def cancel_jobs(self, jobs: list[str], reason: str) -> dict[str, Any]:
        """Do CancelJob for up to 50 jobs."""
        return self._end_all(jobs, reason, self._scheduler.cancel)

    def terminate_jobs(self, jobs: list[str], reason: str) -> dict[str, Any]:
        """Do TerminateJob for up to 50 jobs."""
        return self._end_all(jobs, reason, self._scheduler.terminate)

    def get_job_queue_snapshot(self, jobQueue: str) -> dict[str, Any]:  # noqa: N803
        """Show the first 100 RUNNABLE jobs of a queue."""
        queue = self._queue_name(jobQueue)
        front = self._scheduler.front(queue, _FRONT)
        jobs = [{"jobArn": job_arn(job, self._account.arn), "earliestTimeAtPosition": job.created_at} for job in front]
        return {"frontOfQueue": {"jobs": jobs, "lastUpdatedAt": self._clock.now_ms()}}

    def _forget(self) -> None:
        self._scheduler.store.forget(self._clock.now_ms())

    def _find(self, job_id: str) -> AnyJob | None:
        self._forget()
        return self._scheduler.store.get(job_id)

    def _queue_name(self, name_or_arn: str) -> str:
        queue = self._state.queue(name_or_arn)
        if queue is None:
            raise plainly_refused(f"JobQueue {name_or_arn} does not exist")
        return queue.name

    def _children(self, array_id: str, status: str, after: int | None) -> Iterator[AnyJob]:
        array = self._find(array_id)
        if not isinstance(array, ArrayJob):
            raise plainly_refused(f"Job {array_id} is not an array job.")
        return (child for child in array.with_status(status) if after is None or child.serial > after)

    def _of_queue(self, name_or_arn: str, matches: Callable[[AnyJob], bool], before: int | None) -> Iterator[AnyJob]:
        visible_until = self._clock.now_ms() - int(self.listing_delay_seconds * 1000)
        jobs: Iterable[AnyJob] = self._scheduler.store.newest_first(self._queue_name(name_or_arn))
        return (
            job
            for job in jobs
            if matches(job) and job.created_at <= visible_until and (before is None or job.serial < before)
        )

    def _end(self, job_id: str, reason: str, end: Callable[[AnyJob, str], None]) -> None:
        if len(reason) > _LONGEST_REASON:
            raise plainly_refused(f"reason must have at most {_LONGEST_REASON} characters.")
        job = self._find(job_id)
        if job is None:
            raise plainly_refused(f"Job {job_id} does not exist")
        end(job, reason)

    def _end_all(self, job_ids: list[str], reason: str, end: Callable[[AnyJob, str], None]) -> dict[str, Any]:
        if not 1 <= len(job_ids) <= _MOST_IN_BULK:
            raise plainly_refused(f"The number of jobs must be between 1 and {_MOST_IN_BULK}.")
        for job_id in job_ids:
            if self._find(job_id):
                self._end(job_id, reason, end)
        # "Jobs that can't be found are treated as successfully processed": TerminateJobs, AWS Batch API reference.
        return {"successful": job_ids, "errors": []}


def _token(token: str | None) -> int | None:
    """Read a nextToken: the serial of the last job that was shown."""
    if token is None:
        return None
    if not token.isdecimal():
        raise plainly_refused("The specified nextToken is invalid.")
    return int(token)


def _matcher(filters: list[Mapping[str, Any]] | list[dict[str, Any]] | None, status: str) -> Callable[[AnyJob], bool]:
    """Make the test that a listed job must pass: its state, or the one filter, which ignores the state."""
    if not filters:
        return lambda job: job.status == status
    if len(filters) > 1:
        raise plainly_refused("Only one filter can be used at a time.")
    if filters[0].get("name") != "JOB_NAME":
        raise plainly_refused(f"Filter {filters[0].get('name')}: this emulated account has JOB_NAME only.")
    wanted = [value.lower() for value in filters[0].get("values", [])]
    prefixes = tuple(value[:-1] for value in wanted if value.endswith("*"))
    return lambda job: job.spec.name.lower() in wanted or job.spec.name.lower().startswith(prefixes)

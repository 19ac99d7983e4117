"""AWS Batch: the only module that talks to it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ProxyConnectionError,
)

from infra.outputs import DEFINITION_PREFIX
from submitter.aws_errors import THROTTLED, error_code, explain, is_throttling
from submitter.errors import AwsError, SubmitterError
from submitter.session import Clock, Fence, FencePassedError, aws_time, client_config, pages

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_batch.literals import JobStatusType
    from mypy_boto3_batch.type_defs import (
        ComputeEnvironmentDetailTypeDef,
        JobDetailTypeDef,
        JobQueueDetailTypeDef,
        JobSummaryTypeDef,
    )

_IDS_PER_DESCRIBE: Final = 100
"""DescribeJobs and DescribeJobQueues take at most 100 names."""

_TOKEN: Final = {"nextToken": "nextToken"}
"""Where an answer names the page after it, and where a call asks for it."""

_IDS_PER_TERMINATE: Final = 50
"""TerminateJobs takes at most 50 jobs."""

_TERMINATE_ROUNDS: Final = 8
"""Jobs that were throttled within a call of TerminateJobs are named again so often."""

_QUEUES_AT_ONCE: Final = 8
"""Listings that are asked for side by side: within the connections that a client keeps."""

_WAITING: Final[tuple["JobStatusType", ...]] = ("SUBMITTED", "PENDING", "RUNNABLE")
"""Before an instance is found. An array is PENDING as a whole until the last of its children has ended."""

_SECONDS_PER_SUBMIT: Final = 1 / 50
"""SubmitJob may be called 50 times a second, "AWS Batch service quotas" in the user guide."""

_BATCHS_OWN: Final = frozenset({500, 503})
"""How AWS Batch itself answers that it failed ("Common error types" in its API reference), with its request's id."""

_NEVER_CONNECTED: Final = (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError)


@dataclass(frozen=True)
class Accepted:
    """SubmitJob made the job."""

    job: str


@dataclass(frozen=True)
class Throttled:
    """SubmitJob was refused because of too many calls: it may be sent again."""


@dataclass(frozen=True)
class Refused:
    """SubmitJob made no job and never will: AWS said no, or the request never left."""

    error: SubmitterError


@dataclass(frozen=True)
class TooLate:
    """The request was not sent, because it would have been signed after the fence."""


@dataclass(frozen=True)
class Unknown:
    """No answer, or one that does not say whether there is a job; never to be sent again.

    Attributes:
        answered: AWS's clock when it answered with an error of its own, so that nothing is under way any more; None
            when there was no answer.
    """

    answered: float | None


Answer = Accepted | Throttled | Refused | TooLate | Unknown


class Batch:
    """AWS Batch in the session's account and region; used by one thread at a time.

    Attributes:
        described_at: AWS's clock when it began to answer the newest :meth:`describe`, in seconds since the epoch; 0
            before the first one, and where a reply came without a date.
    """

    def __init__(self, session: "boto3.Session", clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        self._client = session.client("batch", config=client_config())
        # A call that is sent once, since SubmitJob has no token that would make a second one harmless.
        self._once = session.client("batch", config=client_config(attempts=1))
        self._fence = Fence(self._clock)
        self._once.meta.events.register("before-send.batch.SubmitJob", self._fence)
        self._next_submit = 0.0
        self.described_at = 0.0

    def definition(self, request: Mapping[str, Any]) -> str:
        """Return name:revision of the job definition, registered now if no active one has its name.

        Args:
            request: RegisterJobDefinition's arguments; the name carries a hash of the content.
        """
        name = request["jobDefinitionName"]
        if found := self.find_definition(name):
            return found
        return f"{name}:{self._client.register_job_definition(**request)['revision']}"

    def find_definition(self, name: str) -> str | None:
        """Return name:revision of the newest active job definition of this name, or None."""
        revisions: list[int] = []
        for page in pages(self._client.describe_job_definitions, _TOKEN, jobDefinitionName=name, status="ACTIVE"):
            revisions += (found["revision"] for found in page["jobDefinitions"])
        return f"{name}:{max(revisions)}" if revisions else None

    def definitions(self, job_role_arn: str) -> list[str]:
        """Return name:revision of every active job definition that this program has registered for this role."""
        pages = self._client.get_paginator("describe_job_definitions").paginate(status="ACTIVE")
        return sorted(
            f"{found['jobDefinitionName']}:{found['revision']}"
            for page in pages
            for found in page["jobDefinitions"]
            if found["jobDefinitionName"].startswith(DEFINITION_PREFIX)
            and found.get("containerProperties", {}).get("jobRoleArn") == job_role_arn
        )

    def deregister(self, definition: str) -> None:
        """Make a job definition, name:revision, one that no job can be submitted with; jobs that have it go on."""
        self._client.deregister_job_definition(jobDefinition=definition)

    def submit(self, request: Mapping[str, Any], *, sign_until: float) -> Answer:
        """Send SubmitJob once, and say what is known then.

        Args:
            request: SubmitJob's arguments.
            sign_until: This machine's clock, in seconds since the epoch; a request that is signed later is not sent.
        """
        self._pace()
        try:
            with self._fence.at(sign_until):
                job = self._once.submit_job(**request).get("jobId")
        except FencePassedError:
            return TooLate()
        except ClientError as error:
            return _classified(error)
        except BotoCoreError as error:
            if self._fence.passed and not isinstance(error, _NEVER_CONNECTED):
                return Unknown(None)
            return Refused(explain(error) or AwsError(str(error)))
        return Accepted(job) if job else Unknown(None)  # botocore takes a reply that broke off for an empty one

    def find(self, queue: str, name: str) -> tuple[str | None, float] | None:
        """Return the id of the job with exactly this name, or None, and AWS's clock when it was looked up.

        The filter of ListJobs ignores case and takes a `*` at the end for a pattern, so its answer is looked through.

        Returns:
            None alone when there is no such queue any more.
        """
        found = pages(self._client.list_jobs, _TOKEN, jobQueue=queue, filters=[{"name": "JOB_NAME", "values": [name]}])
        try:
            first = next(found)
            if (date := aws_time(first)) is None:
                raise AwsError("The reply of AWS Batch came without a date.", "A proxy must pass the Date header on.")
            jobs = (job for page in chain((first,), found) for job in page["jobSummaryList"])
            return next((job["jobId"] for job in jobs if job["jobName"] == name), None), date
        except ClientError as error:
            if error_code(error) != "ClientException" or queue in self.queues([queue]):
                raise
            return None

    def describe(self, ids: Iterable[str]) -> "dict[str, JobDetailTypeDef]":
        """Return what AWS knows of these jobs, by id: those that it has forgotten, or that never were, are left out."""
        found, dates = {}, []
        for chunk in _chunks(list(ids), _IDS_PER_DESCRIBE):
            reply = self._client.describe_jobs(jobs=chunk)
            found.update({job["jobId"]: job for job in reply["jobs"]})
            dates.append(aws_time(reply) or 0.0)
        self.described_at = min(dates, default=self.described_at)
        return found

    def children(self, job: str, status: "JobStatusType") -> "Iterator[JobSummaryTypeDef]":
        """Yield the array's children with this status, up to 1,000 a call."""
        pages = self._client.get_paginator("list_jobs").paginate(
            arrayJobId=job, jobStatus=status, PaginationConfig={"PageSize": 1000}
        )
        for page in pages:
            yield from page["jobSummaryList"]

    def queues(self, names: Sequence[str]) -> "dict[str, JobQueueDetailTypeDef]":
        """Return what AWS knows of these job queues, by name."""
        found = {}
        for chunk in _chunks(names, _IDS_PER_DESCRIBE):
            pages = self._client.get_paginator("describe_job_queues").paginate(jobQueues=chunk)
            found.update({queue["jobQueueName"]: queue for page in pages for queue in page["jobQueues"]})
        return found

    def waiting(self, names: Sequence[str]) -> dict[str, int]:
        """Return how many jobs and array children of each queue wait for an instance, some queues at a time."""
        with ThreadPoolExecutor(_QUEUES_AT_ONCE) as pool:
            return dict(zip(names, pool.map(self._waiting, names), strict=True))

    def _waiting(self, queue: str) -> int:
        waiting, arrays = 0, []
        for status in _WAITING:
            pages = self._client.get_paginator("list_jobs").paginate(jobQueue=queue, jobStatus=status)
            for job in (found for page in pages for found in page["jobSummaryList"]):
                if "arrayProperties" in job:
                    arrays.append(job["jobId"])
                else:
                    waiting += 1
        for array in self.describe(arrays).values():
            properties = array["arrayProperties"]
            begun = sum(n for status, n in properties.get("statusSummary", {}).items() if status not in _WAITING)
            waiting += properties["size"] - begun
        return waiting

    def environments(self, arns: Sequence[str]) -> "list[ComputeEnvironmentDetailTypeDef]":
        """Return what AWS knows of these compute environments, in their order."""
        found = []
        for chunk in _chunks(arns, _IDS_PER_DESCRIBE):
            found += self._client.describe_compute_environments(computeEnvironments=chunk)["computeEnvironments"]
        return sorted(found, key=lambda environment: arns.index(environment["computeEnvironmentArn"]))

    def head(self, queue: str) -> str | None:
        """Return the id of the first RUNNABLE job of a queue, or None when it has none."""
        front = self._client.get_job_queue_snapshot(jobQueue=queue).get("frontOfQueue", {}).get("jobs", ())
        return front[0]["jobArn"].rpartition("/")[2] if front else None

    def terminate(self, job: str, reason: str) -> None:
        """End a job, or the whole array; one that has ended already stays as it is."""
        self._client.terminate_job(jobId=job, reason=reason)

    def terminate_all(self, jobs: Sequence[str], reason: str) -> None:
        """End jobs, arrays and children alike; those that have ended, or that AWS has forgotten, stay as they are.

        Raises:
            AwsError: AWS does not end one of them.
        """
        left = list(jobs)
        for wait in (2**n for n in range(_TERMINATE_ROUNDS)):
            errors = [
                error
                for chunk in _chunks(left, _IDS_PER_TERMINATE)
                for error in self._client.terminate_jobs(jobs=chunk, reason=reason)["errors"]
            ]
            left = [error["job"] for error in errors]
            if not left:
                return
            refused = [error for error in errors if error["code"] not in {*THROTTLED, "ServerException"}]
            if refused:
                break
            self._clock.sleep(wait)
        first = (refused or errors)[0]
        raise AwsError(f"AWS did not end {len(left)} jobs; of {first['job']} it said: {first['message']}")

    def _pace(self) -> None:
        wait = self._next_submit - self._clock.now()
        if 0 < wait <= _SECONDS_PER_SUBMIT:  # longer only when the machine's clock was put back
            self._clock.sleep(wait)
        self._next_submit = self._clock.now() + _SECONDS_PER_SUBMIT


def _classified(error: ClientError) -> Answer:
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    if status >= 500:
        # What stands between, a proxy or a load balancer, may give up on a request that Batch still works on.
        by_batch = status in _BATCHS_OWN and "x-amzn-requestid" in error.response["ResponseMetadata"]["HTTPHeaders"]
        return Unknown(aws_time(error.response) if by_batch else None)
    if is_throttling(error):
        return Throttled()
    if status >= 400:
        return Refused(explain(error) or AwsError(str(error)))
    return Unknown(None)


def _chunks(names: Sequence[str], size: int) -> Iterator[list[str]]:
    return (list(names[start : start + size]) for start in range(0, len(names), size))

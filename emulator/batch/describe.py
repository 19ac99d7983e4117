"""Jobs as DescribeJobs and ListJobs show them. Source: JobDetail and JobSummary, AWS Batch API reference."""

from collections.abc import Callable, Mapping
from typing import Any

from emulator.batch.attempt import log_target
from emulator.batch.model import AnyJob, ArrayJob, Attempt, Job

Arn = Callable[[str, str], str]
"""Makes an ARN of the account from a service and a resource: `Account.arn`."""


def job_arn(job: AnyJob, arn: Arn) -> str:
    """The ARN of a job."""
    return arn("batch", f"job/{job.id}")


def job_detail(job: AnyJob, arn: Arn, summary_at: int) -> dict[str, Any]:
    """Describe a job in full; the summary of an array's children is of the time `summary_at`."""
    spec = job.spec
    detail: dict[str, Any] = {
        "jobArn": job_arn(job, arn),
        "jobName": spec.name,
        "jobId": job.id,
        "jobQueue": spec.queue_arn,
        "status": job.status,
        "attempts": [_attempt(job, attempt, arn) for attempt in job.attempts] if isinstance(job, Job) else [],
        "createdAt": job.created_at,
        "retryStrategy": spec.retry_strategy,
        "dependsOn": list(spec.depends_on),
        "jobDefinition": spec.definition_arn,
        "parameters": spec.parameters,
        "container": {**spec.container, "networkInterfaces": [], **_latest_container(job, arn)},
        "tags": spec.tags,
        "propagateTags": spec.propagate_tags,
        "platformCapabilities": ["EC2"],
        "isCancelled": job.cancelled,
        "isTerminated": job.terminated,
        "statusReason": job.status_reason,
        "startedAt": job.started_at,
        "stoppedAt": job.stopped_at,
        "shareIdentifier": spec.share,
        "schedulingPriority": spec.scheduling_priority,
        "arrayProperties": _array_properties(job, summary_at),
    }
    if spec.timeout_seconds is not None:
        detail["timeout"] = {"attemptDurationSeconds": spec.timeout_seconds}
    return _without_none(detail)


def job_summary(job: AnyJob, arn: Arn) -> dict[str, Any]:
    """Describe a job as a list does."""
    attempt = job.latest if isinstance(job, Job) else None
    container = {"exitCode": attempt.exit_code, "reason": attempt.reason} if attempt else {}
    return _without_none(
        {
            "jobArn": job_arn(job, arn),
            "jobId": job.id,
            "jobName": job.spec.name,
            "createdAt": job.created_at,
            "status": job.status,
            "statusReason": job.status_reason,
            "startedAt": job.started_at,
            "stoppedAt": job.stopped_at,
            "shareIdentifier": job.spec.share,
            "container": _without_none(container) or None,
            "arrayProperties": _array_properties(job),
            "jobDefinition": job.spec.definition_arn,
            "isCancelled": job.cancelled or None,
            "isTerminated": job.terminated or None,
        }
    )


def _array_properties(job: AnyJob, summary_at: int | None = None) -> dict[str, Any] | None:
    """Describe an array, in full with its summary, or its child."""
    if isinstance(job, ArrayJob):
        if summary_at is None:
            return {"size": job.size}
        return {
            "size": job.size,
            "statusSummary": job.summary(summary_at),
            "statusSummaryLastUpdatedAt": summary_at,
        }
    if job.array is None:
        return None
    return {"index": job.index, **({"size": job.array.size} if summary_at is None else {})}


def _latest_container(job: AnyJob, arn: Arn) -> dict[str, Any]:
    attempt = job.latest if isinstance(job, Job) else None
    return _container(job, attempt, arn) if isinstance(job, Job) and attempt else {}


def _attempt(job: Job, attempt: Attempt, arn: Arn) -> dict[str, Any]:
    return _without_none(
        {
            "container": {**_container(job, attempt, arn), "networkInterfaces": []},
            "startedAt": attempt.started_at,
            "stoppedAt": attempt.stopped_at,
            "statusReason": attempt.status_reason,
        }
    )


def _container(job: Job, attempt: Attempt, arn: Arn) -> dict[str, Any]:
    """What running adds to a container: the stream's name from RUNNING on, the task and its host from STARTING on."""
    target = log_target(job, attempt) if attempt.started_at is not None else None
    cluster = attempt.host.container_instance_arn.split("/")[1]
    return _without_none(
        {
            "exitCode": attempt.exit_code,
            "reason": attempt.reason,
            "containerInstanceArn": attempt.host.container_instance_arn,
            "taskArn": arn("ecs", f"task/{cluster}/{attempt.task_id}"),
            "logStreamName": target[1] if target else None,
        }
    )


def _without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}

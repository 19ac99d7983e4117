"""Job queues: the operations on them.

Sources: CreateJobQueue, UpdateJobQueue and DeleteJobQueue, AWS Batch API reference.
"""

from typing import TYPE_CHECKING, Any

from emulator.batch.environment_rules import architecture_of
from emulator.batch.paging import page
from emulator.batch.refusals import (
    check_name,
    check_supported,
    check_tags,
    check_within,
    plainly_refused,
    refused,
)
from emulator.batch.state import ComputeEnvironment, JobQueue, State

if TYPE_CHECKING:
    from emulator.account import Account
    from emulator.batch.scheduler import Scheduler
    from emulator.batch.transitions import Transitions

# Source: "AWS Batch service quotas", AWS Batch user guide.
_QUOTA = 50
_MAX_ENVIRONMENTS = 3
_UNSUPPORTED = ("serviceEnvironmentOrder", "jobQueueType")
# Source: "Automatic remediation with jobStateTimeLimitActions", AWS Batch user guide.
_TIME_LIMIT_REASONS = frozenset(
    {
        "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
        "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
        "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
    }
)
_HEALTHY = "JobQueue Healthy"


class Queues:
    """The operations on job queues, each a method that runs on the event loop."""

    def __init__(self, state: State, account: "Account", scheduler: "Scheduler", transitions: "Transitions") -> None:
        self._state = state
        self._account = account
        self._scheduler = scheduler
        self._transitions = transitions

    def create_job_queue(self, **request: Any) -> dict[str, Any]:
        """Create a queue, which is CREATING at first."""
        name = request["jobQueueName"]
        check_name("jobQueueName", name)
        check_tags(request.get("tags", {}))
        check_supported(request, _UNSUPPORTED)
        if name in self._state.queues:
            raise plainly_refused("Object already exists")
        if len(self._state.queues) >= _QUOTA:
            raise refused(f"Account has reached the limit of {_QUOTA} job queues")
        order = self._checked_order(request.get("computeEnvironmentOrder", []))
        self._check_common(request)
        queue = JobQueue(
            name=name,
            arn=self._account.arn("batch", f"job-queue/{name}"),
            state=request.get("state", "ENABLED"),
            status="CREATING",
            status_reason="",
            priority=request["priority"],
            compute_environment_order=order,
            scheduling_policy_arn=request.get("schedulingPolicyArn"),
            job_state_time_limit_actions=request.get("jobStateTimeLimitActions", []),
            tags=dict(request.get("tags", {})),
        )
        self._state.queues[name] = queue
        self._transitions.later(self._settle, queue)
        return {"jobQueueName": name, "jobQueueArn": queue.arn}

    def _settle(self, queue: JobQueue) -> None:
        queue.status, queue.status_reason = "VALID", _HEALTHY
        self._scheduler.changed()

    def _check_common(self, request: dict[str, Any]) -> None:
        """Check what create and update have in common."""
        if request.get("priority", 0) < 0:
            raise refused("priority must not be negative")
        policy = request.get("schedulingPolicyArn")
        if policy and not self._state.policy(policy):
            raise refused(f"Scheduling policy {policy} does not exist")
        for action in request.get("jobStateTimeLimitActions", []):
            check_within("maxTimeSeconds", action["maxTimeSeconds"], 600, 86_400)
            if action["reason"] not in _TIME_LIMIT_REASONS:
                raise refused(f"jobStateTimeLimitActions reason {action['reason']} is not supported")
            if action["action"] != "CANCEL":
                raise refused("The only action for job queues with compute environments is CANCEL")

    def _checked_order(self, entries: list[dict[str, Any]]) -> dict[str, int]:
        """Return the ARNs of a queue's environments in their order, with their numbers, or refuse them."""
        if not entries:
            raise refused("computeEnvironmentOrder must be provided")
        if len(entries) > _MAX_ENVIRONMENTS:
            raise refused(f"A job queue can have at most {_MAX_ENVIRONMENTS} compute environments")
        if len({entry["order"] for entry in entries}) < len(entries):
            raise refused("The order of each compute environment of a job queue must be unique")
        entries = sorted(entries, key=lambda entry: entry["order"])
        found = [self._environment(entry["computeEnvironment"]) for entry in entries]
        if len({environment.name for environment in found}) < len(found):
            raise refused("A compute environment can be in a job queue only once")
        kinds = {architecture_of(self._account, each.compute_resources["instanceTypes"]) for each in found}
        if len(kinds) > 1:
            raise refused("All compute environments of a job queue must share the same architecture")
        return {environment.arn: entry["order"] for environment, entry in zip(found, entries, strict=True)}

    def _environment(self, name_or_arn: str) -> ComputeEnvironment:
        environment = self._state.environment(name_or_arn)
        if environment is None:
            raise refused(f"ComputeEnvironment {name_or_arn} does not exist")
        if environment.status not in ("VALID", "UPDATING"):
            raise refused(f"{environment.arn} is not in VALID state")
        return environment

    def update_job_queue(self, jobQueue: str, **request: Any) -> dict[str, Any]:  # noqa: N803
        """Change a queue; it is UPDATING for a moment."""
        queue = self._state.queue(jobQueue)
        if queue is None:
            raise refused(f"JobQueue {jobQueue} does not exist")
        if queue.status in ("CREATING", "UPDATING", "DELETING"):
            raise plainly_refused("Cannot update, resource is being modified.")
        check_supported(request, _UNSUPPORTED)
        self._check_common(request)
        order = queue.compute_environment_order
        if "computeEnvironmentOrder" in request:
            order = self._checked_order(request["computeEnvironmentOrder"])
        policy = request.get("schedulingPolicyArn", queue.scheduling_policy_arn)
        if (policy or None) != queue.scheduling_policy_arn:
            if queue.scheduling_policy_arn is None:
                raise refused("A scheduling policy can not be added to a job queue that was created without one")
            if not policy:
                raise refused("The scheduling policy of a job queue can be replaced but not removed")
        queue.compute_environment_order = order
        queue.scheduling_policy_arn = policy
        queue.state = request.get("state", queue.state)
        queue.priority = request.get("priority", queue.priority)
        queue.job_state_time_limit_actions = request.get("jobStateTimeLimitActions", queue.job_state_time_limit_actions)
        queue.status, queue.status_reason = "UPDATING", ""
        self._scheduler.changed()
        self._transitions.later(self._settle, queue)
        return {"jobQueueName": queue.name, "jobQueueArn": queue.arn}

    def delete_job_queue(self, jobQueue: str) -> dict[str, Any]:  # noqa: N803
        """Delete a disabled queue and end its jobs; one that does not exist is deleted already."""
        queue = self._state.queue(jobQueue)
        if queue is None:
            return {}
        if queue.status in ("CREATING", "UPDATING", "DELETING"):
            raise plainly_refused("Cannot delete, resource is being modified.")
        if queue.state != "DISABLED":
            raise plainly_refused("Cannot delete, job queue must be DISABLED.")
        queue.status, queue.status_reason = "DELETING", ""
        self._scheduler.queue_deleted(queue.name)
        self._transitions.later(self._remove, queue)
        return {}

    def _remove(self, queue: JobQueue) -> None:
        """End DELETING, once the queue's jobs have ended."""
        if self._scheduler.unfinished(queue.name):
            self._transitions.later(self._remove, queue)
            return
        del self._state.queues[queue.name]

    def describe_job_queues(
        self,
        jobQueues: list[str] | None = None,  # noqa: N803
        maxResults: int | None = None,  # noqa: N803
        nextToken: str | None = None,  # noqa: N803
    ) -> dict[str, Any]:
        """Describe the queues that are named, by name or ARN, or a page of all."""
        if jobQueues:
            return {"jobQueues": [_detail(queue) for key in jobQueues if (queue := self._state.queue(key))]}
        names, more = page(self._state.queues, maxResults, nextToken)
        return {"jobQueues": [_detail(self._state.queues[name]) for name in names], **more}


def _detail(queue: JobQueue) -> dict[str, Any]:
    policy = {"schedulingPolicyArn": queue.scheduling_policy_arn} if queue.scheduling_policy_arn else {}
    return {
        "jobQueueName": queue.name,
        "jobQueueArn": queue.arn,
        "state": queue.state,
        "status": queue.status,
        "statusReason": queue.status_reason,
        "priority": queue.priority,
        "computeEnvironmentOrder": [
            {"order": number, "computeEnvironment": arn} for arn, number in queue.compute_environment_order.items()
        ],
        "jobQueueType": "ECS",
        "jobStateTimeLimitActions": queue.job_state_time_limit_actions,
        "tags": dict(queue.tags),
        **policy,
    }

"""Compute environments: the operations on them, and how they move from one status to the next."""

import uuid
from typing import TYPE_CHECKING, Any

from emulator.batch import environment_rules as rules
from emulator.batch.paging import page
from emulator.batch.refusals import check_name, check_tags, plainly_refused, refused
from emulator.batch.state import ComputeEnvironment, State

if TYPE_CHECKING:
    from emulator.account import Account
    from emulator.batch.scheduler import Scheduler
    from emulator.batch.transitions import Transitions

# Source: "AWS Batch service quotas", AWS Batch user guide.
_QUOTA = 50
_HEALTHY = "ComputeEnvironment Healthy"
# A part of AWSBatchServiceRole that tearing down takes.
_TEAR_DOWN = frozenset({"autoscaling:DeleteAutoScalingGroup", "ec2:TerminateInstances", "ecs:DeleteCluster"})


class Environments:
    """The operations on compute environments, each a method that runs on the event loop."""

    def __init__(self, state: State, account: "Account", scheduler: "Scheduler", transitions: "Transitions") -> None:
        self._state = state
        self._all = state.environments
        self._account = account
        self._scheduler = scheduler
        self._transitions = transitions

    def create_compute_environment(self, **request: Any) -> dict[str, Any]:
        """Create an environment, which is CREATING at first."""
        name = request["computeEnvironmentName"]
        check_name("computeEnvironmentName", name)
        check_tags(request.get("tags", {}))
        if name in self._all:
            raise plainly_refused("Object already exists")
        if len(self._all) >= _QUOTA:
            raise refused(f"Account has reached the limit of {_QUOTA} compute environments")
        resources = rules.accepted_resources(self._account, request)
        role = request.get("serviceRole")
        identity = str(uuid.uuid4())
        environment = ComputeEnvironment(
            name=name,
            arn=self._account.arn("batch", f"compute-environment/{name}"),
            uuid=identity,
            type=request["type"],
            state=request.get("state", "ENABLED"),
            status="CREATING",
            status_reason="",
            service_role=self._role_arn(role) if role else self._account.ensure_batch_service_linked_role(),
            compute_resources=resources,
            update_policy=None,
            ecs_cluster_arn=self._account.arn("ecs", f"cluster/{name}_Batch_{identity}"),
            tags=dict(request.get("tags", {})),
        )
        self._all[name] = environment
        self._transitions.later(self._settle, environment)
        return {"computeEnvironmentName": name, "computeEnvironmentArn": environment.arn}

    def _role_arn(self, name_or_arn: str) -> str:
        """Return the full ARN of a role that may not exist, as Batch stores it."""
        return name_or_arn if name_or_arn.startswith("arn:") else self._account.arn_of_role(name_or_arn)

    def _settle(self, environment: ComputeEnvironment) -> None:
        """End CREATING and UPDATING: the environment is found to work, or it is INVALID and says why."""
        reason = rules.unhealthy(self._account, environment.service_role, environment.compute_resources)
        environment.status = "INVALID" if reason else "VALID"
        environment.status_reason = reason or _HEALTHY
        self._scheduler.changed()

    def update_compute_environment(self, computeEnvironment: str, **request: Any) -> dict[str, Any]:  # noqa: N803
        """Change an environment in place, where Batch does that; it is UPDATING for a moment."""
        environment = self._state.environment(computeEnvironment)
        if environment is None:
            raise refused(f"{computeEnvironment} does not exist")
        if environment.status in ("CREATING", "UPDATING", "DELETING"):
            raise plainly_refused("Cannot update, resource is being modified.")
        if role := request.get("serviceRole"):
            request["serviceRole"] = self._role_arn(role)
        rules.check_update(self._account, environment, request)
        environment.state = request.get("state", environment.state)
        environment.service_role = request.get("serviceRole", environment.service_role)
        environment.update_policy = request.get("updatePolicy", environment.update_policy)
        before, update = environment.compute_resources, request.get("computeResources", {})
        environment.compute_resources = rules.merged(before, update)
        environment.status, environment.status_reason = "UPDATING", ""
        if rules.needs_new_hosts(before, environment.compute_resources, update):
            self._replace_hosts(environment)
        self._scheduler.changed()
        self._transitions.later(self._settle, environment)
        return {"computeEnvironmentName": environment.name, "computeEnvironmentArn": environment.arn}

    def _replace_hosts(self, environment: ComputeEnvironment) -> None:
        """Give an environment new hosts; what runs on the old ones may end, as long as the update policy has it.

        Source: UpdatePolicy, AWS Batch API reference.
        """
        policy = environment.update_policy or {}
        minutes = 0 if policy.get("terminateJobsOnUpdate") else policy.get("jobExecutionTimeoutMinutes", 30)
        hosts = self._scheduler.fleet.drain(environment.name)
        self._transitions.later(self._scheduler.lose, hosts, minutes * 60)

    def delete_compute_environment(self, computeEnvironment: str) -> dict[str, Any]:  # noqa: N803
        """Delete an environment that is disabled and in no queue; one that does not exist is deleted already."""
        environment = self._state.environment(computeEnvironment)
        if environment is None:
            return {}
        if environment.status in ("CREATING", "UPDATING", "DELETING"):
            raise plainly_refused("Cannot delete, resource is being modified.")
        if environment.state != "DISABLED":
            raise plainly_refused("Cannot delete, compute environment must be DISABLED.")
        if any(environment.arn in queue.compute_environment_order for queue in self._state.queues.values()):
            raise plainly_refused("Cannot delete, found existing JobQueue relationship")
        environment.status, environment.status_reason = "DELETING", ""
        self._transitions.later(self._remove, environment)
        return {}

    def _remove(self, environment: ComputeEnvironment) -> None:
        """End DELETING. Batch tears down with the environment's own role.

        Without the role the environment becomes INVALID again; while the role may not do it, it stays in DELETING.
        """
        role = environment.service_role
        if not self._account.role_trusts(role, "batch.amazonaws.com"):
            self._settle(environment)
            return
        if not self._account.role_may(role, _TEAR_DOWN):
            self._transitions.later(self._remove, environment)
            return
        del self._all[environment.name]
        self._scheduler.changed()

    def describe_compute_environments(
        self,
        computeEnvironments: list[str] | None = None,  # noqa: N803
        maxResults: int | None = None,  # noqa: N803
        nextToken: str | None = None,  # noqa: N803
    ) -> dict[str, Any]:
        """Describe the environments that are named, by name or ARN, or a page of all."""
        if computeEnvironments:
            found = [environment for key in computeEnvironments if (environment := self._state.environment(key))]
            return {"computeEnvironments": [_detail(environment) for environment in found]}
        names, more = page(self._all, maxResults, nextToken)
        return {"computeEnvironments": [_detail(self._all[name]) for name in names], **more}


def _detail(environment: ComputeEnvironment) -> dict[str, Any]:
    policy = {"updatePolicy": environment.update_policy} if environment.update_policy else {}
    return {
        "computeEnvironmentName": environment.name,
        "computeEnvironmentArn": environment.arn,
        "ecsClusterArn": environment.ecs_cluster_arn,
        "tags": dict(environment.tags),
        "type": environment.type,
        "state": environment.state,
        "status": environment.status,
        "statusReason": environment.status_reason,
        "computeResources": environment.compute_resources,
        "serviceRole": environment.service_role,
        "containerOrchestrationType": "ECS",
        "uuid": environment.uuid,
        **policy,
    }

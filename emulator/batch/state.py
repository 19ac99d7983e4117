"""What the control plane of Batch knows: environments, queues, definitions, scheduling policies.

All of it is owned by one event loop: it is read and written on that loop's thread only, so nothing here is locked.
Nested values keep the shape and spelling of the AWS API, so that what was sent is what is described.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar


@dataclass(kw_only=True)
class ComputeEnvironment:
    """A compute environment; `compute_resources` in the API's shape (`maxvCpus`, `instanceTypes`, ...)."""

    name: str
    arn: str
    uuid: str
    type: str
    state: str
    status: str
    status_reason: str
    service_role: str
    compute_resources: dict[str, Any]
    update_policy: dict[str, Any] | None
    ecs_cluster_arn: str
    tags: dict[str, str]


@dataclass(kw_only=True)
class JobQueue:
    """A job queue; `compute_environment_order` holds ARNs of environments, in order, each with its number."""

    name: str
    arn: str
    state: str
    status: str
    status_reason: str
    priority: int
    compute_environment_order: dict[str, int]
    scheduling_policy_arn: str | None
    job_state_time_limit_actions: list[dict[str, Any]]
    tags: dict[str, str]


@dataclass(kw_only=True)
class JobDefinition:
    """One revision of a job definition; `registered` is the accepted request in the API's shape."""

    name: str
    revision: int
    arn: str
    status: str
    registered: dict[str, Any]
    tags: dict[str, str]


@dataclass(kw_only=True)
class SchedulingPolicy:
    """A scheduling policy of fair-share queues."""

    name: str
    arn: str
    fairshare_policy: dict[str, Any]
    tags: dict[str, str]


@dataclass
class State:
    """Every record of the control plane; environments and queues by name, definitions by name and then revision."""

    environments: dict[str, ComputeEnvironment] = field(default_factory=dict)
    queues: dict[str, JobQueue] = field(default_factory=dict)
    definitions: dict[str, dict[int, JobDefinition]] = field(default_factory=dict)
    policies: dict[str, SchedulingPolicy] = field(default_factory=dict)

    def environment(self, name_or_arn: str) -> ComputeEnvironment | None:
        """Find an environment."""
        return _found(self.environments, name_or_arn)

    def queue(self, name_or_arn: str) -> JobQueue | None:
        """Find a queue."""
        return _found(self.queues, name_or_arn)

    def policy(self, arn: str) -> SchedulingPolicy | None:
        """Find a scheduling policy, which has no other key than its ARN."""
        policy = _found(self.policies, arn)
        return policy if policy and policy.arn == arn else None


_Record = TypeVar("_Record", ComputeEnvironment, JobQueue, SchedulingPolicy)


def _found(records: Mapping[str, _Record], name_or_arn: str) -> _Record | None:
    record = records.get(name_or_arn.rpartition("/")[2])
    return record if record and name_or_arn in (record.name, record.arn) else None

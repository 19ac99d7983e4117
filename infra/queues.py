"""The queues of one instance type, and the compute environments behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi_aws import batch, ec2

from infra.config import BEST_FIT, StackConfig
from infra.facts import InstanceType
from infra.guards import RunGuard, name_hint
from infra.iam import BatchRoles
from infra.naming import queue_name

_PRIORITY: Final = 100
"""Priorities compare queues that share an environment, which none of these do; this one is CleanRL's."""

_UPDATE_MINUTES: Final = 360
"""The longest that the provider lets an update wait for running jobs, in minutes; they are not ended before."""

# A queue ends its jobs before it goes. Environments have no time limits of their own: the provider declares none.
_QUEUE_TIMEOUTS: Final = pulumi.CustomTimeouts(delete="1h")


@dataclass(frozen=True, kw_only=True)
class InstanceQueuesArgs:
    """What a pair of queues depends on.

    Attributes:
        config: The stack's configuration.
        instance_type: The one type of both environments.
        subnets: Subnets in zones that offer the type.
        security_group_ids: Security groups of the hosts.
        roles: Roles of hosts and services.
        template: Launch template of the hosts.
        scheduling_policy_arn: How the queues share their instances between users, or None for first in, first out.
        guard: What refuses an update that would end runs.
        instance_tags: Tags of the hosts; to change them is to replace the hosts.
        tags: Tags of environments and queues.
    """

    config: StackConfig
    instance_type: InstanceType
    subnets: Sequence[str]
    security_group_ids: Sequence[pulumi.Input[str]]
    roles: BatchRoles
    template: ec2.LaunchTemplate
    scheduling_policy_arn: pulumi.Input[str] | None
    guard: RunGuard
    instance_tags: Mapping[str, str]
    tags: Mapping[str, str]


class InstanceQueues(pulumi.ComponentResource):
    """An On-Demand and a Spot queue of one instance type, each on an environment of its own.

    Idle, they cost nothing: no environment keeps an instance.

    Attributes:
        rows: The two rows of the contract's `queues`, by queue name.
    """

    rows: Mapping[str, dict[str, Any]]

    def __init__(self, name: str, args: InstanceQueuesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rl-batch:infra:InstanceQueues", name, None, opts)
        self._args = args
        self.rows = dict(self._queue(name, spot=spot) for spot in (False, True))
        self.register_outputs({})

    def _queue(self, name: str, *, spot: bool) -> tuple[str, dict[str, Any]]:
        hardware, config = self._args.instance_type, self._args.config
        queue = queue_name(hardware.name, spot=spot, prefix=config.queue_prefix)
        environment = self._environment(f"{name}-spot" if spot else name, queue, spot=spot)
        job_queue = batch.JobQueue(
            queue,
            name=queue,
            state="ENABLED",
            priority=_PRIORITY,
            scheduling_policy_arn=self._args.scheduling_policy_arn,
            compute_environment_orders=[
                batch.JobQueueComputeEnvironmentOrderArgs(order=1, compute_environment=environment.arn)
            ],
            # Always a list: to switch the actions off, AWS must be sent an empty one.
            job_state_time_limit_actions=[
                batch.JobQueueJobStateTimeLimitActionArgs(
                    reason=reason, state="RUNNABLE", action="CANCEL", max_time_seconds=seconds
                )
                for reason, seconds in config.time_limit_seconds.items()
            ],
            tags=self._args.tags,
            opts=pulumi.ResourceOptions(
                parent=self,
                # AWS neither gives a queue a scheduling policy nor takes it away (AWS Batch API reference,
                # UpdateJobQueue), and two queues cannot have the same name.
                replace_on_changes=["schedulingPolicyArn"],
                delete_before_replace=True,
                custom_timeouts=_QUEUE_TIMEOUTS,
                hooks=name_hint(queue),
            ),
        )
        return queue, {
            "name": queue,
            "arn": job_queue.arn,
            "compute_environment": environment.name,
            "instance_type": hardware.name,
            "purchase": "spot" if spot else "on-demand",
            "vcpus": hardware.vcpus,
            "memory_mib": hardware.memory_mib,
            "gpus": hardware.gpus,
            "gpu_model": hardware.gpu_model,
            "architecture": hardware.architecture,
            "max_vcpus": config.max_vcpus,
            "fair_share": config.fair_share,
        }

    def _environment(self, name: str, queue: str, *, spot: bool) -> batch.ComputeEnvironment:
        args, config = self._args, self._args.config
        strategy = config.spot_allocation_strategy if spot else config.on_demand_allocation_strategy
        resources = batch.ComputeEnvironmentComputeResourcesArgs(
            type="SPOT" if spot else "EC2",
            allocation_strategy=strategy,
            # Always sent: the provider turns a percentage that was set and is no longer into 0, which AWS refuses.
            bid_percentage=config.spot_bid_percentage if spot else None,
            spot_iam_fleet_role=args.roles.spot_fleet_role_arn if spot else None,
            instance_types=[args.instance_type.name],
            instance_role=args.roles.instance_profile_arn,
            min_vcpus=0,
            max_vcpus=config.max_vcpus,
            # The desired vCPUs are Batch's to change, so they are never set.
            subnets=list(args.subnets),
            security_group_ids=args.security_group_ids,
            ec2_configurations=[
                batch.ComputeEnvironmentComputeResourcesEc2ConfigurationArgs(
                    image_type="ECS_AL2023_NVIDIA" if args.instance_type.gpus else "ECS_AL2023",
                    image_id_override=config.ami_id,
                )
            ],
            launch_template=batch.ComputeEnvironmentComputeResourcesLaunchTemplateArgs(
                launch_template_id=args.template.id,
                # A number, not $Latest: a new version is then a change that AWS Batch acts on.
                version=args.template.latest_version.apply(str),
            ),
            tags=args.instance_tags,
        )
        return batch.ComputeEnvironment(
            name,
            type="MANAGED",
            state="ENABLED",
            service_role=args.roles.service_role_arn,
            compute_resources=resources,
            update_policy=_update_policy(config, strategy),
            tags=args.tags,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=list(args.roles.host_permissions),
                # AWS changes an environment neither to its service-linked role nor from it, and the provider does not
                # see that a role is no longer set (AWS Batch API reference, UpdateComputeEnvironment, serviceRole). Nor
                # does it see that an image is no longer set: the one that there is counts as AWS's choice.
                replacement_trigger=_trigger(config),
                hooks=args.guard.hooks(queue),
            ),
        )


def _trigger(config: StackConfig) -> list[str]:
    """Return what takes another environment when it changes."""
    role = "dedicated role" if config.dedicated_service_role else "linked role"
    return [role, "own image" if config.ami_id else "AWS's image"]


def _update_policy(config: StackConfig, strategy: str) -> batch.ComputeEnvironmentUpdatePolicyArgs | None:
    """Return how hosts are replaced in place, or None where AWS replaces the environment instead.

    Source: AWS Batch User Guide, "Updating compute environments": the service-linked role, and a strategy other than
    BEST_FIT.
    """
    if config.dedicated_service_role or strategy == BEST_FIT:
        return None
    return batch.ComputeEnvironmentUpdatePolicyArgs(
        job_execution_timeout_minutes=_UPDATE_MINUTES, terminate_jobs_on_update=False
    )

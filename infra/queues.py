"""The queues of one instance type, and the compute environments behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi_aws import batch, ec2

from infra.config import BEST_FIT, StackConfig
from infra.facts import InstanceType
from infra.iam import BatchRoles
from infra.naming import queue_name

# Reasons for which a job can never start, and blocks whatever is behind it: it is cancelled at the first moment that
# AWS allows. Waiting for capacity is no such reason. Source: AWS Batch API reference, JobStateTimeLimitAction.
_NEVER_STARTS: Final = (
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
)
_NEVER_STARTS_SECONDS: Final = 600

_UPDATE_MINUTES: Final = 360
"""The longest that the provider lets an update wait for running jobs, in minutes; they are not ended before."""

# An environment ends its instances before it goes, and an update waits for the jobs on the old ones.
_TIMEOUTS: Final = pulumi.CustomTimeouts(create="30m", update="7h", delete="1h")


def host_template(
    name: str, *, root_volume_gib: int, tags: Mapping[str, str], opts: pulumi.ResourceOptions
) -> ec2.LaunchTemplate:
    """Make the launch template of every host: an encrypted root volume, and metadata by IMDSv2 only.

    It is always there: environments are replaced when they gain or lose one, but not when its content changes.
    """
    return ec2.LaunchTemplate(
        name,
        block_device_mappings=[
            ec2.LaunchTemplateBlockDeviceMappingArgs(
                # The root device of the ECS-optimized Amazon Linux 2023 images.
                device_name="/dev/xvda",
                ebs=ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                    volume_type="gp3",
                    volume_size=root_volume_gib,
                    encrypted="true",
                    delete_on_termination="true",
                ),
            )
        ],
        metadata_options=ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled",
            http_tokens="required",
            # Batch's containers are on the host's own network, one hop away; anything behind a bridge is not meant.
            http_put_response_hop_limit=1,
        ),
        tags=tags,
        opts=opts,
    )


@dataclass(frozen=True, kw_only=True)
class InstanceQueuesArgs:
    """What a pair of queues depends on.

    Attributes:
        config: The stack's configuration.
        instance_type: The one type of both environments.
        subnets: Subnets in zones that offer the type.
        security_group_id: Security group of the hosts.
        roles: Roles of hosts and services.
        template: Launch template of the hosts.
        instance_tags: Tags of the hosts; to change them is to replace the hosts.
        tags: Tags of environments and queues.
    """

    config: StackConfig
    instance_type: InstanceType
    subnets: Sequence[str]
    security_group_id: pulumi.Input[str]
    roles: BatchRoles
    template: ec2.LaunchTemplate
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
        environment = self._environment(f"{name}-spot" if spot else name, spot=spot)
        job_queue = batch.JobQueue(
            queue,
            name=queue,
            state="ENABLED",
            priority=1,
            compute_environment_orders=[
                batch.JobQueueComputeEnvironmentOrderArgs(order=1, compute_environment=environment.arn)
            ],
            job_state_time_limit_actions=[
                batch.JobQueueJobStateTimeLimitActionArgs(
                    reason=reason, state="RUNNABLE", action="CANCEL", max_time_seconds=_NEVER_STARTS_SECONDS
                )
                for reason in _NEVER_STARTS
            ],
            tags=self._args.tags,
            opts=pulumi.ResourceOptions(parent=self),
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
            "fair_share": False,
        }

    def _environment(self, name: str, *, spot: bool) -> batch.ComputeEnvironment:
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
            security_group_ids=[args.security_group_id],
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
                parent=self, depends_on=list(args.roles.host_permissions), custom_timeouts=_TIMEOUTS
            ),
        )


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

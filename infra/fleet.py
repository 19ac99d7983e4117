"""The whole stack as one component: queues on the instance types of the configuration, and what they need."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_aws import batch

from infra.artifacts import Artifacts, ArtifactsArgs
from infra.config import StackConfig
from infra.facts import Facts
from infra.guards import RunGuard
from infra.hosts import host_template
from infra.iam import BatchRoles, BatchRolesArgs
from infra.naming import queue_name, queue_names
from infra.network import HostNetwork, HostNetworkArgs
from infra.queues import InstanceQueues, InstanceQueuesArgs
from infra.storage import SweepStorage, SweepStorageArgs


@dataclass(frozen=True, kw_only=True)
class ExperimentFleetArgs:
    """What the fleet is made from.

    Attributes:
        config: The stack's configuration.
        facts: What AWS says about the account and the types.
        guard: What refuses an update that would end runs.
    """

    config: StackConfig
    facts: Facts
    guard: RunGuard


class ExperimentFleet(pulumi.ComponentResource):
    """An On-Demand and a Spot queue for each instance type, with roles, network, logs, ledger and secret.

    Idle, it costs the secret's 0.40 USD a month, and what is kept in the logs, the bucket and the repository.

    Attributes:
        queues: The contract's `queues`: rows by queue name.
        roles: Roles and the submitter's policy.
        storage: Ledger, secret and log group.
        artifacts: Bucket and image repository, as far as there are any.
    """

    queues: Mapping[str, dict[str, Any]]
    roles: BatchRoles
    storage: SweepStorage
    artifacts: Artifacts

    def __init__(self, name: str, args: ExperimentFleetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rl-batch:infra:ExperimentFleet", name, None, opts)
        config, facts = args.config, args.facts
        instance_tags = {"project": pulumi.get_project(), "stack": pulumi.get_stack()}
        tags = {**config.tags, **instance_tags}
        child = pulumi.ResourceOptions(parent=self)

        self.storage = SweepStorage(
            name, SweepStorageArgs(log_retention_days=config.log_retention_days, tags=tags), opts=child
        )
        self.artifacts = Artifacts(name, ArtifactsArgs(config=config, account=facts.account, tags=tags), opts=child)
        self.roles = BatchRoles(
            name,
            BatchRolesArgs(
                config=config,
                account=facts.account,
                queue_names=queue_names(config.instance_types, config.queue_prefix),
                log_group_arn=self.storage.log_group.arn,
                ledger_arn=self.storage.ledger.arn,
                secret_arn=self.storage.secret.arn,
                bucket_arn=self.artifacts.bucket_arn,
                repository_arn=self.artifacts.repository_arn,
                tags=tags,
            ),
            opts=child,
        )
        network = HostNetwork(
            name,
            HostNetworkArgs(vpc=facts.vpc, security_group_ids=config.security_group_ids, tags=tags),
            opts=child,
        )
        template = host_template(
            f"{name}-host",
            root_volume_gib=config.root_volume_gib,
            ssm_access=config.ssm_access,
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self, hooks=args.guard.template_hooks()),
        )
        policy_arn = _fair_share(f"{name}-fair-share", tags, child).arn if config.fair_share else None
        queues: dict[str, dict[str, Any]] = {}
        for instance_type in facts.instance_types:
            pair = InstanceQueues(
                f"{name}-{queue_name(instance_type.name, spot=False)}",
                InstanceQueuesArgs(
                    config=config,
                    instance_type=instance_type,
                    subnets=network.subnets[instance_type.name],
                    security_group_ids=network.security_group_ids,
                    roles=self.roles,
                    template=template,
                    scheduling_policy_arn=policy_arn,
                    guard=args.guard,
                    instance_tags=instance_tags,
                    tags=tags,
                ),
                opts=child,
            )
            queues |= pair.rows
        self.queues = queues
        self.register_outputs({})


def _fair_share(name: str, tags: Mapping[str, str], opts: pulumi.ResourceOptions) -> batch.SchedulingPolicy:
    """Make the policy by which all users have equal shares of a queue."""
    return batch.SchedulingPolicy(
        name,
        fair_share_policy=batch.SchedulingPolicyFairSharePolicyArgs(
            # Who had much of the queue within the last day waits for the others; without this, within ten minutes.
            share_decay_seconds=24 * 60 * 60,
        ),
        tags=tags,
        opts=opts,
    )

"""The roles that hosts, jobs and AWS's services act through, and the policy of people who submit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import iam

from infra import policies
from infra.config import BEST_FIT, StackConfig
from infra.facts import Account
from infra.naming import slug


@dataclass(frozen=True, kw_only=True)
class BatchRolesArgs:
    """What the roles depend on.

    Attributes:
        config: The stack's configuration.
        account: Where the stack lives.
        queue_names: Queues that the submitter's policy is about.
        log_group_arn: The jobs' log group.
        ledger_arn: The table that records submissions.
        secret_arn: The secret that jobs may read.
        bucket_arn: The bucket that jobs may write to, if there is one.
        repository_arn: The repository that people who submit may push to, if there is one.
        tags: Tags of every role and policy.
    """

    config: StackConfig
    account: Account
    queue_names: Sequence[str]
    log_group_arn: pulumi.Input[str]
    ledger_arn: pulumi.Input[str]
    secret_arn: pulumi.Input[str]
    bucket_arn: pulumi.Input[str] | None
    repository_arn: pulumi.Input[str] | None
    tags: Mapping[str, str]


class BatchRoles(pulumi.ComponentResource):
    """Roles with no more than AWS documents as needed; they cost nothing.

    Attributes:
        instance_profile_arn: Profile that hosts start with.
        job_role_arn: Role of the user's code.
        execution_role_arn: Role that pulls images, writes logs and reads secrets.
        submitter_policy_arn: Managed policy for people who only submit.
        service_role_arn: Role for AWS Batch, or None where its service-linked role is used.
        spot_fleet_role_arn: Role for Spot Fleet, or None: only BEST_FIT starts instances through Spot Fleet.
        host_permissions: What compute environments must be made after and deleted before; an environment that has
            lost its permissions cannot end its instances and stays in DELETING (AWS Batch User Guide, Troubleshooting).
    """

    instance_profile_arn: pulumi.Output[str]
    job_role_arn: pulumi.Output[str]
    execution_role_arn: pulumi.Output[str]
    submitter_policy_arn: pulumi.Output[str]
    service_role_arn: pulumi.Output[str] | None = None
    spot_fleet_role_arn: pulumi.Output[str] | None = None
    host_permissions: tuple[pulumi.Resource, ...]

    def __init__(self, name: str, args: BatchRolesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rl-batch:infra:BatchRoles", name, None, opts)
        self._name = name
        self._args = args
        config, account = args.config, args.account

        instance_role, attachment = self._service_role(
            "instance", policies.instance_trust(), "service-role/AmazonEC2ContainerServiceforEC2Role"
        )
        host_permissions: list[pulumi.Resource] = [instance_role, attachment]
        if config.ssm_access:
            policy_arn = account.managed_policy("AmazonSSMManagedInstanceCore")
            host_permissions.append(self._attach(f"{name}-instance-ssm", instance_role, policy_arn))
        self.instance_profile_arn = iam.InstanceProfile(
            f"{name}-instance", role=instance_role.name, tags=args.tags, opts=pulumi.ResourceOptions(parent=self)
        ).arn
        if config.dedicated_service_role:
            role, attachment = self._service_role(
                "batch", policies.service_trust(account), "service-role/AWSBatchServiceRole"
            )
            self.service_role_arn = role.arn
            host_permissions += [role, attachment]
        if config.spot_allocation_strategy == BEST_FIT:
            role, attachment = self._service_role(
                "spot-fleet", policies.spot_fleet_trust(), "service-role/AmazonEC2SpotFleetTaggingRole"
            )
            self.spot_fleet_role_arn = role.arn
            host_permissions += [role, attachment]
        self.host_permissions = tuple(host_permissions)

        self.job_role_arn = self._job_role()
        self.execution_role_arn = self._execution_role()
        self.submitter_policy_arn = self._submitter_policy()
        self.register_outputs({})

    def _role(self, suffix: str, trust: policies.Document) -> iam.Role:
        return iam.Role(
            f"{self._name}-{suffix}",
            assume_role_policy=policies.to_json(trust),
            tags=self._args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _attach(self, logical_name: str, role: iam.Role, policy_arn: str) -> iam.RolePolicyAttachment:
        return iam.RolePolicyAttachment(
            logical_name, role=role.name, policy_arn=policy_arn, opts=pulumi.ResourceOptions(parent=self)
        )

    def _service_role(
        self, suffix: str, trust: policies.Document, managed_policy: str
    ) -> tuple[iam.Role, iam.RolePolicyAttachment]:
        """Make a role with the policy that AWS manages for its purpose."""
        role = self._role(suffix, trust)
        policy_arn = self._args.account.managed_policy(managed_policy)
        return role, self._attach(f"{self._name}-{suffix}", role, policy_arn)

    def _job_role(self) -> pulumi.Output[str]:
        role = self._role("job", policies.job_trust(self._args.account))
        for policy_arn in self._args.config.job_policy_arns:
            # By ARN, not by position: dropping one must not replace the others.
            self._attach(f"{self._name}-job-{slug(policy_arn.partition(':policy/')[2], 60)}", role, policy_arn)
        if self._args.bucket_arn is not None:
            iam.RolePolicy(
                f"{self._name}-job-artifacts",
                role=role.name,
                policy=pulumi.Output.from_input(self._args.bucket_arn).apply(
                    lambda arn: policies.to_json(policies.artifacts_policy(arn))
                ),
                opts=pulumi.ResourceOptions(parent=self),
            )
        return role.arn

    def _execution_role(self) -> pulumi.Output[str]:
        account = self._args.account
        role = self._role("execution", policies.execution_trust())
        iam.RolePolicy(
            f"{self._name}-execution",
            role=role.name,
            policy=pulumi.Output.all(self._args.log_group_arn, self._args.secret_arn).apply(
                lambda arns: policies.to_json(
                    policies.execution_policy(account, log_group_arn=arns[0], secret_arn=arns[1])
                )
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        return role.arn

    def _submitter_policy(self) -> pulumi.Output[str]:
        args = self._args
        arns = pulumi.Output.all(
            job=self.job_role_arn,
            execution=self.execution_role_arn,
            log_group=args.log_group_arn,
            ledger=args.ledger_arn,
            secret=args.secret_arn,
            repository=args.repository_arn,
        )
        document = arns.apply(
            lambda known: policies.to_json(
                policies.submitter_policy(
                    args.account,
                    queue_names=args.queue_names,
                    job_role_arn=known["job"],
                    execution_role_arn=known["execution"],
                    log_group_arn=known["log_group"],
                    ledger_arn=known["ledger"],
                    secret_arn=known["secret"],
                    repository_arn=known["repository"],
                )
            )
        )
        return iam.Policy(
            f"{self._name}-submitter",
            description="Submit, watch and end jobs on this stack's queues.",
            policy=document,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        ).arn

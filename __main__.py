"""The Pulumi program: an AWS Batch queue pair for each instance type, and the outputs that `submitter` reads."""

import pulumi

from infra.config import StackConfig
from infra.facts import look_up
from infra.fleet import ExperimentFleet, ExperimentFleetArgs
from infra.guards import RunGuard
from infra.naming import queue_names, resource_prefix
from infra.outputs import stack_outputs

config = StackConfig.load(pulumi.Config())
facts = look_up(config)
guard = RunGuard(facts.account, allow_interruption=config.allow_interruption)
guard.check_removals(queue_names(config.instance_types, config.queue_prefix), fair_share=config.fair_share)
fleet = ExperimentFleet(
    resource_prefix(pulumi.get_project(), pulumi.get_stack()),
    ExperimentFleetArgs(config=config, facts=facts, guard=guard),
)

outputs = stack_outputs(
    region=facts.account.region,
    account_id=facts.account.account_id,
    queue_names=sorted(fleet.queues),
    queues=fleet.queues,
    job_role_arn=fleet.roles.job_role_arn,
    execution_role_arn=fleet.roles.execution_role_arn,
    submitter_policy_arn=fleet.roles.submitter_policy_arn,
    log_group=fleet.storage.log_group.name,
    ledger_table=fleet.storage.ledger.name,
    secret_arn=fleet.storage.secret.arn,
    artifacts_bucket=fleet.artifacts.bucket_name,
    image_repository=fleet.artifacts.repository_url,
)
for key, value in outputs.items():
    pulumi.export(key, value)

"""The Pulumi program: an AWS Batch queue pair for each instance type, and the outputs that `submitter` reads."""

import pulumi

from infra.config import StackConfig
from infra.facts import look_up
from infra.fleet import ExperimentFleet, ExperimentFleetArgs
from infra.naming import resource_prefix
from infra.outputs import stack_outputs

config = StackConfig.load(pulumi.Config())
facts = look_up(config)
fleet = ExperimentFleet(
    resource_prefix(pulumi.get_project(), pulumi.get_stack()),
    ExperimentFleetArgs(config=config, facts=facts),
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
    artifacts_bucket=None,
    image_repository=None,
)
for key, value in outputs.items():
    pulumi.export(key, value)

"""What outlives a job: the ledger of submissions, the secret, the logs."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_aws import cloudwatch, dynamodb, secretsmanager


@dataclass(frozen=True, kw_only=True)
class SweepStorageArgs:
    """What the storage depends on.

    Attributes:
        log_retention_days: How long the jobs' logs are kept, in days; 0 is for ever.
        tags: Tags of every resource.
    """

    log_retention_days: int
    tags: Mapping[str, str]


class SweepStorage(pulumi.ComponentResource):
    """The ledger, the secret and the log group; all of it goes with the stack.

    The table and the log group cost by use, the secret 0.40 USD a month.

    Attributes:
        ledger: Table of what was meant and what was sent: `sweep` (text) and, within it, `n` (number).
        secret: Versions are written by whoever submits; there is none at first.
        log_group: Where the jobs' output goes.
    """

    ledger: dynamodb.Table
    secret: secretsmanager.Secret
    log_group: cloudwatch.LogGroup

    def __init__(self, name: str, args: SweepStorageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rl-batch:infra:SweepStorage", name, None, opts)
        self.ledger = dynamodb.Table(
            f"{name}-ledger",
            billing_mode="PAY_PER_REQUEST",
            hash_key="sweep",
            range_key="n",
            attributes=[
                dynamodb.TableAttributeArgs(name="sweep", type="S"),
                dynamodb.TableAttributeArgs(name="n", type="N"),
            ],
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.secret = secretsmanager.Secret(
            f"{name}-keys",
            description="Values that jobs may read, such as a W&B key.",
            # A secret that waits to be deleted keeps its name taken, and its values readable, for up to 30 days.
            recovery_window_in_days=0,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.log_group = cloudwatch.LogGroup(
            f"{name}-jobs",
            retention_in_days=args.log_retention_days,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})

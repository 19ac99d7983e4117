"""IAM policy documents, as plain functions from ARNs to documents.

Least privilege: each statement names the resources that it is about. Where a statement cannot, because the action
knows no resources, or because the resource is made later by someone else, a comment says so.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from infra.facts import Account
from infra.outputs import definition_prefix

Document = dict[str, Any]

_LEDGER_ACTIONS: Final = (
    "dynamodb:ConditionCheckItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:Scan",
    "dynamodb:UpdateItem",
)
_SECRET_ACTIONS: Final = (
    "secretsmanager:DescribeSecret",
    "secretsmanager:ListSecretVersionIds",
    "secretsmanager:PutSecretValue",
    "secretsmanager:UpdateSecretVersionStage",
)
# Amazon ECR User Guide, "IAM permissions for pushing an image"; Docker also looks at what is there.
_PUSH_ACTIONS: Final = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:CompleteLayerUpload",
    "ecr:GetDownloadUrlForLayer",
    "ecr:InitiateLayerUpload",
    "ecr:PutImage",
    "ecr:UploadLayerPart",
)

_VERSION: Final = "2012-10-17"


def to_json(document: Document) -> str:
    """Return the text of a document, the same text for the same document."""
    return json.dumps(document, sort_keys=True)


def instance_trust() -> Document:
    """Let EC2 hosts have the instance role; EC2 sends no condition keys of the confused-deputy kind."""
    return _trust("ec2.amazonaws.com")


def job_trust(account: Account) -> Document:
    """Let containers of this account and region have the job role.

    Source: Amazon ECS Developer Guide, "Amazon ECS task IAM role", trust policy.
    """
    return _trust(
        "ecs-tasks.amazonaws.com",
        {
            "ArnLike": {"aws:SourceArn": account.arn("ecs", "*")},
            "StringEquals": {"aws:SourceAccount": account.account_id},
        },
    )


def execution_trust() -> Document:
    """Let ECS prepare containers with the execution role.

    AWS documents the condition keys for the task role only; see Amazon ECS Developer Guide, "Amazon ECS task execution
    IAM role". A condition that ECS does not meet would keep every job from starting.
    """
    return _trust("ecs-tasks.amazonaws.com")


def service_trust(account: Account) -> Document:
    """Let AWS Batch act through a role of the stack, for environments and jobs of this account and region.

    Source: AWS Batch User Guide, "Cross-service confused deputy prevention".
    """
    sources = [account.arn("batch", "compute-environment/*"), account.arn("batch", "job/*")]
    return _trust(
        "batch.amazonaws.com",
        {"ArnLike": {"aws:SourceArn": sources}, "StringEquals": {"aws:SourceAccount": account.account_id}},
    )


def spot_fleet_trust() -> Document:
    """Let Spot Fleet tag and end instances; AWS Batch User Guide, "Amazon EC2 spot fleet role", has no condition."""
    return _trust("spotfleet.amazonaws.com")


def execution_policy(account: Account, *, log_group_arn: str, secret_arn: str) -> Document:
    """Allow what starting a container takes: pull its image, write its log, read the stack's secret.

    Sources: Amazon ECS Developer Guide, "Amazon ECS task execution IAM role"; Service Authorization Reference.
    """
    return _policy(
        # GetAuthorizationToken knows no resources.
        _allow(["ecr:GetAuthorizationToken"], ["*"]),
        # The images are the user's: any repository of this account, in any region.
        _allow(
            ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            [f"arn:{account.partition}:ecr:*:{account.account_id}:repository/*"],
        ),
        _allow(["logs:CreateLogStream", "logs:PutLogEvents"], [f"{log_group_arn}:*"]),
        _allow(["secretsmanager:GetSecretValue"], [secret_arn]),
    )


def artifacts_policy(bucket_arn: str) -> Document:
    """Allow jobs to list, read, write and delete what is in the bucket for artifacts, and nothing about the bucket.

    Source: Amazon S3 User Guide, "Required permissions for Amazon S3 API operations".
    """
    return _policy(
        _allow(["s3:ListBucket"], [bucket_arn]),
        _allow(["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"], [f"{bucket_arn}/*"]),
    )


def encrypted_transport_policy(bucket_arn: str) -> Document:
    """Refuse whatever reaches a bucket without TLS; Amazon S3 User Guide, "Enforce encryption of data in transit"."""
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [bucket_arn, f"{bucket_arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return _policy(statement)


def submitter_policy(
    account: Account,
    *,
    queue_names: Sequence[str],
    job_role_arn: str,
    execution_role_arn: str,
    log_group_arn: str,
    ledger_arn: str,
    secret_arn: str,
    repository_arn: str | None,
) -> Document:
    """Allow what a person needs who only submits, watches and ends jobs; `submitter prune` takes more.

    Source: Service Authorization Reference, one page per service. sts:GetCallerIdentity needs no permission,
    TerminateJobs that of TerminateJob (AWS Batch API reference), and TransactWriteItems those of what it writes and
    checks ("Using IAM with DynamoDB transactions", Amazon DynamoDB Developer Guide).
    """
    definitions = account.arn("batch", f"job-definition/{definition_prefix(execution_role_arn)}*")
    jobs = account.arn("batch", "job/*")
    queues = [account.arn("batch", f"job-queue/{name}") for name in queue_names]
    statements = [
        # Batch's Describe and List actions, and prices, know no resources.
        _allow(
            [
                "batch:DescribeComputeEnvironments",
                "batch:DescribeJobDefinitions",
                "batch:DescribeJobQueues",
                "batch:DescribeJobs",
                "batch:ListJobs",
                "ec2:DescribeSpotPriceHistory",
                "pricing:GetProducts",
            ],
            ["*"],
        ),
        _allow(["batch:GetJobQueueSnapshot"], queues),
        # Definitions are named by their content and jobs by Batch, both after this policy is written. A job's ARN does
        # not say whose it is, so other stacks' jobs can be ended, too.
        _allow(["batch:SubmitJob"], [definitions, *queues]),
        _allow(["batch:RegisterJobDefinition"], [definitions]),
        _allow(["batch:TagResource"], [definitions, jobs]),
        _allow(["batch:TerminateJob"], [jobs]),
        # No iam:PassedToService: nothing but ECS tasks can assume either role.
        _allow(["iam:PassRole"], [job_role_arn, execution_role_arn]),
        _allow(_LEDGER_ACTIONS, [ledger_arn]),
        _allow(["logs:FilterLogEvents", "logs:GetLogEvents"], [f"{log_group_arn}:*"]),
        # Writing values and moving their labels; to read one takes a job.
        _allow(_SECRET_ACTIONS, [secret_arn]),
    ]
    if repository_arn is not None:
        statements += [_allow(["ecr:GetAuthorizationToken"], ["*"]), _allow(_PUSH_ACTIONS, [repository_arn])]
    return _policy(*statements)


def _policy(*statements: Mapping[str, Any]) -> Document:
    return {"Version": _VERSION, "Statement": list(statements)}


def _allow(actions: Sequence[str], resources: Sequence[str]) -> Document:
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources)}


def _trust(service: str, condition: Document | None = None) -> Document:
    statement: Document = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    if condition is not None:
        statement["Condition"] = condition
    return _policy(statement)

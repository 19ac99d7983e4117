"""The policy documents of a deployed stack, read one by one."""

import ast
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

from infra import policies
from infra.facts import Account
from infra.outputs import StackOutputs, definition_prefix
from submitter.plan import JobSpec, job_definition

ACCOUNT = "123456789012"
EXECUTION_ROLE = "arn:of:Role:rl-batch-dev-execution"

# Every resource that is more than one thing, with the reason why it must be.
WILDCARDS = {
    "*": "these actions know no resources",
    f"arn:aws:ecr:*:{ACCOUNT}:repository/*": "the images are the user's",
    f"arn:aws:batch:us-east-1:{ACCOUNT}:job-definition/{definition_prefix(EXECUTION_ROLE)}*": (
        "definitions are named by their content"
    ),
    f"arn:aws:batch:us-east-1:{ACCOUNT}:job/*": "Batch makes the ids of jobs",
    "arn:of:LogGroup:rl-batch-dev-jobs:*": "the log group's own streams",
    "arn:of:Bucket:rl-batch-dev-artifacts/*": "the bucket's own objects",
}
ACTIONS_WITHOUT_RESOURCES = {
    "batch:DescribeComputeEnvironments",
    "batch:DescribeJobDefinitions",
    "batch:DescribeJobQueues",
    "batch:DescribeJobs",
    "batch:ListJobs",
    "ec2:DescribeSpotPriceHistory",
    "ecr:GetAuthorizationToken",
    "pricing:GetProducts",
}


def statements(deployment: Any) -> list[dict[str, Any]]:
    documents = [
        deployment.document("RolePolicy", "-execution"),
        deployment.document("RolePolicy", "-job-artifacts"),
        deployment.document("Policy", "-submitter"),
    ]
    assert len(documents) == len(deployment.of("RolePolicy")) + len(deployment.of("Policy"))
    return [statement for document in documents for statement in document["Statement"]]


def test_no_policy_has_a_wildcard_without_a_reason(deploy: Callable[..., Any]) -> None:
    for statement in statements(deploy(artifactsBucket=True, imageRepository=True)):
        assert statement["Effect"] == "Allow"
        assert not any("*" in action for action in statement["Action"])
        for resource in statement["Resource"]:
            assert "*" not in resource or resource in WILDCARDS, resource
            assert resource != "*" or set(statement["Action"]) <= ACTIONS_WITHOUT_RESOURCES


def test_the_execution_role_pulls_images_writes_logs_and_reads_the_secret_only(deploy: Callable[..., Any]) -> None:
    allowed = {
        (action, resource)
        for statement in deploy().document("RolePolicy", "-execution")["Statement"]
        for action in statement["Action"]
        for resource in statement["Resource"]
    }
    repositories = f"arn:aws:ecr:*:{ACCOUNT}:repository/*"
    assert allowed == {
        ("ecr:GetAuthorizationToken", "*"),
        ("ecr:BatchCheckLayerAvailability", repositories),
        ("ecr:BatchGetImage", repositories),
        ("ecr:GetDownloadUrlForLayer", repositories),
        ("logs:CreateLogStream", "arn:of:LogGroup:rl-batch-dev-jobs:*"),
        ("logs:PutLogEvents", "arn:of:LogGroup:rl-batch-dev-jobs:*"),
        ("secretsmanager:GetSecretValue", "arn:of:Secret:rl-batch-dev-keys"),
    }


def test_jobs_may_use_what_is_in_the_bucket_and_nothing_else_of_s3(deploy: Callable[..., Any]) -> None:
    deployment = deploy(artifactsBucket=True)
    document = deployment.document("RolePolicy", "-job-artifacts")
    assert deployment.one("RolePolicy", "-job-artifacts").inputs["role"] == "rl-batch-dev-job-1234567"
    bucket = "arn:of:Bucket:rl-batch-dev-artifacts"
    assert [(each["Action"], each["Resource"]) for each in document["Statement"]] == [
        (["s3:ListBucket"], [bucket]),
        (["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"], [f"{bucket}/*"]),
    ]


def test_the_bucket_refuses_whatever_comes_without_tls(deploy: Callable[..., Any]) -> None:
    (statement,) = deploy(artifactsBucket=True).document("BucketPolicy", "-artifacts")["Statement"]
    bucket = "arn:of:Bucket:rl-batch-dev-artifacts"
    assert statement == {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [bucket, f"{bucket}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def test_who_submits_may_use_the_queues_roles_ledger_and_log_of_this_stack_only(deploy: Callable[..., Any]) -> None:
    document = deploy(queuePrefix="alice").document("Policy", "-submitter")
    resources = {action: each["Resource"] for each in document["Statement"] for action in each["Action"]}
    assert resources["batch:SubmitJob"][1:] == [
        f"arn:aws:batch:us-east-1:{ACCOUNT}:job-queue/alice-c5a-large",
        f"arn:aws:batch:us-east-1:{ACCOUNT}:job-queue/alice-c5a-large-spot",
    ]
    assert resources["iam:PassRole"] == ["arn:of:Role:rl-batch-dev-job", "arn:of:Role:rl-batch-dev-execution"]
    assert resources["dynamodb:PutItem"] == ["arn:of:Table:rl-batch-dev-ledger"]
    assert resources["logs:GetLogEvents"] == ["arn:of:LogGroup:rl-batch-dev-jobs:*"]
    assert resources["secretsmanager:PutSecretValue"] == ["arn:of:Secret:rl-batch-dev-keys"]


def test_who_submits_may_push_to_the_stacks_own_repository_only(deploy: Callable[..., Any]) -> None:
    document = deploy(imageRepository=True).document("Policy", "-submitter")
    resources = {action: each["Resource"] for each in document["Statement"] for action in each["Action"]}
    assert resources["ecr:PutImage"] == ["arn:of:Repository:rl-batch-dev-images"]
    without = deploy().document("Policy", "-submitter")
    assert not any("ecr:" in action for each in without["Statement"] for action in each["Action"])


# What a call needs besides the action of its own name, or instead of it.
NEEDS = {
    "batch:RegisterJobDefinition": {"batch:RegisterJobDefinition", "batch:TagResource", "iam:PassRole"},
    "batch:SubmitJob": {"batch:SubmitJob", "batch:TagResource"},
    "batch:TerminateJobs": {"batch:TerminateJob"},
    "ecr:GetAuthorizationToken": {  # for `docker push` in the same place
        "ecr:GetAuthorizationToken",
        "ecr:BatchCheckLayerAvailability",
        "ecr:BatchGetImage",
        "ecr:CompleteLayerUpload",
        "ecr:GetDownloadUrlForLayer",
        "ecr:InitiateLayerUpload",
        "ecr:PutImage",
        "ecr:UploadLayerPart",
    },
    "dynamodb:TransactWriteItems": {"dynamodb:ConditionCheckItem", "dynamodb:PutItem"},
    "sts:GetCallerIdentity": set(),
    # `submitter prune` is for administrators; in transactions it deletes, too.
    "batch:DeregisterJobDefinition": set(),
}


def calls_in(source: Path) -> set[str]:
    """Return the AWS operations that a module calls: names of client methods, and of what paginators page.

    A method that is handed on, to be called elsewhere, counts as called.
    """
    nodes = list(ast.walk(ast.parse(source.read_text())))
    calls = [
        (node.func.attr, node) for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    services = [_text(node) for name, node in calls if name == "client"]
    names = {_text(node) for name, node in calls if name == "get_paginator"}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    models = {service: botocore.session.get_session().get_service_model(service) for service in services if service}
    return {
        f"{service}:{operation}"
        for service, model in models.items()
        for operation in model.operation_names
        if xform_name(operation) in names
    }


def _text(node: ast.Call) -> str:
    return str(node.args[0].value) if node.args and isinstance(node.args[0], ast.Constant) else ""


def test_every_call_that_the_submitter_makes_is_allowed_and_nothing_else(deploy: Callable[..., Any]) -> None:
    sources = (Path(__file__).parents[2] / "submitter").rglob("*.py")
    called = {call for source in sources for call in calls_in(source)}
    assert {"batch:SubmitJob", "dynamodb:Query", "logs:GetLogEvents"} <= called, "the search finds calls"
    document = deploy(imageRepository=True).document("Policy", "-submitter")
    allowed = {action for each in document["Statement"] for action in each["Action"]}
    assert allowed == set().union(*(NEEDS.get(call, {call}) for call in called))


def test_who_submits_may_use_the_job_definitions_of_the_own_stack_and_of_no_other() -> None:
    """A job definition names the roles and the secret that its jobs get, whoever submits them."""
    stacks = {name: (f"arn:aws:iam::{ACCOUNT}:role/{name}-job", f"arn:aws:iam::{ACCOUNT}:role/{name}") for name in "ab"}
    for mine, (job_role, execution_role) in stacks.items():
        document = policies.submitter_policy(
            Account(account_id=ACCOUNT, region="us-east-1", partition="aws"),
            queue_names=["c5a-large"],
            job_role_arn=job_role,
            execution_role_arn=execution_role,
            log_group_arn="arn:log",
            ledger_arn="arn:ledger",
            secret_arn="arn:secret",
            repository_arn=None,
        )
        for action in ("batch:SubmitJob", "batch:RegisterJobDefinition", "batch:TagResource"):
            allowed = [each["Resource"] for each in document["Statement"] if action in each["Action"]]
            for whose, roles in stacks.items():
                name = job_definition(SPEC, definition_contract(*roles))["jobDefinitionName"]
                arn = f"arn:aws:batch:us-east-1:{ACCOUNT}:job-definition/{name}"
                matches = any(fnmatchcase(arn, pattern) for patterns in allowed for pattern in patterns)
                assert matches == (whose == mine), (action, arn)


SPEC = JobSpec(image="image:1", vcpus=1, memory_mib=1024, gpus=0, timeout_seconds=3600, attempts=1)


def definition_contract(job_role_arn: str, execution_role_arn: str) -> StackOutputs:
    return StackOutputs(
        schema_version=1,
        region="us-east-1",
        account_id=ACCOUNT,
        queue_names=(),
        queues={},
        job_role_arn=job_role_arn,
        execution_role_arn=execution_role_arn,
        submitter_policy_arn="arn:policy",
        log_group="log",
        ledger_table="ledger",
        secret_arn="arn:secret",
    )


OF_THIS_ACCOUNT = {"StringEquals": {"aws:SourceAccount": ACCOUNT}}


@pytest.mark.parametrize(
    ("role", "service", "condition"),
    [
        ("instance", "ec2.amazonaws.com", None),
        ("execution", "ecs-tasks.amazonaws.com", None),
        ("spot-fleet", "spotfleet.amazonaws.com", None),
        (
            "job",
            "ecs-tasks.amazonaws.com",
            OF_THIS_ACCOUNT | {"ArnLike": {"aws:SourceArn": f"arn:aws:ecs:us-east-1:{ACCOUNT}:*"}},
        ),
        (
            "batch",
            "batch.amazonaws.com",
            OF_THIS_ACCOUNT
            | {
                "ArnLike": {
                    "aws:SourceArn": [
                        f"arn:aws:batch:us-east-1:{ACCOUNT}:compute-environment/*",
                        f"arn:aws:batch:us-east-1:{ACCOUNT}:job/*",
                    ]
                }
            },
        ),
    ],
)
def test_a_role_trusts_one_service_under_the_conditions_that_aws_documents(
    deploy: Callable[..., Any], role: str, service: str, condition: dict[str, Any] | None
) -> None:
    deployment = deploy(serviceRole="dedicated", spotAllocationStrategy="BEST_FIT")
    assert len(deployment.of("Role")) == 5
    (statement,) = deployment.document("Role", f"dev-{role}", "assumeRolePolicy")["Statement"]
    assert statement["Action"] == "sts:AssumeRole"
    assert statement["Principal"] == {"Service": service}
    assert statement.get("Condition") == condition

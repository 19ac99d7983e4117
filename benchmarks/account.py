"""What submitting needs of a stack, made by boto3 in an empty account, with its outputs in a file."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import boto3

from benchmarks.emulator_array import make_queue
from emulator.server import EmulatorServer
from infra.outputs import Queue, stack_outputs

QUEUE = "benchmark"


def make_stack(server: EmulatorServer, outputs_file: Path) -> None:
    """Make a queue that takes jobs but starts none, for jobs that ran would disturb what is measured."""
    session = boto3.Session("emulator", "emulator", region_name=server.region)

    def client(service: Any) -> Any:
        return session.client(service, endpoint_url=server.url)

    batch = client("batch")
    make_queue(session, batch, server.url)
    batch.update_compute_environment(computeEnvironment=QUEUE, state="DISABLED")
    client("dynamodb").create_table(
        TableName="ledger",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "sweep", "KeyType": "HASH"}, {"AttributeName": "n", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "sweep", "AttributeType": "S"},
            {"AttributeName": "n", "AttributeType": "N"},
        ],
    )
    client("logs").create_log_group(logGroupName="jobs")
    trusted = {"Effect": "Allow", "Principal": {"Service": "ecs-tasks.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role = client("iam").create_role(
        RoleName="jobs", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trusted]})
    )
    queue = batch.describe_job_queues(jobQueues=[QUEUE])["jobQueues"][0]
    outputs = stack_outputs(
        region=server.region,
        account_id=server.account.account_id,
        queue_names=[QUEUE],
        queues={QUEUE: asdict(_c5a_large(queue))},
        job_role_arn=role["Role"]["Arn"],
        execution_role_arn=role["Role"]["Arn"],
        submitter_policy_arn=f"arn:aws:iam::{server.account.account_id}:policy/unused",
        log_group="jobs",
        ledger_table="ledger",
        secret_arn=client("secretsmanager").create_secret(Name="keys")["ARN"],
        artifacts_bucket=None,
        image_repository=None,
    )
    outputs_file.write_text(json.dumps(outputs), encoding="utf-8")


def led_to(server: EmulatorServer) -> dict[str, str]:
    """Return this process's environment, led to the account."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SUBMITTER_"))}
    keys = {"AWS_ACCESS_KEY_ID": "emulator", "AWS_SECRET_ACCESS_KEY": "emulator"}
    files = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    return {**kept, **keys, **files, "AWS_ENDPOINT_URL": server.url, "AWS_DEFAULT_REGION": server.region}


def _c5a_large(queue: dict[str, Any]) -> Queue:
    return Queue(
        name=queue["jobQueueName"],
        arn=queue["jobQueueArn"],
        compute_environment=QUEUE,
        instance_type="c5a.large",
        purchase="on-demand",
        vcpus=2,
        memory_mib=4096,
        gpus=0,
        gpu_model=None,
        architecture="x86_64",
        max_vcpus=2000,
        fair_share=False,
    )

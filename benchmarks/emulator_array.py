"""How long the emulated account takes for an array of one-line jobs, and what it costs in memory and threads.

Run with `python -m benchmarks.emulator_array [SIZE]`; SIZE is 10,000 unless given. It prints and judges nothing.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import boto3

from emulator.server import EmulatorServer

DEFINITION: dict[str, Any] = {
    "jobDefinitionName": "one-line",
    "type": "container",
    "containerProperties": {
        "image": "unused",
        "command": ["printenv", "AWS_BATCH_JOB_ARRAY_INDEX"],
        "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "1800"}],
        "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "benchmark"}},
    },
}


def main() -> None:
    """Build one queue, send the array, and print what was seen until its end."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with EmulatorServer() as server:
        session = boto3.Session("emulator", "emulator", region_name=server.region)
        batch: Any = session.client("batch", endpoint_url=server.url)
        session.client("logs", endpoint_url=server.url).create_log_group(logGroupName="benchmark")
        make_queue(session, batch, server.url)
        batch.register_job_definition(**DEFINITION)
        idle = resident_mib()
        begun = time.monotonic()
        array_id = batch.submit_job(
            jobName="array", jobQueue="benchmark", jobDefinition="one-line", arrayProperties={"size": size}
        )["jobId"]
        answered = time.monotonic()
        most_memory, most_threads = idle, 0
        while (array := batch.describe_jobs(jobs=[array_id])["jobs"][0])["status"] not in {"SUCCEEDED", "FAILED"}:
            most_memory, most_threads = max(most_memory, resident_mib()), max(most_threads, threading.active_count())
            time.sleep(0.2)
        ended = time.monotonic()
    print(
        f"children                {size}, of which succeeded {array['arrayProperties']['statusSummary']['SUCCEEDED']}"
    )
    print(f"cores                   {os.cpu_count()}")
    print(f"SubmitJob               {(answered - begun) * 1000:.0f} ms")
    print(f"until the array's end   {ended - begun:.1f} s, {(ended - begun) / size * 1000:.2f} ms a child")
    print(f"memory over idle        {most_memory - idle:.0f} MiB over {idle:.0f} MiB")
    print(f"threads                 {most_threads}")


def make_queue(session: boto3.Session, batch: Any, url: str) -> None:
    """Make the queue `benchmark` of c5a.large with 2,000 vCPUs, and what it needs."""
    iam, ec2 = session.client("iam", endpoint_url=url), session.client("ec2", endpoint_url=url)
    allow = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    iam.create_role(
        RoleName="hosts", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    )
    policy = "arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role"
    iam.attach_role_policy(RoleName="hosts", PolicyArn=policy)
    iam.create_instance_profile(InstanceProfileName="hosts")
    iam.add_role_to_instance_profile(InstanceProfileName="hosts", RoleName="hosts")
    batch.create_compute_environment(
        computeEnvironmentName="benchmark",
        type="MANAGED",
        computeResources={
            "type": "EC2",
            "minvCpus": 0,
            "maxvCpus": 2000,
            "instanceTypes": ["c5a.large"],
            "subnets": [subnet["SubnetId"] for subnet in ec2.describe_subnets()["Subnets"]],
            "instanceRole": "hosts",
        },
    )
    while batch.describe_compute_environments()["computeEnvironments"][0]["status"] != "VALID":
        time.sleep(0.01)
    order = [{"order": 1, "computeEnvironment": "benchmark"}]
    batch.create_job_queue(jobQueueName="benchmark", priority=1, computeEnvironmentOrder=order)
    while batch.describe_job_queues()["jobQueues"][0]["status"] != "VALID":
        time.sleep(0.01)


def resident_mib() -> float:
    """Memory of this process, which is the emulator's, in MiB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


if __name__ == "__main__":
    main()

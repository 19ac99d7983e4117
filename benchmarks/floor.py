"""The least that submitting can be, in plain boto3: read the outputs, register a definition, send one SubmitJob.

python benchmarks/floor.py OUTPUTS QUEUE IMAGE SEEDS
"""

import json
import sys
from pathlib import Path
from typing import Any

import boto3

outputs_file, queue, image, seeds = sys.argv[1:]
outputs = json.loads(Path(outputs_file).read_text(encoding="utf-8"))
batch: Any = boto3.client("batch", region_name=outputs["region"])
definition = batch.register_job_definition(
    jobDefinitionName="floor",
    type="container",
    containerProperties={
        "image": image,
        "jobRoleArn": outputs["job_role_arn"],
        "executionRoleArn": outputs["execution_role_arn"],
        "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "1800"}],
        "command": ["true"],
    },
)
job = batch.submit_job(
    jobName="floor",
    jobQueue=outputs["queues"][queue]["arn"],
    jobDefinition=definition["jobDefinitionArn"],
    **({"arrayProperties": {"size": int(seeds)}} if int(seeds) > 1 else {}),
)
print(job["jobId"])

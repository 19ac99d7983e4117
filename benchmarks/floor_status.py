"""The least that looking at a sweep can be, in plain boto3: read its entry of the ledger, describe its job.

python benchmarks/floor_status.py OUTPUTS OWNER/NAME [each]; with `each`, every run of the one array is described.
"""

import json
import sys
from pathlib import Path
from typing import Any

import boto3

outputs_file, sweep, *each = sys.argv[1:]
outputs = json.loads(Path(outputs_file).read_text(encoding="utf-8"))
boto3.client("sts", region_name=outputs["region"]).get_caller_identity()
ledger: Any = boto3.client("dynamodb", region_name=outputs["region"])
found = ledger.query(
    TableName=outputs["ledger_table"],
    KeyConditionExpression="sweep = :sweep",
    ExpressionAttributeValues={":sweep": {"S": sweep}},
)
job = found["Items"][0]["slots"]["L"][0]["M"]["job"]["S"]
batch: Any = boto3.client("batch", region_name=outputs["region"])
array = batch.describe_jobs(jobs=[job])["jobs"][0]["arrayProperties"]
print(array["statusSummary"])
if each:
    ids = [f"{job}:{index}" for index in range(array["size"])]
    for start in range(0, len(ids), 100):
        for child in batch.describe_jobs(jobs=ids[start : start + 100])["jobs"]:
            print(child["jobId"], child["status"], child.get("statusReason"))

"""The least that reading a log can be, in plain boto3: python benchmarks/floor_logs.py OUTPUTS STREAM."""

import json
import sys
from pathlib import Path
from typing import Any

import boto3

outputs_file, stream = sys.argv[1:]
outputs = json.loads(Path(outputs_file).read_text(encoding="utf-8"))
logs: Any = boto3.client("logs", region_name=outputs["region"])
token: dict[str, str] = {}
while True:
    page = logs.get_log_events(logGroupName=outputs["log_group"], logStreamName=stream, startFromHead=True, **token)
    for event in page["events"]:
        print(event["message"])
    if token.get("nextToken") == page["nextForwardToken"]:
        break
    token = {"nextToken": page["nextForwardToken"]}

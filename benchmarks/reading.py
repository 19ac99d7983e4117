"""What looking at runs takes: how many of them stand, each of them, and a long log."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3

from benchmarks.account import QUEUE, led_to, make_stack
from benchmarks.measure import compare
from emulator.server import EmulatorServer

HERE = Path(__file__).parent


def measure_reading(
    server: EmulatorServer, folder: Path, repetitions: int, *, runs: int = 10_000, lines: int = 100_000
) -> None:
    """Submit what is to be looked at, and print a row for each way of looking.

    Args:
        server: An empty account.
        folder: For the stack's outputs.
        repetitions: Timed runs of each command.
        runs: How many runs the sweep has that is looked at.
        lines: How many lines the log has.
    """
    outputs = folder / "outputs.json"
    make_stack(server, outputs)
    environment = led_to(server)
    submitter = [str(Path(sys.executable).parent / "submitter"), "--outputs", str(outputs)]

    def typed(*arguments: str) -> str:
        command = [*submitter, *arguments]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    def row(title: str, ours: Sequence[str], floor: Sequence[str]) -> None:
        result = compare(
            title,
            lambda _: [*submitter, *ours],
            lambda _: [sys.executable, str(HERE / floor[0]), str(outputs), *floor[1:]],
            repetitions=repetitions,
            environment=environment,
            record=server.control.record,
        )
        print(result.row(), flush=True)

    new = ["run", "--queue", QUEUE, "--image", "trainer:1"]
    typed(*new, "--name", "log", "--command", f"seq 1 {lines}; true {{seed}}")
    _set_environment(server, environment, "ENABLED")
    typed("wait", "log")
    _set_environment(server, environment, "DISABLED")
    log = json.loads(typed("status", "log", "--runs", "--json"))
    typed(*new, "--name", "many", "--command", "true {seed}", "--num-seed", str(runs))
    many = log["sweep"].replace("/log", "/many")
    row(f"`status`, {runs:,} runs", ["status", "many"], ["floor_status.py", many])
    row(f"`status --runs`, {runs:,} runs", ["status", "many", "--runs"], ["floor_status.py", many, "each"])
    row(f"`logs`, {lines:,} lines", ["logs", "log"], ["floor_logs.py", log["runs"][0]["log_stream"]])


def _set_environment(server: EmulatorServer, environment: Mapping[str, str], state: Any) -> None:
    session = boto3.Session(
        environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], region_name=server.region
    )
    batch = session.client("batch", endpoint_url=server.url)
    batch.update_compute_environment(computeEnvironment=QUEUE, state=state)
    while batch.describe_compute_environments()["computeEnvironments"][0]["status"] != "VALID":
        time.sleep(0.01)

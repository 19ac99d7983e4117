"""What commands print as JSON is what docs/schemas says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"
QUEUE = "c5a-large-spot"
Submitter = Callable[..., Any]


def check(printed: str, kind: str) -> None:
    schema = json.loads((SCHEMAS / f"{kind}.json").read_text())
    Draft202012Validator(schema).validate(json.loads(printed))


def check_lines(printed: str, kind: str, *, count: int) -> None:
    lines = printed.splitlines()
    assert len(lines) == count
    for line in lines:
        check(line, kind)


def test_every_document_is_as_its_schema_says(submitter: Submitter, tmp_path: Path) -> None:
    """One sweep with two parameters, runs that succeed, fail and wait, and a run that was cancelled."""
    command = (
        "run",
        "--queue",
        QUEUE,
        "--name",
        "first",
        "--image",
        "trainer:1",
        "--command",
        "test {seed} != 2 # {a}",
    )
    options = ("--grid", "a=x,y", "--attempts", "1", "--num-hours", "0.5", "--env", "A=1", "--tag", "b=c")
    check(submitter(*command, *options, "--num-seed", "2", "--dry-run").out, "dry-run")
    check(submitter(*command, *options, "--json").out, "run")
    check(submitter(*command, *options, "--num-seed", "2", "--wait", "--poll", "0.1", "--json").out, "run")
    check(submitter("wait", "first", "--json").out, "status")
    check(submitter("status", "first", "--json").out, "status")
    check(submitter("status", "first", "--runs", "--json").out, "status")
    check_lines(submitter("status", "first", "--watch", "--json").out, "status", count=1)
    check_lines(submitter("status", "first", "--watch", "--where", "a=x", "--json").out, "status", count=1)
    check(submitter("list", "--json").out, "list")
    check(submitter("show", "first", "--json").out, "show")
    check(submitter("queues", "--json").out, "queues")
    check(submitter("prune", "--sweeps-older-than", "0", "--json").out, "prune")
    script = ("--exp-script", str(tmp_path / "debug.sh"), "--json")
    check(submitter("run", "--command", "python train.py", *script).out, "docker-lines")


def test_each_line_of_a_log_is_as_its_schema_says(submitter: Submitter, tmp_path: Path) -> None:
    command = ("run", "--queue", QUEUE, "--image", "trainer:1", "--wait", "--poll", "0.1")
    submitter(*command, "--name", "first", "--command", r"printf 'a \"b\"\nc\td{seed}\n'", "--num-seed", "2")
    submitter(*command, "--name", "second", "--command", "echo agent", "--no-seed", "--num-jobs", "2")
    check_lines(submitter("logs", "first", "--json").out, "log-line", count=4)
    check_lines(submitter("logs", "second", "--json").out, "log-line", count=2)
    submitter("logs", "second", "--json", "--output", str(tmp_path / "logs"))
    for file in (tmp_path / "logs").iterdir():
        check_lines(file.read_text(), "log-line", count=1)


def test_what_waits_is_cancelled_and_is_sent_again_is_as_its_schema_says(submitter: Submitter) -> None:
    command = ("run", "--queue", QUEUE, "--name", "first", "--image", "trainer:1", "--command", "sleep 60; echo {seed}")
    submitter(*command, "--num-seed", "40")
    check(submitter("why", "first", "--json").out, "why")
    check(submitter("status", "first", "--runs", "--json").out, "status")
    check(submitter("cancel", "first", "--seed", "40", "--yes", "--json").out, "cancel")
    check(submitter("show", "first", "--json").out, "show")
    check(submitter("retry", "first", "--json").out, "retry")
    check(submitter("repro", "first", "--seed", "3", "--json").out, "repro")

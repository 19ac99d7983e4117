"""The main job as a person types it: queues by `pulumi up`, and a seeded sweep that really trains on one of them."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emulator.project import Project

RunIn = Callable[..., subprocess.CompletedProcess[str]]

QUEUE = "c5a-large-spot"
QUEUES = [
    f"{kind}{purchase}"
    for kind in ("c5a-large", "c6g-medium", "g4dn-4xlarge", "g4dn-xlarge", "m6gd-medium", "r5ad-large")
    for purchase in ("", "-spot")
]
TRAIN = "python examples/train.py --env-id CartPole-v1 --total-timesteps 5000"


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def test_seeds_are_trained_on_a_spot_queue_and_the_same_line_again_submits_nothing(
    project: Project, run_in: RunIn, tmp_path: Path
) -> None:
    names = run_in(project, "pulumi", "stack", "output", "queue_names", "--json")
    assert json.loads(names.stdout) == QUEUES
    queues = document(run_in(project, "submitter", "queues", "--json"))["queues"]
    assert [queue["name"] for queue in queues] == QUEUES
    assert {queue["state"] for queue in queues} == {"enabled"}

    curves = tmp_path / "curves"
    line = ["submitter", "run", "--queue", QUEUE, "--num-seed", "3", "--name", "first"]
    line += ["--command", f"{TRAIN} --output {curves}", "--wait", "--poll", "0.5", "--json"]
    first = document(run_in(project, *line))
    assert (first["submitted"], first["counts"]) == (3, {"succeeded": 3})
    assert sorted(path.name for path in curves.iterdir()) == [f"CartPole-v1-seed{seed}.csv" for seed in (1, 2, 3)]

    runs = document(run_in(project, "submitter", "status", "first", "--runs", "--json"))["runs"]
    assert [(run["seed"], run["status"], run["attempts"]) for run in runs] == [(s, "succeeded", 1) for s in (1, 2, 3)]
    log = run_in(project, "submitter", "logs", "first", "--seed", "2").stdout
    assert "final: env=CartPole-v1 seed=2 return=" in log
    assert "seed=3" not in log

    again = document(run_in(project, *line))
    assert (again["submitted"], again["already"], again["counts"]) == (0, 3, {"succeeded": 3})


def test_a_queue_alone_is_a_whole_command(project: Project, run_in: RunIn, tmp_path: Path) -> None:
    done = run_in(
        *(project, "submitter", "run", "--queue", QUEUE, "--wait", "--poll", "0.5", "--json"),
        extra={"SUBMITTER_RUN_COMMAND": f"{TRAIN} --output {tmp_path}"},
    )
    assert document(done)["counts"] == {"succeeded": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["CartPole-v1-seed1.csv"]


def test_a_wrong_queue_is_answered_with_the_real_ones(project: Project, run_in: RunIn) -> None:
    refused = run_in(project, "submitter", "run", "--queue", "c5a-larg-spot")
    assert refused.returncode == 3
    assert refused.stderr.splitlines() == [
        "Error: The stack has no queue c5a-larg-spot.",
        f"It has {', '.join(QUEUES)}.",
    ]


def test_another_machine_needs_only_the_stacks_outputs(project: Project, run_in: RunIn, tmp_path: Path) -> None:
    command = ("submitter", "run", "--queue", QUEUE, "--name", "elsewhere", "--command", "echo trained", "--wait")
    assert run_in(project, *command, "--poll", "0.5").returncode == 0
    outputs = run_in(project, "pulumi", "stack", "output", "--json").stdout
    (tmp_path / "outputs.json").write_text(outputs)
    nowhere = {"PULUMI_HOME": str(tmp_path / "none"), "PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    status = run_in(
        *(project, "submitter", "--outputs", str(tmp_path / "outputs.json"), "status", "elsewhere", "--json"),
        extra=nowhere,
    )
    assert document(status)["counts"] == {"succeeded": 1}
    logs = run_in(project, "submitter", "--outputs", "-", "logs", "elsewhere", "-f", stdin=outputs, extra=nowhere)
    assert logs.stdout == "trained --seed 1\n"


def test_a_stack_that_cannot_be_read_is_said_with_a_way_out(project: Project, run_in: RunIn, tmp_path: Path) -> None:
    refused = run_in(project, "submitter", "--stack-dir", str(tmp_path), "queues")
    assert refused.returncode == 3
    assert f"There is no Pulumi project in {tmp_path}, nor above it." in refused.stderr
    assert "--outputs FILE" in refused.stderr
    (tmp_path / "Pulumi.yaml").write_text("name: other\nruntime: python\n")
    refused = run_in(project, "submitter", "--stack-dir", str(tmp_path), "queues")
    assert refused.returncode == 3
    assert "Pulumi could not read the stack: " in refused.stderr
    assert "pulumi stack select" in refused.stderr
    refused = run_in(project, "submitter", "--stack", "prod", "queues")
    assert refused.returncode == 3
    assert "prod" in refused.stderr

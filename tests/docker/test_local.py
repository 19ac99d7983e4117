"""`submitter run --provider local`: the same sweep on this machine's Docker."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.docker.conftest import SUBMITTER

if TYPE_CHECKING:
    from tests.docker.conftest import Engine

LOCAL = (SUBMITTER, "run", "--provider", "local", "--name", "here")


def test_a_sweep_runs_here_with_logs_in_files_and_exit_codes(engine: "Engine", image: str, tmp_path: Path) -> None:
    command = "echo {env-id} {seed} $WANDB_RUN_ID; test {seed} != 2"
    grid = ("--grid", "env-id=A-v0,B-v0", "--num-seed", "2")
    logs = tmp_path / "logs"
    done = engine(*LOCAL, "--image", image, "--command", command, *grid, "--log-dir", str(logs), "--json", check=False)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    runs = {(run["params"]["env-id"], run["seed"]): run for run in document["runs"]}
    assert {key: run["exit_code"] for key, run in runs.items()} == {
        ("A-v0", 1): 0,
        ("B-v0", 1): 0,
        ("A-v0", 2): 1,
        ("B-v0", 2): 1,
    }
    assert Path(runs["B-v0", 1]["log"]).read_text() == f"B-v0 1 {document['nonce']}-2\n"
    assert "[4/4]" in done.stderr
    assert "env-id=A-v0 seed=2: exit code 1" in done.stderr
    assert engine.containers() == []


def test_the_last_words_of_a_container_are_in_its_log(engine: "Engine", image: str, tmp_path: Path) -> None:
    """Docker's way of following a log loses some of them every third time, when the container is just ending."""
    command = "printf abc | tr a-z A-Z; : {seed}"
    engine(*LOCAL, "--image", image, "--command", command, "--num-seed", "8", "--log-dir", str(tmp_path))
    assert [log.read_text() for log in tmp_path.glob("*.log")] == ["ABC"] * 8


def test_each_run_has_a_core_and_a_memory_limit_of_its_own(engine: "Engine", image: str, tmp_path: Path) -> None:
    limit = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null"
    command = f"grep Cpus_allowed_list /proc/self/status; {limit}; df --output=size -m /dev/shm | tail -n 1; : {{seed}}"
    engine(
        *LOCAL,
        "--image",
        image,
        "--command",
        command,
        "--num-seed",
        "2",
        "--num-memory",
        "256",
        "--log-dir",
        str(tmp_path),
    )
    cores = set()
    for log in tmp_path.glob("*.log"):
        _, core, memory, shared = log.read_text().split()
        cores.add(core)
        assert (int(memory), int(shared)) == (256 * 1024 * 1024, 128)
    count = int(engine("docker", "info", "--format", "{{.NCPU}}").stdout)
    assert cores == {str(core) for core in range(min(2, count))}


def test_a_run_that_takes_too_much_memory_or_time_is_ended_and_told(
    engine: "Engine", image: str, tmp_path: Path
) -> None:
    eat = "python -c 'x = bytearray(512 * 1024 * 1024)'; exit $?; : {seed}"
    done = engine(
        *LOCAL, "--image", image, "--command", eat, "--num-memory", "64", "--log-dir", str(tmp_path), check=False
    )
    assert done.returncode == 1
    assert "exit code 137" in done.stderr or "out of memory (64 MiB)" in done.stderr


def test_ctrl_c_ends_exactly_its_own_containers(
    engine: "Engine", image: str, tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    stranger = engine("docker", "run", "--detach", "--name", "stranger", image, "sleep", "600")
    try:
        running = subprocess.Popen(
            [*LOCAL, "--image", image, "--command", "exec sleep 600 # {seed}", "--num-seed", "9"],
            env=engine.environment,
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        cores = int(engine("docker", "info", "--format", "{{.NCPU}}").stdout)
        wait_until(lambda: engine("docker", "ps", "--format", "{{.Names}}").stdout.count("here-") == min(9, cores))
        os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=120)
        assert running.returncode == 130
        assert b"Traceback" not in said
        assert f"Ending {min(9, cores)} container".encode() in said
        assert engine.containers() == ["stranger"]
    finally:
        engine("docker", "rm", "--force", stranger.stdout.strip())


def test_a_secret_is_in_the_containers_own_variables_and_nowhere_else(
    engine: "Engine", image: str, tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    running = subprocess.Popen(
        [*LOCAL, "--image", image, "--command", "echo started; exec sleep 600 # {seed}", "--secret", "HF_TOKEN"],
        env={**engine.environment, "HF_TOKEN": "sentinel-1", "WANDB_API_KEY": "sentinel-2"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    wait_until(lambda: "here-" in engine("docker", "ps", "--format", "{{.Names}}").stdout)
    (name,) = engine.containers()
    (shown,) = json.loads(engine("docker", "inspect", name).stdout)
    os.killpg(running.pid, signal.SIGINT)
    said, _ = running.communicate(timeout=120)
    variables = shown["Config"].pop("Env")
    assert {"HF_TOKEN=sentinel-1", "WANDB_API_KEY=sentinel-2"} <= set(variables)
    assert "sentinel" not in json.dumps(shown)
    assert b"sentinel" not in said
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"sentinel" in file.read_bytes()]


def test_a_dry_run_counts_dockers_cores_and_its_script_runs(engine: "Engine", image: str, tmp_path: Path) -> None:
    """Case: the host has 16 cores and Docker reports 2."""
    cores = int(engine("docker", "info", "--format", "{{.NCPU}}").stdout)
    dry = [SUBMITTER, "run", "--image", image, "--command", "echo seed", "--num-seed", "5"]
    done = subprocess.run(dry, env=engine.environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.findall(r"--cpuset-cpus=(\d+)", done.stdout) == [str(index % cores) for index in range(5)]
    started = engine(str(tmp_path / "debug.sh.docker.sh"), WANDB_API_KEY="sentinel").stdout.split()
    assert len(started) == 5
    for number, name in enumerate(started, start=1):
        engine("docker", "wait", name)
        assert engine("docker", "logs", name).stdout == f"seed --seed {number}\n"
        engine("docker", "rm", name)


def test_gpus_are_asked_of_docker(engine: "Engine", image: str, tmp_path: Path) -> None:
    """There are none here: Docker's own refusal shows that it was asked for the one that the run should have."""
    done = engine(*LOCAL, "--image", image, "--gpus", "0", "--command", "true", "--log-dir", str(tmp_path), check=False)
    assert done.returncode == 1
    assert "it did not start" in done.stderr
    assert "gpu" in done.stderr


def test_an_image_that_is_nowhere_is_one_sentence(engine: "Engine", registry: str) -> None:
    refused = engine(*LOCAL, "--image", f"{registry}/nothing:1", check=False)
    assert refused.returncode == 3
    assert f"There is no image {registry}/nothing:1 here" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_no_daemon_is_one_sentence(engine: "Engine", tmp_path: Path) -> None:
    refused = engine(*LOCAL, check=False, DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert refused.returncode == 3
    assert refused.stderr.splitlines() == [
        f"Error: No Docker daemon answers at unix://{tmp_path}/none.sock.",
        "Start Docker, or set DOCKER_HOST.",
    ]

"""Every submit_exp command line of CleanRL's guide and tests runs after replacing the program's name.

The lines are those of docs/cloud/submit-experiments.md and tests/test_utils.py in github.com/vwxyzjn/cleanrl, without
`poetry run python -m cleanrl_utils.submit_exp`.
"""

import json
import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.outputs import StackOutputs
from tests.queues import C5A_LARGE_SPOT

PPO = "poetry run python cleanrl/ppo.py --env-id CartPole-v1 --total-timesteps 100000 --track --capture_video"
ATARI = "poetry run python cleanrl/ppo_atari.py --env-id BreakoutNoFrameskip-v4 --track --capture_video"
BUILD = f'--docker-tag vwxyzjn/cleanrl:latest --command "{PPO}"'
DRY_RUNS = [
    f'--docker-tag vwxyzjn/cleanrl:latest --command "{PPO}" --num-seed 1',
    f'--docker-tag vwxyzjn/cleanrl:latest --command "{PPO}" --num-seed 1 --num-memory 2000 --num-hours 48.0',
    "--docker-tag vwxyzjn/cleanrl:latest --wandb-key xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
]
SUBMISSIONS = [
    f'--docker-tag vwxyzjn/cleanrl:latest --command "{command}" --job-queue {queue} --num-seed 1 --num-vcpu 1 {more} '
    "--num-hours 48.0 --provider aws"
    for queue, command, more in (
        ("c5a-large-spot", PPO, "--num-memory 2000"),
        ("g4dn-xlarge-spot", ATARI, "--num-gpu 1 --num-memory 4000"),
        ("c5a-large", PPO, "--num-memory 2000"),
        ("g4dn-xlarge", ATARI, "--num-gpu 1 --num-memory 4000"),
    )
]
BUILDS = {
    f"{BUILD} --build": "--output=type=docker --platform linux/amd64",
    f"{BUILD} --build --push": "--output=type=registry --platform linux/amd64",
    f"{BUILD} --archs linux/arm64,linux/amd64 --build --push": (
        "--output=type=registry --platform linux/arm64,linux/amd64"
    ),
}
KEY = "f" * 40
DOCKER = """#!/bin/sh
echo "$*" >> "$DOCKER_CALLS"
case "$*" in
"buildx inspect"*) printf 'Name: remote\\nDriver: docker-container\\nPlatforms: linux/amd64, linux/arm64\\n';;
"buildx build"*) ;;
*) exit 1;;
esac
"""
Submitter = Callable[..., Any]


@pytest.fixture
def contract(contract: StackOutputs, queue: Callable[..., dict[str, Any]]) -> StackOutputs:
    """A stack with the four queues of the guides."""
    queues = dict(contract.queues)
    for instance_type, memory, gpus in (("c5a.large", 4096, 0), ("g4dn.xlarge", 16_384, 1)):
        for purchase, ending in (("on-demand", ""), ("spot", "-spot")):
            name = instance_type.replace(".", "-") + ending
            if name not in queues:
                made = queue(name, instance_type=instance_type)
                queues[name] = replace(
                    C5A_LARGE_SPOT,
                    name=name,
                    arn=made["jobQueueArn"],
                    compute_environment=f"{name}-environment",
                    instance_type=instance_type,
                    purchase=purchase,
                    vcpus=2 + 2 * gpus,
                    memory_mib=memory,
                    gpus=gpus,
                    gpu_model="T4" if gpus else None,
                )
    return replace(contract, queues=queues, queue_names=tuple(sorted(queues)))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a Dockerfile, a W&B key, and a docker that writes down what it is asked."""
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_CALLS", str(tmp_path / "docker-calls"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-daemon")
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("line", SUBMISSIONS, ids=["cpu-spot", "gpu-spot", "cpu", "gpu"])
def test_a_submission_of_the_guides_is_one_job_with_what_it_asks_for(
    submitter: Submitter, aws: Callable[..., Any], line: str
) -> None:
    options = shlex.split(line)
    done = submitter("run", *options, "--json")
    assert done.code == 0, done.err
    assert KEY not in done.out + done.err
    (job,) = done.document["jobs"].values()
    (described,) = aws("batch").describe_jobs(jobs=[job])["jobs"]
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert described["jobQueue"].endswith(f"/{given['--job-queue']}")
    assert described["timeout"] == {"attemptDurationSeconds": 48 * 3600}
    container = described["container"]
    assert container["image"] == "vwxyzjn/cleanrl:latest"
    needs = {need["type"]: need["value"] for need in container["resourceRequirements"]}
    assert needs == {"VCPU": "1", "MEMORY": given["--num-memory"], **({"GPU": "1"} if "--num-gpu" in given else {})}
    assert [secret["name"] for secret in container["secrets"]] == ["WANDB_API_KEY"]


@pytest.mark.parametrize("line", DRY_RUNS)
def test_a_dry_run_of_the_guides_prints_a_docker_line_and_writes_the_script(
    submitter: Submitter, here: Path, line: str
) -> None:
    done = submitter("run", *shlex.split(line))
    assert done.code == 0, done.err
    (printed,) = done.out.splitlines()
    assert printed.startswith("docker run -d --cpuset-cpus=0 ")
    assert " -e WANDB_API_KEY " in printed
    assert "vwxyzjn/cleanrl:latest /bin/bash -c '" in printed
    assert printed.endswith("--seed 1'")
    assert (here / "debug.sh.docker.sh").read_text().splitlines()[-1] == printed


@pytest.mark.parametrize("line", BUILDS)
def test_a_build_of_the_guides_asks_docker_for_what_cleanrl_asked(submitter: Submitter, here: Path, line: str) -> None:
    done = submitter("run", *shlex.split(line))
    assert done.code == 0, done.err
    calls = (here / "docker-calls").read_text().splitlines()
    (built,) = [call for call in calls if call.startswith("buildx build ")]
    output, _, platforms = BUILDS[line].partition(" ")
    words = shlex.split(built)
    assert output in words
    assert platforms in built
    assert words[-3:] == ["-t", "vwxyzjn/cleanrl:latest", "."]


@pytest.mark.usefixtures("here")
def test_several_platforms_without_a_registry_are_explained_before_a_build_that_docker_refuses(
    submitter: Submitter,
) -> None:
    """The guide's last line has no --push; buildx cannot put several platforms into Docker's own store."""
    done = submitter("run", "-b", "--archs", "linux/arm64,linux/amd64")
    assert done.code == 2
    assert "Add --push" in done.err
    assert json.dumps(KEY) not in done.err

"""Runs as containers on one machine: their cores, their variables, and their docker lines."""

import shlex

import pytest

from submitter.asked import WhatOptions, asked
from submitter.containers import ContainerPlan, Seat, docker_line, dry_run_lines, places
from submitter.errors import UsageError


def plan(
    *, command: str = "python train.py", seeds: str = "1-5", no_seed: bool = False, num_jobs: int | None = None
) -> ContainerPlan:
    what = WhatOptions(command=command, seeds=None if no_seed else seeds, no_seed=no_seed, num_jobs=num_jobs)
    return ContainerPlan(
        name="train-1",
        nonce="abcdefghij",
        asked=asked(what),
        image="trainer:1",
        environment={"WANDB_PROJECT": "rl"},
        secrets=("WANDB_API_KEY", "HF_TOKEN"),
        vcpus=1,
        memory_mib=None,
        timeout_seconds=60,
    )


def test_runs_go_round_the_cores_that_docker_reports() -> None:
    lines = dry_run_lines(plan(), places(2, 1, None))
    assert [shlex.split(line)[3] for line in lines] == [f"--cpuset-cpus={core}" for core in (0, 1, 0, 1, 0)]


def test_a_docker_line_is_cleanrls_with_the_key_named_only() -> None:
    line = dry_run_lines(plan(command="echo 'a  b' \"$HOME\""), places(1, 1, None))[0]
    words = shlex.split(line)
    assert words[:4] == ["docker", "run", "-d", "--cpuset-cpus=0"]
    assert words[4:8] == ["-e", "WANDB_API_KEY", "-e", "HF_TOKEN"]
    assert words[-4:] == ["trainer:1", "/bin/bash", "-c", "echo 'a  b' \"$HOME\" --seed 1"]
    assert {"WANDB_RUN_ID=abcdefghij-1", "WANDB_RESUME=allow", "OMP_NUM_THREADS=1", "WANDB_PROJECT=rl"} < set(words)


def test_runs_without_a_seed_have_no_wandb_id() -> None:
    (line,) = dry_run_lines(plan(no_seed=True), places(1, 1, None))
    assert "WANDB_RUN_ID" not in line


def test_equal_runs_without_a_seed_have_numbers_only() -> None:
    agents = plan(command="wandb agent x", no_seed=True, num_jobs=3)
    assert [(run.number, run.seed, agents.command(run)) for run in agents.runs] == [
        (number, None, "wandb agent x") for number in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("cores", "vcpus", "gpus", "expected"),
    [
        (4, 1, None, [Seat("0"), Seat("1"), Seat("2"), Seat("3")]),
        (5, 2, None, [Seat("0-1"), Seat("2-3")]),
        (4, 1, "0,1", [Seat("0", "0"), Seat("1", "1")]),
        (2, 1, "all", [Seat("0", "all"), Seat("1", "all")]),
    ],
)
def test_each_run_has_cores_of_its_own_and_where_gpus_are_listed_one_of_them(
    cores: int, vcpus: int, gpus: str | None, expected: list[Seat]
) -> None:
    assert places(cores, vcpus, gpus) == expected


@pytest.mark.parametrize(("vcpus", "gpus"), [(3, None), (0, None), (1, "0,,1"), (1, "0,0")])
def test_what_no_machine_could_do_is_refused(vcpus: int, gpus: str | None) -> None:
    with pytest.raises(UsageError):
        places(2, vcpus, gpus)


def test_a_container_to_look_into_is_interactive_and_leaves_nothing() -> None:
    line = docker_line("trainer:1", ["bash"], detach=False, environment={}, place=Seat("0", "1"), memory_mib=512)
    assert line == "docker run --rm -it --cpuset-cpus=0 --gpus device=1 --memory=512m trainer:1 bash"

"""A run of the ledger as a docker line."""

import shlex

from submitter.history import Entry, Generation, Record
from submitter.numbers import NumberSet
from submitter.plan import JobSpec
from submitter.repro import Repro, repro
from submitter.sweep import RunTable
from submitter.writer import Writer

PINNED = f"trainer@sha256:{'a' * 64}"


def of(*, bucket: str | None = None, dirty: bool = False, **changes: object) -> Repro:
    """The second run of a sweep whose jobs got what `changes` says."""
    given: dict[str, object] = {
        "image": PINNED,
        "vcpus": 1,
        "memory_mib": 512,
        "gpus": 0,
        "timeout_seconds": 60,
        "attempts": 1,
    }
    entry = Entry(
        n=1,
        nonce="abc",
        kind="run",
        at=0,
        by=Writer(host="", pid=1, started="", token=""),
        spec=JobSpec(**{**given, **changes}),  # type: ignore[arg-type] # each has its own type
        runs=NumberSet([1, 2]),
        added=RunTable.product([()], [5, 6]),
        record=Record(command="python train.py", axes=(), image="trainer:1", commit="c0ffee", dirty=dirty),
    )
    generation = Generation([entry])
    return repro("ada/first", generation, generation.table.runs()[1], bucket=bucket)


def test_the_container_has_the_runs_cores_gpus_and_memory() -> None:
    words = shlex.split(of(vcpus=4, gpus=1, memory_mib=2048).line())
    assert "--cpuset-cpus=0-3" in words
    assert words[words.index("--gpus") + 1] == "all"
    assert "--memory=2048m" in words
    assert "--gpus" not in shlex.split(of().line())


def test_its_variables_are_the_runs_and_nothing_of_the_submitters() -> None:
    environment = of(bucket="artifacts", environment={"MODE": "fast", "SUBMITTER_WANDB_RETRY": "new"}).environment
    assert environment == {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "WANDB_RESUME": "allow",
        "WANDB_RUN_ID": "abc-2",
        "MODE": "fast",
        "SUBMITTER_ARTIFACTS": "s3://artifacts/ada/first/abc-2",
    }


def test_in_a_shell_the_command_is_left_out() -> None:
    assert of().command not in of().line(interactive=True)


def test_what_may_differ_is_said() -> None:
    (tracked,) = of().remarks
    assert "abc-2" in tracked
    unpinned, _ = of(image="trainer:1").remarks
    assert "trainer:1" in unpinned
    changed, _ = of(dirty=True).remarks
    assert "c0ffee" in changed
    secret, _ = of(secrets={"WANDB_API_KEY": "arn"}).remarks
    assert "WANDB_API_KEY" in secret

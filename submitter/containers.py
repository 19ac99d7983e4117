"""A run as a container on one machine: its cores, its variables, and its docker line. Pure."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from submitter.asked import Asked
from submitter.errors import UsageError
from submitter.names import run_id
from submitter.sweep import Run

ALL_GPUS: Final = "all"


@dataclass(frozen=True)
class Seat:
    """Where a container runs: cores as Docker writes them (`0`, `0-3`), and a GPU's id, `all` or None."""

    cores: str
    gpu: str | None = None


@dataclass(frozen=True, kw_only=True)
class ContainerPlan:
    """The runs of a command, to be run in containers.

    Attributes:
        name: The sweep's name.
        nonce: Tells this time from others; W&B ids begin with it.
        asked: The runs and the command.
        image: The container image.
        environment: Variables of every run, without any secret.
        secrets: Names of the variables that may hold secrets.
        vcpus: Cores of a run.
        memory_mib: Memory of a run in MiB; None for no limit.
        timeout_seconds: A run that takes longer is ended.
    """

    name: str
    nonce: str
    asked: Asked
    image: str
    environment: Mapping[str, str]
    secrets: Sequence[str]
    vcpus: int
    memory_mib: int | None
    timeout_seconds: int

    @property
    def runs(self) -> Iterator[Run]:
        """The runs in order, without seeds where the command has none."""
        runs = self.asked.runs.runs()
        return iter(runs.unseeded() if self.asked.template.seedless else runs)

    def command(self, run: Run) -> str:
        """Return the text that the shell gets for one run."""
        return self.asked.template.render(run.row, run.seed)

    def variables(self, run: Run) -> dict[str, str]:
        """Return a run's variables: the same as it gets on AWS."""
        threads = {name: str(self.vcpus) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        if self.asked.template.seedless:
            return {**threads, **self.environment}
        return {
            **threads,
            "WANDB_RESUME": "allow",
            **self.environment,
            "WANDB_RUN_ID": run_id(self.nonce, run.number),
        }


def places(cores: int, vcpus: int, gpus: str | None) -> list[Seat]:
    """Return where runs can be at once: each on cores of its own, and where GPUs are listed each with one of them.

    Args:
        cores: How many Docker has.
        vcpus: How many a run gets.
        gpus: `all`, ids such as `0,1`, or None.

    Raises:
        UsageError: A run wants more cores than there are, or the GPUs are not well written.
    """
    if not 1 <= vcpus <= cores:
        raise UsageError(f"Docker has {cores} cores, and each run would get {vcpus}.", f"Give 1 to {cores}.")
    groups = [
        str(first) if vcpus == 1 else f"{first}-{first + vcpus - 1}" for first in range(0, cores - vcpus + 1, vcpus)
    ]
    if gpus is None or gpus == ALL_GPUS:
        return [Seat(group, gpus) for group in groups]
    ids = [part.strip() for part in gpus.split(",")]
    if not all(ids) or len(set(ids)) < len(ids):
        raise UsageError(f"--gpus {gpus} is not a list of GPUs.", "Write it like --gpus 0,1, or --gpus all.")
    return [Seat(group, gpu) for group, gpu in zip(groups, ids, strict=False)]


def docker_line(
    image: str,
    command: Sequence[str],
    *,
    detach: bool,
    environment: Mapping[str, str],
    secrets: Sequence[str] = (),
    place: Seat | None = None,
    memory_mib: int | None = None,
) -> str:
    """Return a shell's line that runs a container; a secret is named only, its value is the caller's variable.

    Args:
        image: The container image.
        command: The container's command.
        detach: In the background, or else interactive and removed when it ends.
        environment: Variables.
        secrets: Names of variables whose values docker takes from its own environment.
        place: Cores and GPU.
        memory_mib: Memory limit in MiB.
    """
    words = ["docker", "run", *(["-d"] if detach else ["--rm", "-it"])]
    if place:
        words.append(f"--cpuset-cpus={place.cores}")
        if place.gpu:
            words += ["--gpus", place.gpu if place.gpu == ALL_GPUS else f"device={place.gpu}"]
    if memory_mib is not None:
        words.append(f"--memory={memory_mib}m")
    for name in secrets:
        words += ["-e", name]
    for name, value in environment.items():
        words += ["-e", f"{name}={value}"]
    return shlex.join([*words, image, *command])


def dry_run_lines(plan: ContainerPlan, where: Sequence[Seat]) -> list[str]:
    """Return a docker line for each run, round robin over the places, as CleanRL's submit_exp prints them."""
    return [
        docker_line(
            plan.image,
            ["/bin/bash", "-c", plan.command(run)],
            detach=True,
            environment=plan.variables(run),
            secrets=plan.secrets,
            place=where[(run.number - 1) % len(where)],
            memory_mib=plan.memory_mib,
        )
        for run in plan.runs
    ]

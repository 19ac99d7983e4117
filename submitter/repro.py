"""`repro`: one run as a container on this machine, as the ledger knows it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from submitter.asked import Asked
from submitter.containers import ALL_GPUS, ContainerPlan, Seat, docker_line
from submitter.errors import UsageError
from submitter.history import Generation
from submitter.images import Reference
from submitter.plan import JobSpec
from submitter.sweep import Run
from submitter.wrapper import ARTIFACTS, WANDB_RETRY

_SHELL: Final = ("/bin/sh", "-c", 'command -v bash >/dev/null && exec bash -c "$0"; exec sh -c "$0"')
"""Runs the text that follows as jobs do: by bash where the image has it."""

_INTERACTIVE: Final = ("/bin/sh", "-c", "command -v bash >/dev/null && exec bash; exec sh")


@dataclass(frozen=True, kw_only=True)
class Repro:
    """A run to be repeated.

    Attributes:
        run: Which one.
        spec: What its newest job was given.
        command: The text that its shell got.
        environment: Its variables, without those that hold secrets.
        remarks: In which way it may not be the same, in sentences.
    """

    run: Run
    spec: JobSpec
    command: str
    environment: Mapping[str, str]
    remarks: tuple[str, ...]

    def line(self, *, interactive: bool = False) -> str:
        """Return the `docker run` line: of the command, or of a shell in its place."""
        cores = "0" if self.spec.vcpus == 1 else f"0-{self.spec.vcpus - 1}"
        return docker_line(
            self.spec.image,
            _INTERACTIVE if interactive else [*_SHELL, self.command],
            detach=False,
            environment=self.environment,
            secrets=sorted(self.spec.secrets),
            place=Seat(cores, ALL_GPUS if self.spec.gpus else None),
            memory_mib=self.spec.memory_mib,
        )

    def values(self) -> dict[str, Any]:
        """Return it for a JSON document."""
        return {
            "run": self.run.number,
            "seed": self.run.seed,
            "image": self.spec.image,
            "command": self.command,
            "environment": dict(self.environment),
            "secrets": sorted(self.spec.secrets),
            "line": self.line(),
        }


def repro(sweep: str, generation: Generation, run: Run, *, bucket: str | None) -> Repro:
    """Return how to repeat a run.

    Args:
        sweep: owner/name.
        generation: The sweep's entries.
        run: Which run.
        bucket: The stack's bucket for artifacts.

    Raises:
        UsageError: The ledger does not know how the run was run.
    """
    record, request = generation.record, generation.newest_request().get(run.number)
    if record is None or request is None or request.spec is None:
        raise UsageError(f"Run {run.number} of {sweep} was never submitted.")
    spec, nonce = request.spec, str(generation.nonce)
    own = {ARTIFACTS: f"s3://{bucket}/{sweep}/{nonce}-{run.number}"} if bucket else {}
    plan = ContainerPlan(
        name=sweep,
        nonce=nonce,
        asked=Asked(axes=record.axes, template=record.template(), runs=generation.table, repeated=()),
        image=spec.image,
        environment={name: value for name, value in {**spec.environment, **own}.items() if name != WANDB_RETRY},
        secrets=sorted(spec.secrets),
        vcpus=spec.vcpus,
        memory_mib=spec.memory_mib,
        timeout_seconds=spec.timeout_seconds,
    )
    environment = plan.variables(run)
    return Repro(
        run=run,
        spec=spec,
        command=plan.command(run),
        environment=environment,
        remarks=tuple(_remarks(spec, environment, commit=record.commit, dirty=record.dirty)),
    )


def _remarks(spec: JobSpec, environment: Mapping[str, str], *, commit: str | None, dirty: bool | None) -> list[str]:
    remarks = []
    if Reference.parse(spec.image).digest is None:
        remarks.append(f"What {spec.image} meant when the run was submitted is not known: it may be another image now.")
    if commit and dirty:
        remarks.append(f"The run was submitted at commit {commit} with changes that were not committed.")
    if spec.secrets:
        remarks.append(f"Set these variables first, their values are taken from this shell: {', '.join(spec.secrets)}.")
    if run_id := environment.get("WANDB_RUN_ID"):
        remarks.append(
            f"Where W&B is on it writes into the W&B run {run_id}; leave -e WANDB_RUN_ID=... out for a new one."
        )
    return remarks

"""From the options of `run` to an order: defaulted and checked before anything is asked of AWS. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from infra.outputs import Queue, StackOutputs
from submitter import capacity, plan
from submitter.asked import Asked, WhatOptions, asked
from submitter.errors import ConfigurationError, UsageError
from submitter.history import Record
from submitter.names import SWEEP_TAG, check_sweep_name, owner_name, sweep_name
from submitter.provenance import Commit
from submitter.submission import Order
from submitter.variables import parse_tags, parse_variables
from submitter.wrapper import WANDB_RETRY, WANDB_RETRY_NEW

DEFAULT_IMAGE: Final = "vwxyzjn/cleanrl:latest"
"""CleanRL's own image, where the stack has no repository."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(WhatOptions):
    """The options of `run` that say what to submit; None is what was not given.

    Attributes:
        queue: Name of the job queue.
        image: The container image.
        name: The sweep's name.
        owner: Whose sweep it is.
        num_vcpu: vCPUs of a run.
        num_memory: Memory of a run in MiB.
        num_gpu: GPUs of a run.
        num_hours: Time limit of an attempt in hours.
        attempts: How often a run is started at most.
        retry_on_error: Whether a run whose program failed is started again.
        wandb_retry: Whether later attempts are the same W&B run (`resume`) or one of their own (`new`).
        env: `NAME=VALUE` texts, variables of each run.
        tag: `NAME=VALUE` texts, tags of the jobs.
    """

    queue: str
    image: str | None
    name: str | None
    owner: str | None
    num_vcpu: int
    num_memory: int | None
    num_gpu: int | None
    num_hours: float
    attempts: int | None
    retry_on_error: bool
    wandb_retry: str
    env: tuple[str, ...]
    tag: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A checked request, whole but for the caller's name.

    Attributes:
        name: The sweep's name, without its owner.
        options: What was typed.
        queue: The queue, as the contract has it.
        asked: The runs and the command.
        record: What the sweep is.
        spec: What each job gets.
    """

    name: str
    options: RunOptions
    queue: Queue
    asked: Asked
    record: Record
    spec: plan.JobSpec

    def at_once(self, runs: int) -> int:
        """Return how many of so many runs the queue holds at once."""
        held = capacity.runs_at_once(
            self.queue, vcpus=self.spec.vcpus, memory_mib=self.spec.memory_mib, gpus=self.spec.gpus
        )
        return min(held, runs)

    def ceiling_hours(self, runs: int) -> float:
        """Return the most run-hours that can come of so many runs: each uses up every attempt."""
        return runs * self.spec.attempts * self.spec.timeout_seconds / 3600

    def order(self, caller: str, contract: StackOutputs) -> Order:
        """Return the order to be submitted, for the owner given or the caller."""
        owner = self.options.owner or caller
        sweep = f"{owner}/{self.name}"
        share = share_identifier(owner, self.queue)
        spec = replace(self.spec, tags={**self.spec.tags, SWEEP_TAG: sweep}, share=share)
        return Order(
            sweep=sweep,
            wanted=self.asked.runs,
            record=self.record,
            template=self.asked.template,
            spec=spec,
            queue=self.queue.name,
            definition=plan.job_definition(spec, contract),
            artifacts=contract.artifacts_bucket,
        )


def prepare(options: RunOptions, contract: StackOutputs, commit: Commit | None) -> Prepared:
    """Check what was typed against the stack, and fill in what was not.

    Raises:
        ConfigurationError: The stack has no such queue.
        UsageError: Something else cannot work.
    """
    queue = find_queue(contract, options.queue)
    what = asked(options)
    image = options.image or contract.image_repository or DEFAULT_IMAGE
    if options.owner is not None and owner_name(options.owner) != options.owner:
        raise UsageError(f"{options.owner!r} is not an owner's name.", f"Write it as {owner_name(options.owner)}.")
    return Prepared(
        name=sweep_name(options.command, image) if options.name is None else check_sweep_name(options.name),
        options=options,
        queue=queue,
        asked=what,
        record=Record(
            command=options.command,
            axes=what.axes,
            image=image,
            commit=commit.id if commit else None,
            dirty=commit.dirty if commit else None,
            options=_kept(options),
        ),
        spec=_spec(options, queue, image),
    )


def find_queue(contract: StackOutputs, name: str) -> Queue:
    """Return a queue of the stack.

    Raises:
        ConfigurationError: There is none of that name; the remedy names those that there are.
    """
    if name not in contract.queues:
        there = ", ".join(contract.queue_names) or "none: run `pulumi up` with instanceTypes set"
        raise ConfigurationError(f"The stack has no queue {name}.", f"It has {there}.")
    return contract.queues[name]


def share_identifier(owner: str, queue: Queue) -> str | None:
    """Return under which share an owner's jobs go, on a queue that has fair shares: letters and digits only."""
    return "".join(filter(str.isalnum, owner)) if queue.fair_share else None


def _spec(options: RunOptions, queue: Queue, image: str) -> plan.JobSpec:
    gpus = capacity.default_gpus(queue) if options.num_gpu is None else options.num_gpu
    vcpus, memory = options.num_vcpu, options.num_memory
    if memory is None:
        # Before a run's share is computed from them, vCPUs and GPUs must be possible.
        capacity.check_fits(queue, vcpus=vcpus, memory_mib=capacity.MIN_MEMORY_MIB, gpus=gpus)
        memory = capacity.default_memory_mib(queue, vcpus, gpus)
    capacity.check_fits(queue, vcpus=vcpus, memory_mib=memory, gpus=gpus)
    attempts = plan.default_attempts(queue.purchase) if options.attempts is None else options.attempts
    return plan.JobSpec(
        image=image,
        vcpus=vcpus,
        memory_mib=memory,
        gpus=gpus,
        timeout_seconds=plan.timeout_seconds(options.num_hours),
        attempts=plan.check_attempts(attempts),
        retry_on_error=options.retry_on_error,
        environment=parse_variables(options.env)
        | ({WANDB_RETRY: WANDB_RETRY_NEW} if options.wandb_retry == "new" else {}),
        tags=parse_tags(options.tag),
    )


def _kept(options: RunOptions) -> Mapping[str, Any]:
    """Return the options that the ledger keeps beside command, image and axes: those that were given."""
    kept = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(options).items()}
    kept["params"] = options.params.file if options.params else None
    for elsewhere in ("command", "image", "name", "owner", "like"):
        del kept[elsewhere]
    return {name: value for name, value in kept.items() if value not in (None, [], False)}

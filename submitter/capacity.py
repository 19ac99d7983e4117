"""What fits on an instance: the memory that jobs can really use, defaults for a run, and what can never be placed."""

from typing import Final

from infra.outputs import Queue
from submitter.errors import UsageError

MIN_MEMORY_MIB: Final = 4
"""The least memory of a container in MiB; source: AWS Batch API reference, ResourceRequirement."""

# The share of an instance's nominal memory that is surely there for jobs, by nominal MiB. The kernel and firmware keep
# some before the ECS agent asks the kernel how much there is, and Batch's images keep another 32 MiB for the agent
# (AWS Batch user guide, "Compute resource memory management" and "Reserve system memory"; the latter advises a buffer
# of 5 %). Agents were seen to register 1901 of 2048 MiB (t3.small; 88-93 % over types of this size), 3704 of 4096
# (c5.large; 90-95 %), 7680 of 8192 (m5.large) and 15731 of 16384 (g4dn.xlarge; 95-96 % from there on). A share a little
# too small costs some MiB; one too large makes a job that waits for ever.
_USABLE_SHARES: Final = ((16384, 0.95), (8192, 0.93), (4096, 0.90), (2048, 0.88), (0, 0.80))


def usable_memory_mib(nominal_mib: int) -> int:
    """Return the MiB that jobs can surely use on an instance with this nominal memory in MiB."""
    return next(int(nominal_mib * share) for least, share in _USABLE_SHARES if nominal_mib >= least)


def default_gpus(queue: Queue) -> int:
    """Return the GPUs of a run that asks for none itself: one where the instances have any."""
    return min(queue.gpus, 1)


def default_memory_mib(queue: Queue, vcpus: int, gpus: int) -> int:
    """Return a run's share of an instance's usable memory in MiB, by vCPUs or by GPUs, whichever is larger."""
    usable = usable_memory_mib(queue.memory_mib)
    shares = [usable * vcpus // queue.vcpus]
    if queue.gpus:
        shares.append(usable * gpus // queue.gpus)
    return min(max(*shares, MIN_MEMORY_MIB), usable)


def check_fits(queue: Queue, *, vcpus: int, memory_mib: int, gpus: int) -> None:
    """Check that an instance of the queue can hold a run.

    Raises:
        UsageError: It could never be placed; the remedy names the largest that can.
    """
    usable = usable_memory_mib(queue.memory_mib)
    where = f"{queue.name} ({queue.instance_type})"
    if vcpus < 1:
        raise UsageError(f"A run needs at least 1 vCPU, not {vcpus}.", f"{where} has up to {queue.vcpus}.")
    if gpus < 0:
        raise UsageError(f"A run cannot have {gpus} GPUs.", f"{where} has up to {queue.gpus}.")
    if vcpus > queue.vcpus:
        raise UsageError(f"An instance of {where} has no {vcpus} vCPUs.", f"Ask for at most {queue.vcpus}.")
    if gpus and not queue.gpus:
        raise UsageError(
            f"The instances of {where} have no GPU.", "Ask for none (--num-gpu 0), or choose a queue with GPUs."
        )
    if gpus > queue.gpus:
        raise UsageError(f"An instance of {where} has no {gpus} GPUs.", f"Ask for at most {queue.gpus}.")
    if queue.max_vcpus < queue.vcpus:
        raise UsageError(
            f"Nothing ever starts on {where}: it may use {queue.max_vcpus} vCPUs, and one instance has {queue.vcpus}.",
            "Set maxVcpus higher and run `pulumi up`, or choose another queue.",
        )
    check_memory(memory_mib)
    if memory_mib > usable:
        raise UsageError(
            f"{memory_mib} MiB do not fit an instance of {where}: of its {queue.memory_mib} MiB jobs can use {usable}.",
            f"Ask for at most {usable}.",
        )


def runs_per_instance(queue: Queue, *, vcpus: int, memory_mib: int, gpus: int) -> int:
    """Return how many such runs one instance holds."""
    counts = [queue.vcpus // vcpus, usable_memory_mib(queue.memory_mib) // memory_mib]
    if gpus:
        counts.append(queue.gpus // gpus)
    return min(counts)


def runs_at_once(queue: Queue, *, vcpus: int, memory_mib: int, gpus: int) -> int:
    """Return how many such runs the queue's environment holds within its limit of vCPUs."""
    instances = queue.max_vcpus // queue.vcpus
    return instances * runs_per_instance(queue, vcpus=vcpus, memory_mib=memory_mib, gpus=gpus)


def check_memory(memory_mib: int) -> None:
    """Check a run's memory in MiB, wherever it is to run.

    Raises:
        UsageError: No container can have so little.
    """
    if memory_mib < MIN_MEMORY_MIB:
        raise UsageError(f"A run needs at least {MIN_MEMORY_MIB} MiB of memory, not {memory_mib}.")

"""Where a job goes, and why it waits: pure decisions over hosts and environments.

Reasons are in AWS's words: Batch user guide, "Jobs stuck in a RUNNABLE status".
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

NO_CAPACITY = "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"
TOO_FEW_VCPUS = "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE"
NO_SUCH_INSTANCE = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"
ENVIRONMENTS_CLOSED = "ACTION_REQUIRED"
MAY_NOT_START = "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS"
NOT_OFFERED = "MISCONFIGURATION:EC2_INSTANCE_CONFIGURATION_UNSUPPORTED"
UNKNOWN_REASON = "UNDETERMINED"

UNDETERMINED_AFTER_SECONDS = 600.0
"""How long Batch waits for an instance to join its cluster before it says so. AWS gives no figure."""

# MiB that the ECS agent of the Amazon Linux 2023 image was seen to register, by the nominal size of the instance.
_REGISTERED = {2048: 1901, 4096: 3704, 8192: 7680, 16384: 15731}


def usable_memory_mib(nominal_mib: int) -> int:
    """Memory that jobs can have of an instance: what the kernel and the ECS agent leave of the nominal size.

    Sizes between those that were measured have the share of the next smaller one.
    Source: Batch user guide, "Compute resource memory management".
    """
    sizes = sorted(_REGISTERED)
    known = sizes[max(bisect_right(sizes, nominal_mib) - 1, 0)]
    return nominal_mib * _REGISTERED[known] // known


class Hardware(Protocol):
    """What placement wants to know of an instance type."""

    @property
    def name(self) -> str:
        """The type's name (`c5a.large`)."""

    @property
    def vcpus(self) -> int:
        """Its vCPUs."""

    @property
    def memory_mib(self) -> int:
        """Its nominal memory in MiB."""

    @property
    def gpus(self) -> int:
        """Its GPUs."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """What a job reserves on a host."""

    vcpus: int
    memory_mib: int
    gpus: int = 0

    def fits(self, hardware: Hardware) -> bool:
        """Whether an empty instance of this type can hold the job."""
        return (
            self.vcpus <= hardware.vcpus
            and self.memory_mib <= usable_memory_mib(hardware.memory_mib)
            and self.gpus <= hardware.gpus
        )


@dataclass(kw_only=True, eq=False)
class Host:
    """A container instance and what is free on it; `jobs` counts those placed on it, `idle_since` is epoch seconds.

    One that is `draining` gets no more jobs, and goes with its last; one that has not `joined` its cluster gets none.
    """

    id: str
    container_instance_arn: str
    environment: str
    hardware: Hardware
    free_vcpus: int = field(init=False)
    free_memory_mib: int = field(init=False)
    free_gpus: int = field(init=False)
    jobs: int = field(default=0, init=False)
    idle_since: float = field(default=0, init=False)
    draining: bool = field(default=False, init=False)
    joined: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self.free_vcpus = self.hardware.vcpus
        self.free_memory_mib = usable_memory_mib(self.hardware.memory_mib)
        self.free_gpus = self.hardware.gpus

    def has_room(self, need: Need) -> bool:
        """Whether the job fits beside those that are there."""
        return need.vcpus <= self.free_vcpus and need.memory_mib <= self.free_memory_mib and need.gpus <= self.free_gpus

    def take(self, need: Need) -> None:
        """Reserve a job's share."""
        self._book(need, 1)

    def give_back(self, need: Need) -> None:
        """Free a job's share."""
        self._book(need, -1)

    def _book(self, need: Need, sign: int) -> None:
        self.free_vcpus -= sign * need.vcpus
        self.free_memory_mib -= sign * need.memory_mib
        self.free_gpus -= sign * need.gpus
        self.jobs += sign


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One environment of a queue as placement sees it.

    `enabled` and `valid` are its state and status; `with_room` are the hosts that are not full, `joining` those that
    were started and are not in the cluster yet; `vcpus` counts those of all its hosts. `lacks_capacity` says that EC2
    has no instance to give at present, `pays_too_little` that its bid is below the Spot price, `may_not_start` that its
    service role lacks permissions, `not_offered` which of its types no zone of its subnets has.
    """

    environment: str
    enabled: bool
    valid: bool
    types: Sequence[Hardware]
    max_vcpus: int
    vcpus: int
    with_room: Iterable[Host]
    joining: Iterable[Host] = ()
    may_not_start: bool = False
    not_offered: frozenset[str] = frozenset()
    lacks_capacity: bool = False
    pays_too_little: bool = False


@dataclass(frozen=True)
class Launch:
    """Start an instance of this type in this environment for the job."""

    environment: str
    hardware: Hardware


@dataclass(frozen=True)
class Wait:
    """The job cannot be placed now; `reason` is empty when it only waits for its turn.

    Batch says why only when that has been so for `after_seconds`. One of AWS's texts has another `dash` than the rest.
    """

    reason: str = ""
    detail: str = ""
    after_seconds: float = 0.0
    dash: str = "-"

    def __str__(self) -> str:
        return f"{self.reason} {self.dash} {self.detail}" if self.reason else ""


def place(need: Need, offers: Sequence[Offer]) -> Host | Launch | Wait:
    """Decide where a job goes: the first environment in the queue's order with a host or the right to another."""
    working = [offer for offer in offers if offer.enabled and offer.valid and not offer.may_not_start]
    fitting = [(offer, hardware) for offer in working if (hardware := _smallest(need, offer))]
    for offer, hardware in fitting:
        for host in offer.with_room:
            if host.has_room(need):
                return host
        if any(need.fits(host.hardware) for host in offer.joining):
            return _NOT_JOINED
        if not (offer.lacks_capacity or offer.pays_too_little) and offer.vcpus + hardware.vcpus <= offer.max_vcpus:
            return Launch(offer.environment, hardware)
    return _why(need, offers, fitting)


_NOT_JOINED = Wait(UNKNOWN_REASON, "Batch job is blocked, root cause is undetermined.", UNDETERMINED_AFTER_SECONDS)


def _smallest(need: Need, offer: Offer) -> Hardware | None:
    fitting = [hardware for hardware in offer.types if need.fits(hardware) and hardware.name not in offer.not_offered]
    return min(fitting, key=lambda hardware: (hardware.vcpus, hardware.memory_mib), default=None)


def _why(need: Need, offers: Sequence[Offer], fitting: Sequence[tuple[Offer, Hardware]]) -> Wait:
    """Name what keeps the job at the head of its queue from starting; nothing while others only have to end first."""
    if not any(offer.valid for offer in offers):
        return Wait(ENVIRONMENTS_CLOSED, "CE(s) associated with the job queue are invalid.")
    open_offers = [offer for offer in offers if offer.enabled and offer.valid]
    if not open_offers:
        return Wait(ENVIRONMENTS_CLOSED, "CE(s) associated with the job queue are disabled.")
    if all(offer.may_not_start for offer in open_offers):
        return Wait(MAY_NOT_START, "Batch service role has a permission issue.", dash="\N{EN DASH}")
    not_offered = [kind for offer in open_offers for kind in offer.types if kind.name in offer.not_offered]
    if not fitting and any(need.fits(hardware) for hardware in not_offered):
        return Wait(
            NOT_OFFERED,
            "Your compute environment associated with this job queue has an unsupported instance type configuration.",
        )
    if not fitting:
        return Wait(
            NO_SUCH_INSTANCE,
            "The job resource requirement (vCPU/memory/GPU) is higher than that can be met by the CE(s) attached to "
            "the job queue.",
        )
    if all(hardware.vcpus > offer.max_vcpus for offer, hardware in fitting):
        return Wait(TOO_FEW_VCPUS, "CE(s) associated with the job queue cannot meet the CPU requirement of the job.")
    if all(offer.lacks_capacity for offer, _ in fitting):
        names = ", ".join(sorted({hardware.name for _, hardware in fitting}))
        return Wait(NO_CAPACITY, f"Service cannot fulfill the capacity requested for instance type [{names}]")
    return Wait()

"""What is known about runs that wait: facts about the account, for :mod:`submitter.diagnosis`. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infra.outputs import Queue


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A compute environment of a queue, as AWS describes it.

    Attributes:
        name: Its name.
        state: `ENABLED` or `DISABLED`.
        status: `VALID`, `INVALID`, `UPDATING`, ...
        status_reason: AWS's words about the status.
        spot: Whether it runs Spot instances.
        bid_percentage: The most that it pays for a Spot instance, in percent of the On-Demand price.
        max_vcpus: vCPUs that it may have at once.
        desired_vcpus: vCPUs that it has or has asked for.
        service_role: ARN of the role by which AWS Batch starts its instances.
    """

    name: str
    state: str
    status: str
    status_reason: str
    spot: bool
    bid_percentage: int
    max_vcpus: int
    desired_vcpus: int
    service_role: str


@dataclass(frozen=True, kw_only=True)
class Head:
    """The first job of a queue, which alone AWS places and gives a reason for.

    Attributes:
        job: Its id.
        sweep: The sweep that it belongs to; None for a job that was not submitted by this program.
        own: Whether it is one of the sweep that is asked about.
        older: Whether it is one of that sweep from before it was begun afresh.
        need: What it reserves.
        status_reason: AWS's words on why it waits; empty without.
    """

    job: str
    sweep: str | None
    own: bool
    older: bool
    need: "Need"
    status_reason: str


@dataclass(frozen=True, kw_only=True)
class Price:
    """What an instance costs, in US dollars an hour.

    Attributes:
        spot: The lowest Spot price of the zones at present; None when it is not known.
        on_demand: The On-Demand price; None when it is not known.
    """

    spot: float | None
    on_demand: float | None


@dataclass(frozen=True, kw_only=True)
class Need:
    """What one run reserves: vCPUs, memory in MiB, GPUs."""

    vcpus: int
    memory_mib: int
    gpus: int


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """What is known about runs of one sweep that wait on one queue.

    Attributes:
        queue: The queue's name.
        hardware: The queue in the stack's outputs; None when the stack no longer has it.
        exists: Whether AWS has the queue.
        state: `ENABLED` or `DISABLED`.
        status: The queue's status.
        status_reason: AWS's words about it.
        limits: Seconds after which the queue cancels its head, by the reason that AWS gives for its waiting.
        environments: In the order in which the queue tries them.
        runs: How many runs wait, by status.
        lagging: How many more the arrays count as waiting although none of them is listed as such.
        waited_seconds: Since the oldest of them was submitted.
        need: What one of them reserves.
        head: None when the queue's front is empty, or when it is not known.
        front_known: Whether the queue's front could be read.
        price: None when it was not looked up.
    """

    queue: str
    hardware: "Queue | None"
    exists: bool
    state: str
    status: str
    status_reason: str
    limits: Mapping[str, int]
    environments: tuple[Environment, ...]
    runs: Mapping[str, int]
    lagging: int
    waited_seconds: float
    need: Need
    head: Head | None
    front_known: bool
    price: Price | None

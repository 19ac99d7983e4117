"""What keeps an environment from getting instances that run its jobs, as the rest of the account has it.

Sources: "Jobs stuck in a RUNNABLE status" and "AWS managed policies for AWS Batch", Batch user guide; "Amazon ECS
container instance IAM role", Amazon ECS developer guide.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.account import Account
    from emulator.batch.state import ComputeEnvironment

# A part of AWSBatchServiceRole: without one of these no instance starts, or no task on it.
_START_TASKS = frozenset({"ec2:RunInstances", "ecs:RegisterTaskDefinition", "ecs:RunTask", "iam:PassRole"})
_BY_AUTO_SCALING = frozenset({"autoscaling:CreateAutoScalingGroup", "autoscaling:UpdateAutoScalingGroup"})
_BY_SPOT_FLEET = frozenset({"ec2:RequestSpotFleet", "ec2:ModifySpotFleetRequest"})
# A part of AmazonEC2ContainerServiceforEC2Role: what the ECS agent asks for when it starts.
_JOIN = frozenset({"ecs:DiscoverPollEndpoint", "ecs:Poll", "ecs:RegisterContainerInstance"})


@dataclass(frozen=True)
class Obstacles:
    """What is in the way of an environment.

    Attributes:
        may_not_start: Its service role lacks a permission that starting instances and tasks takes.
        not_offered: The instance types that no availability zone of its subnets has.
        cannot_join: The role of its instances lacks a permission that joining its cluster takes.
    """

    may_not_start: bool
    not_offered: frozenset[str]
    cannot_join: bool


class Survey:
    """Finds obstacles, and remembers them until something in the account has changed."""

    def __init__(self, account: "Account") -> None:
        self._account = account
        self._found: dict[tuple[object, ...], Obstacles] = {}

    def forget(self) -> None:
        """Look anew from now on."""
        self._found.clear()

    def obstacles(self, environment: "ComputeEnvironment", types: Iterable[str]) -> Obstacles:
        """Tell what is in the way of an environment whose instances may be of these types."""
        resources, names = environment.compute_resources, tuple(types)
        subnets = tuple(resources["subnets"])
        uses_fleet = _uses_spot_fleet(resources)
        key = (environment.service_role, resources["instanceRole"], subnets, names, uses_fleet)
        if key not in self._found:
            zones = self._account.zones(subnets)
            start = _START_TASKS | (_BY_SPOT_FLEET if uses_fleet else _BY_AUTO_SCALING)
            self._found[key] = Obstacles(
                may_not_start=not self._account.role_may(environment.service_role, start),
                not_offered=frozenset(name for name in names if zones.isdisjoint(self._account.zones_offering(name))),
                cannot_join=not self._account.instance_profile_may(resources["instanceRole"], _JOIN),
            )
        return self._found[key]


def _uses_spot_fleet(resources: Mapping[str, Any]) -> bool:
    return bool(resources["type"] == "SPOT" and resources.get("allocationStrategy", "BEST_FIT") == "BEST_FIT")

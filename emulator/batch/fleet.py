"""The hosts of every compute environment: started for jobs, gone after idling, taken away by EC2."""

import secrets
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from emulator.batch.obstacles import Obstacles, Survey
from emulator.batch.placement import Host, Launch, Need, Offer
from emulator.market import Prices

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from emulator.account import Account
    from emulator.batch.state import ComputeEnvironment, JobQueue, State
    from emulator.instance_types import InstanceType

IDLE_SECONDS = 300.0
"""How long a host stays without jobs. AWS gives no figure; it scales down after some minutes."""

# "optimal" and a family stand for types of several sizes: Batch API Reference, ComputeResource, instanceTypes.
_FAMILIES = {"optimal": ("c5", "m5", "r5")}
_SIZES = ("medium", "large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge")


class Fleet:
    """Hosts, by environment. It keeps each environment's `desiredvCpus` at the sum of its hosts, as Batch does."""

    def __init__(self, state: "State", account: "Account") -> None:
        self._state = state
        self._account = account
        self._hosts: dict[str, Host] = {}
        self._with_room: defaultdict[str, dict[str, Host]] = defaultdict(dict)
        self._joining: defaultdict[str, dict[str, Host]] = defaultdict(dict)
        self._survey = Survey(account)
        self._vcpus: defaultdict[str, int] = defaultdict(int)
        self._idle: dict[str, Host] = {}
        self.without_capacity: set[str] = set()
        """Environments to which EC2 gives no instance at present; a fault that the control endpoint causes."""
        self.prices = Prices()

    def offers(self, queue: "JobQueue") -> list[Offer]:
        """Describe the environments of a queue, in its order, for placement."""
        found = (self._state.environment(arn) for arn in queue.compute_environment_order)
        return [self._offer(environment) for environment in found if environment is not None]

    def _offer(self, environment: "ComputeEnvironment") -> Offer:
        resources = environment.compute_resources
        types = list(self._types(environment))
        obstacles = self._survey.obstacles(environment, (hardware.name for hardware in types))
        return Offer(
            environment=environment.name,
            enabled=environment.state == "ENABLED",
            # A change of the environment in the background does not keep jobs from its hosts.
            valid=environment.status in {"VALID", "UPDATING"},
            types=types,
            max_vcpus=resources.get("maxvCpus", 0),
            vcpus=self._vcpus[environment.name],
            with_room=self._with_room[environment.name].values(),
            joining=self._joining[environment.name].values(),
            may_not_start=obstacles.may_not_start,
            not_offered=obstacles.not_offered,
            lacks_capacity=environment.name in self.without_capacity,
            pays_too_little=self._pays_too_little(resources),
        )

    def _pays_too_little(self, resources: "Mapping[str, Any]") -> bool:
        bid = resources.get("bidPercentage", 100)
        return resources["type"] == "SPOT" and all(
            self.prices.too_dear(name, bid) for name in resources.get("instanceTypes", ())
        )

    def _types(self, environment: "ComputeEnvironment") -> "Iterator[InstanceType]":
        for name in environment.compute_resources.get("instanceTypes", ()):
            for full_name in _full_names(name):
                if (hardware := self._account.instance_type(full_name)) is not None:
                    yield hardware

    def _obstacles(self, environment: "ComputeEnvironment") -> Obstacles:
        return self._survey.obstacles(environment, (hardware.name for hardware in self._types(environment)))

    def launch(self, launch: Launch, now: float) -> Host:
        """Start an instance; it joins the environment's cluster at once, or when its role allows it."""
        environment = self._state.environments[launch.environment]
        cluster = environment.ecs_cluster_arn.rsplit("/", 1)[-1]
        host = Host(
            id=f"i-{secrets.token_hex(9)[:17]}",
            container_instance_arn=self._account.arn("ecs", f"container-instance/{cluster}/{secrets.token_hex(16)}"),
            environment=launch.environment,
            hardware=launch.hardware,
        )
        host.joined = not self._obstacles(environment).cannot_join
        self._hosts[host.id] = host
        (self._with_room if host.joined else self._joining)[host.environment][host.id] = host
        self._rests(host, now)
        self._count(host, host.hardware.vcpus)
        return host

    def account_changed(self) -> None:
        """See what the rest of the account has to say now, and let hosts join that may since."""
        self._survey.forget()
        for name, hosts in self._joining.items():
            environment = self._state.environments.get(name)
            if hosts and environment is not None and not self._obstacles(environment).cannot_join:
                for host in hosts.values():
                    host.joined = True
                self._with_room[name].update(hosts)
                hosts.clear()

    def take(self, host: Host, need: Need) -> None:
        """Place a job on a host."""
        host.take(need)
        self._idle.pop(host.id, None)
        if host.free_vcpus == 0:
            del self._with_room[host.environment][host.id]

    def give_back(self, host: Host, need: Need, now: float) -> None:
        """Take a job off a host, which may have gone meanwhile."""
        host.give_back(need)
        if host.id not in self._hosts:
            return
        if host.draining:
            if host.jobs == 0:
                self.remove(host)
            return
        self._with_room[host.environment][host.id] = host
        if host.jobs == 0:
            self._rests(host, now)

    def _rests(self, host: Host, now: float) -> None:
        """Note that a host has no job, so that it goes unless one comes."""
        host.idle_since = now
        self._idle[host.id] = host

    def get(self, instance_id: str) -> Host | None:
        """Find a host that is there."""
        return self._hosts.get(instance_id)

    def remove(self, host: Host) -> None:
        """Let a host go, whoever is on it."""
        del self._hosts[host.id]
        for hosts in (self._with_room, self._joining):
            hosts[host.environment].pop(host.id, None)
        self._idle.pop(host.id, None)
        self._count(host, -host.hardware.vcpus)

    def drain(self, environment: str) -> list[Host]:
        """Let no job come to the hosts of an environment any more; returns those that still have jobs."""
        hosts = [host for host in self._hosts.values() if host.environment == environment]
        for host in hosts:
            host.draining = True
            self._with_room[environment].pop(host.id, None)
            if host.jobs == 0:
                self.remove(host)
        return [host for host in hosts if host.jobs]

    def retire(self, now: float) -> float | None:
        """Let go of hosts that have idled long enough or whose environment has gone; returns when to look again."""
        for host in list(self._idle.values()):
            if host.environment in self._state.environments and host.idle_since + IDLE_SECONDS > now:
                return host.idle_since + IDLE_SECONDS
            self.remove(host)
        return None

    def _count(self, host: Host, vcpus: int) -> None:
        self._vcpus[host.environment] += vcpus
        if (environment := self._state.environments.get(host.environment)) is not None:
            resources = environment.compute_resources
            resources["desiredvCpus"] = max(self._vcpus[host.environment], resources.get("minvCpus", 0))


def _full_names(name: str) -> "Iterable[str]":
    """Name the instance types that a name in an environment stands for."""
    families = _FAMILIES.get(name, () if "." in name else (name,))
    return [f"{family}.{size}" for family in families for size in _SIZES] or [name]

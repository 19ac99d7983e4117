"""A stand-in for Pulumi's engine that runs the real program and records what it registers."""

import asyncio
import contextvars
import functools
import json
import runpy
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = "rl-batch"


@dataclass(frozen=True)
class Registered:
    """One resource, as the program asked the engine for it; inputs in the provider's spelling."""

    type: str
    name: str
    inputs: Mapping[str, Any]
    urn: str
    parent: str
    depends_on: frozenset[str]
    timeouts: Mapping[str, str]
    retained: bool
    hooks: Mapping[str, list[str]]
    replace_on_changes: list[str]
    delete_before_replace: bool


@dataclass
class FakeAws:
    """What functions answer (one region's zones, types, networks), and what has been called and registered."""

    region: str = "us-east-1"
    account_id: str = "123456789012"
    offerings: dict[str, list[str]] = field(
        default_factory=lambda: {
            "c5a.large": ["us-east-1a", "us-east-1b"],
            "c6g.medium": ["us-east-1a", "us-east-1b"],
            "g4dn.xlarge": ["us-east-1b"],
            "g4ad.xlarge": ["us-east-1b"],
            "g4dn.4xlarge": ["us-east-1b"],
            "r5ad.large": ["us-east-1a", "us-east-1b"],
            "m6gd.medium": ["us-east-1a", "us-east-1b"],
        }
    )
    vpcs: list[str] = field(default_factory=lambda: ["vpc-1"])
    subnets: dict[str, str] = field(
        default_factory=lambda: {"us-east-1a": "subnet-a", "us-east-1b": "subnet-b", "us-east-1e": "subnet-e"}
    )
    own_subnets: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Zone and VPC of subnets that are not the default VPC's."""
    security_groups: dict[str, str] = field(default_factory=dict)
    """VPC of security groups."""
    deployed: dict[str, Any] = field(default_factory=dict)
    """The outputs that the stack has already."""
    calls: list[str] = field(default_factory=list)
    registered: list[Registered] = field(default_factory=list)

    def answer(self, token: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one function call as the AWS provider would."""
        function = token.rpartition(":")[2]
        self.calls.append(function)
        filters = {each["name"]: each["values"] for each in args.get("filters", [])}
        match function:
            case "getCallerIdentity":
                return {"accountId": self.account_id}
            case "getRegion":
                return {"region": self.region}
            case "getPartition":
                return {"partition": "aws"}
            case "getVpcs" | "getSubnet" | "getSubnets" | "getSecurityGroups":
                return self._network(function, args, filters)
            case "readStackOutputs":
                return {"outputs": self.deployed}
            case "getInstanceTypeOfferings":
                assert args["locationType"] == "availability-zone"
                rows = [(name, zone) for name in filters["instance-type"] for zone in self.offerings.get(name, [])]
                return {"instanceTypes": [name for name, _ in rows], "locations": [zone for _, zone in rows]}
            case "getInstanceType":
                return _HARDWARE[args["instanceType"]]
        raise AssertionError(f"unexpected function {token}")

    def _network(self, function: str, args: Mapping[str, Any], filters: Mapping[str, list[str]]) -> dict[str, Any]:
        if function == "getVpcs":
            assert filters == {"is-default": ["true"]}
            return {"ids": self.vpcs}
        if function == "getSubnet":
            return {"vpcId": self.own_subnets[args["id"]][1]}
        if function == "getSecurityGroups":
            (vpc_id,) = filters["vpc-id"]
            return {"ids": [each for each in filters["group-id"] if self.security_groups.get(each) == vpc_id]}
        if "subnet-id" in filters:
            zones_of = {each: zone for each, (zone, _) in self.own_subnets.items() if each in filters["subnet-id"]}
        else:
            assert filters["vpc-id"] == self.vpcs
            assert filters["default-for-az"] == ["true"]
            zones_of = {each: zone for zone, each in self.subnets.items()}
        zones = filters.get("availability-zone", list(zones_of.values()))
        return {"ids": [each for each, zone in zones_of.items() if zone in zones]}


def _hardware(vcpus: int, memory: int, architecture: str, gpu: tuple[str, str] | None = None) -> dict[str, Any]:
    gpus = [{"count": 1, "manufacturer": gpu[0], "name": gpu[1], "memorySize": 16384}] if gpu else []
    return {
        "defaultVcpus": vcpus,
        "memorySize": memory,
        "supportedArchitectures": [architecture],
        "gpuses": gpus,
    }


_HARDWARE = {
    "c5a.large": _hardware(2, 4096, "x86_64"),
    "c6g.medium": _hardware(1, 2048, "arm64"),
    "g4dn.xlarge": _hardware(4, 16384, "x86_64", ("NVIDIA", "T4")),
    "g4dn.4xlarge": _hardware(16, 65536, "x86_64", ("NVIDIA", "T4")),
    "g4ad.xlarge": _hardware(4, 16384, "x86_64", ("AMD", "Radeon Pro V520")),
    "r5ad.large": _hardware(2, 16384, "x86_64"),
    "m6gd.medium": _hardware(1, 4096, "arm64"),
}


@dataclass
class Deployment:
    """What one run of the program registered and exported."""

    resources: list[Registered] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)

    def of(self, kind: str) -> list[Registered]:
        """Return the resources of a type, given as the last part of its token: `Role`."""
        return [each for each in self.resources if each.type.rpartition(":")[2] == kind]

    def one(self, kind: str, name: str) -> Registered:
        """Return the one resource of a type whose logical name ends like this."""
        (found,) = [each for each in self.of(kind) if each.name.endswith(name)]
        return found

    def document(self, kind: str, name: str, key: str = "policy") -> Any:
        """Return a policy document of a resource."""
        return json.loads(self.one(kind, name).inputs[key])


Deploy = Callable[..., Deployment]


@pytest.fixture
def fake_aws() -> FakeAws:
    return FakeAws()


@pytest.fixture
def deploy(fake_aws: FakeAws) -> Iterator[Deploy]:
    """Run __main__.py against the recording engine: `deploy(preview=True, maxVcpus=4)`."""
    loops = [asyncio.new_event_loop()]

    def add_loop() -> None:
        loops.append(asyncio.new_event_loop())
        asyncio.set_event_loop(loops[-1])

    # The mock engine wants an event loop on each thread that calls it, and would make one that nobody closes.
    loops[0].set_default_executor(ThreadPoolExecutor(initializer=add_loop))
    asyncio.set_event_loop(loops[0])

    def run(*, preview: bool = False, stack: str = "dev", **config: Any) -> Deployment:
        # Pulumi keeps the root resource, settings and configuration in context variables.
        return contextvars.copy_context().run(_deploy, fake_aws, preview, stack, {**project_defaults(), **config})

    yield run
    loops[0].run_until_complete(loops[0].shutdown_default_executor())
    asyncio.set_event_loop(None)
    for loop in loops:
        loop.close()


def project_defaults() -> dict[str, Any]:
    """Return the defaults of Pulumi.yaml, as the engine gives them to the program."""
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]
    return {key: entry["default"] for key, entry in declared.items()}


def as_engine_gives(config: Mapping[str, Any]) -> dict[str, str]:
    """Return configuration as the engine hands it over: keys with the project's name, values as text or JSON."""
    return {f"{PROJECT}:{key}": each if isinstance(each, str) else json.dumps(each) for key, each in config.items()}


def _deploy(fake_aws: FakeAws, preview: bool, stack: str, config: Mapping[str, Any]) -> Deployment:
    # Imported here: most tests of this folder have no use for Pulumi, which takes half a second.
    with warnings.catch_warnings():
        # Modules of pulumi_aws warn about classes of their own while they are loaded, which their first use does.
        warnings.simplefilter("ignore", DeprecationWarning)
        from pulumi_aws import ec2, s3  # noqa: PLC0415

        _ = ec2.SecurityGroup, s3.Bucket
    import pulumi  # noqa: PLC0415
    from pulumi.runtime import mocks, rpc, settings  # noqa: PLC0415
    from pulumi.runtime.stack import Stack  # noqa: PLC0415

    class Answers(mocks.Mocks):
        def call(self, args: mocks.MockCallArgs) -> dict[str, Any]:  # type: ignore[override]  # the monitor takes both
            return fake_aws.answer(args.token, args.args)

        def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
            if preview:
                return None, args.inputs
            computed = {
                "arn": f"arn:of:{args.typ.rpartition(':')[2]}:{args.name}",
                "bucket": f"{args.name}-1234567",
                "latestVersion": 1,
                "name": f"{args.name}-1234567",
                "repositoryUrl": f"of:{args.name}",
            }
            return f"{args.name}-id", {**computed, **args.inputs}

    class Recorder(mocks.MockMonitor):
        def RegisterResource(self, request: Any) -> Any:  # noqa: N802  # the name is gRPC's
            reply: Any = super().RegisterResource(request)  # type: ignore[no-untyped-call]  # Pulumi's are not typed
            if request.type != "pulumi:pulumi:Stack":
                times = request.customTimeouts
                fake_aws.registered.append(
                    Registered(
                        type=request.type,
                        name=request.name,
                        inputs=rpc.deserialize_properties(request.object, keep_unknowns=True),
                        urn=reply.urn,
                        parent=request.parent,
                        depends_on=frozenset(request.dependencies),
                        timeouts={"create": times.create, "update": times.update, "delete": times.delete},
                        retained=request.retainOnDelete,
                        hooks={field.name: list(names) for field, names in request.hooks.ListFields()},
                        replace_on_changes=list(request.replaceOnChanges),
                        delete_before_replace=request.deleteBeforeReplace,
                    )
                )
            return reply

    answers = Answers()
    monitor = Recorder(answers)
    mocks.set_mocks(
        answers, project=PROJECT, stack=stack, organization="organization", preview=preview, monitor=monitor
    )
    pulumi.runtime.set_all_config(as_engine_gives(config))
    fake_aws.registered = []
    deployment = Deployment(fake_aws.registered)

    @pulumi.runtime.test  # type: ignore[untyped-decorator]  # Pulumi's is not typed
    def program() -> None:
        runpy.run_path(str(ROOT / "__main__.py"))
        stack_resource = settings.get_root_resource()
        assert isinstance(stack_resource, Stack)
        for key, value in stack_resource.outputs.items():
            record = functools.partial(deployment.outputs.__setitem__, key)
            pulumi.Output.from_input(value).apply(record, run_with_unknowns=True)

    program()
    return deployment

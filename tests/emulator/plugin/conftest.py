"""What the tests of the plugin share: an account, and an engine that speaks the provider protocol over gRPC."""

import os
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc

from emulator.plugin.functions import FUNCTIONS
from emulator.plugin.protocol import Plugin, from_struct, to_struct
from emulator.plugin.resources import TYPES
from emulator.server import EmulatorServer

Values = dict[str, Any]


@dataclass
class Resource:
    """A resource in the engine's state."""

    urn: str
    id: str
    inputs: Values
    state: Values


@dataclass
class Engine:
    """The engine's half of the protocol, in the order in which it calls the provider."""

    stub: Any
    plugin: Plugin
    seed: bytes = b"\x01" * 32
    made: list[Resource] = field(default_factory=list)

    def configure(self, **settings: Any) -> None:
        self.stub.Configure(pb.ConfigureRequest(args=to_struct(settings)))

    def check(self, type_name: str, name: str, program: Values, olds: Values | None = None) -> tuple[Values, list[Any]]:
        """Return the checked inputs and the failures."""
        urn = f"urn:pulumi:dev::rl::{type_name}::{name}"
        reply = self.stub.Check(
            pb.CheckRequest(urn=urn, olds=to_struct(olds or {}), news=to_struct(program), randomSeed=self.seed)
        )
        return from_struct(reply.inputs), [(failure.property, failure.reason) for failure in reply.failures]

    def inputs(self, type_name: str, name: str, program: Values, olds: Values | None = None) -> Values:
        inputs, failures = self.check(type_name, name, program, olds)
        assert not failures
        return inputs

    def create(self, type_name: str, name: str, program: Values, *, timeout: float = 0) -> Resource:
        urn = f"urn:pulumi:dev::rl::{type_name}::{name}"
        inputs = self.inputs(type_name, name, program)
        reply = self.stub.Create(pb.CreateRequest(urn=urn, properties=to_struct(inputs), timeout=timeout))
        resource = Resource(urn, reply.id, inputs, from_struct(reply.properties))
        self.made.append(resource)
        return resource

    def preview_create(self, type_name: str, name: str, program: Values) -> Values:
        inputs = self.inputs(type_name, name, program)
        urn = f"urn:pulumi:dev::rl::{type_name}::{name}"
        reply = self.stub.Create(pb.CreateRequest(urn=urn, properties=to_struct(inputs), preview=True))
        return from_struct(reply.properties)

    def diff(self, resource: Resource, program: Values, ignore: tuple[str, ...] = ()) -> Any:
        type_name, name = resource.urn.split("::")[2:]
        news = self.inputs(type_name, name, program, resource.inputs)
        return self.stub.Diff(
            pb.DiffRequest(
                id=resource.id,
                urn=resource.urn,
                olds=to_struct(resource.state),
                old_inputs=to_struct(resource.inputs),
                news=to_struct(news),
                ignoreChanges=ignore,
            )
        )

    def update(self, resource: Resource, program: Values, *, preview: bool = False) -> Values:
        """Update the resource and return its new state; without a preview, keep it."""
        type_name, name = resource.urn.split("::")[2:]
        news = self.inputs(type_name, name, program, resource.inputs)
        reply = self.stub.Update(
            pb.UpdateRequest(
                id=resource.id,
                urn=resource.urn,
                olds=to_struct(resource.state),
                old_inputs=to_struct(resource.inputs),
                news=to_struct(news),
                preview=preview,
            )
        )
        state = from_struct(reply.properties)
        if not preview:
            resource.inputs, resource.state = news, state
        return state

    def read(self, resource: Resource) -> tuple[Values, Values] | None:
        """Return what a refresh finds, inputs and state; None if the resource is gone."""
        reply = self.stub.Read(
            pb.ReadRequest(
                id=resource.id,
                urn=resource.urn,
                properties=to_struct(resource.state),
                inputs=to_struct(resource.inputs),
            )
        )
        return (from_struct(reply.inputs), from_struct(reply.properties)) if reply.id else None

    def import_(self, type_name: str, resource_id: str) -> tuple[Values, Values]:
        urn = f"urn:pulumi:dev::rl::{type_name}::imported"
        reply = self.stub.Read(pb.ReadRequest(id=resource_id, urn=urn))
        return from_struct(reply.inputs), from_struct(reply.properties)

    def delete(self, resource: Resource) -> None:
        self.stub.Delete(
            pb.DeleteRequest(
                id=resource.id,
                urn=resource.urn,
                properties=to_struct(resource.state),
                old_inputs=to_struct(resource.inputs),
            )
        )
        if resource in self.made:
            self.made.remove(resource)

    def invoke(self, token: str, **args: Any) -> Values:
        reply = self.stub.Invoke(pb.InvokeRequest(tok=token, args=to_struct(args)))
        assert not reply.failures
        return from_struct(getattr(reply, "return"))

    def cancel(self) -> None:
        self.stub.Cancel(empty_pb2.Empty())


@pytest.fixture(scope="module")
def account() -> Iterator[EmulatorServer]:
    with EmulatorServer() as server:
        yield server


@pytest.fixture(scope="module")
def aws(account: EmulatorServer) -> Any:
    """Return a function that makes boto3's client of a service of the account."""

    def client(service: str, region: str = account.region) -> Any:
        return boto3.client(  # type: ignore[call-overload]  # the service is a variable
            service,
            region_name=region,
            endpoint_url=account.url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    return client


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plugin") / "plugin.log"


@pytest.fixture(scope="module")
def configured(account: EmulatorServer, log_file: Path) -> Iterator[Engine]:
    """Return an engine that has configured the plugin; making its AWS clients is what takes time."""
    plugin = Plugin("7.0.0", TYPES, FUNCTIONS, account.url, str(log_file))
    with futures.ThreadPoolExecutor(8) as threads:
        server = grpc.server(threads)
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            engine = Engine(provider_pb2_grpc.ResourceProviderStub(channel), plugin)
            engine.configure(region=account.region)
            yield engine
        server.stop(0).wait()


@pytest.fixture
def engine(configured: Engine) -> Iterator[Engine]:
    """Return the engine; what a test leaves behind is deleted, last made first."""
    configured.seed = os.urandom(32)
    yield configured
    for resource in reversed(configured.made.copy()):
        configured.delete(resource)

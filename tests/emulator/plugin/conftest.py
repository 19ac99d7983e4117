"""What the tests of the plugin share: an account, and an engine that speaks the provider protocol over gRPC."""

import json
import os
from collections.abc import Callable, Iterator
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
from emulator.plugin.messages import from_struct, to_struct
from emulator.plugin.protocol import Plugin
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


DESCRIPTIONS: dict[str, Callable[[Any, str], Any]] = {
    "Role": lambda aws, name: aws("iam").get_role(RoleName=name)["Role"],
    "RolePolicy": lambda aws, key: aws("iam").get_role_policy(RoleName=key.split(":")[0], PolicyName=key.split(":")[1]),
    "InstanceProfile": lambda aws, name: aws("iam").get_instance_profile(InstanceProfileName=name)["InstanceProfile"],
    "SecurityGroup": lambda aws, key: aws("ec2").describe_security_groups(GroupIds=[key])["SecurityGroups"][0],
    "ComputeEnvironment": lambda aws, name: aws("batch").describe_compute_environments(computeEnvironments=[name])[
        "computeEnvironments"
    ][0],
    "JobQueue": lambda aws, arn: aws("batch").describe_job_queues(jobQueues=[arn])["jobQueues"][0],
    "SchedulingPolicy": lambda aws, arn: aws("batch").describe_scheduling_policies(arns=[arn])["schedulingPolicies"][0],
    "Secret": lambda aws, arn: aws("secretsmanager").describe_secret(SecretId=arn),
    "Bucket": lambda aws, name: aws("s3").get_bucket_tagging(Bucket=name),
    "BucketPublicAccessBlock": lambda aws, name: aws("s3").get_public_access_block(Bucket=name),
    "BucketServerSideEncryptionConfiguration": lambda aws, name: aws("s3").get_bucket_encryption(Bucket=name)[
        "ServerSideEncryptionConfiguration"
    ],
    "BucketLifecycleConfiguration": lambda aws, name: aws("s3").get_bucket_lifecycle_configuration(Bucket=name),
    "BucketPolicy": lambda aws, name: aws("s3").get_bucket_policy(Bucket=name),
}


def described(type_name: str) -> Callable[[Callable[[Any, str], Any]], Callable[[Any, str], Any]]:
    """Register how boto3 describes a type that takes more than one call."""

    def register(function: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        DESCRIPTIONS[type_name] = function
        return function

    return register


@described("Policy")
def describe_policy(aws: Any, arn: str) -> Any:
    found = aws("iam").get_policy(PolicyArn=arn)["Policy"]
    version = aws("iam").get_policy_version(PolicyArn=arn, VersionId=found["DefaultVersionId"])
    return {**found, **version["PolicyVersion"]}


@described("LaunchTemplate")
def describe_launch_template(aws: Any, key: str) -> Any:
    found = aws("ec2").describe_launch_templates(LaunchTemplateIds=[key])["LaunchTemplates"][0]
    latest = aws("ec2").describe_launch_template_versions(LaunchTemplateId=key, Versions=["$Latest"])
    tags = aws("ec2").describe_tags(Filters=[{"Name": "resource-id", "Values": [key]}])["Tags"]
    pairs = [{"Key": tag["Key"], "Value": tag["Value"]} for tag in tags]
    return {**found, **latest["LaunchTemplateVersions"][0], "Tags": pairs}


@described("LogGroup")
def describe_log_group(aws: Any, name: str) -> Any:
    found = aws("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"][0]
    return {**found, **aws("logs").list_tags_for_resource(resourceArn=found["arn"].removesuffix(":*"))}


@described("Table")
def describe_table(aws: Any, name: str) -> Any:
    dynamodb = aws("dynamodb")
    found = dynamodb.describe_table(TableName=name)["Table"]
    tags = dynamodb.list_tags_of_resource(ResourceArn=found["TableArn"])
    return {
        **found,
        **dynamodb.describe_time_to_live(TableName=name),
        **dynamodb.describe_continuous_backups(TableName=name),
        **tags,
    }


@described("Repository")
def describe_repository(aws: Any, name: str) -> Any:
    (found,) = aws("ecr").describe_repositories(repositoryNames=[name])["repositories"]
    return {**found, **aws("ecr").list_tags_for_resource(resourceArn=found["repositoryArn"])}


class World:
    """What programs refer to, made through the plugin, and how boto3 describes what they make."""

    def __init__(self, engine: Engine, aws: Any) -> None:
        self.engine = engine
        self.aws = aws
        self._kept: list[Resource] = []
        self._shared: Values = {}

    def make(self, type_name: str, **program: Any) -> Resource:
        """Make a resource that stays until all tests of the module are done."""
        made = self.engine.create(type_name, f"other{len(self._kept)}", program)
        self.engine.made.remove(made)
        self._kept.append(made)
        return made

    def shared(self, method: str) -> Any:
        """Return what a method made first: what a program refers to, and no test changes."""
        if method not in self._shared:
            self._shared[method] = getattr(self, method)()
        return self._shared[method]

    def close(self) -> None:
        for made in reversed(self._kept):
            self.engine.delete(made)

    def describe(self, type_name: str, resource_id: str) -> Any:
        return DESCRIPTIONS[type_name.rpartition(":")[2]](self.aws, resource_id)

    def role(self) -> Resource:
        allow = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
        trust = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
        return self.make("aws:iam/role:Role", assumeRolePolicy=trust, forceDetachPolicies=True)

    def profile(self) -> str:
        made = self.make("aws:iam/instanceProfile:InstanceProfile", role=self.role().state["name"])
        return str(made.state["arn"])

    def group(self) -> str:
        return self.make("aws:ec2/securityGroup:SecurityGroup").id

    def template(self) -> Resource:
        return self.make("aws:ec2/launchTemplate:LaunchTemplate")

    def bucket(self) -> str:
        return self.make("aws:s3/bucket:Bucket").id

    def repository(self) -> str:
        return self.make("aws:ecr/repository:Repository").id

    def vpc(self) -> str:
        return str(self.aws("ec2").describe_vpcs()["Vpcs"][0]["VpcId"])

    def subnets(self) -> list[str]:
        return [subnet["SubnetId"] for subnet in self.aws("ec2").describe_subnets()["Subnets"]]

    def scheduling_policy(self) -> str:
        return self.make("aws:batch/schedulingPolicy:SchedulingPolicy").id

    def environment(self) -> str:
        made = self.make("aws:batch/computeEnvironment:ComputeEnvironment", **self.environment_program())
        return str(made.state["arn"])

    def environment_program(self) -> Values:
        return {
            "type": "MANAGED",
            "computeResources": {
                "type": "SPOT",
                "allocationStrategy": "SPOT_CAPACITY_OPTIMIZED",
                "bidPercentage": 60,
                "ec2Configurations": [{"imageType": "ECS_AL2023"}],
                "instanceRole": self.shared("profile"),
                "instanceTypes": ["c5a.large", "c5a.xlarge"],
                "launchTemplate": {"launchTemplateId": self.shared("template").id, "version": "1"},
                "maxVcpus": 16,
                "minVcpus": 0,
                "securityGroupIds": [self.shared("group")],
                "subnets": self.subnets()[:2],
                "tags": {"a": "1"},
            },
            "updatePolicy": {"jobExecutionTimeoutMinutes": 60},
        }


@pytest.fixture(scope="module")
def everything(configured: Engine, aws: Any) -> Iterator[World]:
    world = World(configured, aws)
    yield world
    world.close()


@pytest.fixture
def world(everything: World, engine: Engine) -> World:  # noqa: ARG001 - it deletes what the test leaves behind
    return everything

"""The functions answer with what pulumi_aws's result classes have, from the account."""

import importlib
import inspect
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2 as pb

from emulator.plugin.messages import to_struct

# pulumi_aws.ec2 and s3 warn of deprecated classes of their own when they are imported.
pytestmark = pytest.mark.filterwarnings("ignore:.* has been deprecated in favor of:DeprecationWarning")

ARGUMENTS: dict[str, dict[str, Any]] = {
    "aws:ec2/getInstanceType:getInstanceType": {"instanceType": "g4dn.xlarge"},
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": {
        "locationType": "availability-zone",
        "filters": [{"name": "instance-type", "values": ["c5a.large"]}],
    },
    "aws:ec2/getSecurityGroups:getSecurityGroups": {"filters": [{"name": "group-name", "values": ["default"]}]},
    "aws:ec2/getSubnet:getSubnet": {"availabilityZone": "us-east-1a", "defaultForAz": True},
    "aws:ec2/getSubnets:getSubnets": {"filters": [{"name": "default-for-az", "values": ["true"]}]},
    "aws:ec2/getVpcs:getVpcs": {"filters": [{"name": "is-default", "values": ["true"]}]},
    "aws:index/getCallerIdentity:getCallerIdentity": {},
    "aws:index/getPartition:getPartition": {},
    "aws:index/getRegion:getRegion": {},
}


def said(refused: Any) -> str:
    """Return what the engine would show of an error."""
    return str(refused.value.details())


def test_every_function_is_tried(engine: Any) -> None:
    assert ARGUMENTS.keys() == engine.plugin.functions.keys()


@pytest.mark.parametrize("token", ARGUMENTS)
def test_results_have_the_sdks_names(engine: Any, token: str) -> None:
    module, _, name = token.removeprefix("aws:").split(":")[0].partition("/")
    package = importlib.import_module("pulumi_aws" if module == "index" else f"pulumi_aws.{module}")
    result = getattr(package, f"{name[0].upper()}{name[1:]}Result")
    known = {parameter.replace("_", "") for parameter in inspect.signature(result.__init__).parameters}
    assert {key.lower() for key in engine.invoke(token, **ARGUMENTS[token])} <= known


def test_hardware_is_that_of_the_type(engine: Any) -> None:
    found = engine.invoke("aws:ec2/getInstanceType:getInstanceType", instanceType="g4dn.xlarge")
    assert (found["defaultVcpus"], found["memorySize"], found["supportedArchitectures"]) == (4, 16384, ["x86_64"])
    assert [(gpu["count"], gpu["name"]) for gpu in found["gpuses"]] == [(1, "T4")]


def test_the_network_is_the_accounts(engine: Any, aws: Any) -> None:
    (vpc,) = engine.invoke("aws:ec2/getVpcs:getVpcs", filters=[{"name": "is-default", "values": ["true"]}])["ids"]
    assert vpc == aws("ec2").describe_vpcs()["Vpcs"][0]["VpcId"]
    subnets = engine.invoke("aws:ec2/getSubnets:getSubnets", filters=[{"name": "vpc-id", "values": [vpc]}])
    assert subnets["ids"] == sorted(subnet["SubnetId"] for subnet in aws("ec2").describe_subnets()["Subnets"])
    subnet = engine.invoke("aws:ec2/getSubnet:getSubnet", id=subnets["ids"][0])
    assert subnet["vpcId"] == vpc


def test_what_does_not_exist_is_a_sentence(engine: Any) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        engine.invoke("aws:ec2/getSubnet:getSubnet", cidrBlock="192.0.2.0/24")
    assert said(refused) == "no matching EC2 Subnet found"
    with pytest.raises(grpc.RpcError) as refused:
        engine.invoke("aws:ec2/getInstanceType:getInstanceType", instanceType="c5a.huge")
    assert said(refused).startswith("DescribeInstanceTypes: InvalidInstanceType")


def test_an_argument_that_is_not_served_is_refused_by_its_name(engine: Any) -> None:
    reply = engine.stub.Invoke(pb.InvokeRequest(tok="aws:ec2/getVpcs:getVpcs", args=to_struct({"colour": "red"})))
    assert [failure.property for failure in reply.failures] == ["colour"]
    with pytest.raises(grpc.RpcError) as refused:
        engine.invoke("aws:ec2/getAmi:getAmi")
    assert "does not serve aws:ec2/getAmi:getAmi" in said(refused)

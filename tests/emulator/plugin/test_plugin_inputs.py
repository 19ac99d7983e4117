"""Every input that is served, changed: in the account as boto3 sees it, and then a refresh without changes.

An input that is not in the table fails `test_the_table_has_every_input`.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jmespath  # type: ignore[import-untyped]  # it has no stubs
import pytest
from pulumi.runtime.proto import provider_pb2 as pb

from emulator.plugin.resources import TYPES
from emulator.plugin.schema import Fields

Values = dict[str, Any]

REPLACED = "replaced"  # another value takes another resource
REMEMBERED = "remembered"  # AWS never tells it; its effect has a test of its own
ONE_VALUE = "one value"  # AWS, or the stand-in, has no other value to change to


@dataclass(frozen=True)
class Change:
    """A change of an input that is made in place.

    Attributes:
        value: The new value.
        where: JMESPath of it in what boto3 describes.
        seen: What is there afterwards; None means the value itself.
        along: Other inputs that must change with it.
        stays: Whether the account cannot go back to having none.
    """

    value: Any
    where: str
    seen: Any = None
    along: Values | None = None
    stays: bool = False


def trust(service: str) -> str:
    allow = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [allow]})


def policy(action: str) -> str:
    statement = {"Effect": "Allow", "Action": [action], "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def expiry(days: int) -> str:
    selection = {"tagStatus": "untagged", "countType": "sinceImagePushed", "countUnit": "days", "countNumber": days}
    return json.dumps({"rules": [{"rulePriority": 1, "selection": selection, "action": {"type": "expire"}}]})


TAGGED = [{"Key": "team", "Value": "rl"}]
RULE = {"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": ["10.0.0.0/8"], "description": "ssh"}
READ_ONLY = "arn:aws:iam::aws:policy/ReadOnlyAccess"


BASES: dict[str, Callable[[Any], Values]] = {
    "Role": lambda _: {"assumeRolePolicy": trust("ec2.amazonaws.com")},
    "RolePolicyAttachment": lambda world: {"role": world.shared("role").state["name"], "policyArn": READ_ONLY},
    "RolePolicy": lambda world: {"role": world.shared("role").state["name"], "policy": policy("s3:GetObject")},
    "Policy": lambda _: {"policy": policy("s3:GetObject"), "description": "old"},
    "InstanceProfile": lambda world: {"role": world.shared("role").state["name"]},
    "SecurityGroup": lambda world: {"ingress": [RULE], "egress": [RULE], "vpcId": world.vpc()},
    "LaunchTemplate": lambda _: {
        "blockDeviceMappings": [
            {"deviceName": "/dev/xvda", "ebs": {"volumeSize": 30, "volumeType": "gp3", "snapshotId": "snap-1"}}
        ],
        "metadataOptions": {"httpTokens": "optional"},
        "tagSpecifications": [{"resourceType": "instance", "tags": {"a": "1"}}],
    },
    "ComputeEnvironment": lambda world: world.environment_program(),
    "JobQueue": lambda world: {
        "name": "queue",
        "computeEnvironmentOrders": [{"computeEnvironment": world.shared("environment"), "order": 1}],
        "jobStateTimeLimitActions": [
            {
                "action": "CANCEL",
                "maxTimeSeconds": 600,
                "reason": "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
                "state": "RUNNABLE",
            }
        ],
        "priority": 1,
        "schedulingPolicyArn": world.shared("scheduling_policy"),
        "state": "ENABLED",
    },
    "SchedulingPolicy": lambda _: {
        "fairSharePolicy": {"shareDistributions": [{"shareIdentifier": "ann", "weightFactor": 0.5}]}
    },
    "LogGroup": lambda _: {},
    "Table": lambda _: {
        "attributes": [{"name": "pk", "type": "S"}],
        "billingMode": "PAY_PER_REQUEST",
        "hashKey": "pk",
        "pointInTimeRecovery": {"enabled": False},
    },
    "Secret": lambda _: {},
    "Bucket": lambda _: {"tags": {"a": "1"}},
    "BucketPublicAccessBlock": lambda world: {"bucket": world.shared("bucket")},
    "BucketServerSideEncryptionConfiguration": lambda world: {
        "bucket": world.shared("bucket"),
        "rules": [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}],
    },
    "BucketLifecycleConfiguration": lambda world: {
        "bucket": world.shared("bucket"),
        "rules": [
            {
                "id": "old",
                "status": "Enabled",
                "filter": {"prefix": "logs/"},
                "abortIncompleteMultipartUpload": {"daysAfterInitiation": 7},
                "transitions": [{"days": 60, "storageClass": "STANDARD_IA"}],
            }
        ],
    },
    "BucketPolicy": lambda world: {"bucket": world.shared("bucket"), "policy": policy("s3:GetObject")},
    "Repository": lambda _: {},
    "LifecyclePolicy": lambda world: {"repository": world.shared("repository"), "policy": expiry(30)},
}

Entry = str | Change | Callable[[Any], Change]


def rules(direction: str, where: str) -> dict[str, Entry]:
    """Return the changes of a security group's rules in one direction."""
    cidrs = ["10.0.0.0/16", "10.1.0.0/16"]
    return {
        f"{direction}.cidrBlocks": Change(cidrs[::-1], f"sort({where}.IpRanges[].CidrIp)", cidrs),
        f"{direction}.description": Change("shell", f"{where}.IpRanges[0].Description"),
        f"{direction}.fromPort": Change(20, f"{where}.FromPort"),
        f"{direction}.protocol": Change("udp", f"{where}.IpProtocol"),
        f"{direction}.securityGroups": lambda world: Change([world.group()], f"{where}.UserIdGroupPairs[].GroupId"),
        f"{direction}.self": Change(True, f"length({where}.UserIdGroupPairs)", 1),
        f"{direction}.toPort": Change(23, f"{where}.ToPort"),
    }


NAMED: dict[str, Any] = {"name": REPLACED, "namePrefix": REPLACED}
BATCH_TAGS = Change({"team": "rl"}, "tags")
TABLE: dict[str, dict[str, Entry]] = {
    "aws:iam/role:Role": {
        **NAMED,
        "assumeRolePolicy": Change(
            trust("batch.amazonaws.com"), "AssumeRolePolicyDocument", json.loads(trust("batch.amazonaws.com"))
        ),
        "description": Change("hosts", "Description"),
        "forceDetachPolicies": REMEMBERED,
        "maxSessionDuration": Change(7200, "MaxSessionDuration"),
        "path": REPLACED,
        "permissionsBoundary": Change(READ_ONLY, "PermissionsBoundary.PermissionsBoundaryArn"),
        "tags": Change({"team": "rl"}, "Tags", TAGGED),
    },
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": {"policyArn": REPLACED, "role": REPLACED},
    "aws:iam/rolePolicy:RolePolicy": {
        **NAMED,
        "policy": Change(policy("s3:PutObject"), "PolicyDocument.Statement[0].Action", ["s3:PutObject"]),
        "role": REPLACED,
    },
    "aws:iam/policy:Policy": {
        **NAMED,
        "description": REPLACED,
        "path": REPLACED,
        "policy": Change(policy("s3:PutObject"), "Document.Statement[0].Action", ["s3:PutObject"]),
        "tags": Change({"team": "rl"}, "Tags", TAGGED),
    },
    "aws:iam/instanceProfile:InstanceProfile": {
        **NAMED,
        "path": REPLACED,
        "role": lambda world: Change(world.role().state["name"], "Roles[0].RoleName"),
        "tags": Change({"team": "rl"}, "Tags", TAGGED),
    },
    "aws:ec2/securityGroup:SecurityGroup": {
        **NAMED,
        **rules("ingress", "IpPermissions[0]"),
        **rules("egress", "IpPermissionsEgress[0]"),
        "description": REPLACED,
        "revokeRulesOnDelete": REMEMBERED,
        "tags": Change({"team": "rl"}, "Tags", TAGGED),
        "vpcId": REPLACED,
    },
    "aws:ec2/launchTemplate:LaunchTemplate": {
        **NAMED,
        **{
            f"blockDeviceMappings.ebs.{name}": Change(
                value, f"LaunchTemplateData.BlockDeviceMappings[0].Ebs.{name[0].upper()}{name[1:]}", seen
            )
            for name, value, seen in (
                ("deleteOnTermination", "true", True),
                ("encrypted", "true", True),
                ("iops", 3000, None),
                ("kmsKeyId", "alias/key", None),
                ("snapshotId", "snap-2", None),
                ("throughput", 250, None),
                ("volumeSize", 50, None),
                ("volumeType", "gp2", None),
            )
        },
        "blockDeviceMappings.deviceName": Change("/dev/xvdb", "LaunchTemplateData.BlockDeviceMappings[0].DeviceName"),
        "blockDeviceMappings.noDevice": Change("true", "LaunchTemplateData.BlockDeviceMappings[0].NoDevice"),
        "blockDeviceMappings.virtualName": Change(
            "ephemeral0", "LaunchTemplateData.BlockDeviceMappings[0].VirtualName"
        ),
        "defaultVersion": ONE_VALUE,  # there is but one version; test_plugin_resources.py makes two
        "description": Change("second", "VersionDescription"),
        **{
            f"metadataOptions.{name}": Change(value, f"LaunchTemplateData.MetadataOptions.{name[0].upper()}{name[1:]}")
            for name, value in (
                ("httpEndpoint", "disabled"),
                ("httpProtocolIpv6", "enabled"),
                ("httpPutResponseHopLimit", 2),
                ("httpTokens", "required"),
                ("instanceMetadataTags", "enabled"),
            )
        },
        "tagSpecifications.resourceType": Change("volume", "LaunchTemplateData.TagSpecifications[0].ResourceType"),
        "tagSpecifications.tags": Change({"team": "rl"}, "LaunchTemplateData.TagSpecifications[0].Tags", TAGGED),
        "tags": Change({"team": "rl"}, "Tags", TAGGED),
        "updateDefaultVersion": REMEMBERED,
        "userData": Change("IyEvYmluL3NoCg==", "LaunchTemplateData.UserData"),
    },
    "aws:batch/computeEnvironment:ComputeEnvironment": {
        **NAMED,
        "computeResources.allocationStrategy": Change(
            "SPOT_PRICE_CAPACITY_OPTIMIZED", "computeResources.allocationStrategy"
        ),
        "computeResources.bidPercentage": Change(80, "computeResources.bidPercentage"),
        "computeResources.desiredVcpus": Change(4, "computeResources.desiredvCpus"),
        "computeResources.ec2Configurations.imageIdOverride": Change(
            "ami-1", "computeResources.ec2Configuration[0].imageIdOverride"
        ),
        "computeResources.ec2Configurations.imageType": Change(
            "ECS_AL2023_NVIDIA", "computeResources.ec2Configuration[0].imageType"
        ),
        "computeResources.ec2KeyPair": Change("key", "computeResources.ec2KeyPair"),
        "computeResources.imageId": Change("ami-1", "computeResources.imageId"),
        "computeResources.instanceRole": lambda world: Change(world.profile(), "computeResources.instanceRole"),
        "computeResources.instanceTypes": Change(["c5a.xlarge", "c5a.2xlarge"], "computeResources.instanceTypes"),
        "computeResources.launchTemplate.launchTemplateId": lambda world: Change(
            world.template().id, "computeResources.launchTemplate.launchTemplateId"
        ),
        "computeResources.launchTemplate.launchTemplateName": lambda world: Change(
            world.template().state["name"],
            "computeResources.launchTemplate.launchTemplateName",
            along={"computeResources.launchTemplate.launchTemplateId": None},
        ),
        "computeResources.launchTemplate.version": Change("$Latest", "computeResources.launchTemplate.version"),
        "computeResources.maxVcpus": Change(32, "computeResources.maxvCpus"),
        "computeResources.minVcpus": Change(2, "computeResources.minvCpus", along={"computeResources.desiredVcpus": 2}),
        "computeResources.placementGroup": REPLACED,
        "computeResources.securityGroupIds": lambda world: Change([world.group()], "computeResources.securityGroupIds"),
        "computeResources.spotIamFleetRole": REPLACED,
        "computeResources.subnets": lambda world: Change(
            world.subnets()[3:1:-1], "sort(computeResources.subnets)", sorted(world.subnets()[2:4])
        ),
        "computeResources.tags": Change({"team": "rl"}, "computeResources.tags"),
        "computeResources.type": Change(
            "EC2",
            "computeResources.type",
            along={
                "computeResources.allocationStrategy": "BEST_FIT_PROGRESSIVE",
            },
        ),
        "serviceRole": ONE_VALUE,  # AWS refuses to change it; see test_plugin_resources.py
        "state": Change("DISABLED", "state"),
        "tags": BATCH_TAGS,
        "type": REPLACED,
        "updatePolicy.jobExecutionTimeoutMinutes": Change(360, "updatePolicy.jobExecutionTimeoutMinutes"),
        "updatePolicy.terminateJobsOnUpdate": Change(True, "updatePolicy.terminateJobsOnUpdate"),
    },
    "aws:batch/jobQueue:JobQueue": {
        "computeEnvironmentOrders.computeEnvironment": lambda world: Change(
            world.environment(), "computeEnvironmentOrder[0].computeEnvironment"
        ),
        "computeEnvironmentOrders.order": ONE_VALUE,  # the emulated Batch numbers them itself, from 1
        "jobStateTimeLimitActions.action": ONE_VALUE,
        "jobStateTimeLimitActions.maxTimeSeconds": Change(900, "jobStateTimeLimitActions[0].maxTimeSeconds"),
        "jobStateTimeLimitActions.reason": Change(
            "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY", "jobStateTimeLimitActions[0].reason"
        ),
        "jobStateTimeLimitActions.state": ONE_VALUE,
        "name": REPLACED,
        "priority": Change(5, "priority"),
        "schedulingPolicyArn": lambda world: Change(world.scheduling_policy(), "schedulingPolicyArn"),
        "state": Change("DISABLED", "state"),
        "tags": BATCH_TAGS,
    },
    "aws:batch/schedulingPolicy:SchedulingPolicy": {
        "fairSharePolicy.computeReservation": Change(10, "fairsharePolicy.computeReservation"),
        "fairSharePolicy.shareDecaySeconds": Change(3600, "fairsharePolicy.shareDecaySeconds"),
        "fairSharePolicy.shareDistributions.shareIdentifier": Change(
            "bob", "fairsharePolicy.shareDistribution[0].shareIdentifier"
        ),
        "fairSharePolicy.shareDistributions.weightFactor": Change(
            0.25, "fairsharePolicy.shareDistribution[0].weightFactor"
        ),
        "name": REPLACED,
        "tags": BATCH_TAGS,
    },
    "aws:cloudwatch/logGroup:LogGroup": {
        **NAMED,
        "retentionInDays": Change(30, "retentionInDays"),
        "skipDestroy": REMEMBERED,
        "tags": BATCH_TAGS,
    },
    "aws:dynamodb/table:Table": {
        "attributes.name": ONE_VALUE,  # only a key or an index may use another one, and a key is the table's for good
        "attributes.type": ONE_VALUE,  # the same
        "billingMode": ONE_VALUE,
        "deletionProtectionEnabled": Change(True, "DeletionProtectionEnabled"),
        "hashKey": REPLACED,
        "name": REPLACED,
        "pointInTimeRecovery.enabled": Change(
            True, "ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus", "ENABLED"
        ),
        "rangeKey": REPLACED,
        "tags": Change({"team": "rl"}, "Tags", TAGGED),
        "ttl.attributeName": Change("until", "TimeToLiveDescription.AttributeName", along={"ttl.enabled": True}),
        "ttl.enabled": Change(
            True, "TimeToLiveDescription.TimeToLiveStatus", "ENABLED", along={"ttl.attributeName": "until"}
        ),
    },
    "aws:secretsmanager/secret:Secret": {
        **NAMED,
        "description": Change("keys", "Description", stays=True),  # moto cannot take one away
        "forceOverwriteReplicaSecret": REMEMBERED,
        "recoveryWindowInDays": REMEMBERED,
        "tags": Change({"team": "rl"}, "Tags", TAGGED),
    },
    "aws:s3/bucket:Bucket": {
        "bucket": REPLACED,
        "forceDestroy": REMEMBERED,
        "tags": Change({"team": "rl"}, "TagSet", TAGGED),
    },
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": {
        "bucket": REPLACED,
        **{
            name: Change(True, f"PublicAccessBlockConfiguration.{name[0].upper()}{name[1:]}")
            for name in ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
        },
    },
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": {
        "bucket": REPLACED,
        "rules.applyServerSideEncryptionByDefault.sseAlgorithm": Change(
            "aws:kms", "Rules[0].ApplyServerSideEncryptionByDefault.SSEAlgorithm"
        ),
    },
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": {
        "bucket": REPLACED,
        "rules.abortIncompleteMultipartUpload.daysAfterInitiation": Change(
            9, "Rules[0].AbortIncompleteMultipartUpload.DaysAfterInitiation"
        ),
        "rules.filter.prefix": Change("runs/", "Rules[0].Filter.Prefix"),
        "rules.id": Change("unread", "Rules[0].ID"),
        "rules.status": Change("Disabled", "Rules[0].Status"),
        "rules.transitions.days": Change(90, "Rules[0].Transitions[0].Days"),
        "rules.transitions.storageClass": Change("INTELLIGENT_TIERING", "Rules[0].Transitions[0].StorageClass"),
    },
    "aws:s3/bucketPolicy:BucketPolicy": {
        "bucket": REPLACED,
        "policy": Change(policy("s3:PutObject"), "Policy"),
    },
    "aws:ecr/repository:Repository": {
        "forceDelete": REMEMBERED,
        "imageScanningConfiguration.scanOnPush": Change(True, "imageScanningConfiguration.scanOnPush", stays=True),
        "imageTagMutability": Change("IMMUTABLE", "imageTagMutability"),
        "name": REPLACED,
        "tags": Change({"team": "rl"}, "tags", TAGGED),
    },
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": {
        "policy": REPLACED,
        "repository": REPLACED,
    },
}
OTHER_VALUES: Values = {
    "bucket": "other-bucket",
    "policy": expiry(60),
    "hashKey": "other",
    "type": "UNMANAGED",
}


def leaves(fields: Fields, path: str = "") -> Iterator[str]:
    """Yield the dotted path of every input that is not a block."""
    for name, field in fields.items():
        if field.fields:
            yield from leaves(field.fields, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def changed(program: Values, path: str, value: Any) -> Values:
    """Return a program with another value somewhere, in the first block where there are several; None removes it."""
    name, _, rest = path.partition(".")
    result = dict(program)
    if not rest:
        result[name] = value
        return {key: item for key, item in result.items() if item is not None}
    block = result.get(name, {})
    result[name] = (
        [changed(block[0], rest, value), *block[1:]] if isinstance(block, list) else changed(block, rest, value)
    )
    return result


def parameters(*, in_place: bool) -> list[Any]:
    return [
        pytest.param(type_name, path, id=f"{type_name.rpartition(':')[2]}.{path}")
        for type_name, inputs in TABLE.items()
        for path, change in inputs.items()
        if (change == REPLACED if not in_place else not isinstance(change, str))
    ]


def test_the_table_has_every_input() -> None:
    assert {name: set(inputs) for name, inputs in TABLE.items()} == {
        kind.type_name: set(leaves(kind.inputs)) for kind in TYPES
    }


@pytest.mark.parametrize(("type_name", "path"), parameters(in_place=True))
def test_a_change_reaches_the_account_and_then_nothing_differs(world: Any, type_name: str, path: str) -> None:
    engine, entry = world.engine, TABLE[type_name][path]
    change = entry(world) if callable(entry) else entry
    assert isinstance(change, Change)
    base = BASES[type_name.rpartition(":")[2]](world)
    resource = engine.create(type_name, "it", base)
    nothing_differs(engine, resource, base)
    before = jmespath.search(change.where, world.describe(type_name, resource.id))

    program = changed(base, path, change.value)
    for other, value in (change.along or {}).items():
        program = changed(program, other, value)
    reply = engine.diff(resource, program)
    assert (reply.changes, list(reply.replaces)) == (pb.DiffResponse.DIFF_SOME, [])
    engine.update(resource, program)
    expected = change.value if change.seen is None else change.seen
    assert jmespath.search(change.where, world.describe(type_name, resource.id)) == expected
    nothing_differs(engine, resource, program)

    if not change.stays and engine.diff(resource, base).changes == pb.DiffResponse.DIFF_SOME:
        engine.update(resource, base)
        assert (jmespath.search(change.where, world.describe(type_name, resource.id)) or None) == (before or None)
        nothing_differs(engine, resource, base)


def nothing_differs(engine: Any, resource: Any, program: Values) -> None:
    """Assert that a refresh finds the state as it is, and that the program then asks for nothing."""
    assert engine.read(resource) == (resource.inputs, resource.state)
    assert engine.diff(resource, program).changes == pb.DiffResponse.DIFF_NONE


@pytest.mark.parametrize(("type_name", "path"), parameters(in_place=False))
def test_another_value_takes_another_resource(world: Any, type_name: str, path: str) -> None:
    base = BASES[type_name.rpartition(":")[2]](world)
    resource = world.engine.create(type_name, "it", base)
    program = changed(base, path, OTHER_VALUES.get(path, "other"))
    reply = world.engine.diff(resource, program)
    assert path.partition(".")[0] in reply.replaces
    kinds = {pb.PropertyDiff.ADD_REPLACE, pb.PropertyDiff.UPDATE_REPLACE, pb.PropertyDiff.DELETE_REPLACE}
    assert {difference.kind for difference in reply.detailedDiff.values()} & kinds

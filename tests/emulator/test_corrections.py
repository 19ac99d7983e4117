"""The rest of the account, where this project depends on it: served by moto, and corrected where moto is lax."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.instance_types import InstanceType
from emulator.server import EmulatorServer

Aws = Callable[..., Any]


def refusal(call: Callable[..., Any], **request: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**request)
    error = caught.value.response["Error"]
    return f"{error['Code']}: {error['Message']}"


def test_a_retention_that_aws_does_not_know_is_refused(aws: Aws) -> None:
    logs = aws("logs")
    logs.create_log_group(logGroupName="g")
    logs.put_retention_policy(logGroupName="g", retentionInDays=30)
    assert "InvalidParameterException" in refusal(logs.put_retention_policy, logGroupName="g", retentionInDays=31)
    assert logs.describe_log_groups()["logGroups"][0]["retentionInDays"] == 30


def test_a_missing_log_stream_is_told_from_a_missing_group(aws: Aws) -> None:
    logs = aws("logs")
    logs.create_log_group(logGroupName="g")
    for group, words in (("g", "The specified log stream does not exist."), ("h", "log group does not exist")):
        assert words in refusal(logs.get_log_events, logGroupName=group, logStreamName="s")
    logs.create_log_stream(logGroupName="g", logStreamName="there")
    missing = refusal(logs.filter_log_events, logGroupName="g", logStreamNames=["there", "s"])
    assert "The specified log stream does not exist." in missing
    assert logs.filter_log_events(logGroupName="g", logStreamNames=["there"])["events"] == []


def test_events_that_a_job_writes_are_read_once_and_reading_ends(server: EmulatorServer, aws: Aws) -> None:
    logs = aws("logs")
    logs.create_log_group(logGroupName="g")
    with pytest.raises(LookupError, match="log group does not exist"):
        server.account.put_log_events("h", "s", [(1, "a")])
    server.account.put_log_events("g", "s", [(number, str(number)) for number in range(5)])
    read, tokens = [], [""]
    while len(tokens) < 3 or tokens[-1] != tokens[-2]:
        after = {"nextToken": tokens[-1]} if tokens[-1] else {}
        page = logs.get_log_events(logGroupName="g", logStreamName="s", startFromHead=True, limit=2, **after)
        read += [event["message"] for event in page["events"]]
        tokens.append(page["nextForwardToken"])
    assert read == ["0", "1", "2", "3", "4"]


def test_a_launch_template_that_does_not_exist_is_an_error(aws: Aws) -> None:
    ec2 = aws("ec2")
    template = ec2.create_launch_template(LaunchTemplateName="abc", LaunchTemplateData={"UserData": "aGk="})
    found = template["LaunchTemplate"]["LaunchTemplateId"]
    assert len(ec2.describe_launch_templates(LaunchTemplateIds=[found])["LaunchTemplates"]) == 1
    message = refusal(ec2.describe_launch_templates, LaunchTemplateIds=[found, "lt-0123456789abcdef0"])
    assert message.startswith("InvalidLaunchTemplateId.NotFound")
    assert "lt-0123456789abcdef0" in message


def test_a_trust_policy_is_checked_when_a_role_is_made(aws: Aws, role: Callable[[str, str], str]) -> None:
    for document in ("{}", "no json", json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow"}]})):
        message = refusal(aws("iam").create_role, RoleName="bad", AssumeRolePolicyDocument=document)
        assert message.startswith("MalformedPolicyDocument")
    role("good", "batch")


def test_the_policies_that_aws_manages_can_be_attached(aws: Aws, role: Callable[[str, str], str]) -> None:
    role("instance", "ec2")
    arn = "arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role"
    aws("iam").attach_role_policy(RoleName="instance", PolicyArn=arn)
    assert "DeleteConflict" in refusal(aws("iam").delete_role, RoleName="instance")


def test_a_secret_has_versions_by_label_and_at_most_twenty_labels(server: EmulatorServer, aws: Aws) -> None:
    secrets = aws("secretsmanager")
    arn = secrets.create_secret(Name="keys")["ARN"]
    for number in range(19):
        secrets.put_secret_value(
            SecretId=arn,
            SecretString=json.dumps({"KEY": str(number)}),
            ClientRequestToken=f"{number:032}",
            VersionStages=[f"key-{number}"],
        )
    # The first version has AWSCURRENT too, so these are twenty.
    again = {"SecretId": arn, "SecretString": '{"KEY": "5"}', "ClientRequestToken": f"{5:032}"}
    secrets.put_secret_value(**again, VersionStages=["key-5"])
    message = refusal(
        secrets.put_secret_value,
        SecretId=arn,
        SecretString="{}",
        ClientRequestToken="x" * 32,
        VersionStages=["one-more"],
    )
    assert message.startswith("LimitExceededException")
    assert server.account.secret_value(arn, "KEY", "key-7") == "7"
    for key, label, words in (("OTHER", "key-7", "json key OTHER"), ("KEY", "key-99", "ResourceNotFoundException")):
        with pytest.raises(LookupError, match=words):
            server.account.secret_value(arn, key, label)


def test_a_name_is_free_again_only_after_a_deletion_without_recovery_window(aws: Aws) -> None:
    secrets = aws("secretsmanager")
    for name in ("keys", "other"):
        secrets.create_secret(Name=name)
    secrets.delete_secret(SecretId="keys", ForceDeleteWithoutRecovery=True)
    secrets.create_secret(Name="keys")
    secrets.delete_secret(SecretId="other", RecoveryWindowInDays=7)
    assert "already scheduled for deletion" in refusal(secrets.create_secret, Name="other")


def test_the_caller_is_an_iam_user(aws: Aws) -> None:
    identity = aws("sts").get_caller_identity()
    assert (identity["Account"], identity["Arn"]) == ("123456789012", "arn:aws:iam::123456789012:user/emulator")


def test_the_network_of_a_new_account_and_the_zones_of_a_type(aws: Aws) -> None:
    ec2 = aws("ec2")
    vpc = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"][0]["VpcId"]
    filters = [{"Name": "vpc-id", "Values": [vpc]}, {"Name": "default-for-az", "Values": ["true"]}]
    zones = {subnet["AvailabilityZone"] for subnet in ec2.describe_subnets(Filters=filters)["Subnets"]}
    assert zones == {f"us-east-1{letter}" for letter in "abcdef"}
    offered = ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["g4dn.xlarge"]}]
    )["InstanceTypeOfferings"]
    assert {offer["Location"] for offer in offered} == zones - {"us-east-1e"}


def test_the_hardware_of_the_types_is_that_of_ec2(server: EmulatorServer) -> None:
    for kind in (
        InstanceType("g4dn.4xlarge", 16, 65_536, 1, "T4", "x86_64"),
        InstanceType("g4dn.xlarge", 4, 16_384, 1, "T4", "x86_64"),
        InstanceType("r5ad.large", 2, 16_384, 0, None, "x86_64"),
        InstanceType("c5a.large", 2, 4_096, 0, None, "x86_64"),
        InstanceType("c6g.medium", 1, 2_048, 0, None, "arm64"),
        InstanceType("m6gd.medium", 1, 4_096, 0, None, "arm64"),
    ):
        assert server.account.instance_type(kind.name) == kind
    assert server.account.instance_type("c5a.lagre") is None


def test_a_bucket_that_refuses_plain_http_can_be_used(aws: Aws) -> None:
    """The account itself is served by plain HTTP, which stands for AWS's TLS."""
    s3 = aws("s3")
    s3.create_bucket(Bucket="artifacts")
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::artifacts", "arn:aws:s3:::artifacts/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    s3.put_bucket_policy(Bucket="artifacts", Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    s3.put_object(Bucket="artifacts", Key="k", Body=b"v")
    assert s3.get_object(Bucket="artifacts", Key="k")["Body"].read() == b"v"


def test_a_transaction_is_made_once_for_its_token(server: EmulatorServer, aws: Aws) -> None:
    """boto3 sends it again when the reply is lost; by then what it has made may have been changed or deleted."""
    table = aws("dynamodb")
    table.create_table(
        TableName="t",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
    )
    put = {"TableName": "t", "Item": {"k": {"S": "a"}}, "ConditionExpression": "attribute_not_exists(k)"}
    request: dict[str, Any] = {"TransactItems": [{"Put": put}], "ClientRequestToken": "token"}
    table.transact_write_items(**request)
    table.transact_write_items(**request)
    table.delete_item(TableName="t", Key={"k": {"S": "a"}})
    table.transact_write_items(**request)
    assert table.scan(TableName="t")["Items"] == []
    other = {**request, "TransactItems": [{"Put": {**put, "Item": {"k": {"S": "b"}}}}]}
    assert refusal(table.transact_write_items, **other).startswith("IdempotentParameterMismatchException")
    server.control.advance(601)
    table.transact_write_items(**other)
    assert table.scan(TableName="t")["Items"] == [{"k": {"S": "b"}}]

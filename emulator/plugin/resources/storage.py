"""Where things are kept: log groups, DynamoDB tables, Secrets Manager secrets."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from emulator.plugin.aws import Aws, tag_list, tag_map
from emulator.plugin.resource import TAGS, ResourceType, present
from emulator.plugin.schema import Fields, Input, Values


class LogGroup(ResourceType):
    """A CloudWatch Logs group; its id is its name."""

    type_name = "aws:cloudwatch/logGroup:LogGroup"
    source = "internal/service/logs/group.go at 0073593e7d6993ba482409f4dc35438daaa79bb3"
    inputs: ClassVar[Fields] = {
        "name": Input(force_new=True, computed=True),
        "namePrefix": Input(force_new=True, computed=True, remembered=True),
        "retentionInDays": Input(default=0),
        "skipDestroy": Input(default=False, remembered=True),
        "tags": TAGS,
    }
    outputs = ("arn", "region", "tagsAll")
    name_length = 512
    gone = frozenset({"ResourceNotFoundException"})

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        tags = {"tags": inputs["tags"]} if inputs.get("tags") else {}
        aws.client("logs").create_log_group(logGroupName=inputs["name"], **tags)
        return str(inputs["name"])

    @override
    def settle(self, aws: Aws, resource_id: str, inputs: Values) -> None:
        if days := inputs["retentionInDays"]:
            aws.client("logs").put_retention_policy(logGroupName=resource_id, retentionInDays=days)

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        logs = aws.client("logs")
        pages = logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=resource_id)
        found = [group for page in pages for group in page["logGroups"] if group["logGroupName"] == resource_id]
        if not found:
            return None
        arn = found[0]["arn"].removesuffix(":*")
        return {
            "arn": arn,
            "name": found[0]["logGroupName"],
            "retentionInDays": found[0].get("retentionInDays"),
            "tags": tag_map(logs.list_tags_for_resource(resourceArn=arn)["tags"]),
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        if "retentionInDays" not in changed:
            return
        if new["retentionInDays"]:
            self.settle(aws, resource_id, new)
        else:
            aws.client("logs").delete_retention_policy(logGroupName=resource_id)

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        if remove:
            aws.client("logs").untag_resource(resourceArn=state["arn"], tagKeys=remove)
        if add:
            aws.client("logs").tag_resource(resourceArn=state["arn"], tags=dict(add))

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        if not state.get("skipDestroy"):
            aws.client("logs").delete_log_group(logGroupName=resource_id)


class Table(ResourceType):
    """A DynamoDB table that is paid for by request; its id is its name."""

    type_name = "aws:dynamodb/table:Table"
    source = "internal/service/dynamodb/table.go at 01335dd3cd3dff10ace08b5250b7302d4dbb0e04"
    inputs: ClassVar[Fields] = {
        "attributes": Input(
            computed=True,
            unordered=True,
            fields={"name": Input(required=True), "type": Input(required=True)},
        ),
        "billingMode": Input(required=True, choices=("PAY_PER_REQUEST",)),
        "deletionProtectionEnabled": Input(),
        "hashKey": Input(required=True, force_new=True),
        "name": Input(force_new=True, computed=True),
        "pointInTimeRecovery": Input(computed=True, fields={"enabled": Input(required=True)}),
        "rangeKey": Input(force_new=True),
        "tags": TAGS,
        "ttl": Input(computed=True, fields={"attributeName": Input(), "enabled": Input(default=False)}),
    }
    outputs = ("arn", "region", "streamArn", "streamLabel", "tagsAll")
    gone = frozenset({"ResourceNotFoundException"})

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        keys = [{"AttributeName": inputs["hashKey"], "KeyType": "HASH"}]
        if range_key := inputs.get("rangeKey"):
            keys.append({"AttributeName": range_key, "KeyType": "RANGE"})
        aws.client("dynamodb").create_table(
            TableName=inputs["name"],
            AttributeDefinitions=self._attributes(inputs),
            BillingMode=inputs["billingMode"],
            KeySchema=keys,
            Tags=tag_list(inputs.get("tags")),
            **present(inputs, deletionProtectionEnabled="DeletionProtectionEnabled"),
        )
        return str(inputs["name"])

    @staticmethod
    def _attributes(inputs: Values) -> list[dict[str, str]]:
        return [{"AttributeName": item["name"], "AttributeType": item["type"]} for item in inputs.get("attributes", ())]

    @override
    def settle(self, aws: Aws, resource_id: str, inputs: Values) -> None:
        self._active(aws, resource_id)
        self._set_recovery(aws, resource_id, inputs)
        if (inputs.get("ttl") or {}).get("enabled"):
            self._set_ttl(aws, resource_id, inputs["ttl"])

    def _active(self, aws: Aws, resource_id: str) -> None:
        def probe() -> bool:
            table = aws.client("dynamodb").describe_table(TableName=resource_id)["Table"]
            return bool(table["TableStatus"] == "ACTIVE")

        aws.wait(f"table {resource_id} is active", probe)

    @staticmethod
    def _set_recovery(aws: Aws, resource_id: str, inputs: Values) -> None:
        if recovery := inputs.get("pointInTimeRecovery"):
            aws.client("dynamodb").update_continuous_backups(
                TableName=resource_id,
                PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": recovery["enabled"]},
            )

    @staticmethod
    def _set_ttl(aws: Aws, resource_id: str, ttl: Values) -> None:
        specification = {"AttributeName": ttl["attributeName"], "Enabled": ttl["enabled"]}
        aws.client("dynamodb").update_time_to_live(TableName=resource_id, TimeToLiveSpecification=specification)

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        dynamodb = aws.client("dynamodb")
        table = dynamodb.describe_table(TableName=resource_id)["Table"]
        keys = {key["KeyType"]: key["AttributeName"] for key in table["KeySchema"]}
        backups = dynamodb.describe_continuous_backups(TableName=resource_id)["ContinuousBackupsDescription"]
        recovery = backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus")
        ttl = dynamodb.describe_time_to_live(TableName=resource_id)["TimeToLiveDescription"]
        return {
            "arn": table["TableArn"],
            "attributes": [
                {"name": item["AttributeName"], "type": item["AttributeType"]} for item in table["AttributeDefinitions"]
            ],
            "billingMode": table.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED"),
            "deletionProtectionEnabled": table.get("DeletionProtectionEnabled"),
            "hashKey": keys["HASH"],
            "name": table["TableName"],
            "pointInTimeRecovery": {"enabled": recovery == "ENABLED"},
            "rangeKey": keys.get("RANGE"),
            "tags": tag_map(dynamodb.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]),
            "ttl": {"attributeName": ttl.get("AttributeName"), "enabled": ttl["TimeToLiveStatus"] == "ENABLED"},
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        request: dict[str, Any] = {}
        if "attributes" in changed:
            request["AttributeDefinitions"] = self._attributes(new)
        if "deletionProtectionEnabled" in changed:
            request["DeletionProtectionEnabled"] = bool(new.get("deletionProtectionEnabled"))
        if request:
            aws.client("dynamodb").update_table(TableName=resource_id, **request)
            self._active(aws, resource_id)
        if "pointInTimeRecovery" in changed:
            self._set_recovery(aws, resource_id, new)
        if "ttl" in changed:
            before, after = old.get("ttl") or {}, new["ttl"]
            if before.get("enabled") and before["attributeName"] != after.get("attributeName"):
                self._set_ttl(aws, resource_id, {**before, "enabled": False})
            if after.get("enabled") or before.get("enabled"):
                self._set_ttl(aws, resource_id, {"attributeName": before.get("attributeName"), **after})

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        if remove:
            aws.client("dynamodb").untag_resource(ResourceArn=state["arn"], TagKeys=remove)
        if add:
            aws.client("dynamodb").tag_resource(ResourceArn=state["arn"], Tags=tag_list(add))

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        aws.client("dynamodb").delete_table(TableName=resource_id)
        aws.wait(f"table {resource_id} is deleted", lambda: not self._exists(aws, resource_id))

    def _exists(self, aws: Aws, resource_id: str) -> bool:
        try:
            aws.client("dynamodb").describe_table(TableName=resource_id)
        except aws.client("dynamodb").exceptions.ResourceNotFoundException:
            return False
        return True


class Secret(ResourceType):
    """A Secrets Manager secret, without its values; its id is its ARN."""

    type_name = "aws:secretsmanager/secret:Secret"
    source = "internal/service/secretsmanager/secret.go at 00c21cedec069dd27093b175baf15bac6d4b30fe"
    inputs: ClassVar[Fields] = {
        "description": Input(),
        "forceOverwriteReplicaSecret": Input(default=False, remembered=True),
        "name": Input(force_new=True, computed=True),
        "namePrefix": Input(force_new=True, computed=True, remembered=True),
        "recoveryWindowInDays": Input(default=30, remembered=True),
        "tags": TAGS,
    }
    outputs = ("arn", "region", "tagsAll")
    name_length = 512
    gone = frozenset({"ResourceNotFoundException"})

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        answer = aws.client("secretsmanager").create_secret(
            Name=inputs["name"],
            ClientRequestToken=str(uuid.uuid4()),
            Tags=tag_list(inputs.get("tags")),
            **present(inputs, description="Description"),
        )
        return str(answer["ARN"])

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        secret = aws.client("secretsmanager").describe_secret(SecretId=resource_id)
        if secret.get("DeletedDate"):
            return None
        return {
            "arn": secret["ARN"],
            "description": secret.get("Description"),
            "name": secret["Name"],
            "tags": tag_map(secret.get("Tags")),
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        if "description" in changed:
            description = new.get("description", "")
            aws.client("secretsmanager").update_secret(SecretId=resource_id, Description=description)

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        if remove:
            aws.client("secretsmanager").untag_resource(SecretId=resource_id, TagKeys=remove)
        if add:
            aws.client("secretsmanager").tag_resource(SecretId=resource_id, Tags=tag_list(add))

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        days = state["recoveryWindowInDays"]
        how = {"RecoveryWindowInDays": days} if days else {"ForceDeleteWithoutRecovery": True}
        aws.client("secretsmanager").delete_secret(SecretId=resource_id, **how)

"""Batch job queues and scheduling policies."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from emulator.plugin.aws import Aws, PluginError, renamed, tag_map
from emulator.plugin.resource import TAGS, ResourceType, present
from emulator.plugin.schema import Fields, Input, Values


def retag_batch(aws: Aws, arn: str, add: Mapping[str, str], remove: Sequence[str]) -> None:
    """Change the tags of anything in Batch."""
    if remove:
        aws.client("batch").untag_resource(resourceArn=arn, tagKeys=remove)
    if add:
        aws.client("batch").tag_resource(resourceArn=arn, tags=dict(add))


class JobQueue(ResourceType):
    """A job queue; its id is its ARN. Requests wait until it has settled, and a deletion disables it first."""

    type_name = "aws:batch/jobQueue:JobQueue"
    source = "internal/service/batch/job_queue.go at 00b843af140d4dd0ea33ddd5752ece7b68406bcc"
    inputs: ClassVar[Fields] = {
        "computeEnvironmentOrders": Input(
            fields={"computeEnvironment": Input(required=True), "order": Input(required=True)}
        ),
        "jobStateTimeLimitActions": Input(
            fields={
                "action": Input(required=True),
                "maxTimeSeconds": Input(required=True),
                "reason": Input(required=True),
                "state": Input(required=True),
            }
        ),
        "name": Input(force_new=True, computed=True),
        "priority": Input(required=True),
        "schedulingPolicyArn": Input(),
        "state": Input(required=True),
        "tags": TAGS,
    }
    outputs = ("arn", "region", "tagsAll")
    name_length = 128

    @staticmethod
    def _parameters(inputs: Values, names: Collection[str]) -> dict[str, Any]:
        values = {
            "computeEnvironmentOrder": inputs.get("computeEnvironmentOrders") or [],
            "jobStateTimeLimitActions": inputs.get("jobStateTimeLimitActions") or [],
            "priority": inputs["priority"],
            "state": inputs["state"],
            "schedulingPolicyArn": inputs.get("schedulingPolicyArn"),
        }
        wanted = {"computeEnvironmentOrder" if name == "computeEnvironmentOrders" else name for name in names}
        return {name: value for name, value in values.items() if name in wanted and value is not None}

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        answer = aws.client("batch").create_job_queue(
            jobQueueName=inputs["name"], **self._parameters(inputs, inputs.keys()), **present(inputs, tags="tags")
        )
        return str(answer["jobQueueArn"])

    @override
    def settle(self, aws: Aws, resource_id: str, inputs: Values) -> None:
        self._settled(aws, resource_id)

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        found = self._describe(aws, resource_id)
        if found is None:
            return None
        return {
            "arn": found["jobQueueArn"],
            "computeEnvironmentOrders": found["computeEnvironmentOrder"],
            "jobStateTimeLimitActions": found.get("jobStateTimeLimitActions"),
            "name": found["jobQueueName"],
            "priority": found["priority"],
            "schedulingPolicyArn": found.get("schedulingPolicyArn"),
            "state": found["state"],
            "tags": tag_map(found.get("tags")),
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        if old.get("schedulingPolicyArn") and not new.get("schedulingPolicyArn"):
            raise PluginError(f"{resource_id}: AWS cannot remove the scheduling policy of a queue, only exchange it")
        if changed:
            aws.client("batch").update_job_queue(jobQueue=resource_id, **self._parameters(new, changed))
        self._settled(aws, resource_id)

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        retag_batch(aws, resource_id, add, remove)

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        if self._describe(aws, resource_id) is None:
            return
        aws.client("batch").update_job_queue(jobQueue=resource_id, state="DISABLED")
        self._settled(aws, resource_id)
        aws.client("batch").delete_job_queue(jobQueue=resource_id)
        aws.wait(f"job queue {resource_id} is deleted", lambda: self._describe(aws, resource_id) is None)

    @staticmethod
    def _describe(aws: Aws, resource_id: str) -> Any:
        found = aws.client("batch").describe_job_queues(jobQueues=[resource_id])["jobQueues"]
        return found[0] if found and found[0]["status"] != "DELETED" else None

    def _settled(self, aws: Aws, resource_id: str) -> None:
        def probe() -> bool:
            found = self._describe(aws, resource_id)
            if found is None or found["status"] == "INVALID":
                reason = (found or {}).get("statusReason", "it is not there any more")
                raise PluginError(f"job queue {resource_id} is not valid: {reason}")
            return bool(found["status"] == "VALID")

        aws.wait(f"job queue {resource_id} is valid", probe)


# Pulumi's names of a fair-share policy that differ from Batch's.
_BATCH_NAMES: Final = {"shareDistributions": "shareDistribution"}
_PULUMI_NAMES: Final = {"shareDistribution": "shareDistributions"}


class SchedulingPolicy(ResourceType):
    """A fair-share scheduling policy; its id is its ARN."""

    type_name = "aws:batch/schedulingPolicy:SchedulingPolicy"
    source = "internal/service/batch/scheduling_policy.go at 050ac11163cab8cdae5936a7f40b0e528ff780df"
    inputs: ClassVar[Fields] = {
        "fairSharePolicy": Input(
            fields={
                "computeReservation": Input(),
                "shareDecaySeconds": Input(),
                "shareDistributions": Input(
                    unordered=True, fields={"shareIdentifier": Input(required=True), "weightFactor": Input()}
                ),
            }
        ),
        "name": Input(force_new=True, computed=True),
        "tags": TAGS,
    }
    outputs = ("arn", "region", "tagsAll")
    name_length = 128

    @staticmethod
    def _parameters(inputs: Values) -> dict[str, Any]:
        policy = inputs.get("fairSharePolicy")
        return {"fairsharePolicy": renamed(policy, _BATCH_NAMES)} if policy else {}

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        answer = aws.client("batch").create_scheduling_policy(
            name=inputs["name"], **self._parameters(inputs), **present(inputs, tags="tags")
        )
        return str(answer["arn"])

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        found = aws.client("batch").describe_scheduling_policies(arns=[resource_id])["schedulingPolicies"]
        if not found:
            return None
        return {
            "arn": found[0]["arn"],
            "fairSharePolicy": renamed(found[0].get("fairsharePolicy") or {}, _PULUMI_NAMES),
            "name": found[0]["name"],
            "tags": tag_map(found[0].get("tags")),
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        aws.client("batch").update_scheduling_policy(arn=resource_id, **self._parameters(new))

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        retag_batch(aws, resource_id, add, remove)

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        if self.read(aws, resource_id) is not None:
            aws.client("batch").delete_scheduling_policy(arn=resource_id)

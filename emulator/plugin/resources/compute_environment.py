"""Batch compute environments."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from emulator.plugin.aws import Aws, PluginError, renamed, tag_map
from emulator.plugin.resource import TAGS, ResourceType, present
from emulator.plugin.resources.batch import retag_batch
from emulator.plugin.schema import UNKNOWN, Difference, Fields, Input, Values, pruned, same

# Pulumi's names that differ from Batch's.
_BATCH_NAMES: Final = {
    "desiredVcpus": "desiredvCpus",
    "ec2Configurations": "ec2Configuration",
    "maxVcpus": "maxvCpus",
    "minVcpus": "minvCpus",
}
_PULUMI_NAMES: Final = {batch: pulumi for pulumi, batch in _BATCH_NAMES.items()}
_RESOURCES: Final[Fields] = {
    "allocationStrategy": Input(),
    "bidPercentage": Input(),
    "desiredVcpus": Input(computed=True),
    "ec2Configurations": Input(
        computed=True,
        force_new=True,
        fields={"imageIdOverride": Input(computed=True), "imageType": Input()},
    ),
    "ec2KeyPair": Input(),
    "imageId": Input(),
    "instanceRole": Input(),
    "instanceTypes": Input(unordered=True),
    "launchTemplate": Input(
        force_new=True,
        fields={"launchTemplateId": Input(), "launchTemplateName": Input(), "version": Input(computed=True)},
    ),
    "maxVcpus": Input(required=True),
    "minVcpus": Input(),
    "placementGroup": Input(force_new=True),
    "securityGroupIds": Input(unordered=True),
    "spotIamFleetRole": Input(force_new=True),
    "subnets": Input(required=True, unordered=True),
    "tags": Input(),
    "type": Input(required=True),
}
# What CustomizeDiff marks as ForceNew where the environment cannot be updated in place; `type` is not among it.
_INFRASTRUCTURE: Final = frozenset(
    {
        "allocationStrategy",
        "bidPercentage",
        "ec2Configurations",
        "ec2KeyPair",
        "imageId",
        "instanceRole",
        "instanceTypes",
        "launchTemplate",
        "securityGroupIds",
        "subnets",
        "tags",
    }
)
_UPDATABLE_STRATEGIES: Final = frozenset(
    {"BEST_FIT_PROGRESSIVE", "SPOT_CAPACITY_OPTIMIZED", "SPOT_PRICE_CAPACITY_OPTIMIZED"}
)
_LINKED_ROLE: Final = re.compile(r"arn:[^:]+:iam::\d{12}:role/aws-service-role/batch\.amazonaws\.com/")


def _is_updatable(inputs: Values) -> bool:
    """Return whether AWS can change these inputs' instances in place, as the provider's isUpdatable... decide it.

    That takes the service-linked role, which an absent role means, and one of three allocation strategies.
    """
    role = inputs.get("serviceRole", "")
    strategy = (inputs.get("computeResources") or {}).get("allocationStrategy")
    return (role in ("", UNKNOWN) or bool(_LINKED_ROLE.match(role))) and strategy in _UPDATABLE_STRATEGIES


class ComputeEnvironment(ResourceType):
    """A compute environment; requests wait until it has settled, and a deletion disables it first."""

    type_name = "aws:batch/computeEnvironment:ComputeEnvironment"
    source = "internal/service/batch/compute_environment.go at 01606926a0c0ab9174aec440f976a48b0baee722"
    inputs: ClassVar[Fields] = {
        "computeResources": Input(computed=True, fields=_RESOURCES),
        "name": Input(force_new=True, computed=True),
        "namePrefix": Input(force_new=True, computed=True, remembered=True),
        "serviceRole": Input(computed=True),
        "state": Input(default="ENABLED"),
        "tags": TAGS,
        "type": Input(required=True, force_new=True),
        "updatePolicy": Input(
            computed=True,
            fields={
                "jobExecutionTimeoutMinutes": Input(default=30),
                "terminateJobsOnUpdate": Input(default=False),
            },
        ),
    }
    # resourceComputeEnvironmentUpdate sends nothing, and waits for nothing, if nothing but tags has changed.
    looks_again = False
    outputs = ("arn", "ecsClusterArn", "region", "status", "statusReason", "tagsAll")
    name_length = 128

    @override
    def replaces(self, difference: Difference, old: Values, new: Values) -> bool:
        if difference.force_new:
            return True
        infrastructure = difference.names[0] == "computeResources" and set(difference.names[1:2]) <= _INFRASTRUCTURE
        return infrastructure and not (_is_updatable(old) and _is_updatable(new))

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        resources = inputs.get("computeResources")
        aws.client("batch").create_compute_environment(
            computeEnvironmentName=inputs["name"],
            type=inputs["type"],
            state=inputs["state"],
            **({"computeResources": _as_created(resources)} if resources else {}),
            **present(inputs, serviceRole="serviceRole", tags="tags"),
        )
        return str(inputs["name"])

    @override
    def settle(self, aws: Aws, resource_id: str, inputs: Values) -> None:
        self._settled(aws, resource_id)
        if policy := inputs.get("updatePolicy"):  # CreateComputeEnvironment does not take it
            aws.client("batch").update_compute_environment(computeEnvironment=resource_id, updatePolicy=policy)
            self._settled(aws, resource_id)

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        found = self._describe(aws, resource_id)
        if found is None:
            return None
        resources = found.get("computeResources")
        return {
            "arn": found["computeEnvironmentArn"],
            "computeResources": renamed(resources, _PULUMI_NAMES) if resources else None,
            "ecsClusterArn": found.get("ecsClusterArn"),
            "name": found["computeEnvironmentName"],
            "serviceRole": found.get("serviceRole"),
            "state": found["state"],
            "status": found["status"],
            "statusReason": found.get("statusReason"),
            "tags": tag_map(found.get("tags")),
            "type": found["type"],
            "updatePolicy": found.get("updatePolicy"),
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        request: dict[str, Any] = {
            name: new[name] for name in ("serviceRole", "state", "updatePolicy") if name in changed
        }
        if new["type"] == "MANAGED":
            before, after = old.get("computeResources") or {}, new["computeResources"]
            resources = {
                name: after[name] for name in after if not same(_RESOURCES[name], after[name], before.get(name))
            }
            # AWS wants at least one attribute here; what the program took out goes back to what AWS does without it.
            resources |= {"maxVcpus": after["maxVcpus"]}
            resources |= {
                name: _unset(name)
                for name in before.keys() - after.keys()
                if not _RESOURCES[name].computed and not _RESOURCES[name].force_new
            }
            request["computeResources"] = renamed(resources, _BATCH_NAMES)
        aws.client("batch").update_compute_environment(computeEnvironment=resource_id, **request)
        self._settled(aws, resource_id)

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        retag_batch(aws, state["arn"], add, remove)

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        if self._describe(aws, resource_id) is None:
            return
        batch = aws.client("batch")
        batch.update_compute_environment(computeEnvironment=resource_id, state="DISABLED")
        aws.wait(
            f"compute environment {resource_id} is disabled",
            lambda: (found := self._describe(aws, resource_id)) is None or found["status"] != "UPDATING",
        )
        batch.delete_compute_environment(computeEnvironment=resource_id)
        aws.wait(f"compute environment {resource_id} is deleted", lambda: self._describe(aws, resource_id) is None)

    @staticmethod
    def _describe(aws: Aws, resource_id: str) -> Any:
        answer = aws.client("batch").describe_compute_environments(computeEnvironments=[resource_id])
        found = answer["computeEnvironments"]
        return found[0] if found and found[0]["status"] != "DELETED" else None

    def _settled(self, aws: Aws, resource_id: str) -> None:
        def probe() -> bool:
            found = self._describe(aws, resource_id)
            if found is None or found["status"] == "INVALID":
                reason = (found or {}).get("statusReason", "it is not there any more")
                raise PluginError(f"compute environment {resource_id} is not valid: {reason}")
            return bool(found["status"] == "VALID")

        aws.wait(f"compute environment {resource_id} is valid", probe)


def _as_created(resources: Values) -> Values:
    """Return compute resources as Batch takes them: nothing that is empty, and always the fewest vCPUs."""
    return renamed({"minVcpus": 0, **(pruned(Input(fields=_RESOURCES), resources) or {})}, _BATCH_NAMES)


def _unset(name: str) -> Any:
    """Return what the provider sends for an attribute that was taken out."""
    if name in ("bidPercentage", "minVcpus"):
        return 0
    return {} if name == "tags" else [] if name in ("instanceTypes", "securityGroupIds") else ""

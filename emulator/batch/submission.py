"""From a SubmitJob request and its job definition to what is run: AWS's refusals, then its way of merging.

Sources: SubmitJob, ContainerOverrides, JobDependency, AWS Batch API reference; "AWS Batch service quotas",
"Parameters" in "Job definition parameters", Batch user guide.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from emulator.batch.definition_rules import check_retry_strategy, check_timeout, checked_resources
from emulator.batch.model import ArrayJob, Spec
from emulator.batch.placement import Need
from emulator.batch.refusals import MOST_TAGS, check_name, check_supported, check_tags, check_within, refused
from emulator.batch.state import JobDefinition, JobQueue, State
from emulator.batch.store import JobStore

_LARGEST_OVERRIDES = 8192
_OVERRIDES_TOO_LONG = f"Container Overrides length must be at most {_LARGEST_OVERRIDES}"
_MOST_DEPENDENCIES = 20
_SHARE = re.compile(r"[A-Za-z0-9]{1,255}")
_PLACEHOLDER = re.compile(r"Ref::([A-Za-z0-9_.-]+)")
_UNSUPPORTED = (
    "nodeOverrides",
    "eksPropertiesOverride",
    "ecsPropertiesOverride",
    "consumableResourcePropertiesOverride",
)


def read_submission(request: Mapping[str, Any], state: State, store: JobStore) -> tuple[Spec, int | None]:
    """Check a SubmitJob request and merge it with its definition; returns the job, and the size if it is an array.

    Raises:
        ApiError: AWS refuses such a request.
    """
    check_supported(request, _UNSUPPORTED)
    check_name("jobName", request["jobName"])
    queue = _queue(state, request["jobQueue"])
    definition = _definition(state, request["jobDefinition"])
    check_tags(request.get("tags", {}))
    check_retry_strategy(request.get("retryStrategy"))
    check_timeout(request.get("timeout"))
    check_within("schedulingPriorityOverride", request.get("schedulingPriorityOverride"), 0, 9999)
    _check_share(queue, request.get("shareIdentifier"))
    overrides = request.get("containerOverrides", {})
    _check_overrides(overrides)
    size = request.get("arrayProperties", {}).get("size")
    check_within("Array size", size, 2, 10_000)
    _check_dependencies(request.get("dependsOn", []), size, store)
    return _merged(request, overrides, queue, definition), size


def _queue(state: State, name_or_arn: str) -> JobQueue:
    queue = state.queue(name_or_arn)
    if queue is None:
        raise refused(f"JobQueue {name_or_arn} does not exist")
    if queue.state != "ENABLED":
        raise refused(f"JobQueue {queue.name} is not in ENABLED state")
    if queue.status not in ("VALID", "UPDATING"):
        raise refused(f"JobQueue {queue.name} is not in VALID state")
    return queue


def _definition(state: State, reference: str) -> JobDefinition:
    """Find a definition by name, name:revision or ARN; without a revision the latest active one is meant."""
    name, _, revision = reference.rpartition("/")[2].partition(":")
    revisions = state.definitions.get(name, {})
    for number in sorted(revisions, reverse=True):
        found = revisions[number]
        known = {found.name, f"{name}:{number}", found.arn, found.arn.removesuffix(f":{number}")}
        if reference in known and found.status == "ACTIVE" and revision in ("", str(number)):
            return found
    raise refused(f"JobDefinition {reference} does not exist or is not ACTIVE")


def _check_share(queue: JobQueue, share: str | None) -> None:
    if queue.scheduling_policy_arn is None:
        if share is not None:
            raise refused(f"shareIdentifier can't be specified for job queue {queue.name} without a scheduling policy")
    elif share is None:
        raise refused(f"shareIdentifier must be specified for job queue {queue.name} with a scheduling policy")
    elif not _SHARE.fullmatch(share.removesuffix("*")):
        raise refused("shareIdentifier must have 1 to 255 letters and digits")


def _check_overrides(overrides: Mapping[str, Any]) -> None:
    if "" in overrides.get("command", []):
        raise refused("Container overrides command may not contain an empty string")
    checked_resources(overrides.get("resourceRequirements", []))
    check_within("containerOverrides vcpus", overrides.get("vcpus"), 1, 1_000_000)
    check_within("containerOverrides memory", overrides.get("memory"), 4, 100_000_000)
    for variable in overrides.get("environment", []):
        if not variable.get("name"):
            raise refused("An environment variable needs a name")
        if variable["name"].startswith("AWS_BATCH"):
            raise refused(f"Environment variable {variable['name']}: names that start with AWS_BATCH are reserved")


def _check_dependencies(dependencies: list[dict[str, str]], size: int | None, store: JobStore) -> None:
    if len(dependencies) > _MOST_DEPENDENCIES:
        raise refused(f"A job can depend on at most {_MOST_DEPENDENCIES} jobs")
    for dependency in dependencies:
        kind, job_id = dependency.get("type"), dependency.get("jobId")
        if kind is not None and size is None:
            raise refused(f"A dependency of type {kind} is for array jobs only")
        if kind == "SEQUENTIAL":
            if job_id is not None:
                raise refused("A dependency of type SEQUENTIAL has no jobId")
            continue
        job = store.get(job_id or "")
        if job is None:
            raise refused(f"Job {job_id} to depend on does not exist")
        if kind == "N_TO_N" and not (isinstance(job, ArrayJob) and job.size == size):
            raise refused(f"Job {job_id} is not an array of {size} jobs, as a dependency of type N_TO_N needs")


def _merged(
    request: Mapping[str, Any], overrides: Mapping[str, Any], queue: JobQueue, definition: JobDefinition
) -> Spec:
    registered = definition.registered
    parameters = {**registered.get("parameters", {}), **request.get("parameters", {})}
    container, need = _container(registered["containerProperties"], overrides, parameters)
    timeout = request.get("timeout") or registered.get("timeout") or {}
    tags = dict(request.get("tags", {}))
    propagate_tags = request.get("propagateTags", registered.get("propagateTags", False))
    refusal = ""
    if len(json.dumps(overrides, separators=(",", ":"))) > _LARGEST_OVERRIDES:
        refusal = _OVERRIDES_TOO_LONG
    elif propagate_tags and len(definition.tags | tags) > MOST_TAGS:
        refusal = f"The number of tags of job and job definition must not exceed {MOST_TAGS}"
    return Spec(
        name=request["jobName"],
        queue=queue.name,
        queue_arn=queue.arn,
        definition_arn=definition.arn,
        definition_name=definition.name,
        container=container,
        need=need,
        retry_strategy={
            "attempts": 1,
            "evaluateOnExit": [],
            **(request.get("retryStrategy") or registered.get("retryStrategy") or {}),
        },
        timeout_seconds=timeout.get("attemptDurationSeconds"),
        parameters=parameters,
        depends_on=tuple(request.get("dependsOn", ())),
        share=request.get("shareIdentifier"),
        scheduling_priority=request.get("schedulingPriorityOverride", registered.get("schedulingPriority")),
        tags=tags,
        propagate_tags=propagate_tags,
        refusal=refusal,
    )


def _container(
    defined: Mapping[str, Any], overrides: Mapping[str, Any], parameters: Mapping[str, str]
) -> tuple[dict[str, Any], Need]:
    """Merge the container's properties: variables and resources by name, the command as a whole."""
    container = dict(defined)
    variables = {item["name"]: item for item in [*defined["environment"], *overrides.get("environment", [])]}
    container["environment"] = list(variables.values())
    container["command"] = [
        _PLACEHOLDER.sub(lambda found: parameters.get(found[1], found[0]), word) if parameters else word
        for word in overrides.get("command", defined["command"])
    ]
    resources = checked_resources(defined["resourceRequirements"])
    resources |= checked_resources(overrides.get("resourceRequirements", []))
    container["resourceRequirements"] = [{"type": kind, "value": str(value)} for kind, value in resources.items()]
    # The deprecated members: an override counts only where the definition itself has the member.
    for member in {"vcpus", "memory"} & defined.keys() & overrides.keys():
        container[member] = overrides[member]
    need = Need(
        vcpus=resources.get("VCPU", container.get("vcpus", 1)),
        memory_mib=resources.get("MEMORY", container.get("memory", 0)),
        gpus=resources.get("GPU", 0),
    )
    return container, need

"""What Batch demands of a job definition.

Sources: RegisterJobDefinition, ContainerProperties, RetryStrategy, EvaluateOnExit, JobTimeout and ResourceRequirement,
AWS Batch API reference; "AWS Batch service quotas", AWS Batch user guide. The checks of the retry strategy, timeout and
resources are SubmitJob's too.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from emulator.batch.refusals import check_supported, check_within, refused

_LARGEST_DEFINITION = 24 * 1024
_SMALLEST_TIMEOUT_SECONDS = 60
_SMALLEST_MEMORY_MIB = 4
_MOST_RULES = 5
_PATTERNS = {
    "onStatusReason": re.compile(r"[0-9a-zA-Z.:\s]*\*?"),
    "onReason": re.compile(r"[0-9a-zA-Z.:\s]*\*?"),
    "onExitCode": re.compile(r"[0-9]*\*?"),
}
_UNSUPPORTED = ("nodeProperties", "eksProperties", "ecsProperties", "consumableResourceProperties")


def check_definition(request: Mapping[str, Any]) -> None:
    """Refuse a request to register a definition, with AWS's reason."""
    check_supported(request, _UNSUPPORTED)
    if request["type"] != "container":
        check_supported({request["type"]: None}, (request["type"],))
    if request.get("platformCapabilities", ["EC2"]) != ["EC2"]:
        check_supported({"platformCapabilities": None}, ("platformCapabilities",))
    if len(json.dumps(request, separators=(",", ":"))) > _LARGEST_DEFINITION:
        raise refused(f"Job definition size must not exceed {_LARGEST_DEFINITION // 1024} KiB")
    check_within("schedulingPriority", request.get("schedulingPriority"), 0, 9999)
    container = request.get("containerProperties")
    if container is None:
        raise refused("containerProperties must be provided for a job definition of type container")
    _check_container(container)
    check_retry_strategy(request.get("retryStrategy"))
    check_timeout(request.get("timeout"))


def _check_container(container: Mapping[str, Any]) -> None:
    if not container.get("image"):
        raise refused("Container image is not provided.")
    if len(container["image"]) > 255:
        raise refused("Container image must have at most 255 characters")
    resources = checked_resources(container.get("resourceRequirements", []))
    if "VCPU" not in resources and container.get("vcpus") is None:
        raise refused("vCPU is not provided.")
    if "MEMORY" not in resources and container.get("memory") is None:
        raise refused("Memory is not provided.")
    if container.get("vcpus", 1) < 1:
        raise refused("vCPU must be at least 1")
    if container.get("memory", _SMALLEST_MEMORY_MIB) < _SMALLEST_MEMORY_MIB:
        raise refused(f"Memory must be at least {_SMALLEST_MEMORY_MIB} MiB")
    if container.get("secrets") and not container.get("executionRoleArn"):
        raise refused("executionRoleArn is required when secrets are specified")
    if "" in container.get("command", []):
        raise refused("Container command may not contain an empty string")


def checked_resources(requirements: list[dict[str, Any]]) -> dict[str, int]:
    """Return the vCPUs, MiB and GPUs that `resourceRequirements` ask for, by type, or refuse them."""
    found: dict[str, int] = {}
    for requirement in requirements:
        kind, value = requirement["type"], requirement["value"]
        if kind in found:
            raise refused(f"Resource requirement {kind} is provided more than once")
        if not value.isdecimal():
            raise refused(
                f"Value {value} for type {kind} in resourceRequirement is not valid. Please provide a numeric value."
            )
        found[kind] = int(value)
        least = _SMALLEST_MEMORY_MIB if kind == "MEMORY" else 1
        if found[kind] < least:
            raise refused(f"Value {value} for type {kind} in resourceRequirement must be at least {least}")
    return found


def check_retry_strategy(strategy: Mapping[str, Any] | None) -> None:
    """Refuse a retry strategy that Batch does not take; None is one that was not sent."""
    if strategy is None:
        return
    if strategy.get("attempts") is None:
        raise refused("RetryAttempts must be provided with retry strategy")
    check_within("attempts", strategy["attempts"], 1, 10)
    rules = strategy.get("evaluateOnExit", [])
    if len(rules) > _MOST_RULES:
        raise refused(f"evaluateOnExit can have at most {_MOST_RULES} conditions")
    for rule in rules:
        patterns = {name: rule[name] for name in _PATTERNS if name in rule}
        if not patterns:
            raise refused("evaluateOnExit needs at least one of onStatusReason, onReason and onExitCode")
        for name, pattern in patterns.items():
            if not 1 <= len(pattern) <= 512 or not _PATTERNS[name].fullmatch(pattern):
                raise refused(f"{name} {pattern!r} is not a valid pattern; an asterisk can only be at its end")


def check_timeout(timeout: Mapping[str, Any] | None) -> None:
    """Refuse a timeout below a minute; None is one that was not sent."""
    if timeout is not None and timeout.get("attemptDurationSeconds", 0) < _SMALLEST_TIMEOUT_SECONDS:
        raise refused(f"Timeout attemptDurationSeconds must be at least {_SMALLEST_TIMEOUT_SECONDS} seconds")

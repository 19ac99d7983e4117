"""The requests to AWS Batch, made of what was asked for and of the stack's contract; nothing is sent from here."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from infra.outputs import StackOutputs, definition_prefix
from submitter.errors import UsageError
from submitter.names import digest, safe_name
from submitter.numbers import NumberSet
from submitter.sweep import Row, Runs
from submitter.template import Template
from submitter.wrapper import wrapper_argv

# Source of the limits: AWS Batch user guide, "Service quotas", and API reference, SubmitJob and ArrayProperties.
MAX_ARRAY: Final = 10_000
MAX_OVERRIDES: Final = 8_192 - 1_024
"""Characters of containerOverrides as JSON. A job fails beyond 8,192; how AWS counts is not documented."""
MAX_PAYLOAD: Final = 30 * 1_024
MAX_DEFINITION: Final = 24 * 1_024
MIN_TIMEOUT_SECONDS: Final = 60
MAX_TIMEOUT_SECONDS: Final = 2**31 - 1
MAX_ATTEMPTS: Final = 10


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """What every job of a submission gets.

    Attributes:
        image: The container image.
        vcpus: vCPUs of a run.
        memory_mib: Memory of a run in MiB, a hard limit.
        gpus: GPUs of a run.
        timeout_seconds: An attempt that runs longer is ended.
        attempts: How often a run is started at most, 1 to 10.
        retry_on_error: Whether a run whose program failed is started again, as a lost one is.
        environment: Plain variables for the program; never secrets.
        secrets: Variables that AWS fills in: their names, and where Secrets Manager has the values.
        tags: Tags of the jobs.
        share: The share identifier, on a queue that has fair shares and asks for one.
    """

    image: str
    vcpus: int
    memory_mib: int
    gpus: int
    timeout_seconds: int
    attempts: int
    retry_on_error: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    share: str | None = None


@dataclass(frozen=True)
class PlannedArray:
    """The runs of one SubmitJob and the container command that they share."""

    runs: Runs
    command: list[str]


def timeout_seconds(hours: float) -> int:
    """Return a time limit in seconds.

    Raises:
        UsageError: Less than the minute that AWS Batch asks for, or not a length of time.
    """
    if not math.isfinite(hours) or hours * 3600 > MAX_TIMEOUT_SECONDS:
        raise UsageError(f"{hours:g} hours are no time limit.", f"Give at most {MAX_TIMEOUT_SECONDS // 3600} hours.")
    if (seconds := round(hours * 3600)) < MIN_TIMEOUT_SECONDS:
        raise UsageError(
            f"A time limit of {hours:g} hours is less than the {MIN_TIMEOUT_SECONDS} seconds that AWS Batch asks for.",
            "Give at least 0.017 hours.",
        )
    return seconds


def default_attempts(purchase: str) -> int:
    """Return how often a run is started at most: more often on Spot, where hosts are taken away."""
    return 6 if purchase == "spot" else 2


def check_attempts(attempts: int) -> int:
    """Return the number of attempts.

    Raises:
        UsageError: Not 1 to 10, the limits of AWS Batch.
    """
    if not 1 <= attempts <= MAX_ATTEMPTS:
        raise UsageError(f"A run cannot have {attempts} attempts.", f"Give 1 to {MAX_ATTEMPTS}.")
    return attempts


def retry_strategy(attempts: int, *, retry_on_error: bool) -> dict[str, Any]:
    """Return which ends of an attempt are followed by another one.

    A lost host and a start that failed are; an image that cannot be pulled is not, although its start failed too,
    because it would fail again. The rules are tried in order (AWS Batch user guide, "Automated job retries").
    """
    return {
        "attempts": attempts,
        "evaluateOnExit": [
            {"onStatusReason": "Host EC2*", "action": "RETRY"},
            {"onReason": "CannotPullContainerError*", "action": "EXIT"},
            {"onReason": "AGENT*", "action": "RETRY"},
            {"onStatusReason": "Task failed to start*", "action": "RETRY"},
            {"onReason": "*", "action": "RETRY" if retry_on_error else "EXIT"},
        ],
    }


def job_definition(spec: JobSpec, contract: StackOutputs) -> dict[str, Any]:
    """Return the arguments of RegisterJobDefinition.

    The definition holds what sweeps share; command, variables and tags of one sweep go with SubmitJob. Its name has a
    hash of its content, so that equal ones are registered once and a changed one never takes another's place.

    Raises:
        UsageError: It is larger than AWS Batch takes.
    """
    resources = {"VCPU": spec.vcpus, "MEMORY": spec.memory_mib, "GPU": spec.gpus}
    content: dict[str, Any] = {
        "type": "container",
        "platformCapabilities": ["EC2"],
        "propagateTags": True,
        "retryStrategy": retry_strategy(spec.attempts, retry_on_error=spec.retry_on_error),
        "timeout": {"attemptDurationSeconds": spec.timeout_seconds},
        "containerProperties": {
            "image": spec.image,
            "jobRoleArn": contract.job_role_arn,
            "executionRoleArn": contract.execution_role_arn,
            "resourceRequirements": [{"type": kind, "value": str(value)} for kind, value in resources.items() if value],
            "secrets": [{"name": name, "valueFrom": spec.secrets[name]} for name in sorted(spec.secrets)],
            # Half of the memory, as Linux has it: Docker's 64 MiB are too little for data loaders. It counts as used
            # only when it is.
            "linuxParameters": {"sharedMemorySize": max(1, spec.memory_mib // 2)},
            # In the mode that ECS has by default, lines that come faster than they are sent are dropped.
            "logConfiguration": {
                "logDriver": "awslogs",
                "options": {
                    "awslogs-group": contract.log_group,
                    "awslogs-region": contract.region,
                    "mode": "blocking",
                },
            },
        },
    }
    image = spec.image.rpartition("/")[2].partition("@")[0]
    mark = digest(json.dumps(content, sort_keys=True), length=12)
    prefix = definition_prefix(contract.execution_role_arn)
    request = {"jobDefinitionName": f"{prefix}{safe_name(image, 48)}-{mark}", **content}
    if (size := len(json.dumps(request))) > MAX_DEFINITION:
        raise UsageError(f"The job definition has {size:,} characters, and AWS Batch takes {MAX_DEFINITION:,}.")
    return request


def arrays(template: Template, nonce: str, runs: Runs, spec: JobSpec) -> list[PlannedArray]:
    """Return the runs in few arrays that hold them: in their order, or if that takes fewer, row by row.

    In their order, whole seeds come first, and each array of a long table of rows would hold its rows for one seed.

    Raises:
        UsageError: The command of a single run is longer than AWS Batch takes, or a value cannot be quoted.
    """
    planned = list(_arrays(template, nonce, runs, None, spec))
    if len(planned) > math.ceil(len(runs) / MAX_ARRAY) and (by_row := _by_row(runs)) != list(runs.numbers):
        planned = min(planned, list(_arrays(template, nonce, runs, by_row, spec)), key=len)
    return planned


def submit_request(spec: JobSpec, array: PlannedArray, *, name: str, queue: str, definition: str) -> dict[str, Any]:
    """Return the arguments of SubmitJob: for one run a plain job, for more an array.

    Args:
        spec: What every job gets.
        array: The runs and their command.
        name: Name of the job.
        queue: Name of the job queue.
        definition: The job definition, as name:revision.

    Raises:
        UsageError: The request is larger than AWS Batch takes.
    """
    request: dict[str, Any] = {
        "jobName": name,
        "jobQueue": queue,
        "jobDefinition": definition,
        "containerOverrides": _overrides(array.command, spec),
        "propagateTags": True,
    }
    if len(array.runs) > 1:
        request["arrayProperties"] = {"size": len(array.runs)}
    if spec.tags:
        request["tags"] = dict(spec.tags)
    if spec.share:
        request["shareIdentifier"] = spec.share
    if (size := len(json.dumps(request))) > MAX_PAYLOAD:
        raise UsageError(
            f"The request has {size:,} characters, and AWS Batch takes {MAX_PAYLOAD:,}.", "Use fewer or shorter tags."
        )
    return request


def _overrides(command: list[str], spec: JobSpec) -> dict[str, Any]:
    overrides: dict[str, Any] = {"command": command}
    if spec.environment:
        overrides["environment"] = [{"name": name, "value": value} for name, value in spec.environment.items()]
    return overrides


def _by_row(runs: Runs) -> list[int]:
    """Return the runs' numbers, those of each row together."""
    rows: dict[Row, list[int]] = {}
    for number, row, _ in runs:
        rows.setdefault(row, []).append(number)
    return list(chain.from_iterable(rows.values()))


def _arrays(
    template: Template, nonce: str, runs: Runs, order: list[int] | None, spec: JobSpec
) -> Iterator[PlannedArray]:
    """Yield arrays that hold the runs, in their own order or in another order of their numbers."""
    done, count = 0, MAX_ARRAY
    while done < len(runs):
        # More runs never make a shorter command, so the largest array that fits is found by halving. The last one's
        # length is a good guess at the next one's.
        fits, too_many = 0, min(MAX_ARRAY, len(runs) - done) + 1
        guess = min(count + count // 8, too_many - 1)
        found: PlannedArray | None = None
        while too_many - fits > 1:
            here = slice(done, done + guess)
            part = runs[here] if order is None else Runs(runs.table, NumberSet(order[here]))
            array = PlannedArray(part, wrapper_argv(template, nonce, part, vcpus=spec.vcpus))
            size = len(json.dumps(_overrides(array.command, spec)))
            if size <= MAX_OVERRIDES:
                fits, found = guess, array
            else:
                too_many = guess
            guess = (fits + too_many) // 2
        if found is None:
            raise UsageError(
                f"The command and its variables need {size:,} characters, and AWS Batch takes {MAX_OVERRIDES:,}.",
                "Put what is long into a script or a file in the image.",
            )
        yield found
        done, count = done + fits, fits

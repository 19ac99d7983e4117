"""The contract between the stack and whoever reads it: the stack's outputs, version 1.

`__main__.py` exports exactly the keys of :class:`StackOutputs`; `submitter` and scripts read them back with
:func:`from_outputs`. New keys may appear within a version and readers ignore keys that they do not know, so that an
older submitter can read a newer stack. Standard library only: a reader must not pay for importing Pulumi.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from types import MappingProxyType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

SCHEMA_VERSION: Final = 1

DEFINITION_PREFIX: Final = "rl-batch-"
"""What the names of every stack's job definitions begin with."""

_DEPLOY_AGAIN: Final = "Run `pulumi up` with the infra program that this submitter came with."
_MASKED: Final = "[secret]"


class ContractError(Exception):
    """The outputs are not a contract that this version can read; the message is one sentence, with its remedy."""


@dataclass(frozen=True, kw_only=True)
class Queue:
    """One job queue with the hardware behind it.

    Attributes:
        name: The queue's name, the interface that people type: `c5a-large`, `c5a-large-spot`.
        arn: ARN of the job queue.
        compute_environment: Name of the compute environment that the queue places jobs on.
        instance_type: The one EC2 instance type of that environment.
        purchase: `on-demand` or `spot`.
        vcpus: vCPUs of one instance.
        memory_mib: Nominal memory of one instance in MiB; what a job can use is less.
        gpus: GPUs of one instance.
        gpu_model: The GPUs' name as EC2 gives it (`T4`); None without GPUs.
        architecture: `x86_64` or `arm64`.
        max_vcpus: vCPUs that the environment may run at once.
        fair_share: Whether the queue has a scheduling policy, so that each job needs a share identifier.
    """

    name: str
    arn: str
    compute_environment: str
    instance_type: str
    purchase: str
    vcpus: int
    memory_mib: int
    gpus: int
    gpu_model: str | None = None  # see StackOutputs
    architecture: str
    max_vcpus: int
    fair_share: bool


@dataclass(frozen=True, kw_only=True)
class StackOutputs:
    """Everything that a deployed stack tells its readers; see the module's docstring.

    Attributes:
        schema_version: Version of the contract, :data:`SCHEMA_VERSION`.
        region: AWS region of every resource.
        account_id: AWS account of every resource, 12 digits.
        queue_names: Sorted names of the queues, for scripts.
        queues: The queues by name.
        job_role_arn: Role that the user's code in a job has.
        execution_role_arn: Role that pulls images, writes logs and reads secrets for a job.
        submitter_policy_arn: Managed policy for people who only submit.
        log_group: CloudWatch Logs group of the jobs.
        ledger_table: DynamoDB table that records what was meant and what was sent.
        secret_arn: Secrets Manager secret with the values that jobs may read.
        artifacts_bucket: S3 bucket for what jobs write, or None.
        image_repository: URL of the ECR repository, or None.
    """

    schema_version: int
    region: str
    account_id: str
    queue_names: tuple[str, ...]
    queues: Mapping[str, Queue]
    job_role_arn: str
    execution_role_arn: str
    submitter_policy_arn: str
    log_group: str
    ledger_table: str
    secret_arn: str
    artifacts_bucket: str | None = None  # Pulumi leaves an output out that is null
    image_repository: str | None = None


def definition_prefix(execution_role_arn: str) -> str:
    """Return what the names of a stack's job definitions begin with.

    A name is all that a policy can tell job definitions apart by, and whoever may submit one gets the roles and the
    secret in it; so the name says which stack's they are, by the role that reads that secret.
    """
    return f"{DEFINITION_PREFIX}{hashlib.sha256(execution_role_arn.encode()).hexdigest()[:8]}-"


def stack_outputs(**values: Any) -> dict[str, Any]:
    """Return the outputs for the program to export, with the version added.

    The values may be Pulumi outputs, so only their names are checked.

    Raises:
        TypeError: A key of the contract is missing, or one is not part of it.
    """
    values = {"schema_version": SCHEMA_VERSION, **values}
    if wrong := sorted(values.keys() ^ {field.name for field in fields(StackOutputs)}):
        raise TypeError(f"these keys are missing from the contract or unknown to it: {', '.join(wrong)}")
    return values


def from_outputs(outputs: Mapping[str, Any]) -> StackOutputs:
    """Read the contract from a stack's outputs, as `pulumi stack output --json` prints them.

    Raises:
        ContractError: Not a contract, another version, a missing key, or a value that Pulumi has masked or that is
            of another kind.
    """
    if "schema_version" not in outputs:
        raise ContractError(f"These are not outputs of an rl-batch stack: schema_version is missing. {_DEPLOY_AGAIN}")
    version = outputs["schema_version"]
    if version != SCHEMA_VERSION:
        raise ContractError(
            f"The stack's outputs have version {version!r}, this submitter reads version {SCHEMA_VERSION}. "
            "Install the submitter that the stack was deployed with, or run `pulumi up` from this one."
        )
    values = _known(outputs, StackOutputs, "The contract in the stack's outputs")
    values["queues"] = MappingProxyType(
        {name: Queue(**_known(queue, Queue, f"Queue {name}")) for name, queue in values["queues"].items()}
    )
    values["queue_names"] = tuple(values["queue_names"])
    return StackOutputs(**values)


def _is_of(value: object, kind: object) -> bool:
    """Tell whether a value of JSON can be a key's whose annotation this is."""
    if isinstance(kind, UnionType):
        return any(_is_of(value, one) for one in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    if get_origin(kind) is Mapping:
        return isinstance(value, Mapping) and all(isinstance(one, Mapping) for one in value.values())
    return type(value) is kind


def _known(values: Mapping[str, Any], contract: type[StackOutputs | Queue], where: str) -> dict[str, Any]:
    """Return the contract's keys out of `values`: those without a default are all there, none is masked or odd."""
    needed = {field.name for field in fields(contract) if field.default is MISSING}
    if missing := sorted(needed - values.keys()):
        raise ContractError(f"{where} lacks {', '.join(missing)}. {_DEPLOY_AGAIN}")
    known = {field.name: values[field.name] for field in fields(contract) if field.name in values}
    if masked := sorted(key for key, value in known.items() if value == _MASKED):
        raise ContractError(
            f"{where} has {', '.join(masked)} masked: read them with "
            "`pulumi stack output --json --show-secrets`, or stop marking configuration as secret that is none."
        )
    kinds = get_type_hints(contract)
    if odd := sorted(key for key, value in known.items() if not _is_of(value, kinds[key])):
        raise ContractError(f"{where} has something else than it should as {', '.join(odd)}. {_DEPLOY_AGAIN}")
    return known

"""What the stack's configuration says, checked before any resource exists.

Types and defaults are in Pulumi.yaml's `config:` block, where the engine checks the one and fills in the other, so
neither is repeated here: this module has the rules that a type cannot express.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Self

import pulumi

from infra.naming import QUEUE_NAME_LIMIT, NameCollisionError, queue_names

BEST_FIT: Final = "BEST_FIT"
ON_DEMAND_STRATEGIES: Final = (BEST_FIT, "BEST_FIT_PROGRESSIVE")
SPOT_STRATEGIES: Final = (
    BEST_FIT,
    "BEST_FIT_PROGRESSIVE",
    "SPOT_CAPACITY_OPTIMIZED",
    "SPOT_PRICE_CAPACITY_OPTIMIZED",
)
SERVICE_ROLES: Final = ("linked", "dedicated")

QUEUES_PER_REGION: Final = 50
"""Quota of job queues, and of compute environments, per account and region (AWS Batch User Guide, Service quotas)."""

OWN_TAGS: Final = ("project", "stack")
"""Keys of the tags that every resource and instance gets."""

MIN_ROOT_VOLUME_GIB: Final = 30
"""Size of the ECS-optimized AMIs' root snapshot in GiB; a volume cannot be smaller (Amazon ECS Developer Guide)."""

MAX_ROOT_VOLUME_GIB: Final = 16384
"""Largest gp3 volume in GiB that every region has (Amazon EBS User Guide, gp3 volumes)."""

# What CloudWatch Logs accepts (API reference, PutRetentionPolicy); 0 is the provider's word for keeping them for ever.
# fmt: off
_RETENTION_DAYS: Final = (
    0, 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
)
# fmt: on

# What a queue may cancel a waiting job for (AWS Batch User Guide, "Automatic remediation with
# jobStateTimeLimitActions"; API reference, JobStateTimeLimitAction); the limits are in seconds.
TIME_LIMIT_REASONS: Final = (
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
)
MIN_TIME_LIMIT_SECONDS: Final = 600
MAX_TIME_LIMIT_SECONDS: Final = 86400

# Families that the Amazon Linux 2023 images of AWS Batch do not run on, and what to take instead
# (AWS Batch User Guide, Compute resource AMIs; Amazon ECS Developer Guide, ECS-optimized AMIs).
_NOT_ON_AL2023: Final[Mapping[str, str]] = MappingProxyType(
    {
        "a1": "c6g, c7g or c8g",
        "g3": "g4dn or g6",
        "g3s": "g4dn or g6",
        "g5g": "g4dn or g6",
        "p3": "p4d or g6",
        "p3dn": "p4d or g6",
    }
)
_INSTANCE_TYPE: Final = re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+")
_QUEUE_PREFIX: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?")
_AMI_ID: Final = re.compile(r"ami-[0-9a-f]{8,17}")
_SUBNET_ID: Final = re.compile(r"subnet-[0-9a-f]{8,17}")
_SECURITY_GROUP_ID: Final = re.compile(r"sg-[0-9a-f]{8,17}")
_POLICY_ARN: Final = re.compile(r"arn:aws[a-z-]*:iam::(?:aws|\d{12}):policy/\S+")
_MAX_USER_TAGS: Final = 50 - len(OWN_TAGS)


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    """The configuration of one stack; Pulumi.yaml describes each key to its users.

    Attributes:
        instance_types: EC2 instance types; each has an On-Demand and a Spot queue.
        max_vcpus: Most vCPUs that one queue may run at once.
        spot_bid_percentage: Most to pay for Spot, in percent of the On-Demand price.
        on_demand_allocation_strategy: How Batch picks On-Demand instances.
        spot_allocation_strategy: How Batch picks Spot instances.
        dedicated_service_role: Whether Batch acts through a role of this stack, not through its service-linked role.
        fair_share: Whether the queues share their instances between users, instead of first in, first out.
        time_limit_seconds: For which reasons a queue cancels a job that waits at its head, and after how many seconds.
        allow_interruption: Whether an update may end runs that are unfinished.
        queue_prefix: What all queue names begin with, or an empty string.
        subnet_ids: The user's own subnets, or none for those of the default VPC.
        security_group_ids: The user's own security groups, or none for one of the stack's.
        ami_id: The user's own machine image, or None for AWS's current one.
        root_volume_gib: Size of an instance's root volume in GiB.
        ssm_access: Whether instances take sessions from AWS Systems Manager.
        log_retention_days: How long the jobs' logs are kept, in days; 0 is for ever.
        job_policy_arns: Managed policies of the role that jobs run with.
        artifacts_bucket: Whether there is a bucket for what jobs write.
        artifacts_force_destroy: Whether that bucket, and what is in it, goes with the stack.
        image_repository: Whether there is a repository for images.
        tags: The user's tags.

    Raises:
        pulumi.RunError: A value that cannot work; the message is one sentence with its remedy.
    """

    instance_types: tuple[str, ...]
    max_vcpus: int
    spot_bid_percentage: int
    on_demand_allocation_strategy: str
    spot_allocation_strategy: str
    dedicated_service_role: bool
    fair_share: bool
    time_limit_seconds: Mapping[str, int]
    allow_interruption: bool
    queue_prefix: str
    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]
    ami_id: str | None
    root_volume_gib: int
    ssm_access: bool
    log_retention_days: int
    job_policy_arns: tuple[str, ...]
    artifacts_bucket: bool
    artifacts_force_destroy: bool
    image_repository: bool
    tags: Mapping[str, str]

    @classmethod
    def load(cls, config: pulumi.Config) -> Self:
        """Read and check the stack's configuration.

        Raises:
            pulumi.RunError: A value that cannot work, or a key that is not in Pulumi.yaml.
        """
        service_role = config.require("serviceRole")
        _one_of("serviceRole", service_role, SERVICE_ROLES)
        return cls(
            instance_types=tuple(config.require_object("instanceTypes")),
            max_vcpus=config.require_int("maxVcpus"),
            spot_bid_percentage=config.require_int("spotBidPercentage"),
            on_demand_allocation_strategy=config.require("onDemandAllocationStrategy"),
            spot_allocation_strategy=config.require("spotAllocationStrategy"),
            dedicated_service_role=service_role == "dedicated",
            fair_share=config.require_bool("fairShare"),
            time_limit_seconds=MappingProxyType(dict(config.require_object("jobStateTimeLimitActions"))),
            allow_interruption=config.require_bool("allowInterruption"),
            queue_prefix=config.require("queuePrefix"),
            subnet_ids=tuple(config.require_object("subnetIds")),
            security_group_ids=tuple(config.require_object("securityGroupIds")),
            ami_id=config.require("amiId") or None,
            root_volume_gib=config.require_int("rootVolumeGib"),
            ssm_access=config.require_bool("ssmAccess"),
            log_retention_days=config.require_int("logRetentionDays"),
            job_policy_arns=tuple(config.require_object("jobPolicyArns")),
            artifacts_bucket=config.require_bool("artifactsBucket"),
            artifacts_force_destroy=config.require_bool("artifactsForceDestroy"),
            image_repository=config.require_bool("imageRepository"),
            tags=MappingProxyType(dict(config.require_object("tags"))),
        )

    def __post_init__(self) -> None:
        self._check_instance_types()
        self._check_names()
        _in_range("maxVcpus", self.max_vcpus, 1, 2**31 - 1, "vCPUs")
        _in_range("spotBidPercentage", self.spot_bid_percentage, 1, 100, "percent of the On-Demand price")
        _one_of("onDemandAllocationStrategy", self.on_demand_allocation_strategy, ON_DEMAND_STRATEGIES)
        _one_of("spotAllocationStrategy", self.spot_allocation_strategy, SPOT_STRATEGIES)
        _in_range("rootVolumeGib", self.root_volume_gib, MIN_ROOT_VOLUME_GIB, MAX_ROOT_VOLUME_GIB, "GiB")
        _one_of("logRetentionDays", self.log_retention_days, _RETENTION_DAYS)
        _all_match("amiId", (self.ami_id,) if self.ami_id else (), _AMI_ID, "an image id", "ami-0123456789abcdef0")
        _all_match("subnetIds", self.subnet_ids, _SUBNET_ID, "a subnet id", "subnet-0123456789abcdef0")
        groups = self.security_group_ids
        _all_match("securityGroupIds", groups, _SECURITY_GROUP_ID, "a security group id", "sg-0123456789abcdef0")
        example = "arn:aws:iam::123456789012:policy/name"
        _all_match("jobPolicyArns", self.job_policy_arns, _POLICY_ARN, "the ARN of a managed policy", example)
        self._check_time_limits()
        if self.artifacts_force_destroy and not self.artifacts_bucket:
            problem = "there is no bucket to destroy"
            raise _refusal("artifactsForceDestroy", problem, "set artifactsBucket to true, or this to false")
        _check_tags(self.tags)

    def _check_instance_types(self) -> None:
        key = "instanceTypes"
        if not self.instance_types:
            raise _refusal(key, "there is no instance type, so no queue", "name at least one, such as c5a.large")
        for instance_type in self.instance_types:
            if not _INSTANCE_TYPE.fullmatch(instance_type):
                raise _refusal(key, f"{instance_type!r} is not an instance type", "write it as c5a.large")
            successors = _NOT_ON_AL2023.get(instance_type.split(".")[0])
            if successors and self.ami_id is None:
                raise _refusal(
                    key,
                    f"{instance_type} cannot run the Amazon Linux 2023 image of AWS Batch",
                    f"take {successors} instead, or set amiId to an image of your own",
                )
        _no_repeats(key, self.instance_types)
        if (queues := 2 * len(self.instance_types)) > QUEUES_PER_REGION:
            raise _refusal(
                key,
                f"{len(self.instance_types)} types need {queues} queues and environments, "
                f"AWS Batch allows {QUEUES_PER_REGION} of each in a region",
                f"name at most {QUEUES_PER_REGION // 2} types",
            )

    def _check_names(self) -> None:
        if self.queue_prefix and not _QUEUE_PREFIX.fullmatch(self.queue_prefix):
            remedy = "use letters, digits, hyphens and underscores, with a letter or digit at both ends"
            raise _refusal("queuePrefix", f"{self.queue_prefix!r} cannot begin a queue's name", remedy)
        try:
            names = queue_names(self.instance_types, self.queue_prefix)
        except NameCollisionError as error:
            raise _refusal("instanceTypes", str(error), "keep one of the two in this stack") from None
        longest = max(names, key=len)
        if len(longest) > QUEUE_NAME_LIMIT:
            problem = f"the queue name {longest} has {len(longest)} characters, AWS Batch allows {QUEUE_NAME_LIMIT}"
            raise _refusal("queuePrefix", problem, "shorten the prefix")

    def _check_time_limits(self) -> None:
        key = "jobStateTimeLimitActions"
        for reason, seconds in self.time_limit_seconds.items():
            _one_of(key, reason, TIME_LIMIT_REASONS)
            if not isinstance(seconds, int):
                raise _refusal(key, f"{seconds!r} is not a number of seconds", f"write it as {reason}: 600")
            _in_range(key, seconds, MIN_TIME_LIMIT_SECONDS, MAX_TIME_LIMIT_SECONDS, "seconds")


def _check_tags(tags: Mapping[str, Any]) -> None:
    """Check tags against the rules of AWS (Tag naming limits and requirements) and against the stack's own."""
    if len(tags) > _MAX_USER_TAGS:
        problem = f"{len(tags)} tags and the stack's own are more than the 50 that AWS allows"
        raise _refusal("tags", problem, f"keep at most {_MAX_USER_TAGS}")
    for key, value in tags.items():
        if not isinstance(value, str):
            raise _refusal("tags", f"the value of {key} is not text", "put it in quotes")
        if key in OWN_TAGS or key.lower().startswith("aws:"):
            raise _refusal("tags", f"the key {key} is reserved", "choose another key")
        if not 1 <= len(key) <= 128 or len(value) > 256:
            raise _refusal("tags", f"the tag {key[:40]!r} is too long", "keep keys to 128 and values to 256 characters")


def _in_range(key: str, value: int, low: int, high: int, unit: str) -> None:
    if not low <= value <= high:
        raise _refusal(key, f"{value} is out of range", f"choose {low} to {high} {unit}")


def _one_of(key: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise _refusal(key, f"{value!r} is not a choice", f"choose one of {', '.join(map(str, choices))}")


def _all_match(key: str, values: tuple[str, ...], pattern: re.Pattern[str], kind: str, example: str) -> None:
    _no_repeats(key, values)
    for value in values:
        if not pattern.fullmatch(str(value)):
            raise _refusal(key, f"{value!r} is not {kind}", f"write it as {example}")


def _no_repeats(key: str, values: tuple[str, ...]) -> None:
    if repeated := [value for value, count in Counter(values).items() if count > 1]:
        raise _refusal(key, f"{', '.join(repeated)} is listed more than once", "list it once")


def _refusal(key: str, problem: str, remedy: str) -> pulumi.RunError:
    return pulumi.RunError(f"Configuration {key}: {problem}; {remedy}.")

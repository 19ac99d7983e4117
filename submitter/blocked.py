"""Why the first job of a queue waits by AWS Batch's own account, in plainer words and with what to do. Pure.

Source: "Jobs stuck in a RUNNABLE status", AWS Batch user guide.
"""

from collections.abc import Callable, Mapping
from typing import Final

from submitter.capacity import usable_memory_mib
from submitter.facts import Waiting

_STARTS: Final = "the runs then start by themselves."


def reason_of(words: str) -> str:
    """Return the reason that AWS's words begin with (`CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY`); empty without."""
    return words.split(maxsplit=1)[0] if words else ""  # not at the dash, which is not the same in all of them


def explain(waiting: Waiting, words: str) -> tuple[str, str]:
    """Return a sentence, with AWS's words in it, and what to do."""
    if in_plain_words := _REASONS.get(reason_of(words)):
        sentence, remedy = in_plain_words(waiting)
        return f"{sentence} ({words}).", remedy
    return f"AWS says: {words}", 'See "Jobs stuck in a RUNNABLE status" in the AWS Batch user guide.'


def _no_capacity(waiting: Waiting) -> tuple[str, str]:
    remedy = "AWS keeps trying. To go on elsewhere: `submitter cancel`, then `submitter retry --queue` with "
    return f"EC2 has no {_type(waiting) or 'instance'} to give at present", f"{remedy}{_other(waiting)}."


def _too_few_vcpus(waiting: Waiting) -> tuple[str, str]:
    most = max((each.max_vcpus for each in waiting.environments), default=0)
    sentence = f"The environment may have {most} vCPUs at once, fewer than one instance has"
    return sentence, f"Raise the stack's setting maxVcpus and `pulumi up`; {_STARTS}"


def _too_large(waiting: Waiting) -> tuple[str, str]:
    need, has = waiting.need, ""
    if hardware := waiting.hardware:
        memory = usable_memory_mib(hardware.memory_mib)
        has = f", and a {_type(waiting)} has {hardware.vcpus} vCPU, about {memory} MiB and {hardware.gpus} GPU to give"
    sentence = f"A run needs {need.vcpus} vCPU, {need.memory_mib} MiB and {need.gpus} GPU{has}"
    remedy = (
        "`submitter cancel`, then `submitter retry` with less (--num-memory) or with a --queue of larger instances."
    )
    return sentence, remedy


def _no_permission(waiting: Waiting) -> tuple[str, str]:
    roles = dict.fromkeys(each.service_role.rpartition("/")[2] for each in waiting.environments)
    sentence = f"AWS Batch may not start instances or runs: its service role {', '.join(roles)} lacks permissions"
    remedy = (
        "Give the role what the policy AWSBatchServiceRole allows (`pulumi up --refresh` does so where the stack made "
        f"the role); {_STARTS}"
    )
    return sentence, remedy


def _unsupported(waiting: Waiting) -> tuple[str, str]:
    kind = _type(waiting)
    sentence = (
        f"EC2 cannot start {f'a {kind}' if kind else 'an instance'} there: no zone of the environment's subnets has "
        "the type, or the launch template does not fit it"
    )
    remedy = (
        "`pulumi up --refresh` puts right what was changed by hand. Otherwise set subnetIds to zones that have the "
        "type, which `aws ec2 describe-instance-type-offerings --location-type availability-zone --filters "
        f"Name=instance-type,Values={kind or 'TYPE'}` lists."
    )
    return sentence, remedy


def _undetermined(waiting: Waiting) -> tuple[str, str]:
    asked = ", ".join(f"{each.desired_vcpus} vCPUs of {each.name}" for each in waiting.environments)
    sentence = (
        "AWS Batch does not know why the first run waits. Mostly an instance does not start, or does not join the "
        f"cluster; asked for are {asked}"
    )
    remedy = (
        "Whether instances start is in the Auto Scaling group's activity in the EC2 console: a quota may forbid it. To "
        "join, their role needs the policy AmazonEC2ContainerServiceforEC2Role (`pulumi up --refresh` "
        "attaches it again), and they need a way to the endpoints of ECS: public addresses, NAT or VPC endpoints."
    )
    return sentence, remedy


_REASONS: Final[Mapping[str, Callable[[Waiting], tuple[str, str]]]] = {
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY": _no_capacity,
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE": _too_few_vcpus,
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT": _too_large,
    "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS": _no_permission,
    "MISCONFIGURATION:EC2_INSTANCE_CONFIGURATION_UNSUPPORTED": _unsupported,
    "UNDETERMINED": _undetermined,
}


def _type(waiting: Waiting) -> str:
    """Return the queue's instance type; empty when the stack no longer has the queue."""
    return waiting.hardware.instance_type if waiting.hardware else ""


def _other(waiting: Waiting) -> str:
    if waiting.hardware and waiting.hardware.purchase == "spot":
        return f"the On-Demand queue, {waiting.queue.removesuffix('-spot')}"
    return "a queue of another instance type; `submitter queues` lists them"

"""What AWS says about the account and the instance types, asked before any resource exists.

Every call here reads. They are synchronous because their answers decide what there is to create: the first preview
shows all of it, and what cannot work is refused while nothing has been made.
"""

from dataclasses import dataclass
from typing import Final

import pulumi
import pulumi_aws as aws
from pulumi_aws import ec2

from infra.config import StackConfig
from infra.vpc import Vpc, find_vpc

_NVIDIA: Final = "NVIDIA"


@dataclass(frozen=True, kw_only=True)
class Account:
    """Where the stack lives.

    Attributes:
        account_id: The AWS account, 12 digits.
        region: The region's name.
        partition: `aws`, `aws-cn` or `aws-us-gov`, which ARNs begin with.
    """

    account_id: str
    region: str
    partition: str

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of this account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account_id}:{resource}"

    def managed_policy(self, name: str) -> str:
        """Return the ARN of a policy that AWS manages, `service-role/...` included in the name."""
        return f"arn:{self.partition}:iam::aws:policy/{name}"


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """The hardware of one EC2 instance type, as EC2 describes it.

    Attributes:
        name: Such as `c5a.large`.
        vcpus: Its vCPUs.
        memory_mib: Its nominal memory in MiB.
        gpus: Its NVIDIA GPUs; AWS Batch schedules no others.
        gpu_model: Their name (`T4`), or None.
        architecture: `x86_64` or `arm64`.
    """

    name: str
    vcpus: int
    memory_mib: int
    gpus: int
    gpu_model: str | None
    architecture: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that is known before the first resource."""

    account: Account
    instance_types: tuple[InstanceType, ...]
    vpc: Vpc


def look_up(config: StackConfig) -> Facts:
    """Ask AWS for what the configuration depends on.

    Raises:
        pulumi.RunError: The region cannot carry this configuration; one sentence says why and what to do.
    """
    account = Account(
        account_id=aws.get_caller_identity().account_id,
        region=aws.get_region().region,
        partition=aws.get_partition().partition,
    )
    zones = _zones(config.instance_types, account.region)
    types = tuple(_instance_type(name) for name in config.instance_types)
    _check_types(config, types)
    return Facts(account=account, instance_types=types, vpc=find_vpc(config, zones, account.region))


def _zones(names: tuple[str, ...], region: str) -> dict[str, tuple[str, ...]]:
    """Return the availability zones that offer each type, with one call for all of them."""
    offerings = ec2.get_instance_type_offerings(
        location_type="availability-zone",
        filters=[ec2.GetInstanceTypeOfferingsFilterArgs(name="instance-type", values=list(names))],
    )
    pairs = list(zip(offerings.instance_types, offerings.locations, strict=True))
    zones = {name: tuple(sorted(zone for offered, zone in pairs if offered == name)) for name in names}
    if missing := [name for name, found in zones.items() if not found]:
        raise pulumi.RunError(
            f"Configuration instanceTypes: no zone of {region} offers {', '.join(missing)}; "
            "correct the spelling, or choose another type or region."
        )
    return zones


def _instance_type(name: str) -> InstanceType:
    found = ec2.get_instance_type(instance_type=name)
    gpus = [gpu for gpu in found.gpuses if gpu.manufacturer == _NVIDIA]
    return InstanceType(
        name=name,
        vcpus=found.default_vcpus,
        memory_mib=found.memory_size,
        gpus=sum(gpu.count for gpu in gpus),
        gpu_model=gpus[0].name if gpus else None,
        architecture="arm64" if "arm64" in found.supported_architectures else "x86_64",
    )


def _check_types(config: StackConfig, types: tuple[InstanceType, ...]) -> None:
    """Refuse what no instance could satisfy."""
    for each in types:
        if each.vcpus > config.max_vcpus:
            raise pulumi.RunError(
                f"Configuration maxVcpus: one {each.name} has {each.vcpus} vCPUs, more than {config.max_vcpus}, "
                "so its queues would never start a job; raise maxVcpus or drop the type."
            )
    architectures = sorted({each.architecture for each in types})
    if config.ami_id is not None and len(architectures) > 1:
        raise pulumi.RunError(
            f"Configuration amiId: one image cannot serve both {' and '.join(architectures)}; "
            "put the types of each architecture into a stack of their own."
        )

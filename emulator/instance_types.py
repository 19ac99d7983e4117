"""EC2's instance types: what each has, and where there are any. As moto lists them, from EC2 itself."""

from dataclasses import dataclass
from functools import cache

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES


@dataclass(frozen=True)
class InstanceType:
    """What EC2 says about an instance type; `memory_mib` is nominal, `gpu_model` is None without GPUs."""

    name: str
    vcpus: int
    memory_mib: int
    gpus: int
    gpu_model: str | None
    architecture: str


@cache
def instance_type(name: str) -> InstanceType | None:
    """Look an instance type up, or return None when EC2 has none of that name."""
    facts = INSTANCE_TYPES.get(name)
    if facts is None:
        return None
    gpus = facts.get("GpuInfo", {}).get("Gpus", [])
    return InstanceType(
        name=name,
        vcpus=facts["VCpuInfo"]["DefaultVCpus"],
        memory_mib=facts["MemoryInfo"]["SizeInMiB"],
        gpus=sum(gpu["Count"] for gpu in gpus),
        gpu_model=gpus[0]["Name"] if gpus else None,
        architecture=facts["ProcessorInfo"]["SupportedArchitectures"][-1],
    )


def instance_family(name: str) -> list[str]:
    """Name the instance types of a family (`c5a`), none when there is no such family."""
    return [known for known in INSTANCE_TYPES if known.startswith(f"{name}.")]


@cache
def zones_offering(name: str, region: str) -> frozenset[str]:
    """Name the availability zones of a region in which EC2 has an instance type, none where it is not known."""
    offerings = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, ())
    return frozenset(offering["Location"] for offering in offerings if offering["InstanceType"] == name)

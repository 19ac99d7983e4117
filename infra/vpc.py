"""Which subnets the hosts can be in: the default VPC's, or those that the configuration names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_aws import ec2

from infra.config import StackConfig

_ANY_ZONE: Final[tuple[str, ...]] = ()

Zones = Mapping[str, tuple[str, ...]]
"""Availability zones that offer each instance type."""


@dataclass(frozen=True, kw_only=True)
class Vpc:
    """The VPC of the hosts, as far as the stack uses it.

    Attributes:
        vpc_id: Its id.
        subnets: For each instance type, subnets in zones that offer it.
    """

    vpc_id: str
    subnets: Mapping[str, tuple[str, ...]]


def find_vpc(config: StackConfig, zones: Zones, region: str) -> Vpc:
    """Find the VPC and, with one call for each set of zones, the subnets in them.

    Raises:
        pulumi.RunError: There is no such VPC, subnet or security group, or no subnet where a type is offered.
    """
    if config.subnet_ids:
        vpc_id = _common_vpc(config.subnet_ids, region)
        wanted = {"subnet-id": list(config.subnet_ids)}
    else:
        vpc_id = _default_vpc(region)
        wanted = {"vpc-id": [vpc_id], "default-for-az": ["true"]}
    if config.security_group_ids:
        _check_groups(config.security_group_ids, vpc_id)
    found = {each: _subnets(wanted, each) for each in set(zones.values())}
    for name, offered in zones.items():
        if not found[offered]:
            raise _unsuitable(config, name, offered, vpc_id, region)
    return Vpc(vpc_id=vpc_id, subnets={name: found[offered] for name, offered in zones.items()})


def _default_vpc(region: str) -> str:
    # The list first: asking for the default VPC where there is none is an error of the provider's, not an answer.
    vpcs = ec2.get_vpcs(filters=[ec2.GetVpcsFilterArgs(name="is-default", values=["true"])]).ids
    if not vpcs:
        raise pulumi.RunError(
            f"{region} has no default VPC in this account; make one with "
            f"`aws ec2 create-default-vpc --region {region}`, set subnetIds to subnets of another VPC, or choose "
            "another region."
        )
    return vpcs[0]


def _common_vpc(subnet_ids: tuple[str, ...], region: str) -> str:
    known = _subnets({"subnet-id": list(subnet_ids)}, _ANY_ZONE)
    if missing := sorted(set(subnet_ids) - set(known)):
        raise pulumi.RunError(
            f"Configuration subnetIds: {region} has no {', '.join(missing)} in this account; correct the ids, or "
            "choose the region that they are in."
        )
    vpc_ids = {subnet_id: ec2.get_subnet(id=subnet_id).vpc_id for subnet_id in subnet_ids}
    if len(set(vpc_ids.values())) > 1:
        where = ", ".join(f"{subnet_id} in {vpc_id}" for subnet_id, vpc_id in sorted(vpc_ids.items()))
        raise pulumi.RunError(f"Configuration subnetIds: {where} are of different VPCs; name subnets of one VPC.")
    return vpc_ids[subnet_ids[0]]


def _check_groups(group_ids: tuple[str, ...], vpc_id: str) -> None:
    wanted = {"group-id": list(group_ids), "vpc-id": [vpc_id]}
    filters = [ec2.GetSecurityGroupsFilterArgs(name=name, values=values) for name, values in wanted.items()]
    if missing := sorted(set(group_ids) - set(ec2.get_security_groups(filters=filters).ids)):
        raise pulumi.RunError(
            f"Configuration securityGroupIds: {vpc_id} has no {', '.join(missing)}; name security groups of the VPC "
            "that the subnets are in."
        )


def _subnets(wanted: Mapping[str, list[str]], zones: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ids of the subnets that these filters choose, sorted, in these zones or in all."""
    chosen = {**wanted, "availability-zone": list(zones)} if zones else wanted
    filters = [ec2.GetSubnetsFilterArgs(name=name, values=values) for name, values in chosen.items()]
    return tuple(sorted(ec2.get_subnets(filters=filters).ids))


def _unsuitable(config: StackConfig, name: str, offered: tuple[str, ...], vpc_id: str, region: str) -> pulumi.RunError:
    zones = ", ".join(offered)
    if config.subnet_ids:
        return pulumi.RunError(
            f"Configuration subnetIds: {name} is offered in {zones} only, where none of the subnets is; add a subnet "
            "there, or choose another type."
        )
    create = f"`aws ec2 create-default-subnet --availability-zone {offered[0]} --region {region}`"
    if not _subnets({"vpc-id": [vpc_id], "default-for-az": ["true"]}, _ANY_ZONE):
        return pulumi.RunError(
            f"The default VPC {vpc_id} of {region} has no default subnet; make one with {create}, or set subnetIds."
        )
    return pulumi.RunError(
        f"Configuration instanceTypes: {name} is offered in {zones} only, where the default VPC {vpc_id} of {region} "
        f"has no default subnet; make one there with {create}, or choose another type."
    )

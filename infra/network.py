"""What the hosts are behind: the user's security groups, or one of the stack's that lets nothing in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import ec2

from infra.vpc import Vpc


@dataclass(frozen=True, kw_only=True)
class HostNetworkArgs:
    """What the network depends on.

    Attributes:
        vpc: The VPC of the hosts.
        security_group_ids: The user's own security groups, or none.
        tags: Tags of the security group.
    """

    vpc: Vpc
    security_group_ids: Sequence[str]
    tags: Mapping[str, str]


class HostNetwork(pulumi.ComponentResource):
    """Subnets for each instance type, and security groups; it costs nothing.

    Attributes:
        security_group_ids: The groups of every host.
        subnets: For each instance type, subnets in zones that offer it.
    """

    security_group_ids: Sequence[pulumi.Input[str]]
    subnets: Mapping[str, tuple[str, ...]]

    def __init__(self, name: str, args: HostNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rl-batch:infra:HostNetwork", name, None, opts)
        self.subnets = args.vpc.subnets
        self.security_group_ids = args.security_group_ids or [self._outbound_only(f"{name}-hosts", args).id]
        self.register_outputs({})

    def _outbound_only(self, name: str, args: HostNetworkArgs) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(
            name,
            vpc_id=args.vpc.vpc_id,
            description="Hosts of the job queues: outbound traffic only.",
            # Image registries, AWS's endpoints and W&B have no fixed addresses.
            egress=[ec2.SecurityGroupEgressArgs(protocol="-1", from_port=0, to_port=0, cidr_blocks=["0.0.0.0/0"])],
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

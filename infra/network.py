"""Where the hosts live: the default VPC, behind a security group that lets nothing in."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_aws import ec2

from infra.facts import DefaultVpc


@dataclass(frozen=True, kw_only=True)
class DefaultNetworkArgs:
    """What the network depends on.

    Attributes:
        vpc: The region's default VPC.
        tags: Tags of the security group.
    """

    vpc: DefaultVpc
    tags: Mapping[str, str]


class DefaultNetwork(pulumi.ComponentResource):
    """A security group in the default VPC, with outbound traffic only; it costs nothing.

    Attributes:
        security_group_id: The group of every host.
        subnets: For each instance type, subnets in zones that offer it.
    """

    security_group_id: pulumi.Output[str]
    subnets: Mapping[str, tuple[str, ...]]

    def __init__(self, name: str, args: DefaultNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rl-batch:infra:DefaultNetwork", name, None, opts)
        self.subnets = args.vpc.subnets
        self.security_group_id = ec2.SecurityGroup(
            f"{name}-hosts",
            vpc_id=args.vpc.vpc_id,
            description="Hosts of the job queues: outbound traffic only.",
            # Image registries, AWS's endpoints and W&B have no fixed addresses.
            egress=[ec2.SecurityGroupEgressArgs(protocol="-1", from_port=0, to_port=0, cidr_blocks=["0.0.0.0/0"])],
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        ).id
        self.register_outputs({})

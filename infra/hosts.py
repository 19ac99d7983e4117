"""The launch template of every host: disks, metadata, and what a host does when it boots."""

import base64
from collections.abc import Mapping

import pulumi
from pulumi_aws import ec2

from infra.userdata import user_data


def host_template(
    name: str,
    *,
    root_volume_gib: int,
    ssm_access: bool,
    tags: Mapping[str, str],
    opts: pulumi.ResourceOptions,
) -> ec2.LaunchTemplate:
    """Make the launch template of every host: an encrypted root volume, IMDSv2 only, instance stores in use.

    It is always there: environments are replaced when they gain or lose one, but not when its content changes.
    """
    return ec2.LaunchTemplate(
        name,
        block_device_mappings=[
            ec2.LaunchTemplateBlockDeviceMappingArgs(
                # The root device of the ECS-optimized Amazon Linux 2023 images.
                device_name="/dev/xvda",
                ebs=ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                    volume_type="gp3",
                    volume_size=root_volume_gib,
                    encrypted="true",
                    delete_on_termination="true",
                ),
            )
        ],
        metadata_options=ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled",
            http_tokens="required",
            # Batch's containers are on the host's own network, one hop away; anything behind a bridge is not meant.
            http_put_response_hop_limit=1,
        ),
        user_data=base64.b64encode(user_data(ssm_access=ssm_access).encode("ascii")).decode(),
        tags=tags,
        opts=opts,
    )

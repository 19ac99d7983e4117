"""The launch template of every host: disks, metadata, and what a host does when it boots."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pulumi
from pulumi_aws import ec2

_BOUNDARY: Final = "==RL-BATCH=="
_INSTANCE_STORE: Final = Path(__file__).with_name("instance_store.sh")

# Minimal images lack the agent; where it is there, this does nothing.
_SSM_AGENT: Final = """\
#!/bin/bash
dnf install --assumeyes --quiet amazon-ssm-agent
systemctl enable --now --no-block amazon-ssm-agent
"""


def user_data(*, ssm_access: bool) -> str:
    """Return what a host does when it boots, as MIME parts, to which AWS Batch adds its own.

    Source: AWS Batch User Guide, "Use Amazon EC2 launch templates with AWS Batch", Amazon EC2 user data.
    """
    # A boothook runs before Docker starts, at every boot; a script once, when the network is up.
    parts = [("text/cloud-boothook", _INSTANCE_STORE.read_text())]
    if ssm_access:
        parts.append(("text/x-shellscript", _SSM_AGENT))
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"', ""]
    for kind, text in parts:
        lines += [f"--{_BOUNDARY}", f'Content-Type: {kind}; charset="us-ascii"', "", text]
    return "\n".join([*lines, f"--{_BOUNDARY}--", ""])


def host_template(
    name: str, *, root_volume_gib: int, ssm_access: bool, tags: Mapping[str, str], opts: pulumi.ResourceOptions
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

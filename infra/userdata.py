"""What a host does when it boots, as the text that its launch template carries."""

from pathlib import Path
from typing import Final

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

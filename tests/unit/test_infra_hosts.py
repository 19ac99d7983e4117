"""The launch template's user data."""

import base64
import email
from collections.abc import Callable
from pathlib import Path
from typing import Any

from infra.userdata import user_data

SCRIPT = Path(__file__).parents[2] / "infra" / "instance_store.sh"


def parts(text: str) -> list[tuple[str, str]]:
    message = email.message_from_string(text)
    assert message.is_multipart()
    return [(part.get_content_type(), str(part.get_payload())) for part in message.walk() if not part.is_multipart()]


def test_user_data_is_mime_parts_that_batch_can_add_its_own_to() -> None:
    """AWS Batch refuses launch templates whose user data is not in the MIME multi-part format."""
    ((kind, text),) = parts(user_data(ssm_access=False))
    assert kind == "text/cloud-boothook"
    assert text.strip() == SCRIPT.read_text().strip()
    assert [kind for kind, _ in parts(user_data(ssm_access=True))] == ["text/cloud-boothook", "text/x-shellscript"]


def test_user_data_fits() -> None:
    """EC2 takes 16 KiB, and Batch's own part must fit too (Amazon EC2 User Guide, user data)."""
    assert len(user_data(ssm_access=True)) < 8 * 1024


def test_the_template_carries_the_user_data(deploy: Callable[..., Any]) -> None:
    plain, shell = (deploy(ssmAccess=ssm).one("LaunchTemplate", "-host").inputs["userData"] for ssm in (False, True))
    assert base64.b64decode(plain).decode() == user_data(ssm_access=False)
    assert base64.b64decode(shell).decode() == user_data(ssm_access=True)

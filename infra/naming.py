"""Names, from configuration alone: which queue belongs to which instance type, and what resources are called.

Queue names are the interface that people type, so they are fixed. Everything else gets a random suffix from Pulumi,
so that stacks share an account and a replacement can exist before the old resource goes.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Final

QUEUE_NAME_LIMIT: Final = 128
"""Most characters in the name of a job queue or compute environment (AWS Batch API reference, CreateJobQueue)."""

PREFIX_LIMIT: Final = 40
"""Most characters of a prefix: a role's name has 64, of which a suffix such as `-spot-fleet` and Pulumi's own 8 go."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
_NOT_IN_STORAGE_NAMES: Final = re.compile(r"[^a-z0-9]+")


class NameCollisionError(Exception):
    """Two instance types would have the same queue."""


def slug(text: str, limit: int = QUEUE_NAME_LIMIT) -> str:
    """Return `text` in the characters that AWS Batch takes in names, at most `limit` of them.

    Where characters are lost, a short hash of the text keeps different texts apart: `a.b` and `a-b` do not collide.
    """
    name = _NOT_IN_NAMES.sub("-", text)
    if name == text and len(name) <= limit:
        return name
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    return f"{name[: limit - 7]}-{digest}"


def resource_prefix(project: str, stack: str) -> str:
    """Return what the names of a stack's resources begin with: IAM is global, so the stack must be in it."""
    return slug(f"{project}-{stack}", PREFIX_LIMIT)


def storage_name(text: str) -> str:
    """Return `text` in the characters that both S3 buckets and ECR repositories take in names.

    What is lost does not matter: Pulumi's random suffix keeps names apart. Sources: Amazon S3 User Guide, "Bucket
    naming rules"; Amazon ECR API reference, CreateRepository.
    """
    return _NOT_IN_STORAGE_NAMES.sub("-", text.lower()).strip("-")


def queue_name(instance_type: str, *, spot: bool, prefix: str = "") -> str:
    """Return the name of the queue of one instance type: `c5a.large` has `c5a-large` and `c5a-large-spot`."""
    parts = [prefix] if prefix else []
    parts.append(_NOT_IN_NAMES.sub("-", instance_type))
    if spot:
        parts.append("spot")
    return "-".join(parts)


def queue_names(instance_types: Iterable[str], prefix: str = "") -> list[str]:
    """Return the sorted names of the On-Demand and Spot queues of all these types.

    Raises:
        NameCollisionError: Two types, or a type and another's Spot queue, would share a name.
    """
    owners: dict[str, str] = {}
    for instance_type in instance_types:
        for spot in (False, True):
            name = queue_name(instance_type, spot=spot, prefix=prefix)
            if name in owners:
                raise NameCollisionError(f"{owners[name]} and {instance_type} would share the queue {name}")
            owners[name] = instance_type
    return sorted(owners)

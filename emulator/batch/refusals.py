"""How Batch words its refusals, and the checks that every resource of it shares."""

import re
import uuid
from collections.abc import Collection, Mapping
from typing import Any

from emulator.restjson import ApiError

# "up to 128 letters long ... uppercase and lowercase letters, numbers, hyphens (-), and underscores (_)".
# Source: CreateJobQueue, CreateComputeEnvironment, RegisterJobDefinition, AWS Batch API reference. That the first
# character is a letter or digit is said of job names there, and holds for all of them.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
MOST_TAGS = 50


def refused(message: str) -> ApiError:
    """Make the error of a request that Batch looked at and refused, in its usual wrapping."""
    return ApiError("ClientException", f"Error executing request, Exception : {message}, RequestId: {uuid.uuid4()}")


def plainly_refused(message: str) -> ApiError:
    """Make the error of a request that Batch refuses without the wrapping, as it does for deletions and lookups."""
    return ApiError("ClientException", message)


def check_name(what: str, name: str) -> None:
    """Refuse a name that Batch does not take; `what` is the member of the request."""
    if not _NAME.fullmatch(name):
        raise refused(
            f"{what} should match valid pattern: up to 128 letters, digits, hyphens and underscores, "
            "beginning with a letter or digit"
        )


def check_tags(tags: Mapping[str, str]) -> None:
    """Refuse tags that AWS does not take. Source: "Tag restrictions", AWS Batch user guide."""
    if len(tags) > MOST_TAGS:
        raise refused(f"The number of tags must not exceed {MOST_TAGS}")
    for key, value in tags.items():
        if not 1 <= len(key) <= 128 or len(value) > 256:
            raise refused("A tag has a key of 1 to 128 characters and a value of at most 256")
        if key.lower().startswith("aws:"):
            raise refused("Tag keys that begin with aws: are reserved for AWS")


def check_within(what: str, value: int | None, low: int, high: int) -> None:
    """Refuse a number outside of the limits that AWS documents; None is a member that was not sent."""
    if value is not None and not low <= value <= high:
        raise refused(f"{what} must be between {low} and {high}")


def check_supported(request: Mapping[str, Any], unsupported: Collection[str]) -> None:
    """Refuse members that real Batch has and this emulated account does not, rather than ignore them."""
    if found := sorted(request.keys() & set(unsupported)):
        raise ApiError("ClientException", f"{', '.join(found)}: not part of this emulated account.", 501)

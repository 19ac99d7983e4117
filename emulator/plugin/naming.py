"""Names that nobody chose."""

import hashlib
import secrets
from typing import Final

from emulator.plugin.resource import ResourceType

_RANDOM_CHARACTERS: Final = 7


def automatic_name(kind: ResourceType, urn: str, prefix: str | None, kept: str | None, seed: bytes) -> str:
    """Return the name of a resource whose program gives none: `<prefix or the resource's name>-<7 random characters>`.

    It is decided in Check, so that the first preview shows it to whatever refers to it, and kept for the resource's
    life unless the program asks for another prefix. The engine's seed makes a preview and the update that follows it
    agree.
    """
    stem = prefix if prefix is not None else urn.rsplit("::", maxsplit=1)[-1] + "-"
    stem = stem[: kind.name_length - _RANDOM_CHARACTERS]
    if kept and kept.startswith(stem):
        return kept
    random = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(_RANDOM_CHARACTERS)
    return stem + random[:_RANDOM_CHARACTERS]

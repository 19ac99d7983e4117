"""A Pulumi CLI that the user has installed: is it usable, and new enough for the locked SDK?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tools.steps import say

if TYPE_CHECKING:
    from collections.abc import Callable

LANGUAGE_HOST = "pulumi-language-python"


def release(text: str) -> tuple[int, ...]:
    """The first version number in a text, e.g. (3, 274, 1) for `v3.274.1+dirty`; empty when there is none."""
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part) for part in match.groups(default="0")) if match else ()


def version_of(pulumi: Path) -> str:
    """What `pulumi version` prints, or an empty string when the file cannot be run."""
    try:
        return subprocess.run(
            [pulumi, "version"],
            check=True,
            capture_output=True,
            text=True,
            timeout=20,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def usable(minimum: str, own: Path, version_of: Callable[[Path], str] = version_of) -> Path | None:
    """The folder of the `pulumi` on PATH if it is at least `minimum` and can run Python programs, else None.

    One inside `own`, the cache of this module's package, is passed over: which of those is right is the cache's matter.
    """
    found = shutil.which("pulumi")
    if found is None or Path(found).resolve().is_relative_to(own.resolve()):
        return None
    version = version_of(Path(found))
    if not version:
        say(f"{found} does not run, so it is not used")
    elif release(version) < release(minimum):
        say(f"{found} is {version}, older than the SDK's {minimum}, so it is not used")
    elif not (shutil.which(LANGUAGE_HOST) or Path(found).resolve().with_name(LANGUAGE_HOST).exists()):
        say(f"{found} has no {LANGUAGE_HOST} beside it, so it is not used")
    else:
        return Path(found).absolute().parent
    return None

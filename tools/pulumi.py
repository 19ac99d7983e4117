"""Gets the Pulumi CLI onto this machine: `python -m tools.pulumi` prints the folder that must be first on PATH.

In order: a `pulumi` on PATH that is at least as new as the locked SDK, the official installer, a build from the CLI's
Go module. The last two are done once, into a folder of the user's cache that all checkouts share.
"""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from typing import TYPE_CHECKING

import click

from tools import cache, go_build, official, on_path
from tools.steps import UnavailableError, say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MANUAL = "https://www.pulumi.com/docs/install/"


def ensure() -> Path:
    """Return the folder that must be first on PATH for a working `pulumi`, installing the CLI first where needed.

    Raises:
        UnavailableError: No way to get it works here; the message says what to install.
    """
    minimum = importlib.metadata.version("pulumi")
    found = on_path.usable(minimum, own=cache.root())
    if found is not None:
        return found
    version = go_build.locked_version()
    folder = cache.root() / f"{version}-{go_build.digest(with_language_host=True)}"
    if cache.complete(folder):
        return folder
    with cache.locked():
        reasons = []
        for install in (official.install, go_build.install):
            try:
                return cache.filled(folder, functools.partial(_install, install, version))
            except UnavailableError as reason:
                say(str(reason))
                reasons.append(str(reason))
    raise UnavailableError(
        f"the Pulumi CLI {minimum} or newer is needed and cannot be had here: {'; '.join(reasons)}.\n"
        f"Install it ({MANUAL}), or Go (https://go.dev/dl/), and try again."
    )


def _install(install: Callable[[str, Path], None], version: str, staging: Path) -> None:
    install(version, staging)
    printed = on_path.version_of(staging / "pulumi")
    if on_path.release(printed) != on_path.release(version):
        raise UnavailableError(f"what was installed as {version} says that it is {printed or 'nothing that runs'}")


def main() -> int:
    """Print the folder; the exit code is 1, with a sentence on standard error, when there is none."""
    try:
        click.echo(ensure())
    except UnavailableError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

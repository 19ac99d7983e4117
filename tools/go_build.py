"""The CLI built from its Go module, for machines that reach a Go module proxy but not pulumi.com.

`go.mod` beside this file locks the version. The module has no Python language host, so ours goes beside the CLI.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools import cache, steps
from tools.on_path import release

FOLDER = Path(__file__).parent
PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
VERSION_VARIABLE = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"
FIRST_GO_THAT_FETCHES_ANOTHER = (1, 21, 0)  # https://go.dev/doc/toolchain


def locked_version() -> str:
    """The version of the CLI that go.mod locks, without the `v`."""
    return _from_go_mod(r"github\.com/pulumi/pulumi/pkg/v3 v(\S+)")


def language_host_files() -> list[Path]:
    """The files of our language host, in a fixed order."""
    return sorted(path for path in (FOLDER / "language_host").iterdir() if path.is_file())


def digest(*, with_language_host: bool) -> str:
    """A short hash of all that a build is made of, the kind of machine included."""
    content = hashlib.sha256(f"{sys.platform} {platform.machine()} {_command(Path())}".encode())
    files = [FOLDER / "go.mod", FOLDER / "go.sum"]
    for path in files + (language_host_files() if with_language_host else []):
        content.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return content.hexdigest()[:12]


def install(version: str, into: Path) -> None:
    """Put the CLI and our language host into the folder `into`.

    The CLI alone is kept in the cache as well, since a change of the language host needs no new build.

    Raises:
        UnavailableError: There is no Go that can build it, or the build fails, e.g. without network.
    """
    built = cache.filled(cache.root() / f"go-{version}-{digest(with_language_host=False)}", _build)
    os.link(built / "pulumi", into / "pulumi")
    for path in language_host_files():
        shutil.copy(path, into / path.name)


def _build(into: Path) -> None:
    environment = {"GOTOOLCHAIN": toolchain(_installed_go(), _from_go_mod(r"^go (\S+)$")), "GOWORK": "off"}
    steps.run(
        f"building {locked_version()} from its Go module (once, 1 to 10 minutes)",
        _command(into / "pulumi"),
        into.parent / "log",
        timeout_seconds=3600,
        cwd=FOLDER,
        env=environment,
    )


def _command(output: Path) -> list[str]:
    flags = f"-s -w -X {VERSION_VARIABLE}=v{locked_version()}"
    return ["go", "build", "-mod=readonly", "-ldflags", flags, "-o", str(output), PACKAGE]


def _installed_go() -> str:
    """The version of the `go` on PATH, e.g. 1.26.8; empty when there is none that runs."""
    if shutil.which("go") is None:
        return ""
    # In a folder without a go.mod, whose `go` line could make an older Go fetch another one.
    answer = subprocess.run(["go", "version"], check=False, capture_output=True, text=True, cwd="/").stdout
    found = re.search(r"go(\d+\.\S+)", answer)
    return found[1] if found else ""


def toolchain(installed: str, needed: str) -> str:
    """The value of GOTOOLCHAIN with which Go `installed` can build a module that needs Go `needed`.

    Raises:
        UnavailableError: There is no Go, or one from before Go could fetch a newer one.
    """
    if not installed:
        raise steps.UnavailableError(f"there is no Go on PATH ({needed} or newer can build it)")
    if release(installed) >= release(needed):
        return "local"
    if release(installed) >= FIRST_GO_THAT_FETCHES_ANOTHER:
        steps.say(f"Go {installed} is older than {needed}, so it will fetch that one for this build")
        return "auto"
    raise steps.UnavailableError(f"the Go on PATH is {installed} ({needed} or newer can build it)")


def _from_go_mod(pattern: str) -> str:
    match = re.search(pattern, (FOLDER / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise ValueError(f"tools/go.mod does not match {pattern}")
    return match[1]

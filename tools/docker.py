"""Gets onto this machine what the tests with real containers need: an engine, a registry, buildx and a base image.

The engine and the registry are Debian's packages; buildx is in none of them and is built from its Go module; a machine
that reaches no public registry of images gets its base image by debootstrap. The last two are made once, into a folder
of the user's cache.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tools import cache, steps

if TYPE_CHECKING:
    from collections.abc import Callable

BUILDX = "0.38.2"
PROGRAMS = {
    "dockerd": "docker.io",
    "docker": "docker.io",
    "docker-registry": "docker-registry",
    "debootstrap": "debootstrap",
    "iptables": "iptables",
}
"""What must be on PATH, and the Debian package that has it."""

_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_run = functools.partial(steps.run, about="docker")


def ensure() -> Path:
    """Return the folder with `buildx/docker-buildx` and `base/base.tar`, having installed what is missing.

    Raises:
        UnavailableError: Something cannot be had here; the message says what.
    """
    folder = cache.root("docker")
    with cache.locked(folder):
        suite = _suite()
        _install_packages(folder / "log")
        _made(folder / "buildx", BUILDX, _build_buildx)
        _made(folder / "base", f"{suite}-{_digest_of_certificates()}", functools.partial(_make_base, suite))
    return folder


def _made(folder: Path, version: str, make: Callable[[Path], None]) -> None:
    """Make a folder's content where it is missing, damaged or of another version."""
    mark = folder / "version"
    if cache.complete(folder) and mark.read_text() == version:
        return
    shutil.rmtree(folder, ignore_errors=True)

    def fill(staging: Path) -> None:
        make(staging)
        (staging / mark.name).write_text(version)

    cache.filled(folder, fill)


def _install_packages(log: Path) -> None:
    # dockerd and iptables are in /usr/sbin, which is not on everybody's PATH.
    missing = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program, path=_path())})
    if not missing:
        return
    apt = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    apt += ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "--yes"]
    _run("updating the lists of packages", [*apt, "update"], log, timeout_seconds=300)
    install = [*apt, "install", "--no-install-recommends", *missing]
    _run(f"installing {', '.join(missing)}", install, log, timeout_seconds=900)


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def _build_buildx(into: Path) -> None:
    """Build the version that this file names; its own go.mod locks the rest, and Go's checksum database vouches."""
    package = "github.com/docker/buildx"
    argv = ["go", "install", "-trimpath", "-ldflags", f"-s -w -X {package}/version.Version=v{BUILDX}"]
    _run(
        f"building buildx {BUILDX} from its Go module (once, 1 to 5 minutes)",
        [*argv, f"{package}/cmd/buildx@v{BUILDX}"],
        into.parent / "log",
        timeout_seconds=3600,
        cwd=into,
        env={"GOBIN": str(into), "GOFLAGS": "-mod=mod", "GOWORK": "off"},
    )
    (into / "buildx").rename(into / "docker-buildx")


def _make_base(suite: str, into: Path) -> None:
    """Make a small Debian as a file that `docker import` takes; it trusts the certificates that this machine does."""
    tree = into / "tree"
    argv = ["debootstrap", "--variant=minbase", "--include=ca-certificates", suite, str(tree), _mirror(suite)]
    sudo = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    log = into.parent / "log"
    try:
        _run(f"making a Debian {suite} base image (once, 1 to 3 minutes)", [*sudo, *argv], log, timeout_seconds=1800)
        if _CERTIFICATES.exists():
            shutil.copy(_CERTIFICATES, tree / _CERTIFICATES.relative_to("/"))
        tar = ["tar", "--directory", str(tree), "--exclude=./var/cache/apt/archives/*.deb", "--create", "--file"]
        _run("packing it", [*sudo, *tar, str(into / "base.tar"), "."], log, timeout_seconds=300)
    finally:
        subprocess.run([*sudo, "rm", "-rf", str(tree)], check=True)


def _suite() -> str:
    """The release of Debian that this machine is, which its base image will be too."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    if release.get("ID") != "debian":
        raise steps.UnavailableError("the tests with real containers need Debian, and this is another system")
    return release["VERSION_CODENAME"]


def _mirror(suite: str) -> str:
    """The site that this machine's apt takes Debian from."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)"], check=True, capture_output=True, text=True
    ).stdout
    for line in listed.splitlines():
        site, _, release = line.partition(" ")
        if release == suite:
            return site
    raise steps.UnavailableError(f"apt has no source for Debian {suite}")


def _digest_of_certificates() -> str:
    return hashlib.sha256(_CERTIFICATES.read_bytes()).hexdigest()[:12] if _CERTIFICATES.exists() else ""


def main() -> int:
    """Print the folder; the exit code is 1, with a sentence on standard error, when something cannot be had."""
    try:
        click.echo(ensure())
    except steps.UnavailableError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

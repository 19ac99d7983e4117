"""Folders in the user's cache that are either complete or not there, also when two processes want the same one."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tools.steps import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MANIFEST = "manifest.json"


def root(tool: str = "pulumi") -> Path:
    """The folder that every checkout of this user shares, outside them all (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "rl-batch" / tool


def complete(folder: Path) -> bool:
    """Whether the folder still is what was put there: every file with its size, time and permissions."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        return bool(manifest == _describe(folder))
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def locked(folder: Path | None = None) -> Iterator[None]:
    """Let one process at a time change the cache, and remove what a killed one left; the lock goes with the process."""
    folder = folder or root()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another process that is installing it")
            fcntl.flock(file, fcntl.LOCK_EX)
        for left_behind in folder.glob("tmp-*"):
            shutil.rmtree(left_behind, ignore_errors=True)
        yield


def filled(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Return the complete folder, having `fill` make its content first where it is missing or damaged.

    The content is made in a temporary folder beside it and renamed, so that a process that is stopped half-way leaves
    nothing that looks complete. To be called with the cache locked.
    """
    if complete(folder):
        return folder
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=folder.parent) as temporary:
        staging = Path(temporary) / folder.name
        staging.mkdir()
        fill(staging)
        (staging / MANIFEST).write_text(json.dumps(_describe(staging)))
        if folder.exists():
            shutil.rmtree(folder)
        staging.rename(folder)
    return folder


def _describe(folder: Path) -> dict[str, list[int]]:
    return {
        str(path.relative_to(folder)): [status.st_size, status.st_mtime_ns, status.st_mode]
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST and "__pycache__" not in path.parts
        for status in [path.stat()]
    }

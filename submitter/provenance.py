"""Where a command was typed: the git commit, so that a sweep can be traced to its code."""

import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Commit:
    """A commit, and whether the working tree differed from it (files that git ignores or does not track apart)."""

    id: str
    dirty: bool


def current_commit() -> Commit | None:
    """Return the commit of the current folder's checkout; None outside of one, before its first, or without git."""
    head = _git("rev-parse", "--verify", "HEAD")
    changes = _git("status", "--porcelain", "--untracked-files=no")
    return None if head is None or changes is None else Commit(head.strip(), bool(changes))


def git_tag() -> str | None:
    """Return `git describe --tags`, as CleanRL's benchmark script tags its runs: `v1.0.0b2-11-g5db4db7`."""
    described = _git("describe", "--tags")
    return described.strip() if described else None


def _git(*arguments: str) -> str | None:
    # Without the lock, a look at the tree never gets in the way of a git command of the user's.
    command = ["git", "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None

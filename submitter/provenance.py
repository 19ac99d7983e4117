"""Where a command was typed: the git commit, so that a sweep can be traced to its code."""

import json
import re
import subprocess
from dataclasses import dataclass
from typing import Final

_GITHUB_API: Final = "https://api.github.com"
_GITHUB_URL: Final = re.compile(r"github\.com[:/](?P<repository>[\w.-]+/[\w.-]+?)(?:\.git)?/?\s*$")
_GITHUB_SECONDS: Final = 5


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


def pull_request(commit: str, *, api: str = _GITHUB_API) -> int | None:
    """Return the number of the pull request that a commit belongs to, where `origin` is a public GitHub repository.

    None in every other case, and when GitHub gives no answer within some seconds: a tag is not worth more.
    Source: GitHub REST API, "List pull requests associated with a commit".
    """
    from urllib.request import urlopen  # noqa: PLC0415 - so that no other command pays for it

    origin = _GITHUB_URL.search(_git("remote", "get-url", "origin") or "")
    if origin is None:
        return None
    url = f"{api}/repos/{origin['repository']}/commits/{commit}/pulls"
    try:
        with urlopen(url, timeout=_GITHUB_SECONDS) as answer:  # noqa: S310 - https, by the constant above
            found = json.load(answer)
        return int(found[0]["number"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _git(*arguments: str) -> str | None:
    # Without the lock, a look at the tree never gets in the way of a git command of the user's.
    command = ["git", "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None

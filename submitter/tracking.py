"""Weights & Biases: whether a command tracks its runs, whose key it uses, and the variables that go with it.

Nothing here needs the wandb package: which variables its programs read is documented ("Environment variables" in the
W&B documentation), its modules are not.
"""

import netrc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from submitter.errors import ConfigurationError, UsageError
from submitter.grid import check_value
from submitter.provenance import Commit
from submitter.shelltext import read

API_KEY: Final = "WANDB_API_KEY"

_BASE_URL: Final = "WANDB_BASE_URL"
_PASSED_ON: Final = ("WANDB_PROJECT", "WANDB_ENTITY", _BASE_URL, "WANDB_RUN_GROUP")
_TAGS: Final = "WANDB_TAGS"
_MAX_TAG: Final = 64
_DEFAULT_URL: Final = "https://api.wandb.ai"
_TRACK: Final = ("--track", "--wandb")
_OFF: Final = frozenset({"false", "0", "no", "off"})
_WITHOUT_KEY: Final = frozenset({"offline", "dryrun", "disabled"})
"""Values of WANDB_MODE with which nothing is sent to a server."""


def tracks(command: str) -> bool:
    """Tell whether a command asks for tracking: `--track` or `--wandb`, as CleanRL's scripts have it."""
    words = [word for words in read(command).commands for word in words]
    for word, following in zip(words, [*words[1:], ""], strict=False):
        option, equals, value = word.partition("=")
        if option in _TRACK and (value if equals else following).lower() not in _OFF:
            return True
    return False


def api_key(
    given: str | None, command: str, environment: Mapping[str, str], variables: Mapping[str, str] | None = None
) -> str | None:
    """Return the key: the one given, else WANDB_API_KEY, else the netrc file's for the host of WANDB_BASE_URL.

    Args:
        given: The one given, if any.
        command: The command of the runs.
        environment: The caller's.
        variables: What the runs are given; WANDB_MODE may say that they need no key.

    Raises:
        ConfigurationError: There is none, and the command tracks its runs.
        UsageError: WANDB_BASE_URL is no URL.
    """
    url = environment.get(_BASE_URL) or _DEFAULT_URL
    host = _split(url).hostname or ""
    needed = tracks(command) and (variables or {}).get("WANDB_MODE") not in _WITHOUT_KEY
    key = given or environment.get(API_KEY) or _from_netrc(host, environment, needed=needed)
    if key is None and needed:
        log_in = "wandb login" if url == _DEFAULT_URL else f"wandb login --host {url}"
        raise ConfigurationError(
            f"The command tracks its runs, and there is no W&B key for {host}.",
            f"Run `{log_in}`, or set {API_KEY}{'' if variables is None else '; --env WANDB_MODE=offline needs none'}.",
        )
    return key


def variables(
    environment: Mapping[str, str], *, name: str, commit: Commit | None, more_tags: Sequence[str] = ()
) -> dict[str, str]:
    """Return the variables for W&B that a job gets: those set here, and tags that lead back to sweep and code.

    Args:
        environment: The caller's.
        name: The sweep's name.
        commit: The commit that the command was typed at.
        more_tags: Further tags.

    Raises:
        UsageError: The server's URL has a password in it, or a variable is no text.
    """
    passed = {variable: environment[variable] for variable in _PASSED_ON if environment.get(variable)}
    for variable in (*_PASSED_ON, _TAGS):
        check_value(variable, environment.get(variable, ""))
    if "@" in _split(passed.get(_BASE_URL, "")).netloc:
        raise UsageError(f"{_BASE_URL} has a user or password in it, and every job would show it.", "Leave it out.")
    tags = [tag for tag in environment.get(_TAGS, "").split(",") if tag]
    tags += [name, *([f"git-{commit.id[:12]}"] if commit else []), *more_tags]
    return passed | {_TAGS: ",".join(dict.fromkeys(tag[:_MAX_TAG] for tag in tags))}


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise UsageError(f"{_BASE_URL} is not a URL: {error}.", f"Write it like {_DEFAULT_URL}.") from error


def _from_netrc(host: str, environment: Mapping[str, str], *, needed: bool) -> str | None:
    """Return the password of the host's own entry: the file's `default` is for other servers, and no key."""
    path = Path(environment.get("NETRC") or Path.home() / ".netrc")
    try:
        entry = netrc.netrc(str(path)).hosts.get(host)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, netrc.NetrcParseError):
        if not needed:
            return None
        # Not chained: a message about what is not understood there may show a password.
        raise ConfigurationError(f"{path} cannot be read as a netrc file.", f"Correct it, or set {API_KEY}.") from None
    return entry[2] or None if entry else None

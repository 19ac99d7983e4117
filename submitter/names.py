"""Names of sweeps, runs and jobs: what AWS Batch and Weights & Biases accept, and no two things under one name."""

import hashlib
import re
import secrets
import shlex
from pathlib import PurePosixPath
from typing import Final

from submitter.errors import UsageError

MAX_NAME: Final = 128
"""Characters of a job's or job definition's name: letters, digits, `_` and `-`, the first one a letter or digit.

Source: AWS Batch API reference, SubmitJob and RegisterJobDefinition.
"""

SWEEP_TAG: Final = "rl-batch:sweep"
"""The tag of a job that says owner/name of the sweep that it belongs to."""

_NONCE_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_SWEEP_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_NOT_SAFE: Final = re.compile(r"[^A-Za-z0-9_-]+|^[_-]+", re.ASCII)


def new_nonce() -> str:
    """Return ten random letters and digits: the start of a generation's job names and W&B run ids.

    Lower case only, because ListJobs compares names without regard to case.
    """
    return "".join(secrets.choice(_NONCE_LETTERS) for _ in range(10))


def run_id(nonce: str, number: int) -> str:
    """Return the WANDB_RUN_ID of a run."""
    return f"{nonce}-{number}"


def digest(*parts: str, length: int = 6) -> str:
    """Return the first hexadecimal digits of a hash that tells these texts from others."""
    whole = hashlib.sha256()
    for part in parts:
        encoded = part.encode(errors="surrogatepass")
        whole.update(b"%d:%b" % (len(encoded), encoded))
    return whole.hexdigest()[:length]


def safe_name(text: str, limit: int = MAX_NAME) -> str:
    """Return the text as a name of at most `limit` characters that AWS Batch accepts.

    Where something had to be replaced or cut, a short hash of the whole text follows, so that `a.b` and `a-b` stay two.
    """
    name = _NOT_SAFE.sub(lambda match: "" if match.start() == 0 else "-", text)
    if name == text and 0 < len(name) <= limit:
        return name
    mark = digest(text)
    return f"{name[: limit - len(mark) - 1]}-{mark}".lstrip("-")


def owner_name(caller: str) -> str:
    """Return the owner part of a sweep's full name for the caller's name as STS gives it (`ada@example.com`)."""
    return safe_name(caller, 64)


def check_sweep_name(name: str) -> str:
    """Return the name that the user gave a sweep.

    Raises:
        UsageError: It has characters that names may not have, or is too long.
    """
    if not _SWEEP_NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a name for a sweep.",
            "Use up to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit.",
        )
    return name


def sweep_name(command: str, image: str) -> str:
    """Return the name of a sweep that was given none: its script, and a hash of the command and image.

    More seeds or other values of an axis leave it unchanged, so that they extend the sweep.
    """
    return f"{safe_name(_script(command), 40)}-{digest(command.strip(), image)}"


def job_name(sweep: str, nonce: str, entry: int, slot: int) -> str:
    """Return the job name `<sweep>-<nonce>-<n>-<i>`, used for one SubmitJob in the life of the account.

    The owner in `owner/name` is left out; sweeps of one name have different nonces.
    """
    tail = f"-{nonce}-{entry}-{slot}"
    return safe_name(sweep.rpartition("/")[2], MAX_NAME - len(tail)) + tail


def _script(command: str) -> str:
    """Return the script that a command runs: the first word like a file or module of code, else the first program."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    for before, word in zip(["", *words], words, strict=False):
        if before == "-m":
            return word.rpartition(".")[2]
        if (path := PurePosixPath(word)).suffix in {".py", ".sh", ".R", ".jl"}:
            return path.stem
    programs = [word for word in words if "=" not in word]
    return PurePosixPath(programs[0]).name if programs else "run"

"""What an image's registry holds under a name, asked while other things are done.

Docker's buildx is asked first: it needs no daemon and reads the image's ENTRYPOINT too. Where there is none, the Docker
Engine is, through the docker package: it knows the digest and the platforms.
"""

import json
import math
import os
import re
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final, Self

from submitter.errors import ConfigurationError

_SECONDS: Final = 20
"""How long a registry has for its answer."""

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")

_MOST_OUT: Final = 64 * 1024 * 1024
_MOST_ERR: Final = 64 * 1024
"""Bytes of what docker prints that are read: an image's software bill of materials may be long, an error is not."""

ODD: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading an answer raises that has not what it should have."""

_WIDTH: Final = 500
"""Characters of what Docker says that people are shown."""

_SOCKET: Final = Path("/var/run/docker.sock")

_NAMES: Final = {"amd64": "x86_64", "arm64": "arm64"}
"""Docker's names of the architectures that queues have, and the queues' own."""


@dataclass(frozen=True)
class Published:
    """What a registry holds under a name.

    Attributes:
        digest: `sha256:...` of the image, or of its list of platforms.
        architectures: Those that it can run on, as queues name them; empty when it does not say.
        entrypoint: The program that gets the command as its arguments; empty when there is none, or none is known.
    """

    digest: str
    architectures: frozenset[str]
    entrypoint: tuple[str, ...] = ()


class LookUp:
    """One question to a registry, asked at once and answered by :attr:`published`; leaving the context drops it.

    Args:
        image: The image's name.
    """

    def __init__(self, image: str) -> None:
        self.image = image
        self._buildx: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = ["docker", "buildx", "imagetools", "inspect", "--format", "{{json .}}", self.image]
        pipe = subprocess.PIPE
        try:
            self._buildx = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError:
            return self
        self._out, self._err = _Beginning(self._buildx.stdout, _MOST_OUT), _Beginning(self._buildx.stderr, _MOST_ERR)
        return self

    def __exit__(self, *_: object) -> None:
        if self._buildx is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._buildx.pid, signal.SIGKILL)  # docker has a process of its own for buildx
        self._buildx.wait()

    @cached_property
    def published(self) -> Published:
        """What the registry holds.

        Raises:
            ConfigurationError: There is no Docker here, or the registry gives no answer.
        """
        if self._buildx is None:
            return _by_engine(self.image)
        until = time.monotonic() + _SECONDS
        try:
            self._buildx.wait(_SECONDS)
            out, err = self._out.read(until), self._err.read(until)
        except (subprocess.TimeoutExpired, TimeoutError):
            raise ConfigurationError(f"`docker buildx imagetools` gave no answer in {_SECONDS} seconds.") from None
        if self._buildx.returncode:
            if is_without_buildx(err):
                return _by_engine(self.image)
            raise ConfigurationError(f"`docker buildx imagetools` failed: {in_one_line(err, self._buildx.returncode)}")
        try:
            return _read(json.loads(out))
        except ODD:
            raise ConfigurationError("`docker buildx imagetools` answered something else than an image.") from None


class _Beginning:
    """Reads a pipe to its end and keeps its beginning: what writes never waits, and whatever it writes has room.

    Args:
        pipe: Closed when it has ended.
        kept: How many bytes are kept, about.
    """

    def __init__(self, pipe: IO[bytes] | None, kept: int) -> None:
        self._chunks: list[bytes] = []
        self._thread = threading.Thread(target=self._collect, args=(pipe, kept), daemon=True)
        self._thread.start()

    def _collect(self, pipe: IO[bytes], kept: int) -> None:
        with pipe:
            while chunk := os.read(pipe.fileno(), 65_536):
                if kept > 0:
                    self._chunks.append(chunk)
                    kept -= len(chunk)

    def read(self, until: float) -> str:
        """Return the text.

        Raises:
            TimeoutError: It has not ended by that time of the monotonic clock.
        """
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            raise TimeoutError
        return b"".join(self._chunks).decode(errors="replace")


def _read(found: Any) -> Published:
    """Read what buildx prints."""
    manifest, image = found["manifest"], found.get("image") or {}
    platforms = [each.get("platform") or {} for each in manifest["manifests"]] if "manifests" in manifest else [image]
    return Published(_digest(manifest["digest"]), _architectures(platforms), _entrypoint(image))


def is_without_buildx(stderr: str) -> bool:
    """Tell whether it is docker that has failed, since it has no buildx: it answers with its own usage then."""
    return any(words in stderr for words in ("not a docker command", "unknown command", "docker [OPTIONS] COMM"))


def in_one_line(stderr: str, code: int) -> str:
    """Return what a docker command said when it failed."""
    return " ".join(stderr.split()).removeprefix("ERROR: ")[:_WIDTH] or f"exit code {code}"


def own_name(architecture: str) -> str:
    """Return the name that queues have for what Docker names so: `x86_64` for `amd64`."""
    return _NAMES.get(architecture, architecture)


def docker_platform(architecture: str) -> str:
    """Return Docker's name of the platform that a queue's instances are."""
    return next(f"linux/{name}" for name, own in _NAMES.items() if own == architecture)


def _by_engine(image: str) -> Published:
    """Ask the Docker Engine, which uses the log-ins that the user has.

    Raises:
        ConfigurationError: There is none, or the registry gives no answer.
    """
    if "DOCKER_HOST" not in os.environ and not _SOCKET.exists():
        raise ConfigurationError("There is neither Docker's buildx nor a Docker daemon here.")
    from docker.errors import APIError, DockerException  # noqa: PLC0415 - takes a while, and is rarely needed

    from submitter.engine import connect  # noqa: PLC0415 - as above

    until = time.monotonic() + _SECONDS
    client = connect(dict(os.environ), seconds=_SECONDS // 4).client
    client.api.timeout = math.ceil(until - time.monotonic())
    try:
        found = client.images.get_registry_data(image)
        return Published(_digest(found.id), _architectures(found.attrs["Platforms"]))
    except (DockerException, OSError) as error:  # what requests raises is an OSError
        said = error.explanation if isinstance(error, APIError) else error
        raise ConfigurationError(f"The Docker Engine says: {' '.join(str(said).split())[:_WIDTH]}") from error
    except ODD:
        raise ConfigurationError("The Docker Engine answered something else than an image.") from None
    finally:
        client.close()


def _architectures(platforms: list[dict[str, Any]]) -> frozenset[str]:
    """Return those that are named; attestations are `unknown`."""
    named = (each.get("architecture") for each in platforms)
    return frozenset(own_name(_text(name)) for name in named if name and name != "unknown")


def _entrypoint(image: dict[str, Any]) -> tuple[str, ...]:
    """Read it from the one image's configuration, or from the first of several platforms'."""
    one = image if "architecture" in image else next(iter(image.values()), {})
    words = (one.get("config") or {}).get("Entrypoint") or []
    if not isinstance(words, list):
        raise TypeError(words)
    return tuple(map(_text, words))


def _digest(value: Any) -> str:
    if not _DIGEST.fullmatch(value):
        raise ValueError(value)
    return _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value

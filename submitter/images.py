"""Images: what a reference names, and how Docker's buildx is asked to build and push one.

Everything goes through the docker command line, which knows the user's builders, contexts and log-ins.
"""

import base64
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Self

from submitter.errors import ConfigurationError, UsageError
from submitter.registry import docker_platform, in_one_line, is_without_buildx, own_name

if TYPE_CHECKING:
    import boto3

DEFAULT_ARCHS: Final = "linux/amd64"

_NO_DOCKER: Final = "Install Docker and its buildx plugin: https://docs.docker.com/engine/install/"
_NEW_BUILDER: Final = "docker buildx create --name rl-batch --driver docker-container --use"
_EMULATE: Final = "docker run --privileged --rm tonistiigi/binfmt --install all"
_REMOTE: Final = "docker buildx create --name rl-batch --append --platform linux/arm64 ssh://USER@ARM-HOST"


# Source: the grammar of distribution/reference, whose names of hosts have a dot or a port here, or are localhost; for
# it, a first part in upper case is a host as well, of which there is none.
_HOST: Final = r"(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+(?=:)|\[[A-Fa-f0-9:]+\])(?::[0-9]+)?"
_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE: Final = re.compile(
    rf"(?P<repository>(?:{_HOST}/)?{_PART}(?:/{_PART})*)(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)
_MAX_REPOSITORY: Final = 255
_EXAMPLE: Final = "ghcr.io/lab/trainer:v1"


@dataclass(frozen=True)
class Reference:
    """An image's name taken apart: `host:5000/repository:tag@sha256:...`.

    Attributes:
        repository: The name without tag and digest.
        tag: The tag, when there is one.
        digest: `sha256:...`, when there is one; then the tag says nothing.
    """

    repository: str
    tag: str | None = None
    digest: str | None = None

    @classmethod
    def parse(cls, image: str) -> Self:
        """Take a name apart; a colon before the last slash belongs to the registry's port."""
        name, _, digest = image.partition("@")
        folder, slash, last = name.rpartition("/")
        last, _, tag = last.partition(":")
        return cls(f"{folder}{slash}{last}", tag or None, digest or None)

    @property
    def registry(self) -> str | None:
        """The registry's host, when the name begins with one: it has a dot or a port, or is localhost."""
        first, slash, _ = self.repository.partition("/")
        return first if slash and ("." in first or ":" in first or first == "localhost") else None


def check_reference(image: str) -> str:
    """Return an image's name that Docker takes.

    Raises:
        UsageError: It is none.
    """
    named = _REFERENCE.fullmatch(image)
    if named is None or len(named["repository"]) > _MAX_REPOSITORY:
        raise UsageError(
            f"{image!r} is not an image's name.", f"Write it like {_EXAMPLE}, all but a tag in lower case."
        )
    return image


def pinned(image: str, digest: str | None) -> str:
    """Return the name that always means the image with this digest; the name itself when there is none."""
    return image if digest is None else f"{Reference.parse(image).repository}@{digest}"


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """What to build.

    Attributes:
        image: The name that it gets, with a tag or without.
        archs: Platforms, such as `linux/arm64,linux/amd64`.
        push: Whether it goes to its registry; otherwise into Docker's own store.
        folder: The build's context, with the Dockerfile in it.
        build_args: `NAME=VALUE` texts for the Dockerfile's ARG lines.
    """

    image: str
    archs: str = DEFAULT_ARCHS
    push: bool = False
    folder: Path = Path()
    build_args: tuple[str, ...] = ()

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms, each once."""
        return tuple(dict.fromkeys(part.strip() for part in self.archs.split(",") if part.strip()))

    def argv(self) -> list[str]:
        """Return the command, as CleanRL has it."""
        output = "--output=type=registry" if self.push else "--output=type=docker"
        platforms = ",".join(self.platforms)
        more = [word for build_arg in self.build_args for word in ("--build-arg", build_arg)]
        return ["docker", "buildx", "build", output, "--platform", platforms, *more, "-t", self.image, str(self.folder)]


def check_build(options: BuildOptions) -> None:
    """Check what can be seen without Docker.

    Raises:
        UsageError: No build of this kind can work.
    """
    if Reference.parse(options.image).digest:
        raise UsageError(
            f"{options.image} names an image that is there already.", "Give a name with a tag, without @sha256:..."
        )
    if not options.platforms:
        raise UsageError("--archs names no platform.", f"Write it like --archs linux/arm64,{DEFAULT_ARCHS}.")
    if len(options.platforms) > 1 and not options.push:
        raise UsageError(
            "An image for several platforms does not go into Docker's own store.",
            "Add --push, so that it goes to its registry, or build one of the platforms.",
        )
    if not (options.folder / "Dockerfile").is_file():
        raise UsageError(f"There is no Dockerfile in {options.folder.absolute()}.", "Run it where the Dockerfile is.")


def build(options: BuildOptions) -> str | None:
    """Build an image, and push it where that is asked for; Docker's own words go to standard error.

    Returns:
        The digest of what was pushed, or None.

    Raises:
        ConfigurationError: The builder cannot build for these platforms, or Docker failed; nothing is retried.
        UsageError: See :func:`check_build`.
    """
    check_build(options)
    _check_builder(options)
    with TemporaryDirectory() as temporary:
        metadata = Path(temporary) / "metadata.json"
        command = options.argv()
        command[3:3] = ["--metadata-file", str(metadata)]
        try:
            # Whoever reads standard output wants the command's own result.
            code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2, check=False).returncode
        except OSError as error:
            raise ConfigurationError(f"Cannot run `docker`: {error.strerror}.", _NO_DOCKER) from error
        if code:
            what = "built and pushed" if options.push else "built"
            raise ConfigurationError(
                f"{options.image} could not be {what}: docker exited with {code}.", "Its own message is above."
            )
        written = json.loads(metadata.read_text()) if metadata.exists() else {}
    digest: str | None = written.get("containerimage.digest")
    return digest if options.push else None


def _check_builder(options: BuildOptions) -> None:
    """Check that the selected builder can do it, before a build that would fail after minutes.

    Raises:
        ConfigurationError: It cannot; the remedy has the commands.
    """
    shown = _docker("buildx", "inspect", "--bootstrap")
    facts: dict[str, list[str]] = {}
    for line in shown.splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), []).append(value.strip())
    platforms = {
        part.strip().rstrip("*") for line in facts.get("Platforms", []) for part in line.split(",") if part.strip()
    }
    missing = [platform for platform in options.platforms if platform not in platforms]
    if platforms and missing:
        raise ConfigurationError(
            f"The builder {facts.get('Name', ['in use'])[0]} cannot build for {', '.join(missing)}.",
            f"Emulate it: `{_EMULATE}`; or make a builder, `{_NEW_BUILDER}`, and give it a machine of that kind: "
            f"`{_REMOTE}`.",
        )
    if len(options.platforms) > 1 and "docker" in facts.get("Driver", []):
        raise ConfigurationError(
            "Docker's default builder builds for one platform at a time.", f"Make another: `{_NEW_BUILDER}`."
        )


def _docker(*arguments: str, text: str = "") -> str:
    """Run a docker command and return what it prints.

    Raises:
        ConfigurationError: There is no docker, or it fails; in its own words.
    """
    try:
        done = subprocess.run(
            ["docker", *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise ConfigurationError(f"Cannot run `docker`: {error.strerror}.", _NO_DOCKER) from error
    if done.returncode:
        if is_without_buildx(done.stderr):
            raise ConfigurationError("Docker has no buildx.", _NO_DOCKER)
        said = in_one_line(done.stderr, done.returncode)
        raise ConfigurationError(f"`docker {arguments[0]} {arguments[1]}` failed: {said}")
    return done.stdout


def check_platforms(options: BuildOptions, architecture: str, queue: str) -> None:
    """Check that what is to be built can run on the instances of a queue.

    Raises:
        UsageError: None of the platforms is theirs.
    """
    if architecture not in {own_name(platform.split("/")[1]) for platform in options.platforms if "/" in platform}:
        raise UsageError(
            f"--archs {options.archs} builds nothing that the instances of {queue} can run: they are {architecture}.",
            f"Add {docker_platform(architecture)} to it.",
        )


def is_ecr(image: str) -> bool:
    """Tell whether an image is in a registry of Amazon ECR, which wants a log-in of its own."""
    registry = Reference.parse(image).registry or ""
    return ".dkr.ecr." in registry and ".amazonaws.com" in registry


def log_in_to_ecr(session: "boto3.Session", image: str) -> None:
    """Log docker in to the image's registry, for twelve hours; the token goes through docker's standard input.

    Source: Amazon ECR User Guide, "Private registry authentication".

    Raises:
        ConfigurationError: Docker could not log in.
    """
    registry = Reference.parse(image).registry or ""
    region = registry.split(".dkr.ecr.")[1].split(".")[0]
    answer = session.client("ecr", region_name=region).get_authorization_token()
    token = base64.b64decode(answer["authorizationData"][0]["authorizationToken"]).decode()
    user, _, password = token.partition(":")
    _docker("login", "--username", user, "--password-stdin", registry, text=password)

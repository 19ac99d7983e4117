"""Whether a queue's instances can run an image, as far as its registry tells; asked before anything is changed."""

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Final

from infra.outputs import Queue
from submitter.errors import ConfigurationError, UsageError
from submitter.registry import LookUp, Published, docker_platform

_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh"})


def check_image(look_up: LookUp, queue: Queue, *, say: Callable[[str], None]) -> Published | None:
    """Return what the image's registry holds, or None where it cannot be asked; then `say` is told.

    Raises:
        UsageError: Every run would fail when it starts.
    """
    try:
        published = look_up.published
    except ConfigurationError as error:
        say(f"Whether {look_up.image} is made for {queue.architecture} could not be checked. {error.message}")
        return None
    check_architecture(look_up.image, published, queue.architecture, queue.name)
    check_entrypoint(look_up.image, published.entrypoint)
    return published


def check_architecture(image: str, published: Published, architecture: str, queue: str) -> None:
    """Check that instances of a queue can run the image.

    Raises:
        UsageError: It is for other ones only: each of its jobs would fail when it starts.
    """
    there = published.architectures
    if there and architecture not in there:
        raise UsageError(
            f"{image} is for {', '.join(sorted(there))}, and the instances of {queue} are {architecture}.",
            f"Build it for both, with --build --push --archs {docker_platform(architecture)},..., or choose another "
            "queue.",
        )


def check_entrypoint(image: str, entrypoint: Sequence[str]) -> None:
    """Check that an image's ENTRYPOINT lets the command through: on Batch it cannot be replaced, and stands before it.

    Raises:
        UsageError: It is an interpreter, which would take the command's words for its own. What is not known, such as
            a script that ends in `exec "$@"`, passes.
    """
    if not entrypoint:
        return
    program = PurePosixPath(entrypoint[0]).name
    inline = any(option.startswith("-") and option.endswith("c") for option in entrypoint[1:2])
    if program.startswith("python") or (program in _SHELLS and (inline or len(entrypoint) == 1)):
        raise UsageError(
            f"The ENTRYPOINT of {image}, {' '.join(entrypoint)}, would not run the command but read it as arguments.",
            'Build the image without ENTRYPOINT, or with a script that ends in exec "$@".',
        )

"""Whether a queue's instances can run an image, as far as its registry tells; asked before anything is changed."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Final

from infra.outputs import Queue
from submitter import images
from submitter.errors import ConfigurationError, UsageError

_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh"})


def check_image(image: str, queue: Queue, *, say: Callable[[str], None]) -> images.Published | None:
    """Return what the image's registry holds, or None where it cannot be asked; then `say` is told.

    Nothing is said where nobody could expect it: without Docker, for a queue of the usual architecture.

    Raises:
        UsageError: Every run would fail when it starts.
    """
    try:
        published = images.look_up(image)
    except ConfigurationError as error:
        if queue.architecture != "x86_64" or shutil.which("docker"):
            say(f"Whether {image} is made for {queue.architecture} could not be checked. {error.message}")
        return None
    images.check_architecture(image, published, queue.architecture, queue.name)
    check_entrypoint(image, published.entrypoint)
    return published


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

"""Whether what is typed under a sweep's name is that sweep. Pure."""

from collections.abc import Iterator

from submitter.errors import UsageError
from submitter.history import Record


def check_same(sweep: str, asked: Record, begun: Record | None) -> None:
    """Refuse what is another sweep under the same name, or would have another image.

    Args:
        sweep: owner/name.
        asked: What is typed now.
        begun: What the sweep was begun with; None where nothing was.

    Raises:
        UsageError: The command, how it gets its values, the image or the axes differ.
    """
    if begun is None:
        return
    check_words(sweep, asked, begun)
    if _is_another_image(asked, begun):
        moved = (
            f"{asked.image} has become another image"
            if asked.digest
            else f"whether {asked.image} is still that cannot be told here"
        )
        raise UsageError(
            f"The sweep {sweep} was begun with {begun.digest}, and {moved}.",
            "Go on with that one by --keep-image, give this one another --name, or begin the sweep afresh with --new.",
        )


def check_words(sweep: str, asked: Record, begun: Record) -> None:
    """Check all but what the image's name means now: before an image is built.

    Raises:
        UsageError: The command, how it gets its values, the image's name or the axes differ.
    """
    for what, now, then in _differences(asked, begun):
        raise UsageError(
            f"The sweep {sweep} was begun with {what} {then!r}, not {now!r}.",
            "Give this one another --name, or begin the sweep afresh with --new.",
        )


def is_same(asked: Record, begun: Record) -> bool:
    """Tell whether what is typed is the sweep that was begun, with the same image."""
    return next(_differences(asked, begun), None) is None and not _is_another_image(asked, begun)


def _differences(asked: Record, begun: Record) -> Iterator[tuple[str, str, str]]:
    """Yield what differs in all but what the image's name means: in words, now and then."""
    for what, now, then in (
        ("the command", asked.command, begun.command),
        ("the image", asked.image, begun.image),
        ("the axes", ", ".join(asked.axes) or "none", ", ".join(begun.axes) or "none"),
        *((f"--{name}", _option(asked, name), _option(begun, name)) for name in ("arg-style", "seed-flag", "no-seed")),
    ):
        if now != then:
            yield what, now, then


def _is_another_image(asked: Record, begun: Record) -> bool:
    return bool(begun.digest) and asked.digest != begun.digest


def _option(record: Record, name: str) -> str:
    """Return an option as it was typed; a flag as yes or no."""
    kept = record.options.get(name.replace("-", "_"), False)
    return str({True: "yes", False: "no"}.get(kept, kept))

"""What the user gives jobs by name: `--env NAME=VALUE` and `--tag NAME=VALUE`. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from submitter.errors import UsageError

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SECRET_WORDS: Final = frozenset(
    {"APIKEY", "CREDENTIAL", "CREDENTIALS", "KEY", "PASSPHRASE", "PASSWD", "PASSWORD", "SECRET", "TOKEN"}
)
_SET_FOR_EACH_RUN: Final = frozenset({"SUBMITTER_ARTIFACTS", "SUBMITTER_WANDB_RETRY", "WANDB_RUN_ID"})

# Source: AWS Batch user guide, "Tag your AWS Batch resources".
_MAX_TAG_NAME: Final = 128
_MAX_TAG_VALUE: Final = 256
_MAX_TAGS: Final = 50
_OWN_TAGS: Final = "rl-batch:"
_TAG_TEXT: Final = re.compile(r"[\w\s.:/=+@-]*")


def parse_variables(options: Sequence[str]) -> dict[str, str]:
    """Read the `--env` options; of a name given twice the last value counts.

    Raises:
        UsageError: No name or value, a name that variables cannot have, that AWS or the submitter sets itself, or that
            is a secret's: whoever may describe jobs can read their variables.
    """
    variables = {}
    for option in options:
        name, equals, value = option.partition("=")
        if _is_secret(name):
            remedy = "Give it with --secret {0}: then AWS hands it to the job, and nobody else."
            if name == "WANDB_API_KEY":
                remedy = "Leave it out: the key of --wandb-key, of your environment or of `wandb login` is handed over."
            raise UsageError(f"--env would show {name} to all who may look at jobs.", remedy.format(name))
        if not _VARIABLE.fullmatch(name):
            raise UsageError(
                f"--env has {name!r}, which is not a name for a variable.",
                "Write --env NAME=VALUE; a name has letters, digits and underscores.",
            )
        if not equals:
            raise UsageError(f"--env {option} has no value.", f"Write --env {option}=VALUE.")
        _check_free(name)
        if "\0" in value:
            raise UsageError(f"The value of {name} holds a NUL character.", "Remove it.")
        variables[name] = value
    return variables


def check_secret_names(names: Sequence[str], variables: Iterable[str]) -> None:
    """Check the names of the `--secret` options.

    Args:
        names: The names.
        variables: The names of the `--env` options.

    Raises:
        UsageError: It is none that a variable can have, the submitter sets it itself, or `--env` gives it too.
    """
    for name in names:
        if not _VARIABLE.fullmatch(name):
            shown = name.partition("=")[0]  # what follows may be the value
            raise UsageError(f"--secret {shown!r} is not a variable's name.", "Give the name alone, and set its value.")
        _check_free(name)
        if name in variables:
            raise UsageError(f"{name} is given by --env and by --secret.", "Leave out one of them.")


def parse_tags(options: Sequence[str]) -> dict[str, str]:
    """Read the `--tag` options; of a name given twice the last value counts.

    Raises:
        UsageError: No name or value, or what AWS Batch takes no tag for.
    """
    tags = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise UsageError(f"--tag {option} is not a name and a value.", "Write it like --tag project=exploration.")
        if name.lower().startswith(("aws:", _OWN_TAGS)):
            raise UsageError(f"The tag {name} has a name that is not for you to give.", "Choose another one.")
        if len(name) > _MAX_TAG_NAME or len(value) > _MAX_TAG_VALUE:
            raise UsageError(
                f"The tag {name[:_MAX_TAG_NAME]} is longer than AWS takes.",
                f"A name has at most {_MAX_TAG_NAME} characters, a value {_MAX_TAG_VALUE}.",
            )
        if not _TAG_TEXT.fullmatch(name) or not _TAG_TEXT.fullmatch(value):
            raise UsageError(
                f"The tag {option} has characters that AWS does not take.", "It takes letters, digits and _.:/=+@-."
            )
        tags[name] = value
    if len(tags) >= _MAX_TAGS:
        raise UsageError(f"{len(tags)} tags are more than AWS takes.", f"Give at most {_MAX_TAGS - 1}.")
    return tags


def _check_free(name: str) -> None:
    if name.startswith("AWS_BATCH") or name in _SET_FOR_EACH_RUN:
        raise UsageError(f"{name} is set for each run.", "Leave it out.")


def _is_secret(name: str) -> bool:
    return not _SECRET_WORDS.isdisjoint(name.upper().split("_"))

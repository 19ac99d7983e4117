"""Reads the contract: from a Pulumi stack, a JSON file, or standard input."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from infra.outputs import ContractError, StackOutputs, from_outputs
from submitter.errors import ConfigurationError

_SAVE_OUTPUTS = (
    "Where Pulumi works, save `pulumi stack output --json` to a file; then give it here with --outputs FILE."
)


_SLOW_SECONDS: Final = 5
"""How long Pulumi may take until a person is told what is waited for."""

_SECONDS: Final = 120
"""How long Pulumi has for its answer: its backend may be far away."""


@dataclass(frozen=True, kw_only=True)
class StackSource:
    """Where the contract is to be read from.

    Attributes:
        outputs: A file with what `pulumi stack output --json` printed, or `-` for standard input; wins over the rest.
        stack: The stack's name; None for the one that is selected in `folder`.
        folder: The folder of the Pulumi program.
    """

    outputs: str | None = None
    stack: str | None = None
    folder: Path = Path()


def read_contract(source: StackSource, *, say: Callable[[str], None] = lambda _: None) -> StackOutputs:
    """Return the stack's outputs.

    Args:
        source: Where they are.
        say: Told, in a sentence, that Pulumi takes long.

    Raises:
        ConfigurationError: Nothing to read, not a contract, or Pulumi's own words where it cannot tell.
    """
    text, where = _text(source, say)
    try:
        outputs = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{where} is not JSON: {error}.", _SAVE_OUTPUTS) from error
    if not isinstance(outputs, dict):
        raise ConfigurationError(f"{where} holds no stack outputs: a JSON object is expected.", _SAVE_OUTPUTS)
    return _contract(outputs, where)


def _contract(outputs: dict[str, Any], where: str) -> StackOutputs:
    if not outputs:
        raise ConfigurationError(f"{where} has no outputs: the stack was never deployed.", "Run `pulumi up` first.")
    try:
        return from_outputs(outputs)
    except ContractError as error:
        raise ConfigurationError(str(error)) from error


def _text(source: StackSource, say: Callable[[str], None]) -> tuple[str, str]:
    """Return the JSON text and what to call the place that it came from."""
    if source.outputs == "-":
        return sys.stdin.read(), "Standard input"
    if source.outputs is not None:
        try:
            return Path(source.outputs).read_text(encoding="utf-8"), source.outputs
        except (OSError, UnicodeDecodeError) as error:
            cause = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise ConfigurationError(f"Cannot read {source.outputs}: {cause}.", _SAVE_OUTPUTS) from error
    return _from_pulumi(source, say), f"The stack {source.stack}" if source.stack else "The selected stack"


def _from_pulumi(source: StackSource, say: Callable[[str], None]) -> str:
    """Ask Pulumi, which must never ask back: no standard input, non-interactive."""
    if not source.folder.is_dir():
        raise ConfigurationError(f"There is no folder {source.folder}.", "Give the Pulumi program's with --stack-dir.")
    command = ["pulumi", "stack", "output", "--json", "--non-interactive", "--cwd", str(source.folder)]
    if source.stack is not None:
        command += ["--stack", source.stack]
    try:
        returncode, out, err = _answer(command, say)
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"`pulumi` gave no answer in {_SECONDS} seconds.", _SAVE_OUTPUTS) from None
    except OSError as error:
        raise ConfigurationError(f"Cannot run `pulumi` to read the stack: {error.strerror}.", _SAVE_OUTPUTS) from error
    if returncode != 0:
        if "no Pulumi.yaml project file found" in err:
            raise ConfigurationError(
                f"There is no Pulumi project in {source.folder.resolve()}, nor above it.",
                f"Go to the project's folder, or give it with --stack-dir. {_SAVE_OUTPUTS}",
            )
        raise ConfigurationError(
            f"Pulumi could not read the stack: {_cause(err)}",
            f"Select one with `pulumi stack select`, or name it with --stack and --stack-dir. {_SAVE_OUTPUTS}",
        )
    return out


def _answer(command: list[str], say: Callable[[str], None]) -> tuple[int, str, str]:
    """Return a program's exit code and what it has printed; when that takes too long it ends, with all of its own.

    Raises:
        subprocess.TimeoutExpired: It gave no answer in time.
        OSError: It cannot be run.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as program:
        try:
            try:
                out, err = program.communicate(timeout=_SLOW_SECONDS)
            except subprocess.TimeoutExpired:
                say(f"`{' '.join(command[:3])}` has not answered for {_SLOW_SECONDS} s: waiting.")
                out, err = program.communicate(timeout=_SECONDS - _SLOW_SECONDS)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)  # Pulumi has processes of its own, which hold the pipes
            raise
    return program.returncode, out, err


def _cause(stderr: str) -> str:
    """Return Pulumi's own words, on one line and without its prefix."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and not line.startswith("warning:")]
    return " ".join(lines).removeprefix("error: ") or "it gave no reason."

"""Reads the contract: from a Pulumi stack, a JSON file, or standard input."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.outputs import ContractError, StackOutputs, from_outputs
from submitter.errors import ConfigurationError

_SAVE_OUTPUTS = (
    "Where Pulumi works, save `pulumi stack output --json` to a file; then give it here with --outputs FILE."
)


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


def read_contract(source: StackSource) -> StackOutputs:
    """Return the stack's outputs.

    Raises:
        ConfigurationError: Nothing to read, not a contract, or Pulumi's own words where it cannot tell.
    """
    text, where = _text(source)
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


def _text(source: StackSource) -> tuple[str, str]:
    """Return the JSON text and what to call the place that it came from."""
    if source.outputs == "-":
        return sys.stdin.read(), "Standard input"
    if source.outputs is not None:
        try:
            return Path(source.outputs).read_text(encoding="utf-8"), source.outputs
        except (OSError, UnicodeDecodeError) as error:
            cause = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise ConfigurationError(f"Cannot read {source.outputs}: {cause}.", _SAVE_OUTPUTS) from error
    return _from_pulumi(source), f"The stack {source.stack}" if source.stack else "The selected stack"


def _from_pulumi(source: StackSource) -> str:
    """Ask Pulumi, which must never ask back: no standard input, non-interactive."""
    if not source.folder.is_dir():
        raise ConfigurationError(f"There is no folder {source.folder}.", "Give the Pulumi program's with --stack-dir.")
    command = ["pulumi", "stack", "output", "--json", "--non-interactive", "--cwd", str(source.folder)]
    if source.stack is not None:
        command += ["--stack", source.stack]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ConfigurationError(f"Cannot run `pulumi` to read the stack: {error.strerror}.", _SAVE_OUTPUTS) from error
    if done.returncode != 0:
        raise ConfigurationError(
            f"Pulumi could not read the stack: {_cause(done.stderr)}",
            f"Select one with `pulumi stack select`, or name it with --stack and --stack-dir. {_SAVE_OUTPUTS}",
        )
    return done.stdout


def _cause(stderr: str) -> str:
    """Return Pulumi's own words, on one line and without its prefix."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and not line.startswith("warning:")]
    return " ".join(lines).removeprefix("error: ") or "it gave no reason."

"""Runs as Weights & Biases knows them, by its public API: which have crashed, and how they were started."""

import shlex
from dataclasses import dataclass
from typing import Any

from submitter.errors import ConfigurationError, UsageError


@dataclass(frozen=True)
class WandbRun:
    """A run in a project.

    Attributes:
        id: Its id, which WANDB_RUN_ID names.
        api: W&B's own object, which asks for more when that is read.
    """

    id: str
    api: Any

    def command(self) -> str:
        """Return the command that started it, as CleanRL's resume.py makes it.

        Raises:
            ConfigurationError: W&B has not noted it.
        """
        known = self.api.metadata or {}
        if not (program := known.get("codePath") or known.get("program")):
            raise ConfigurationError(f"W&B does not know which program the run {self.id} was.")
        words = ["-m", program[3:].strip()] if program.startswith("-m ") else [program]
        return shlex.join(["python", *words, *map(str, known.get("args") or [])])


def find_runs(path: str, state: str, *, api_key: str | None) -> list[WandbRun]:
    """Return a project's runs that are in this state, the oldest first.

    Args:
        path: ENTITY/PROJECT.
        state: W&B's word for it, such as `crashed`.
        api_key: Whose runs may be read.

    Raises:
        ConfigurationError: There is no key, or W&B does not answer.
        UsageError: The path is not one.
    """
    if path.count("/") != 1 or not all(path.split("/")):
        raise UsageError(f"--from-wandb {path} does not name a project.", "Write it as ENTITY/PROJECT.")
    if api_key is None:
        raise ConfigurationError("There is no W&B key.", "Run `wandb login`, or set WANDB_API_KEY.")
    import wandb  # noqa: PLC0415 - slow to import, and only this needs it

    try:
        found = list(wandb.Api(api_key=api_key).runs(path, filters={"state": state}))
    except (wandb.Error, ValueError) as error:
        raise ConfigurationError(
            f"W&B did not list the runs of {path}: {error}".replace("\n", " "),
            "Check the project's name, WANDB_BASE_URL and the key.",
        ) from error
    return [WandbRun(run.id, run) for run in found]

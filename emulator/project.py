"""The Pulumi project on an emulated account: its stack made, brought up, destroyed, by the real `pulumi`."""

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Self

from emulator.home import CHECKOUT, STACK, Home
from emulator.plugin.install import install
from tools.pulumi import ensure
from tools.steps import UnavailableError

_STACK_FILE = f"Pulumi.{STACK}.yaml"
# What the program is made of; the environment is shared with the checkout.
_PROGRAM = ("Pulumi.yaml", "Pulumi.dev.yaml", "__main__.py", "infra")


def failure(error: UnavailableError | subprocess.CalledProcessError) -> str:
    """Return in a sentence that a step failed; a command has said why itself."""
    return str(error) if isinstance(error, UnavailableError) else f"`{shlex.join(error.cmd)}` failed; see above."


class Project:
    """The project in a folder, deployed to the account of a home.

    Args:
        folder: The checkout, or a copy made by :meth:`copy`.
        home: The account's folder; an account must be up there.
    """

    def __init__(self, folder: Path, home: Home) -> None:
        self.folder = folder
        self.home = home

    @classmethod
    def copy(cls, folder: Path, home: Home) -> Self:
        """Copy the project into an empty folder, so that its stack files are not the checkout's."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in _PROGRAM:
            source = CHECKOUT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)
        (folder / ".venv").symlink_to(CHECKOUT / ".venv")
        return cls(folder, home)

    def pulumi(self, *arguments: str, check: bool = True, capture: bool = False) -> subprocess.CompletedProcess[str]:
        """Run `pulumi` in the project, without questions and with the account's environment.

        Args:
            arguments: The command line after `pulumi`.
            check: Whether a failure is raised.
            capture: Whether the output is returned instead of shown.

        Raises:
            subprocess.CalledProcessError: It failed, and `check` is set.
        """
        return subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.folder,
            env=self.home.process_environment(),
            stdin=subprocess.DEVNULL,
            check=check,
            text=True,
            capture_output=capture,
        )

    def init(self) -> None:
        """Get the Pulumi CLI and the plugin, and make the stack `emulator` with the configuration of `dev`.

        Raises:
            tools.steps.UnavailableError: There is no way to a Pulumi CLI on this machine.
            subprocess.CalledProcessError: Pulumi failed.
        """
        self.home.remember_cli(ensure())
        install(self.home.pulumi_home)
        shutil.copy(self.folder / "Pulumi.dev.yaml", self.folder / _STACK_FILE)
        self.pulumi("stack", "init", STACK)

    def up(self) -> None:
        """Deploy the stack.

        Raises:
            subprocess.CalledProcessError: Pulumi failed.
        """
        self.pulumi("up", "--yes", "--skip-preview", "--suppress-outputs", "--stack", STACK)

    def destroy(self) -> None:
        """Destroy what the stack has deployed, and remove the stack with its file.

        Raises:
            subprocess.CalledProcessError: Pulumi failed.
        """
        self.pulumi("destroy", "--yes", "--skip-preview", "--remove", "--stack", STACK)

    def forget(self) -> None:
        """Remove the stack's file, when the backend that it belongs to is gone."""
        (self.folder / _STACK_FILE).unlink(missing_ok=True)

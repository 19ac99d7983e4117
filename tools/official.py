"""The official installer, which brings the CLI and its language hosts (https://www.pulumi.com/docs/install/)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tools import steps

INSTALLER = "https://get.pulumi.com"


def install(version: str, into: Path) -> None:
    """Put the files of Pulumi's release `version` into the folder `into`.

    Raises:
        UnavailableError: The installer cannot be fetched or fails. Without network that takes 10 seconds at most.
    """
    if shutil.which("curl") is None:
        raise steps.UnavailableError("the official installer needs curl")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        script, log = folder / "install.sh", folder / "log"
        fetch = ["curl", "-fsSL", "--connect-timeout", "10", "--max-time", "30", "-o", str(script), INSTALLER]
        steps.run(f"fetching the installer from {INSTALLER}", fetch, log, timeout_seconds=40)
        argv = ["sh", str(script), "--version", version, "--install-root", str(folder), "--no-edit-path"]
        steps.run(f"installing {version}", argv, log, timeout_seconds=600)
        shutil.copytree(folder / "bin", into, dirs_exist_ok=True)

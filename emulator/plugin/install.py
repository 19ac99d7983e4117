"""Puts the plugin where the engine looks for it."""

import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[2]


def install(pulumi_home: Path) -> None:
    """Install the plugin into a PULUMI_HOME as plugins/resource-aws-v<version of pulumi_aws>/pulumi-resource-aws.

    The engine takes whatever executable it finds there and downloads nothing. Errors that nobody expected go into
    plugin.log beside the PULUMI_HOME.
    """
    folder = pulumi_home / "plugins" / f"resource-aws-v{metadata.version('pulumi-aws')}"
    folder.mkdir(parents=True, exist_ok=True)
    log_file = pulumi_home.resolve().parent / "plugin.log"
    # -P: the folder in which the engine starts it (the project) must not shadow modules.
    command = shlex.join(["env", f"PYTHONPATH={_ROOT}", sys.executable, "-P", "-m", "emulator.plugin", str(log_file)])
    script = folder / "pulumi-resource-aws"
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    script.chmod(0o755)

"""`pulumi preview` of the stack against the least that a preview of a program with pulumi_aws can be."""

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from benchmarks.measure import compare
from emulator.home import STACK, Home, Running, process_start
from emulator.project import Project
from emulator.server import EmulatorServer

GOALS: Final[Mapping[int, float | None]] = {1: None, 6: 1.3, 24: None}
"""The ratio of medians that a preview of so many types should stay below, where there is a goal."""

_CLEANRLS: Final = ("c5a.large", "g4dn.4xlarge", "g4dn.xlarge", "r5ad.large", "c6g.medium", "m6gd.medium")
_COMPUTE: Final = ("c5", "c5d", "c5n", "c6g", "c6gd", "c6i")
_GENERAL: Final = ("m5", "m5a", "m5ad", "m5d", "m5n", "m6g", "m6i")
_MEMORY: Final = ("r5", "r5a", "r5b", "r5d", "r5n")
_TYPES: Final = (*_CLEANRLS, *(f"{family}.large" for family in (*_COMPUTE, *_GENERAL, *_MEMORY)))
_PROGRAM: Final = Path(__file__).with_name("floor_preview.py")


def measure_previews(
    server: EmulatorServer, folder: Path, repetitions: int, goals: Mapping[int, float | None] = GOALS
) -> None:
    """Print a row for each number of types, and where the time goes with CleanRL's six."""
    home = Home(folder / "home")
    home.begin()
    started = process_start(os.getpid())
    assert started is not None  # noqa: S101 - this very process runs
    home.record(Running(os.getpid(), started, server.url, server.account_id, server.region))
    ours = Project.copy(folder / "stack", home)
    ours.init()
    floor = _floor(folder / "floor", home)
    environment, record = home.process_environment(), server.control.record
    for count, goal in goals.items():
        _choose(ours, _TYPES[:count])
        title = f"`pulumi preview`, {count} type{'s' if count > 1 else ''}"
        result = compare(
            title,
            lambda _: _preview(ours),
            lambda _: _preview(floor),
            repetitions=repetitions,
            environment=environment,
            record=record,
            goal=goal,
        )
        print(result.row(), flush=True)
    _choose(ours, _CLEANRLS)
    print("\n" + _where(server, ours, environment))


def _floor(folder: Path, home: Home) -> Project:
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: floor\nruntime: {name: python, options: {virtualenv: .venv}}\n")
    (folder / ".venv").symlink_to(Path(__file__).parents[1] / ".venv")
    shutil.copy(_PROGRAM, folder / "__main__.py")
    floor = Project(folder, home)
    floor.pulumi("stack", "init", STACK)
    return floor


def _choose(project: Project, instance_types: tuple[str, ...]) -> None:
    stack_file = project.folder / f"Pulumi.{STACK}.yaml"
    settings = yaml.safe_load(stack_file.read_text())
    settings["config"]["rl-batch:instanceTypes"] = list(instance_types)
    stack_file.write_text(yaml.safe_dump(settings))


def _preview(project: Project) -> list[str]:
    return ["pulumi", "preview", "--non-interactive", "--cwd", str(project.folder)]


def _where(server: EmulatorServer, project: Project, environment: Mapping[str, str]) -> str:
    """Say where the time of a preview goes: what it asks of AWS divides it into three."""
    server.control.record.clear()
    began = time.time()
    subprocess.run(_preview(project), env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    ended = time.time()
    asked = [call.time for call in server.control.record.calls()]
    return (
        f"Of one preview with 6 types, {asked[0] - began:.1f} s pass until the first question to AWS (engine, language "
        f"host, imports, plugin), {asked[-1] - asked[0]:.1f} s with {len(asked)} questions, and "
        f"{ended - asked[-1]:.1f} s after the last (resources, outputs, end of the engine)."
    )

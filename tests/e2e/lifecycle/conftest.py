"""`pulumi` killed in the middle of its work, and what a person does then."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.home import process_start


@pytest.fixture
def kill_at() -> Callable[[Any, str, int], None]:
    """Kill `pulumi` when AWS has acted on its n-th changing request, and has not answered."""
    return _kill_at


def _kill_at(stack: Any, command: str, number: int) -> None:
    account = stack.account
    account.control("DELETE", "requests")
    day = {"skip": number - 1, "count": 1, "seconds": 24 * 3600}
    account.control("POST", "faults", service="*", operation="*", kind="stall", changing=True, **day)
    process = subprocess.Popen(
        ["pulumi", command, "--yes", "--skip-preview", "--non-interactive"],
        cwd=stack.folder,
        env=stack.home.process_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: sum(call.changes for call in account.calls()) >= number or process.poll() is not None)
    assert process.poll() is None, f"`pulumi {command}` made fewer than {number} changing requests"
    family = descendants(process.pid)
    process.kill()
    process.wait()
    # The plugin and the program notice, and go; until then they may act.
    wait_until(lambda: not any(process_start(pid) == started for pid, started in family.items()))
    account.control("DELETE", "faults")


def descendants(pid: int) -> dict[int, int | None]:
    """Children of a process, and theirs: when each began, by its id."""
    found: dict[int, int | None] = {}
    for child in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        if _parent(child) == pid:
            found |= {child: process_start(child), **descendants(child)}
    return found


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def recover() -> Callable[[Any], None]:
    """Do what docs/operations.md says to do after an update that was broken off."""

    def run(stack: Any) -> None:
        stack.pulumi("cancel", "--yes")
        subprocess.run(
            [sys.executable, "-m", "infra.recover"], cwd=stack.folder, env=stack.home.process_environment(), check=True
        )

    return run

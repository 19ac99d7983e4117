"""Which process wrote a ledger entry, so that a later command on the same machine can tell whether it is gone."""

import os
import secrets
import socket
import subprocess
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self


@dataclass(frozen=True, kw_only=True)
class Writer:
    """One command of one process.

    Attributes:
        host: The machine, since it was last booted; containers with process numbers of their own are told apart.
        pid: The process.
        started: When that process started, in the machine's own words: process numbers are used again.
        token: Random; tells one's own put, whose reply was lost, from another's.
    """

    host: str
    pid: int
    started: str
    token: str

    @classmethod
    def here(cls) -> Self:
        """Return a new writer in this process."""
        pid = os.getpid()
        return cls(host=_host(), pid=pid, started=_started(pid) or "", token=secrets.token_hex(8))

    def is_gone(self) -> bool:
        """Tell whether the process certainly runs no more: False when it ran on another machine, or in doubt."""
        if self.host != _host() or self.pid <= 0:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        started = _started(self.pid)
        return bool(started and self.started and started != self.started)


def _host() -> str:
    """Return the host's name with a mark of its current boot and, on Linux, of the process number namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # not Linux: macOS has neither containers nor namespaces
        boot = space = ""
    return f"{socket.gethostname()} {sha256(f'{boot}{space}'.encode()).hexdigest()[:8]}"


def _started(pid: int) -> str | None:
    """Return when a process started, or None when that cannot be told (it may be gone, or hidden from this user)."""
    try:
        # The command's name, in brackets, may hold spaces; the start time is field 22 (proc_pid_stat(5)).
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except OSError:
        pass
    try:
        shown = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return shown.stdout.strip() or None

"""What carries out a placed job: a protocol, and the runner that uses processes of this machine."""

import asyncio
import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any, Protocol

from emulator.batch import supervisor


@dataclass(frozen=True, kw_only=True)
class Task:
    """One attempt of a job, as a runner needs it; `id` is the ECS task's, `container` the job's as in the API."""

    id: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    container: Mapping[str, Any] = field(default_factory=dict)


class CannotStartError(Exception):
    """The container cannot be started; the message is the reason in ECS's words."""


class Execution(Protocol):
    """A task that was started.

    Attributes:
        reason: Why its host has ended it, in ECS's words; None when it ended by itself, or has not yet.
    """

    reason: str | None

    async def wait(self) -> int:
        """Wait until everything of the task is gone and its output handed over; returns the exit code."""
        ...

    def signal(self, number: int) -> None:
        """Send a signal to the task's first process; SIGKILL ends all of its processes. Nothing if it has ended."""
        ...


class Runner(Protocol):
    """Starts tasks. Both methods are called on the event loop."""

    async def start(self, task: Task, output: Callable[[bytes], None]) -> Execution:
        """Start a task whose output goes to `output` while it runs.

        Raises:
            CannotStartError: There is no such command.
        """
        ...

    async def close(self) -> None:
        """End every task; nothing of any of them is left when this returns."""
        ...


def clean_environment(*, url: str, region: str, home: Path) -> dict[str, str]:
    """Make what a job's process finds besides its own variables: this project's programs and the emulated account.

    Nothing of the emulator's own environment is in it. `home` is the jobs' HOME, so that no file of the person's
    (a netrc, a cache) is met by a job here that it would not meet in a container.
    """
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_ACCESS_KEY_ID": "emulator",
        "AWS_SECRET_ACCESS_KEY": "emulator",
    }


class ProcessRunner:
    """Runs a job's container command as a process of this machine; the image is not used.

    Args:
        folder: Working folder of the jobs: the checkout.
        environment: What every job finds, before its own variables: see :func:`clean_environment`.
    """

    def __init__(self, *, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = dict(environment)
        self._running: dict[str, _Process] = {}
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._gone = asyncio.Event()

    async def start(self, task: Task, output: Callable[[bytes], None]) -> Execution:
        """Start the command of a task in a session of its own, both output streams in one pipe.

        Raises:
            CannotStartError: The command is empty, is not found, or does not fit into a message to the supervisor.
        """
        environment = {**self._environment, **task.environment}
        if not task.command:
            raise CannotStartError("CannotStartContainerError: Error response from daemon: No command specified")
        program = self._program(task.command[0], environment["PATH"])
        if program is None:
            raise CannotStartError(
                "CannotStartContainerError: Error response from daemon: failed to create task for container: "
                "OCI runtime create failed: unable to start container process: "
                f'exec: "{task.command[0]}": executable file not found in $PATH'
            )
        request = {
            "job": task.id,
            "program": program,
            "argv": task.command,
            "environment": environment,
            "folder": str(self._folder),
        }
        reading, writing = os.pipe()
        try:
            socket.send_fds(self._connection(), [json.dumps(request).encode()], [writing])
        except OSError as error:
            os.close(reading)
            if error.errno != errno.EMSGSIZE:
                raise
            raise CannotStartError("CannotStartContainerError: argument list too long") from None
        finally:
            os.close(writing)
        process = self._running[task.id] = _Process(reading, output, lambda number: self._signal(task.id, number))
        return process

    async def close(self) -> None:
        """Kill every job and wait until nothing of any of them is left."""
        if self._control is None:
            return
        self._control.shutdown(socket.SHUT_WR)
        await self._gone.wait()

    def _program(self, name: str, path: str) -> str | None:
        """Find a program as a container does: by its path from the working folder, or else on PATH."""
        return shutil.which(str(self._folder / name) if "/" in name else name, path=path)

    def _connection(self) -> socket.socket:
        """Return the socket to the supervisor, started when the first job needs it."""
        if self._control is None:
            self._gone.clear()
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._supervisor = subprocess.Popen(
                    [sys.executable, "-I", "-S", supervisor.__file__, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                    env={},
                )
            asyncio.get_running_loop().add_reader(self._control, self._report, self._control)
        return self._control

    def _signal(self, task_id: str, number: int) -> None:
        if self._control is not None and task_id in self._running:
            self._control.send(json.dumps({"job": task_id, "signal": number}).encode())

    def _report(self, control: socket.socket) -> None:
        """Take one message of the supervisor: a job has ended."""
        try:
            message = control.recv(supervisor.LARGEST_MESSAGE)
        except ConnectionResetError:  # it ended with requests unread
            message = b""
        if not message:
            self._supervisor_gone(control)
            return
        report = json.loads(message)
        self._running.pop(report["job"]).end(report["status"])

    def _supervisor_gone(self, control: socket.socket) -> None:
        """The supervisor ends after it has killed every job; so that is how the jobs ended."""
        asyncio.get_running_loop().remove_reader(control)
        control.close()
        self._control = None
        if self._supervisor is not None:
            self._supervisor.wait()
        for process in self._running.values():
            process.end(-SIGKILL)
        self._running.clear()
        self._gone.set()


class _Process:
    """A job's process as the scheduler sees it: its output while it runs, its exit code when all of it is gone."""

    def __init__(self, reading: int, output: Callable[[bytes], None], signal: Callable[[int], None]) -> None:
        self.signal = signal
        self.reason: str | None = None
        self._reading = reading
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        os.set_blocking(reading, False)
        self._loop.add_reader(reading, self._read)

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def _read(self) -> bool:
        """Hand on what has been written; whether there may be more."""
        try:
            data = os.read(self._reading, 1 << 16)
        except BlockingIOError:
            return False
        if data:
            self._output(data)
        else:
            self._loop.remove_reader(self._reading)
        return bool(data)

    def end(self, status: int) -> None:
        """Read what is left, without waiting for an end that a descriptor passed to somebody else would put off."""
        try:
            while self._read():
                pass
        finally:
            self._loop.remove_reader(self._reading)
            os.close(self._reading)
            # A signal's number is reported as a shell and Docker do.
            self._ended.set_result(status if status >= 0 else 128 - status)

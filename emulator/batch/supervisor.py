"""The parent of every job's processes: a small single-threaded program that starts jobs, reaps them and leaves nothing.

The emulator runs it once, by path, and talks to it over a socket. It exists because a process cannot reliably end what
its children started: a grandchild with a session of its own escapes killpg, one with a cleared environment escapes a
search by variable. Here each job's first process is a *child subreaper* (PR_SET_CHILD_SUBREAPER, prctl(2)), like
process 1 of a container: whatever it starts stays its descendant for as long as it lives. When it ends, what is left of
the job falls to the supervisor, a subreaper too. So a child of the supervisor that it did not start itself is by
construction the remains of an ended job, and is killed. No process is ever looked up by name, variable or a stale id,
since a child's id cannot be used again before the supervisor has reaped it.

When the emulator goes away, in whatever way, the socket closes and the supervisor kills every job and ends.
It imports the standard library only, so that it stays small and can be started with `python -I -S`.
"""

import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LARGEST_MESSAGE = 1 << 20
CANNOT_START = 126


class Supervisor:
    """Starts, signals and reaps jobs on behalf of the emulator at the other end of `control`."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._control.set_inheritable(False)
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl
        self._jobs: dict[int, str] = {}
        self._ended: list[tuple[str, int]] = []
        self._children = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY)
        self._become_subreaper()

    def _become_subreaper(self) -> None:
        if self._prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")

    def serve(self) -> None:
        """Answer requests and report ends until the other end of the socket is closed; in any case kill all then."""
        wake, poke = socket.socketpair()
        wake.setblocking(False)
        poke.setblocking(False)
        signal.set_wakeup_fd(poke.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            with suppress(ConnectionError):
                while True:
                    readable, _, _ = select.select([self._control, wake], [], [])
                    if self._control in readable and not self._answer():
                        break
                    if wake in readable:
                        wake.recv(4096)
                        self._sweep()
        finally:
            self._jobs.clear()
            while self._kill_strays():
                os.waitpid(-1, 0)

    def _answer(self) -> bool:
        message, fds, _, _ = socket.recv_fds(self._control, LARGEST_MESSAGE, 1)
        if not message:
            return False
        request = json.loads(message)
        if "signal" in request:
            for pid, job in self._jobs.items():
                if job == request["job"]:
                    os.kill(pid, request["signal"])
            return True
        try:
            pid = os.fork()
        except OSError as error:
            # No more processes, or no memory: this job can not start, and ends as one whose program can not.
            os.write(fds[0], f"fork: {error}\n".encode())
            self._ended.append((request["job"], CANNOT_START))
            self._sweep()
        else:
            if pid == 0:
                self._become(request["program"], request["argv"], request["environment"], request["folder"], fds[0])
            self._jobs[pid] = request["job"]
        os.close(fds[0])
        return True

    def _become(self, program: str, argv: list[str], environment: dict[str, str], folder: str, output: int) -> None:
        """In the child: turn into the job's first process, or say why not and exit as a shell would."""
        try:
            os.setsid()
            self._become_subreaper()
            # Should the supervisor itself be killed, the job's first process goes with it.
            self._prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(folder)
            os.execve(program, argv, environment)  # noqa: S606 - an argument list, never a shell string
        except BaseException as error:  # noqa: BLE001 - nothing may return into the supervisor's own loop
            os.write(2, f"exec {program}: {error}\n".encode())
        finally:
            os._exit(CANNOT_START)

    def _sweep(self) -> None:
        """Reap what ended, kill what ended jobs left behind, and report ends once nothing of any of them is left."""
        while True:
            self._reap()
            strays = self._kill_strays()
            # The list of children is exact unless one of them exited while it was read: proc_pid_task_children(5).
            if not self._reap():
                break
        if not strays:
            for job, status in self._ended:
                self._control.send(json.dumps({"job": job, "status": status}).encode())
            self._ended.clear()

    def _reap(self) -> bool:
        reaped = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return reaped
            if pid == 0:
                return reaped
            reaped = True
            if (job := self._jobs.pop(pid, None)) is not None:
                self._ended.append((job, os.waitstatus_to_exitcode(status)))

    def _kill_strays(self) -> bool:
        os.lseek(self._children, 0, os.SEEK_SET)
        with open(self._children, "rb", closefd=False) as children:
            strays = {int(pid) for pid in children.read().split()} - self._jobs.keys()
        for pid in strays:
            os.kill(pid, signal.SIGKILL)
        return bool(strays)


if __name__ == "__main__":
    # A collection would copy the pages that a new child shares with this process.
    gc.disable()
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        Supervisor(connection).serve()

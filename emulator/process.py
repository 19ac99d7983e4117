"""The process that serves an account: started detached, stopped exactly, found again by pid and start time."""

import faulthandler
import fcntl
import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from emulator.home import CHECKOUT, Home, NotUpError, Running, process_start

if TYPE_CHECKING:
    from types import FrameType

_STOP_SECONDS = 30
_log = logging.getLogger(__name__)


class StartError(Exception):
    """The account did not come up; the message is a sentence with the remedy or the log's path."""


def start(home: Home, *, port: int, cores: int | None, runner: str = "process") -> tuple[Running, str | None]:
    """Start an account in a session of its own and return when it answers.

    Returns:
        The process, and a sentence about an account whose process had ended without being stopped, if there was one.

    Raises:
        StartError: An account is up there already, or the new one does not come up.
    """
    recorded = home.recorded()
    if recorded and recorded.alive:
        raise StartError(
            f"An account is up in {home.folder} already, at {recorded.url}.\n"
            f'`eval "$({home.command("env")})"` leads a shell to it; '
            f"`{home.command('down')}` ends it and all that it has."
        )
    home.folder.mkdir(parents=True, exist_ok=True)
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "emulator", "serve", "--home", str(home.folder), "--port", str(port)]
    command += ["--ready-fd", str(writing), "--runner", runner, *(["--cores", str(cores)] if cores else [])]
    child = subprocess.Popen(
        command,
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[writing],
        start_new_session=True,
        env={name: value for name, value in os.environ.items() if name not in home.misleading()},
    )
    os.close(writing)
    with os.fdopen(reading) as ready:
        try:
            answer = _answer(ready)
        except BaseException:  # a person who loses patience would leave an account behind that nobody has heard of
            child.terminate()
            child.wait()
            raise
    if "running" not in answer:
        child.wait()
        raise StartError(answer.get("error") or f"The account did not come up. Its log is {home.log}.")
    note = None
    if recorded:
        note = (
            f"The account that was up in {home.folder} had ended without being stopped. This one begins empty, with a "
            f"new Pulumi backend; the log of the old one is {home.previous_log}."
        )
    return Running(**answer["running"]), note


def _answer(ready: TextIO) -> dict[str, Any]:
    """Read what the serving process says when it is up, or why it is not; nothing when it has just ended."""
    line = ready.readline()
    return dict(json.loads(line)) if line else {}


def serve(home: Home, *, port: int, cores: int | None, runner: str, ready_fd: int) -> None:
    """Serve an account until SIGTERM or SIGINT; the folder belongs to this process meanwhile.

    Args:
        home: The folder; it is begun anew.
        port: Port on 127.0.0.1; 0 means a free one.
        cores: How many jobs run at once; None means as many as this machine has cores.
        runner: What carries jobs out: `process` or `docker`.
        ready_fd: Where one line of JSON goes once the account is up, or the reason why it can not be.
    """
    faulthandler.enable()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    stopping = threading.Event()

    def stop(_signal: int, _frame: "FrameType | None") -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    with os.fdopen(ready_fd, "w") as ready, _holding(home) as ours:
        if not ours:
            _say(ready, error=f"Another account is just coming up or going down in {home.folder}. Try again.")
            return
        home.rotate_log()
        with home.log.open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        home.begin()
        # Imported late: moto takes two seconds, and only this process needs it.
        from emulator.server import EmulatorServer  # noqa: PLC0415

        try:
            with EmulatorServer(home.jobs_home, port=port, cores=cores, runner=runner) as server:
                started = process_start(os.getpid())
                assert started is not None  # noqa: S101 - this very process runs
                running = Running(os.getpid(), started, server.url, server.account_id, server.region)
                home.record(running)
                _log.info("account %s is up at %s", server.account_id, server.url)
                _say(ready, running=vars(running))
                stopping.wait()
                _log.info("stopping")
        except OSError as error:
            _log.exception("the account failed")
            _say(ready, error=f"The account did not come up: {error}. Its log is {home.log}.")
            raise SystemExit(1) from None
        finally:
            home.wipe()


@contextmanager
def _holding(home: Home, *, patience_seconds: float = 0) -> Iterator[bool]:
    """Hold the folder, so that no other account comes up there or is wiped; whether nobody else holds it."""
    deadline = time.monotonic() + patience_seconds
    with home.lock.open("w") as lock:
        while not (ours := _locked(lock)) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield ours


def _locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wipe(home: Home) -> None:
    """Wipe the folder, unless another account is just coming up there."""
    if home.folder.exists():
        # The threads of a process that was killed hold the folder a moment longer than its first one.
        with _holding(home, patience_seconds=2) as ours:
            if ours:
                home.wipe()


def _say(ready: TextIO, **answer: Any) -> None:
    if not ready.closed:
        ready.write(json.dumps(answer) + "\n")
        ready.close()


def stop(home: Home) -> None:
    """End the account of a folder with every job of it, and wipe the folder; never touch another process.

    Raises:
        NotUpError: No account is up there.
    """
    try:
        running = home.running()
    except NotUpError:
        _wipe(home)
        raise
    process = os.pidfd_open(running.pid)
    try:
        # The id could have gone to another process before the descriptor was there, but not after.
        if not running.alive:
            return
        signal.pidfd_send_signal(process, signal.SIGTERM)
        if not _ended(process, _STOP_SECONDS):
            # The supervisor of the jobs ends them when its parent is gone.
            signal.pidfd_send_signal(process, signal.SIGKILL)
            _ended(process, _STOP_SECONDS)
    finally:
        os.close(process)
        _wipe(home)


def _ended(process: int, seconds: float) -> bool:
    """Wait for a process to end. A pidfd is readable from then on: pidfd_open(2)."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(seconds * 1000))

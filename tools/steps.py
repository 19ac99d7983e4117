"""Steps that take a while: each is announced on standard error, with the time that it took."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path

REMIND_AFTER_SECONDS = 30.0


class UnavailableError(Exception):
    """One way to get a tool is closed; the message says why, in half a sentence."""


def say(message: str, about: str = "pulumi") -> None:
    """Write one line about a tool to standard error."""
    click.echo(f"{about}: {message}", err=True)


def run(
    what: str,
    argv: list[str],
    log: Path,
    *,
    timeout_seconds: float,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    about: str = "pulumi",
) -> None:
    """Run a command with its output in `log`, and say every now and then that it is still running.

    Args:
        what: What the command does, as a line to be announced.
        argv: The command.
        log: The file that gets its standard output and standard error.
        timeout_seconds: When the command is ended, with everything that it started.
        cwd: The working folder, by default this process's.
        env: Variables on top of this process's.
        about: The tool that it is done for.

    Raises:
        UnavailableError: The command failed, was not done in time, or could not be started.
    """
    started = time.monotonic()
    say(what, about)
    with log.open("ab") as output:
        try:
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise UnavailableError(f"{argv[0]}: {error.strerror}") from error
    try:
        while process.poll() is None:
            elapsed = time.monotonic() - started
            if elapsed >= timeout_seconds:
                raise UnavailableError(f"{argv[0]} was not done after {timeout_seconds:.0f} s")
            try:
                process.wait(min(REMIND_AFTER_SECONDS, timeout_seconds - elapsed))
            except subprocess.TimeoutExpired:
                say(f"still {what}, {time.monotonic() - started:.0f} s so far", about)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode:
        raise UnavailableError(f"{argv[0]} failed: {last_line(log)}")
    say(f"done {what} in {time.monotonic() - started:.0f} s", about)


def last_line(log: Path) -> str:
    """The last line of a log that says something, since that is where commands put their reason."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"

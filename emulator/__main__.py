"""`python -m emulator`: start, stop and use an AWS account in one process on this machine."""

import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from emulator.home import CHECKOUT, DEFAULT_FOLDER, Home, NotUpError
from emulator.process import StartError, serve, start, stop
from emulator.project import Project, failure
from tools.steps import UnavailableError

_NOT_UP = 3

home_option = click.option(
    "--home",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_FOLDER,
    show_default=".emulator in the checkout",
    help="Folder of the account, its log, and the Pulumi backend and plugins that go with it.",
)
port_option = click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default="a free one", help="Port on 127.0.0.1."
)
cores_option = click.option(
    "--cores",
    type=click.IntRange(min=1),
    show_default="as many as this machine has cores",
    help="How many jobs run at once.",
)

runner_option = click.option(
    "--runner",
    type=click.Choice(["process", "docker"]),
    default="process",
    show_default=True,
    help="What a job is: a process of this machine in the checkout, or a container of its image in this Docker.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """An AWS account in one process on 127.0.0.1, with a Batch that really runs jobs on this machine.

    It begins empty, costs nothing, and is gone when it is stopped.
    """
    if sys.platform != "linux":
        raise click.ClickException("The emulated account needs Linux: it ends jobs by means that only Linux has.")


def _started(home: Home, port: int, cores: int | None, runner: str) -> None:
    try:
        running, note = start(home, port=port, cores=cores, runner=runner)
    except StartError as error:
        raise click.ClickException(str(error)) from None
    if note:
        click.echo(note, err=True)
    click.echo(f"account {running.account_id} is up at {running.url}")


@main.command("start")
@home_option
@port_option
@cores_option
@runner_option
def start_command(folder: Path, port: int, cores: int | None, runner: str) -> None:
    """Start an account, and return when it answers.

    Exit code 1: one is up already, or it did not come up.
    """
    _started(Home(folder), port, cores, runner)


@main.command("serve", hidden=True)
@home_option
@port_option
@cores_option
@runner_option
@click.option("--ready-fd", type=int, required=True)
def serve_command(folder: Path, port: int, cores: int | None, runner: str, ready_fd: int) -> None:
    """Serve an account in this process: what `start` starts."""
    serve(Home(folder), port=port, cores=cores, runner=runner, ready_fd=ready_fd)


@main.command("env")
@home_option
def env_command(folder: Path) -> None:
    """Print the shell commands that lead AWS's programs, pulumi and submitter to the account.

    Use it as: eval "$(.venv/bin/python -m emulator env)"

    Exit code 3: no account is up.
    """
    home = Home(folder)
    lines = [f"export {name}={shlex.quote(value)}" for name, value in _up(home.environment).items()]
    if misleading := home.misleading():
        lines.insert(0, f"unset {' '.join(misleading)}")
    click.echo("\n".join(lines))


def _up(ask: Callable[[], Any]) -> Any:
    """Ask something of an account that should be up; else say that none is, and end with exit code 3."""
    try:
        return ask()
    except NotUpError as error:
        click.echo(str(error), err=True)
        raise SystemExit(_NOT_UP) from None


@main.command("status")
@home_option
def status_command(folder: Path) -> None:
    """Say whether an account is up.

    Exit code 0: it is. 1: its process has ended without being stopped. 3: none is.
    """
    home = Home(folder)
    recorded = home.recorded()
    if recorded and not recorded.alive:
        raise click.ClickException(f"The account's process {recorded.pid} has ended by itself. Its log is {home.log}.")
    running = _up(home.running)
    click.echo(f"account {running.account_id} is up at {running.url}, process {running.pid}, log {home.log}")


@main.command("stop")
@home_option
def stop_command(folder: Path) -> None:
    """End the account and every job of it.

    Exit code 3: none is up.
    """
    home = Home(folder)
    _up(lambda: stop(home))
    click.echo("the account is gone")


@main.command("up")
@home_option
@port_option
@cores_option
@runner_option
def up_command(folder: Path, port: int, cores: int | None, runner: str) -> None:
    """Start an account and deploy this project's stack to it with pulumi."""
    home = Home(folder)
    _started(home, port, cores, runner)
    project = Project(CHECKOUT, home)
    project.forget()
    try:
        project.init()
        project.up()
    except (UnavailableError, subprocess.CalledProcessError) as error:
        raise click.ClickException(
            f"{failure(error)}\nThe account is still up; `{home.command('down')}` ends it."
        ) from None
    click.echo(
        "\nThe stack is up. Lead this shell to it, and run the example on a Spot queue:\n\n"
        f'    eval "$({home.command("env")})"\n'
        "    submitter queues\n"
        "    submitter run --queue c5a-large-spot\n\n"
        f"`{home.command('down')}` takes it down."
    )


@main.command("down")
@home_option
def down_command(folder: Path) -> None:
    """Destroy the stack with pulumi, and end the account.

    Exit code 1: pulumi could not destroy the stack; the account is gone all the same. 3: no account was up.
    """
    home = Home(folder)
    project = Project(CHECKOUT, home)
    destroyed = True
    try:
        _up(home.running)
        project.destroy()
    except (subprocess.CalledProcessError, NotUpError):
        destroyed = False
    finally:
        project.forget()
    with suppress(NotUpError):  # it has died meanwhile
        stop(home)
    click.echo("the account is gone")
    if not destroyed:
        raise click.ClickException("pulumi destroy failed; nothing is left of what it should have destroyed.")


if __name__ == "__main__":
    main(prog_name="python -m emulator")

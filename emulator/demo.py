"""`make demo`: the whole way of an experiment on an emulated account.

Each step is a command that a person would type, printed before it runs. Whatever happens, nothing is left running,
unless KEEP is set in the environment.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import click

from emulator.home import CHECKOUT, STACK, Home, NotUpError
from emulator.process import StartError, start, stop
from emulator.project import Project, failure
from tools.steps import UnavailableError

OUTPUT = CHECKOUT / "demo-output"

_TRAIN = "python examples/train.py --env-id CartPole-v1 --output demo-output/curves"
_RUN = ["submitter", "run", "--queue", "c5a-large-spot", "--name", "demo", "--command", _TRAIN, "--num-seed"]
_PLOT = ["python", "examples/plot.py", "demo-output/curves", "--png", "demo-output/returns.png"]


def main() -> int:
    """Run the demo; return the exit code."""
    home = Home()
    began = time.monotonic()
    try:
        running, note = start(home, port=0, cores=None)
    except StartError as error:
        click.echo(f"Error: {error}", err=True)
        return 1
    if note:
        click.echo(note, err=True)
    click.echo(f"An AWS account in one process on this machine is up at {running.url}.")
    project = Project(CHECKOUT, home)
    keep = False
    try:
        _experiment(project)
        keep = bool(os.environ.get("KEEP"))
        if not keep:
            _say(["pulumi", "destroy", "--yes", "--skip-preview", "--remove"])
            project.destroy()
    except NotUpError as error:
        click.echo(f"Error: {error} Its log is {home.log}.", err=True)
        return 1
    except (UnavailableError, subprocess.CalledProcessError) as error:
        click.echo(f"Error: {failure(error)}", err=True)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if not keep:
            project.forget()
            with suppress(NotUpError):  # it has died meanwhile, and that has been said
                stop(home)
    click.echo(f"\nDone in {time.monotonic() - began:.0f} s.")
    click.echo(_what_next(home) if keep else "The account is gone, and nothing is left running.")
    return 0


def _experiment(project: Project) -> None:
    """Deploy the stack, train on it, and draw what was learnt.

    Raises:
        UnavailableError: There is no way to a Pulumi CLI on this machine.
        subprocess.CalledProcessError: A step failed; it has said why.
    """
    shutil.rmtree(OUTPUT, ignore_errors=True)
    project.forget()
    project.init()
    _say(["pulumi", "up", "--yes", "--skip-preview", "--suppress-outputs"])
    project.up()
    environment = project.home.process_environment()
    _run(["pulumi", "stack", "output", "queue_names", "--json", "--stack", STACK], environment)
    _run([*_RUN, "5", "--wait"], environment)
    _run(["submitter", "status", "demo", "--runs"], environment)
    _run(_PLOT, environment)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> None:
    _say(command)
    subprocess.run(command, cwd=CHECKOUT, env=environment, stdin=subprocess.DEVNULL, check=True)


def _say(command: Sequence[str]) -> None:
    click.secho(f"\n$ {shlex.join(command)}", bold=True)


def _what_next(home: Home) -> str:
    return (
        "The account is still up. Lead this shell to it, and go on:\n\n"
        f'    eval "$({home.command("env")})"\n'
        "    submitter queues\n"
        "    submitter logs demo --seed 2\n"
        f"    {shlex.join([*_RUN, '8'])}\n\n"
        f"`{home.command('down')}` takes it down."
    )


if __name__ == "__main__":
    sys.exit(main())

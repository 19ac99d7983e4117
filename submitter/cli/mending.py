"""`submitter retry` and `submitter repro`."""

import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import click

from submitter import errors, render
from submitter.cli import options
from submitter.cli.output import note
from submitter.selection import Selection
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.retry import Retried


@click.command("retry")
@options.sweep_name
@options.owner
@options.selector
@click.option("--queue", metavar="NAME", help="Send them to this queue.  [default: each run's own]")
@click.option("--image", metavar="IMAGE", help="Run them in this image.  [default: each run's own]")
@click.option("--num-memory", type=int, metavar="MIB", help="Memory of a run.  [default: each run's own]")
@click.option("--num-hours", type=float, metavar="HOURS", help="Time limit of an attempt.  [default: each run's own]")
@options.force
@options.as_json
@click.pass_obj
def retry_command(
    source: StackSource,
    *,
    name: str,
    owner: str | None,
    selection: Selection,
    queue: str | None,
    image: str | None,
    num_memory: int | None,
    num_hours: float | None,
    force: bool,
    as_json: bool,
) -> None:
    """Send again what has failed or was cancelled, as the same runs with the same W&B ids."""
    connection = options.connect(source)
    sweep = connection.full_name(name, owner)
    options.check_owner(connection, sweep, force=force)
    from submitter.cli.again import changes  # noqa: PLC0415 - so that --help does not pay for boto3

    changed = changes(connection, sweep, queue=queue, image=image, memory_mib=num_memory, hours=num_hours)
    retried = connection.retry(sweep, selection, changed, say=note)
    if as_json:
        click.echo(render.document("retry", _values(sweep, retried)))
        return
    click.echo(f"{sweep}: {render.count(len(retried.submitted), 'run')} submitted again.")
    if retried.unknown:
        note(f"Runs {retried.unknown} were perhaps sent a week ago and are left alone.")


@click.command("repro")
@options.sweep_name
@options.owner
@options.selector
@click.option("--shell", is_flag=True, help="Open a shell in such a container instead.")
@options.as_json
@click.pass_obj
def repro_command(
    source: StackSource, *, name: str, owner: str | None, selection: Selection, shell: bool, as_json: bool
) -> int:
    """Print the `docker run` line of one run: its image, variables and command; secrets come from this shell."""
    connection = options.connect(source)
    repro = connection.repro(name, owner, selection)
    for remark in repro.remarks:
        note(remark)
    if as_json:
        click.echo(render.document("repro", repro.values()))
    elif not shell:
        click.echo(repro.line())
    else:
        note(f"The run's command is: {repro.command}")
        return _open(shlex.split(repro.line(interactive=True)))
    return errors.EXIT_DONE


def _open(argv: list[str]) -> int:
    """Give the terminal to a container until it ends, and return its exit code.

    Raises:
        ConfigurationError: There is no docker here.
    """
    try:
        return subprocess.run(argv, check=False).returncode
    except OSError as error:
        raise errors.ConfigurationError(
            f"Cannot run docker: {error.strerror}.", "Install Docker: https://docs.docker.com/engine/install/"
        ) from error


def _values(sweep: str, retried: "Retried") -> dict[str, Any]:
    return {
        "sweep": sweep,
        "submitted": len(retried.submitted),
        "runs": str(retried.submitted),
        "unknown": len(retried.unknown),
    }

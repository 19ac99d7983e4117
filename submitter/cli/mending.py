"""`submitter retry` and `submitter repro`."""

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import click

from submitter import errors, render
from submitter.cli import options
from submitter.cli.output import note
from submitter.selection import Selection
from submitter.stack import StackSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from submitter.retry import Retried


@click.command("retry")
@click.argument("name", metavar="[NAME]", required=False)
@options.owner
@options.selector
@click.option("--queue", metavar="NAME", help="Send them to this queue.  [default: each run's own]")
@click.option("--image", metavar="IMAGE", help="Run them in this image.  [default: each run's own]")
@click.option("--num-memory", type=int, metavar="MIB", help="Memory of a run.  [default: each run's own]")
@click.option(
    "--num-gpu", type=int, metavar="N", help="GPUs of a run; 0 for a queue without.  [default: each run's own]"
)
@click.option("--num-hours", type=float, metavar="HOURS", help="Time limit of an attempt.  [default: each run's own]")
@click.option(
    "--from-wandb",
    metavar="ENTITY/PROJECT",
    help="Those that this W&B project has in a --state, with WANDB_RESUME=must; without NAME also runs that no sweep "
    "has, which need --queue.",
)
@click.option(
    "--state",
    type=click.Choice(["crashed", "failed", "killed"]),
    help="With --from-wandb: the state in W&B.  [default: crashed]",
)
@options.force
@options.as_json
@click.pass_obj
def retry_command(
    source: StackSource,
    /,
    *,
    name: str | None,
    owner: str | None,
    selection: Selection,
    from_wandb: str | None,
    state: str | None,
    force: bool,
    as_json: bool,
    **limits: Any,
) -> None:
    """Send again what has failed or was cancelled, as the same runs with the same W&B ids."""
    from submitter.cli import again  # noqa: PLC0415 - so that --help does not pay for boto3

    if state and from_wandb is None:
        raise errors.UsageError("--state is of runs in W&B.", "Give --from-wandb ENTITY/PROJECT, or --failed.")
    if owner and not name:
        raise errors.UsageError("--owner is of a sweep.", "Give its NAME, too.")
    connection = options.connect(source)
    sweep = connection.full_name(name, owner) if name else None
    what = again.Limits(**limits)
    done: dict[str, Retried] = {}
    try:
        if from_wandb is not None:
            from submitter.cli.crashed import retry_crashed  # noqa: PLC0415 - as above

            if selection:
                raise errors.UsageError(
                    "--from-wandb chooses the runs.", "Leave out --seed, --where, --index and --failed."
                )
            done.update(retry_crashed(connection, sweep, from_wandb, state or "crashed", what, force=force))
        elif sweep is None:
            raise errors.UsageError("`retry` needs a sweep.", "Give its NAME; `submitter list` shows them.")
        else:
            options.check_owner(connection, sweep, force=force)
            done[sweep] = again.retry(connection, sweep, again.choose_by(selection), what)
    except errors.SubmitterError:
        if done:  # of several sweeps
            _tell_all(done, as_json=as_json)
        raise
    _tell_all(done, as_json=as_json)


def _tell_all(done: "Mapping[str, Retried]", *, as_json: bool) -> None:
    if as_json:
        click.echo(render.document("retry", {"sweeps": [_values(*sent) for sent in done.items()]}))
        return
    for full_name, retried in done.items():
        _tell(full_name, retried)


def _tell(sweep: str, retried: "Retried") -> None:
    click.echo(f"{sweep}: {render.count(len(retried.submitted), 'run')} submitted again.")
    if not retried.submitted and not retried.unknown:
        note(f"None that was asked for has failed or was cancelled; `submitter status {sweep}` tells how they stand.")
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
        UsageError: There is no terminal.
    """
    if not sys.stdin.isatty():
        raise errors.UsageError("--shell opens a shell, and there is no terminal for it.", "Leave out --shell.")
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

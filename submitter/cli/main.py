"""The `submitter` group: its own options, its commands by name, and how an error becomes an exit code."""

import gc
import importlib
import io
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, Final, TextIO

import click

from submitter import errors
from submitter.stack import StackSource
from submitter.texts import is_text

_COMMANDS: Final = {
    "run": ("submitter.cli.run", "Submit the runs of a sweep that are not submitted yet."),
    "list": ("submitter.cli.sweeps", "List the sweeps."),
    "show": ("submitter.cli.sweeps", "Show what a sweep is made of."),
    "status": ("submitter.cli.status", "Show how a sweep's runs stand."),
    "logs": ("submitter.cli.logs", "Print what runs have logged."),
    "why": ("submitter.cli.why", "Explain what a sweep's runs wait for."),
    "wait": ("submitter.cli.watching", "Wait until a sweep's runs have ended."),
    "cancel": ("submitter.cli.cancel", "End runs of a sweep."),
    "retry": ("submitter.cli.mending", "Send again what has failed or was cancelled."),
    "repro": ("submitter.cli.mending", "Print the docker line that repeats one run."),
    "build": ("submitter.cli.build", "Build the image that runs execute in, and push it."),
    "prune": ("submitter.cli.prune", "Take away what no unfinished run needs, and old sweeps."),
    "queues": ("submitter.cli.stack", "List the stack's queues and what fits on them."),
}


class _ReaderGoneError(Exception):
    """A BrokenPipeError under a name that click does not know: it would exit with 1, as if runs had failed."""


class _Commands(click.Group):
    """Commands by name, each imported from its module when it is used; their one-line help is in the table above."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(_COMMANDS[cmd_name][0]), f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **options)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error
        except Exception:
            if ctx.params["debug"]:
                traceback.print_exc()
            raise


@click.command(cls=_Commands, context_settings={"auto_envvar_prefix": "SUBMITTER", "max_content_width": 100})
@click.option("--stack", metavar="NAME", help="The stack to read.  [default: the selected one]")
@click.option(
    "--stack-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="The folder of the Pulumi program.  [default: this one]",
)
@click.option(
    "--outputs",
    metavar="FILE",
    help="Read the stack's outputs from a file that `pulumi stack output --json` was saved to; - is standard input.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="rl-batch")
@click.pass_context
def group(ctx: click.Context, *, stack: str | None, stack_dir: Path, outputs: str | None, debug: bool) -> None:  # noqa: ARG001 - debug is read by _Commands
    """Submit seeded experiments to the AWS Batch queues of a Pulumi stack, and watch them.

    Options can also be given by environment variables, SUBMITTER_STACK, SUBMITTER_RUN_QUEUE, ..., except those that
    are about one command: --new, --dry-run, --yes and --force. One that may be repeated has each value on a line.
    """
    ctx.obj = StackSource(outputs=outputs, stack=stack, folder=stack_dir)


def main() -> None:
    """Run the command line and exit with the code that says how it went."""
    # boto3 and its models are a few hundred thousand objects that stay; looking through them for garbage time and again
    # takes a twentieth of a short command.
    gc.set_threshold(20_000, 50, 100)
    # Closing the terminal and `kill` end what the command has started, as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup has it ignored
            signal.signal(number, signal.default_int_handler)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever has started this
            nowhere = Path(os.devnull).open("r" if name == "stdin" else "w", encoding="utf-8")  # noqa: SIM115 - to stay
            setattr(sys, name, nowhere)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # what runs have printed may be no text of this terminal's
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: list[str]) -> int:
    """Run one command line and return its exit code; errors are told on standard error."""
    try:
        _check_texts(arguments)
        returned = group.main(arguments, prog_name="submitter", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        return errors.EXIT_INTERRUPTED
    except KeyboardInterrupt:
        return errors.EXIT_INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        return _fail(error.format_message(), None, errors.EXIT_USAGE, title="")
    except click.ClickException as error:
        return _fail(_usage_message(error), _usage_remedy(error), error.exit_code)
    except (BrokenPipeError, _ReaderGoneError):
        # The reader has gone away (`submitter list | head`): say nothing.
        _silence(sys.stdout)
        return errors.EXIT_READER_GONE
    except errors.SubmitterError as error:
        return _fail(error.message, error.remedy, error.exit_code)
    except Exception as error:
        if (explained := _explain_output(error) or _explain_aws(error)) is None:
            raise
        return _fail(explained.message, explained.remedy, explained.exit_code)
    return returned if isinstance(returned, int) else errors.EXIT_DONE


def _usage_message(error: click.ClickException) -> str:
    """Return click's message, with what it calls a valid float range called a number."""
    message = error.format_message()
    if not isinstance(error, click.BadParameter):
        return message
    for type_name, word in (("valid integer", "whole number"), ("valid float", "number")):
        message = message.replace(f"{type_name} range", word).replace(type_name, word)
    return message


def _usage_remedy(error: click.ClickException) -> str | None:
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"See `{error.ctx.command_path} --help`."
    return None


def _check_texts(arguments: list[str]) -> None:
    """Check that what was typed, or stands in variables for it, is text: neither AWS nor a terminal takes other bytes.

    Raises:
        UsageError: It is not.
    """
    for text in (*arguments, *(value for name, value in os.environ.items() if name.startswith("SUBMITTER_"))):
        if not is_text(text):
            raise errors.UsageError(f"{text!r} is not text in UTF-8.", "Write it in UTF-8, names of files too.")


def _explain_output(error: Exception) -> errors.SubmitterError | None:
    """Put it into words that standard output cannot be written to; None for anything else."""
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    if not isinstance(error, OSError) or frame.f_code is not click.echo.__code__:
        return None
    if frame.f_locals["file"].fileno() != sys.stdout.fileno():
        return None
    _silence(sys.stdout)
    return errors.ConfigurationError(
        f"Standard output cannot be written to: {error.strerror}.",
        "What the command does may be done already; typed again, `run` submits nothing twice.",
    )


def _silence(stream: TextIO) -> None:
    from submitter.cli.output import silence  # noqa: PLC0415 - rarely needed

    silence(stream)


def _explain_aws(error: Exception) -> errors.SubmitterError | None:
    """Put an error of boto3 into words; None for a bug of ours. Imports nothing unless boto3 was in use."""
    if "botocore" not in sys.modules:
        return None
    if type(error) is ValueError and str(error).startswith("Invalid endpoint: "):  # botocore has no class for it
        return errors.ConfigurationError(
            f"{error} is no address of AWS.", "Correct AWS_ENDPOINT_URL, or endpoint_url in the AWS config file."
        )
    from submitter.aws_errors import explain  # noqa: PLC0415 - boto3's exceptions are imported only when it was in use

    return explain(error)


def _fail(message: str, remedy: str | None, exit_code: int, *, title: str = "Error: ") -> int:
    from submitter.cli.output import note  # noqa: PLC0415 - so that what succeeds quickly does not pay for it

    note(message, prefix=title)
    if remedy:
        note(remedy)
    return exit_code

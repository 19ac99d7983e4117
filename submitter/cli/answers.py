"""Answers to what CleanRL's benchmark.py is typed with, where it is spelt another way here."""

from collections.abc import Sequence

import click


class Answering(click.Command):
    """A command that knows what such a spelling is here."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line.

        Raises:
            click.UsageError: An option is unknown; for CleanRL's own ones the message says what to type.
        """
        for position, argument in enumerate(args):
            option, equals, value = argument.partition("=")
            if answer := _answer(option, [value] if equals else _values(args[position + 1 :])):
                raise click.UsageError(f"No such option: {option}. Here it is {answer}", ctx=ctx)
        return super().parse_args(ctx, args)


def _answer(option: str, values: Sequence[str]) -> str | None:
    match option:
        case "--num-seeds":
            return f"--num-seed {' '.join(values) or 'N'}."
        case "--env-ids":
            return f"--grid env-id={','.join(values) or 'A,B'}."
        case "--workers":
            return "the queue that decides how many runs there are at once; see `submitter queues`."
        case _:
            return None


def _values(arguments: Sequence[str]) -> list[str]:
    end = next((at for at, argument in enumerate(arguments) if argument.startswith("-")), len(arguments))
    return list(arguments[:end])

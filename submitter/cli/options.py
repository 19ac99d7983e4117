"""What several commands share: options, each defined once, and the way to the account."""

from typing import TYPE_CHECKING

import click

from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.cli.connection import Connection

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document, for scripts.")

sweep_name = click.argument("name", metavar="NAME")

owner = click.option(
    "--owner",
    metavar="OWNER",
    help="Whose sweep it is; NAME may also be OWNER/NAME.  [default: the AWS caller's name]",
)

seed = click.option("--seed", type=click.IntRange(min=0), help="Only the runs with this seed.")

where = click.option(
    "--where", metavar="AXIS=VALUE", multiple=True, help="Only the runs with this value, such as env-id=Hopper-v4."
)

index = click.option("--index", type=click.IntRange(min=1), metavar="N", help="Only the run with this number.")

poll = click.option(
    "--poll",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to ask AWS while waiting.",
)


def connect(source: StackSource) -> "Connection":
    """Return the way to the stack and its account. Here and nowhere else boto3 is imported."""
    from submitter.cli.connection import Connection  # noqa: PLC0415 - so that --help does not pay for boto3

    return Connection(source)

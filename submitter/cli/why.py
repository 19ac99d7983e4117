"""`submitter why`."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from submitter import render
from submitter.cli import options
from submitter.cli.output import counts_text, point_to_failed
from submitter.stack import StackSource

if TYPE_CHECKING:
    from submitter.diagnosis import Finding


@click.command("why")
@options.sweep_name
@options.owner
@options.as_json
@click.pass_obj
def why_command(source: StackSource, *, name: str, owner: str | None, as_json: bool) -> None:
    """Explain what a sweep's runs wait for, and what to do about it."""
    connection = options.connect(source)
    status, found = connection.why(connection.full_name(name, owner))
    if as_json:
        rows = [{"queue": queue, **asdict(finding)} for queue, findings in found.items() for finding in findings]
        values = {"sweep": status.sweep, "counts": dict(status.counts), "findings": rows}
        click.echo(render.document("why", values))
        return
    click.echo(f"{status.sweep}: {counts_text(status.counts)}")
    if not found:
        click.echo("No run waits.")
    for queue, findings in found.items():
        click.echo(f"\n{queue}:" if queue else "")
        for finding in findings:
            click.echo(_text(finding))
    point_to_failed(status)


def _text(finding: "Finding") -> str:
    return f"  {finding.sentence}\n    -> {finding.remedy}"

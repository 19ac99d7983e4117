"""The least that a command line made with click can be."""

import click

click.command()(lambda: None)()

"""Writes docs/cli.md from the commands themselves: `python -m tools.cli_reference`."""

from pathlib import Path
from typing import Final

import click

from submitter.cli.main import group

PAGE: Final = Path(__file__).parents[1] / "docs" / "cli.md"
_WIDTH: Final = 100
_INTRODUCTION: Final = """\
# The command line

*Made from the commands' own help by `python -m tools.cli_reference`; a test compares.*

- Options may stand in environment variables: `SUBMITTER_OUTPUTS` is `submitter --outputs`, `SUBMITTER_RUN_QUEUE` is
  `submitter run --queue`. What skips a question (`--yes`) may not. An option that may be repeated has each value on a
  line.
- Results go to standard output, everything else to standard error. `--json` prints one document, whose `schema` names
  its kind and version: `rl-batch/status/v1` is described by [schemas/status.json](schemas/status.json). `logs --json`
  prints such a document a line ([schemas/log-line.json](schemas/log-line.json)), and so does `status --watch --json`
  whenever something has changed.
- Exit codes: 0 done; 1 runs failed or were cancelled (`run --wait`, `wait`), or you answered no; 2 usage; 3 stack,
  configuration or credentials; 4 AWS refused or cannot be reached; 124 the time of `wait --timeout` is up;
  130 interrupted.
- `python -m submitter` is the same program.
- Completion by the Tab key: `eval "$(_SUBMITTER_COMPLETE=bash_source submitter)"` in `~/.bashrc`; `zsh_source` and
  `fish_source` for the other shells. It knows commands, options and fixed choices.
"""


def reference() -> str:
    """Return the page's text."""
    whole = click.Context(group, info_name="submitter", terminal_width=_WIDTH)
    parts = [_INTRODUCTION, _block(whole)]
    for name in group.list_commands(whole):
        command = group.get_command(whole, name)
        if command is not None and not command.hidden:
            context = click.Context(command, info_name=name, parent=whole, terminal_width=_WIDTH)
            parts += [f"## submitter {name}\n", _block(context)]
    return "\n".join(parts)


def _block(context: click.Context) -> str:
    return f"```text\n{context.get_help()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")

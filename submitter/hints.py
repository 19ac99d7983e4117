"""What is probably a slip in a command: told, and done as typed. Pure."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from submitter.template import SEED


def hints(command: str, axes: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each brace that should name a value, and each parameter that the command gives itself.

    Args:
        command: As it was typed.
        axes: Names of the parameters.
    """
    names = {_plain(name): name for name in (*axes, SEED)}
    for found in dict.fromkeys(re.findall(r"(?<![${])\{([A-Za-z][\w.-]*)\}", command)):
        if found in names.values():
            continue
        near = get_close_matches(_plain(found), names, n=1, cutoff=0.75)
        if near or "-" in found:  # as only a parameter is called; {print} and {name} are other languages'
            meant = f"; did you mean {{{names[near[0]]}}}?" if near else "."
            yield f"{{{found}}} in the command names no value and stays as it is{meant}"
    for axis in axes:
        option = re.escape(_plain(axis)).replace("_", "[_-]")
        if f"{{{axis}}}" not in command and (given := re.search(rf"(?<!\S)--{option}(?=[\s=]|$)", command)):
            yield f"The command has {given[0]} already, and the values of {axis} are added at its end."


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")

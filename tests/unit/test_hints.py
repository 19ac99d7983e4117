"""What the command line says of commands that are probably mistyped."""

import pytest

from submitter.hints import hints


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("train --lr {learning_rate}", "did you mean {learning-rate}?"),
        ("train {learning-rate} {sed}", "did you mean {seed}?"),
        ("train {env-id}", "{env-id} in the command names no value and stays as it is."),
        ("train --learning-rate 0.1", "has --learning-rate already"),
        ("train --learning_rate=0.1", "has --learning_rate already"),
    ],
)
def test_a_probable_slip_is_told(command: str, hint: str) -> None:
    (told,) = hints(command, ("learning-rate",))
    assert hint in told


@pytest.mark.parametrize(
    "command",
    [
        "train",
        "train --learning-rate {learning-rate} --seed {seed}",
        "train --learning-rate-decay 1",
        "train ${learning_rate} {{sed}} {print} {1..3}",
    ],
)
def test_what_is_meant_so_is_not_told(command: str) -> None:
    assert not list(hints(command, ("learning-rate",)))

"""What an image's registry tells before anything is submitted."""

import pytest

from submitter.errors import UsageError
from submitter.preflight import check_entrypoint


@pytest.mark.parametrize(
    "entrypoint",
    [
        ("/bin/sh", "-c", "python train.py"),
        ("/bin/bash", "-lc", "exec xvfb-run"),
        ("bash",),
        ("python",),
        ("/usr/bin/python3", "train.py"),
    ],
)
def test_an_entrypoint_that_takes_the_command_for_its_own_words_is_refused(entrypoint: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="ENTRYPOINT of trainer:1") as refusal:
        check_entrypoint("trainer:1", entrypoint)
    assert refusal.value.remedy


@pytest.mark.parametrize(
    "entrypoint",
    [(), ("/entrypoint.sh",), ("tini", "--"), ("bash", "/entrypoint.sh"), ("uv", "run"), ("xvfb-run", "-a")],
)
def test_an_entrypoint_that_may_run_the_command_passes(entrypoint: tuple[str, ...]) -> None:
    check_entrypoint("trainer:1", entrypoint)

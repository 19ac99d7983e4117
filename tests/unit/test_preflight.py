"""What an image's registry tells before anything is submitted."""

import pytest

from submitter.errors import UsageError
from submitter.preflight import check_architecture, check_entrypoint
from submitter.registry import Published

DIGEST = f"sha256:{'0' * 64}"


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


def test_an_image_for_other_instances_than_the_queues_is_refused() -> None:
    """Each of its jobs would fail with `exec format error` once an instance was started for it."""
    amd64 = Published(DIGEST, frozenset({"x86_64"}))
    check_architecture("trainer:1", amd64, "x86_64", "c5a-large")
    check_architecture("trainer:1", Published(DIGEST, frozenset()), "arm64", "c6g-medium")
    with pytest.raises(UsageError, match="trainer:1 is for x86_64, and the instances of c6g-medium are arm64"):
        check_architecture("trainer:1", amd64, "arm64", "c6g-medium")

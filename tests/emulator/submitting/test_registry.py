"""What an image's registry is told to hold by a docker on PATH that prints this and that."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from submitter.errors import ConfigurationError
from submitter.registry import LookUp, Published

DIGEST = f"sha256:{'0' * 64}"
AMD64 = {"platform": {"os": "linux", "architecture": "amd64"}}
Docker = Callable[[str], None]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    """Put a docker on PATH that runs this Python code."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")

    def make(code: str) -> None:
        (tmp_path / "docker").write_text(f"#!{sys.executable}\nimport sys, time\n{code}\n")
        (tmp_path / "docker").chmod(0o755)

    return make


def look_up() -> Published:
    with LookUp("trainer:1") as asked:
        return asked.published


@pytest.mark.parametrize(
    ("found", "architectures", "entrypoint"),
    [
        ({"manifest": {"digest": DIGEST, "manifests": [AMD64]}, "image": None}, {"x86_64"}, ()),
        ({"manifest": {"digest": DIGEST, "manifests": [{}, {"platform": None}]}}, set(), ()),
        ({"manifest": {"digest": DIGEST}, "image": {"architecture": "arm64", "config": None}}, {"arm64"}, ()),
        (
            {"manifest": {"digest": DIGEST}, "image": {"architecture": "arm64", "config": {"Entrypoint": ["tini"]}}},
            {"arm64"},
            ("tini",),
        ),
    ],
)
def test_what_buildx_finds_is_read_with_whatever_it_leaves_out(
    docker: Docker, found: object, architectures: set[str], entrypoint: tuple[str, ...]
) -> None:
    docker(f"print(' ' * 200_000 + {json.dumps(found)!r})")  # more than a pipe holds
    assert look_up() == Published(DIGEST, frozenset(architectures), entrypoint)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("", "something else than an image"),
        ("print('hello')", "something else than an image"),
        ("print('[]')", "something else than an image"),
        ("""print('{"manifest": null}')""", "something else than an image"),
        ("""print('{"manifest": {}}')""", "something else than an image"),
        ("""print('{"manifest": {"digest": "latest"}}')""", "something else than an image"),
        (r"sys.stdout.buffer.write(b'\xff')", "something else than an image"),
        (r"sys.exit('ERROR: no such\nhost')", "`docker buildx imagetools` failed: no such host"),
        ("sys.exit(3)", "`docker buildx imagetools` failed: exit code 3"),
        ("sys.exit('docker: unknown command: docker buildx')", "No Docker daemon answers at unix:///"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(docker: Docker, code: str, sentence: str) -> None:
    docker(code)
    with pytest.raises(ConfigurationError, match=sentence) as told:
        look_up()
    assert len(told.value.message) < 700


def test_what_was_asked_is_ended_when_nobody_wants_the_answer_any_more(
    docker: Docker, tmp_path: Path, wait_until: Callable[..., object]
) -> None:
    child = f"import time; open('{tmp_path}/began', 'w').close(); time.sleep(600)"
    docker(f"import subprocess; subprocess.run([sys.executable, '-c', {child!r}])")  # as docker runs buildx
    with LookUp("trainer:1") as asked:
        wait_until((tmp_path / "began").exists)
    assert asked._buildx is not None
    assert asked._buildx.returncode == -9

"""What the command line makes of the process that it is: its arguments, its streams, and an early Ctrl-C."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

DRY_RUN = ("run", "--image", "trainer:1", "--command", "true # {seed}")


def submitter(
    arguments: Sequence[str | bytes], folder: Path, *, redirect: str = "", **variables: bytes
) -> tuple[int, str, str]:
    """Type a command in a shell, with streams as it redirects them; return its exit code and what it has printed."""
    done = subprocess.run(
        ["sh", "-c", f'"$@" {redirect}', "sh", sys.executable, "-m", "submitter", *arguments],
        check=False,
        capture_output=True,
        cwd=folder,
        env={**os.environb, b"DOCKER_HOST": b"unix:///none", **{os.fsencode(k): v for k, v in variables.items()}},
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    return done.returncode, out, err


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), DRY_RUN])
@pytest.mark.parametrize("unbuffered", [b"", b"1"])
def test_a_full_disk_is_one_sentence(arguments: tuple[str, ...], unbuffered: bytes, tmp_path: Path) -> None:
    code, _, err = submitter(arguments, tmp_path, redirect="> /dev/full", PYTHONUNBUFFERED=unbuffered)
    assert code == 3
    assert "Error: Standard output cannot be written to: No space left on device." in err


@pytest.mark.parametrize("redirect", ["2> /dev/full", "2>&-", "<&-"])
def test_what_cannot_be_told_stops_nothing(redirect: str, tmp_path: Path) -> None:
    code, out, _ = submitter(DRY_RUN, tmp_path, redirect=redirect)
    assert (code, out[:10]) == (0, "docker run")
    assert submitter(("run", "--num-seed", "x"), tmp_path, redirect=redirect)[:2] == (2, "")


def test_a_closed_standard_output_is_nobody_who_reads(tmp_path: Path) -> None:
    assert submitter(DRY_RUN, tmp_path, redirect=">&-")[0] == 0
    assert (tmp_path / "debug.sh.docker.sh").exists()


@pytest.mark.parametrize("option", ["--command", "--env", "--image", "--seed-flag", "--tag", "--name", "--grid"])
def test_bytes_that_are_no_text_are_refused(option: str, tmp_path: Path) -> None:
    code, out, err = submitter([*DRY_RUN, option, b"A=echo \xff"], tmp_path)
    assert (code, out) == (2, "")
    assert "'A=echo \\udcff' is not text in UTF-8." in err
    assert list(tmp_path.iterdir()) == []


def test_neither_are_they_taken_from_a_variable(tmp_path: Path) -> None:
    code, _, err = submitter(DRY_RUN, tmp_path, SUBMITTER_RUN_TAG=b"a=\xff")
    assert (code, "is not text in UTF-8" in err) == (2, True)


def test_an_interruption_while_modules_are_imported_is_one(tmp_path: Path) -> None:
    script = """
import sys
from submitter.__main__ import main

class Interrupting:
    def find_spec(self, name, *_):
        if name.startswith("submitter."):
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
main()
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")

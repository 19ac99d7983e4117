"""Getting the Pulumi CLI, as a command, where the official installer answers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import on_path, pulumi, steps

ROOT = Path(__file__).parents[2]

# Stands where curl is, since the installer's site cannot be relied on in a test: it "fetches" an installer that links
# the CLI of this machine, counts, and takes long enough for two to meet.
CURL = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
cat > "$2" <<'END'
while [ $# -gt 0 ]; do
    case $1 in
        --install-root) root=$2 ;;
    esac
    shift
done
echo one >> {count}
mkdir -p "$root/bin"
cp {cli}/pulumi "$root/bin/"
END
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An empty cache, and a PATH with the fake curl but no pulumi."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "curl").write_text(CURL.format(cli=pulumi.ensure(), count=tmp_path / "count"))
    (folder / "curl").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}


def start(environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tools.pulumi"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_at_once_install_it_once_and_both_get_it(environment: dict[str, str], tmp_path: Path) -> None:
    both = [start(environment) for _ in range(2)]
    (folder, progress), (other, more_progress) = [process.communicate(timeout=120) for process in both]
    assert folder == other
    assert (tmp_path / "count").read_text() == "one\n"
    assert on_path.release(on_path.version_of(Path(folder.strip()) / "pulumi")) >= (3, 0, 0)
    assert "pulumi: done installing" in progress + more_progress

    third, silence = start(environment).communicate(timeout=120)
    assert (third, silence) == (folder, "")


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """The started process holds the write end of a pipe, so that the end of the file tells that it is gone."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    script = f"sh -c 'echo started; exec sleep 600' > {fifo} & sleep 600"
    with pytest.raises(steps.UnavailableError, match="not done after 1 s"):
        steps.run("sleeping", ["sh", "-c", script], tmp_path / "log", timeout_seconds=1)
    os.set_blocking(reader, True)
    with os.fdopen(reader) as pipe:
        assert pipe.read() == "started\n"


def test_a_command_that_fails_gives_its_last_line_as_the_reason(tmp_path: Path) -> None:
    with pytest.raises(steps.UnavailableError, match="sh failed: no such host"):
        steps.run("failing", ["sh", "-c", "echo no such host >&2; exit 7"], tmp_path / "log", timeout_seconds=60)

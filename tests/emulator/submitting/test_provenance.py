"""Where a command was typed: commit, tag, and the pull request that GitHub knows of it."""

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from submitter.provenance import current_commit, git_tag, pull_request

ASKED = "/repos/lab/rl/commits/abc/pulls"


class _GitHub(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == ASKED else 404)
        self.end_headers()
        self.wfile.write(json.dumps([{"number": 12}]).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def github() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _GitHub) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=ada", "-c", "user.email=ada@example.org", *arguments], check=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "--quiet", "--message", "first")
    return tmp_path


def test_a_commit_is_dirty_when_a_tracked_file_differs(repository: Path) -> None:
    (repository / "untracked").touch()
    commit = current_commit()
    assert commit is not None
    assert not commit.dirty
    (repository / "file").write_text("2")
    changed = current_commit()
    assert changed is not None
    assert (changed.id, changed.dirty) == (commit.id, True)


@pytest.mark.usefixtures("repository")
def test_the_tag_is_gits_description() -> None:
    assert git_tag() is None
    git("tag", "v1.0.0b2")
    git("commit", "--quiet", "--allow-empty", "--message", "second")
    assert str(git_tag()).startswith("v1.0.0b2-1-g")


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    "origin", ["git@github.com:lab/rl.git", "https://github.com/lab/rl", "https://x@github.com/lab/rl/"]
)
def test_the_pull_request_is_githubs(origin: str, github: str) -> None:
    git("remote", "add", "origin", origin)
    assert pull_request("abc", api=github) == 12
    assert pull_request("unknown", api=github) is None


@pytest.mark.usefixtures("repository")
def test_without_github_there_is_none(github: str) -> None:
    assert pull_request("abc", api=github) is None
    git("remote", "add", "origin", "https://gitlab.example.org/lab/rl")
    assert pull_request("abc", api=github) is None
    git("remote", "set-url", "origin", "https://github.com/lab/rl")
    assert pull_request("abc", api="http://127.0.0.1:1") is None

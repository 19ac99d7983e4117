"""What an image's registry is told to hold by a docker on PATH that prints this and that."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from submitter import registry
from submitter.engine import connect
from submitter.errors import ConfigurationError
from submitter.registry import LookUp, Published
from tests.emulator.submitting.json_server import VERSION, reply

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


INFO = {"NCPU": 2, "MemTotal": 2**32}
Engine = Callable[..., None]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Run a Docker Engine that answers so, and no docker: `engine(distribution={"Platforms": []})`."""
    answers: dict[str, object] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers["distribution" if "/distribution/" in self.path else self.path.rpartition("/")[2]]
            if answer is None:
                ended.wait()
                return
            reply(self, answer)

        def log_message(self, *_: object) -> None:
            pass

    ended = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()

        def answering(**changed: object) -> None:
            answers.update({"version": VERSION, "info": INFO, "distribution": {}, **changed})
            monkeypatch.setenv("PATH", "")
            monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_port}")

        yield answering
        ended.set()
        server.shutdown()


def image(name: str, value: object) -> str:
    """Return the code of a docker that finds an image for amd64 with this value."""
    found: dict[str, Any] = {"manifest": {"digest": DIGEST}, "image": {"architecture": "amd64", name: value}}
    return f"print({json.dumps(found)!r})"


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
        (image("architecture", 5), "something else than an image"),
        (image("architecture", ["amd64"]), "something else than an image"),
        (image("config", {"Entrypoint": [5]}), "something else than an image"),
        (image("config", {"Entrypoint": "python"}), "something else than an image"),
        ("print('[' * 100_000)", "something else than an image"),
        ("sys.exit(3)", "`docker buildx imagetools` failed: exit code 3"),
        ("sys.exit('docker: unknown command: docker buildx')", "No Docker daemon answers at unix:///"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(docker: Docker, code: str, sentence: str) -> None:
    docker(code)
    with pytest.raises(ConfigurationError, match=sentence) as told:
        look_up()
    assert len(told.value.message) < 700


def test_the_engine_is_asked_where_there_is_no_buildx(engine: Engine) -> None:
    engine(distribution={"Descriptor": {"digest": DIGEST}, "Platforms": [AMD64["platform"]]})
    assert look_up() == Published(DIGEST, frozenset({"x86_64"}))


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        "[" * 100_000,
        {"Descriptor": None, "Platforms": []},
        {"Descriptor": {"digest": 5}, "Platforms": []},
        {"Descriptor": {"digest": "latest"}, "Platforms": []},
        {"Descriptor": {"digest": DIGEST}},
        {"Descriptor": {"digest": DIGEST}, "Platforms": None},
        {"Descriptor": {"digest": DIGEST}, "Platforms": [None]},
        {"Descriptor": {"digest": DIGEST}, "Platforms": [{"architecture": 5}]},
    ],
)
def test_an_engine_that_answers_oddly_is_one_sentence(engine: Engine, answer: object) -> None:
    engine(distribution=answer)
    with pytest.raises(ConfigurationError, match="The Docker Engine answered something else than an image"):
        look_up()


@pytest.mark.parametrize("info", [{}, [], "{", "[" * 100_000, {"NCPU": None, "MemTotal": 1}, {"NCPU": 2}])
def test_an_engine_that_does_not_say_what_it_has_is_none(engine: Engine, info: object) -> None:
    engine(info=info)
    with pytest.raises(ConfigurationError, match="No Docker daemon answers at tcp://"):
        connect(dict(os.environ))


@pytest.mark.parametrize("silent", ["version", "info", "distribution"])
def test_a_silent_engine_is_waited_for_no_longer_than_the_look_up_may_take(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, silent: str
) -> None:
    monkeypatch.setattr(registry, "_SECONDS", 4)
    engine(**{silent: None})
    with pytest.raises(ConfigurationError):
        look_up()


@pytest.mark.parametrize("host", ["tcp://:x", "tcp://127.0.0.1:abc", "tcp://[::1", "nothing://x"])
def test_what_is_no_address_of_an_engine_is_one_sentence(host: str) -> None:
    with pytest.raises(ConfigurationError, match="No Docker daemon answers at"):
        connect({"DOCKER_HOST": host})


@pytest.mark.parametrize("config", ['{"currentContext": "gone"}', '{"currentContext": 5}', "[]", "{"])
def test_a_docker_context_that_is_gone_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str
) -> None:
    (tmp_path / "config.json").write_text(config)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigurationError):
        connect({})


def test_what_docker_says_without_end_is_not_kept(docker: Docker) -> None:
    docker("for _ in range(1000): sys.stderr.write('x' * 65_536)\nsys.exit(1)")
    with LookUp("trainer:1") as asked:
        with pytest.raises(ConfigurationError, match="failed: xxx"):
            _ = asked.published
        assert sum(map(len, asked._err._chunks)) < 200_000


def test_whoever_is_told_to_end_ends_docker(
    docker: Docker,
    submitter: object,  # noqa: ARG001 - the stack's outputs
    tmp_path: Path,
    wait_until: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    docker(f"import os; print(os.getpid(), end=' ', file=open('{tmp_path}/pid', 'w'), flush=True); time.sleep(600)")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        command = [sys.executable, "-m", "submitter", "run", "--queue", "c5a-large-spot", "--image", "trainer:1"]
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        with subprocess.Popen([*command, "--pin"], stderr=subprocess.PIPE, text=True) as started:
            try:
                wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith(" "))
                started.send_signal(signal.SIGTERM)
                _, told = started.communicate(timeout=20)
            finally:
                started.kill()
    assert (started.returncode, "Traceback" in told) == (130, False)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_what_was_asked_is_ended_when_nobody_wants_the_answer_any_more(
    docker: Docker, tmp_path: Path, wait_until: Callable[..., object]
) -> None:
    child = f"import time; open('{tmp_path}/began', 'w').close(); time.sleep(600)"
    docker(f"import subprocess; subprocess.run([sys.executable, '-c', {child!r}])")  # as docker runs buildx
    with LookUp("trainer:1") as asked:
        wait_until((tmp_path / "began").exists)
    assert asked._buildx is not None
    assert asked._buildx.returncode == -9

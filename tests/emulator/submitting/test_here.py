"""`submitter run` without a queue: no stack, no credentials, and Docker only for the number of its cores."""

import json
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from submitter.cli.main import execute
from tests.emulator.submitting.json_server import VERSION, reply

RUN = ("run", "--image", "trainer:1", "--command", "python train.py --track")


class _Daemon(BaseHTTPRequestHandler):
    """As much of Docker's API as tells how many cores it has: 2."""

    def do_GET(self) -> None:
        reply(self, VERSION if self.path.endswith("/version") else {"NCPU": 2, "MemTotal": 2**32})

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to type commands in, on a machine with 16 cores, no stack, no credentials and no daemon."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    for name in [name for name in os.environ if name.startswith(("AWS_", "WANDB_", "SUBMITTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    return tmp_path


@pytest.fixture
def daemon(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # noqa: ARG001 - it sets DOCKER_HOST too
    with ThreadingHTTPServer(("127.0.0.1", 0), _Daemon) as server:
        threading.Thread(target=server.serve_forever).start()
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_port}")
        yield
        server.shutdown()


def cores(printed: str) -> list[str]:
    return re.findall(r"--cpuset-cpus=(\S+)", printed)


@pytest.mark.usefixtures("daemon")
def test_the_cores_are_dockers_and_not_the_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute([*RUN, "--num-seed", "5"]) == 0
    assert cores(capsys.readouterr().out) == ["0", "1", "0", "1", "0"]


def test_without_a_daemon_they_are_this_machines_which_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([*RUN, "--num-seed", "3", "--num-vcpu", "8"]) == 0
    printed = capsys.readouterr()
    assert cores(printed.out) == ["0-7", "8-15", "0-7"]
    assert f"No Docker daemon answers at unix://{folder}/docker.sock. The lines are for the 16 cores" in printed.err


def test_an_asked_for_dry_run_writes_no_script(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "debug.sh.docker.sh").write_text("mine")
    assert execute([*RUN, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["script"] is None
    assert (folder / "debug.sh.docker.sh").read_text() == "mine"


def test_the_script_can_be_run_and_committed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "sentinel")
    assert execute([*RUN, "--exp-script", "ppo.sh", "--wandb-key", "sentinel"]) == 0
    script = folder / "ppo.sh.docker.sh"
    assert os.access(script, os.X_OK)
    text = script.read_text()
    assert text.startswith("#!/bin/sh\n")
    assert "docker run -d --cpuset-cpus=0 -e WANDB_API_KEY -e " in text
    assert "sentinel" not in text
    assert str(Path.home()) not in text


@pytest.mark.parametrize("how", [(), ("--provider", "local"), ("--provider", "local", "--dry-run")])
@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("HF_TOKEN", "--command=python t.py --token %s --track"),
        ("HF_TOKEN", "--env=X=%s"),
        ("HF_TOKEN", "--grid=token=a,%s"),
        ("HF_TOKEN", "--name=%s"),
        ("WANDB_API_KEY", "--env=X=%s"),
        ("WANDB_API_KEY", "--command=WANDB_KEY=%s python t.py"),
    ],
)
def test_a_secrets_value_is_in_no_script_and_on_no_screen(  # noqa: PLR0917 - fixtures
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    how: tuple[str, ...],
    name: str,
    place: str,
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "key-of-somebody")
    monkeypatch.setenv(name, "sentinel-5f0c1e")
    secret = ("--secret", name) if name == "HF_TOKEN" else ()
    assert execute([*RUN, *how, *secret, place % "sentinel-5f0c1e"]) == 2
    printed = capsys.readouterr()
    assert f"The value of {name} is in the command" in printed.err
    assert "sentinel" not in printed.out + printed.err
    assert list(folder.iterdir()) == []


def test_what_only_shows_the_runs_needs_no_values(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    assert execute([*RUN, "--secret", "HF_TOKEN"]) == 0
    assert " -e HF_TOKEN " in (folder / "debug.sh.docker.sh").read_text()


@pytest.mark.parametrize("how", [(), ("--provider", "local"), ("--queue", "c5a-large")])
@pytest.mark.usefixtures("folder")
def test_a_secret_has_one_value_and_a_name_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: tuple[str, ...]
) -> None:
    for name in ("FOO", "WANDB_RUN_ID", "WANDB_API_KEY"):
        monkeypatch.setenv(name, "sentinel")
    assert execute([*RUN, *how, "--env", "FOO=1", "--secret", "FOO"]) == 2
    assert "FOO is given by --env and by --secret." in capsys.readouterr().err
    assert execute([*RUN, *how, "--secret", "WANDB_RUN_ID"]) == 2
    assert "WANDB_RUN_ID is set for each run." in capsys.readouterr().err


@pytest.mark.parametrize("more", [("--provider", "local", "--dry-run"), ("--dry-run",)])
def test_a_dry_run_builds_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]) -> None:
    (folder / "Dockerfile").touch()
    built: list[object] = []
    monkeypatch.setattr("submitter.cli.outfit.build_and_push", built.append)
    assert execute([*RUN, "--build", "--push", *more]) == 0
    assert built == []
    assert execute([*RUN, "--build", "--push"]) == 0
    assert len(built) == 1


@pytest.mark.parametrize("more", [("--job-queue", "c5a-large"), ("--dry-run", "--provider", "local")])
@pytest.mark.usefixtures("folder")
def test_cleanrls_queue_option_alone_submits_nothing_and_a_dry_run_runs_nothing(
    more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([*RUN, *more, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["commands"]) == 1


def test_a_local_run_of_a_tracking_command_asks_for_a_key_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([*RUN, "--provider", "local"]) == 3
    assert "Run `wandb login`, or set WANDB_API_KEY; --env WANDB_MODE=offline needs none." in capsys.readouterr().err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("more", "code", "sentence"),
    [
        (("--provider", "local", "--wandb-key", "k"), 3, "No Docker daemon answers"),
        (("--provider", "local", "--queue", "c5a-large"), 2, "without a queue"),
        (("--num-vcpu", "17"), 2, "Docker has 16 cores, and each run would get 17."),
        (("--exp-script", "nowhere/x"), 2, "Cannot write nowhere/x.docker.sh"),
        (("--num-memory", "-5"), 2, "A run needs at least 4 MiB of memory, not -5."),
        (("--exp-script", ""), 2, "--exp-script names no file."),
        (("--name", ""), 2, "'' is not a name for a sweep."),
        (("--image", "a b c"), 2, "'a b c' is not an image's name."),
        (("--seed-flag", ""), 2, "--seed-flag '' is not an option's name."),
        (("--gpus", "0,,1"), 2, "--gpus 0,,1 is not a list of GPUs."),
        (("--provider", "aws"), 3, "Pulumi"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_work_is_one_sentence(
    more: tuple[str, ...], code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([*RUN, *more]) == code
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said


@pytest.mark.parametrize("more", [(), ("--provider", "local", "--wandb-key", "k")])
@pytest.mark.usefixtures("folder")
def test_what_is_probably_a_slip_is_told_whether_the_runs_run_here_or_not(
    more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    command = "python train.py --lr 1 {env_id}"
    execute(["run", "--image", "trainer:1", "--command", command, "--grid", "env-id=a", "--grid", "lr=1,2", *more])
    said = capsys.readouterr().err
    assert "{env_id} in the command names no value and stays as it is; did you mean {env-id}?" in said
    assert "The command has --lr already, and the values of lr are added at its end." in said


@pytest.mark.usefixtures("folder")
def test_docker_lines_need_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("submitter.cli.options.connect")
    assert execute(["run", "--image", "trainer:1", "--command", "true # {seed}"]) == 0

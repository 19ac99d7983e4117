"""`python -m emulator`: one detached process per folder, stopped exactly, found again after a crash."""

import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from emulator.__main__ import main
from emulator.home import CHECKOUT, Home, Running, process_start
from emulator.project import Project

Emulator = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "it's an account")


@pytest.fixture
def emulator(home: Home) -> Iterator[Emulator]:
    """Run `python -m emulator COMMAND --home HOME`; whatever is up at the end is stopped."""

    def run(command: str, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "emulator", command, "--home", str(home.folder), *more],
            cwd=CHECKOUT,
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )

    yield run
    run("stop")


def health(home: Home) -> Any:
    connection = http.client.HTTPConnection(home.running().url.removeprefix("http://"))
    connection.request("GET", "/_emulator/health")
    read = json.load(connection.getresponse())
    connection.close()
    return read


def test_an_account_is_started_once_used_and_stopped_without_a_trace(home: Home, emulator: Emulator) -> None:
    assert emulator("status").returncode == 3
    assert emulator("env").returncode == 3
    started = emulator("start")
    assert (started.returncode, started.stderr) == (0, "")
    running = home.running()
    assert started.stdout == f"account 123456789012 is up at {running.url}\n"
    assert health(home)["pid"] == running.pid
    assert os.getsid(running.pid) == running.pid

    again = emulator("start")
    assert again.returncode == 1
    assert "is up in" in again.stderr
    assert "Traceback" not in again.stderr
    assert emulator("status").returncode == 0

    printed = emulator("env").stdout
    shell = f'{printed}\necho "$PULUMI_BACKEND_URL" "$AWS_ENDPOINT_URL" "${{AWS_PROFILE-none}}"'
    environment = {**os.environ, "AWS_PROFILE": "mine"}
    # The person's shell has a profile; `env` was asked without one, so it has nothing to unset.
    assert "AWS_PROFILE" not in printed
    seen = subprocess.run(["sh", "-c", shell], check=True, capture_output=True, text=True, env=environment).stdout
    assert seen == f"{home.backend.as_uri()}?metadata=skip {running.url} mine\n"

    assert emulator("stop").returncode == 0
    assert not running.alive
    assert emulator("stop").returncode == 3
    assert sorted(entry.name for entry in home.folder.iterdir()) == ["emulator.log", "lock"]


def test_a_profile_of_the_person_s_own_does_not_matter_and_is_unset(
    home: Home, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "mine")
    emulator("start")
    shell = f'{emulator("env").stdout}\necho "${{AWS_PROFILE-none}}"'
    assert home.running().alive
    assert subprocess.run(["sh", "-c", shell], check=True, capture_output=True, text=True).stdout == "none\n"


def test_after_a_crash_the_next_start_says_so_and_begins_anew(home: Home, emulator: Emulator) -> None:
    emulator("start")
    (home.backend / "ghost").write_text("a stack of the old account")
    crashed = home.running()
    process = os.pidfd_open(crashed.pid)
    signal.pidfd_send_signal(process, signal.SIGKILL)
    os.close(process)
    while crashed.alive:
        pass
    status = emulator("status")
    assert status.returncode == 1
    assert "has ended by itself" in status.stderr
    started = emulator("start")
    assert started.returncode == 0
    assert "had ended without being stopped" in started.stderr
    assert str(home.previous_log) in started.stderr
    assert crashed.url in home.previous_log.read_text()
    assert not (home.backend / "ghost").exists()


def test_an_account_that_is_just_coming_up_keeps_its_folder_and_its_log(home: Home, emulator: Emulator) -> None:
    home.begin()
    home.log.write_text("of the account that is coming up")
    with home.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert emulator("stop").returncode == 3
        started = emulator("start")
        assert (started.returncode, "coming up or going down" in started.stderr) == (1, True)
        assert home.backend.exists()
        assert home.log.read_text() == "of the account that is coming up"
        assert not home.previous_log.exists()


@pytest.mark.usefixtures("emulator")
def test_a_start_that_is_interrupted_leaves_no_account(home: Home, wait_until: Callable[..., Any]) -> None:
    command = [sys.executable, "-m", "emulator", "start", "--home", str(home.folder)]
    with subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True) as starting:
        wait_until(home.lock.exists)
        (serving,) = map(int, Path(f"/proc/{starting.pid}/task/{starting.pid}/children").read_text().split())
        started = process_start(serving)
        starting.send_signal(signal.SIGINT)
        _, words = starting.communicate(timeout=60)
    assert (starting.returncode, words.strip()) == (1, "Aborted!")
    assert started is not None
    assert process_start(serving) != started


def test_an_account_that_dies_while_it_is_taken_down_is_no_second_error(
    home: Home, emulator: Emulator, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., Any]
) -> None:
    emulator("start")

    def die(project: Project) -> None:
        running = project.home.running()
        os.kill(running.pid, signal.SIGKILL)
        wait_until(lambda: not running.alive)
        project.pulumi("destroy")

    monkeypatch.setattr(Project, "destroy", die)
    ended = CliRunner().invoke(main, ["down", "--home", str(home.folder)])
    assert ended.exit_code == 1
    assert "pulumi destroy failed; nothing is left of what it should have destroyed." in ended.output
    assert not home.backend.exists()


def test_stop_never_touches_a_process_that_has_the_id_of_an_old_account(home: Home, emulator: Emulator) -> None:
    emulator("start")
    real = home.running()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        state = home.folder / "state.json"
        recorded = state.read_text()
        state.write_text(json.dumps({**json.loads(recorded), "pid": stranger.pid}))
        assert emulator("stop").returncode == 3
        assert stranger.poll() is None
        stranger.kill()
    home.record(real)


def test_a_port_that_is_taken_is_one_sentence_with_the_log(home: Home, emulator: Emulator) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        failed = emulator("start", "--port", str(taken.getsockname()[1]))
    assert failed.returncode == 1
    assert "Address already in use" in failed.stderr
    assert str(home.log) in failed.stderr
    assert "Traceback" not in failed.stderr
    assert "Traceback" in home.log.read_text()
    assert emulator("status").returncode == 3


@pytest.fixture
def server(home: Home, emulator: Emulator) -> Running:
    """For the fixtures that make clients and queues: an account in a process of its own."""
    emulator("start")
    return home.running()


@pytest.mark.parametrize("ending", ["stop", "crash"])
def test_no_process_of_a_job_outlives_the_account(
    *,
    server: Running,
    emulator: Emulator,
    aws: Callable[[str], Any],
    queue: Callable[..., Any],
    wait_until: Callable[..., Any],
    tmp_path: Path,
    ending: str,
) -> None:
    """Not even one in a session of its own, and not even when the account is killed."""
    queue("q")
    pids = tmp_path / "pids"
    script = f"cd '{tmp_path}'; setsid sleep 300 & echo $$ $! > pids.new; mv pids.new pids; wait"
    aws("batch").register_job_definition(
        jobDefinitionName="d",
        type="container",
        containerProperties={"image": "i", "command": ["sh", "-c", script], "vcpus": 1, "memory": 100},
    )
    aws("batch").submit_job(jobName="j", jobQueue="q", jobDefinition="d")
    wait_until(pids.exists)
    processes = [(pid, process_start(pid)) for pid in map(int, pids.read_text().split())]
    assert len(processes) == 2
    assert None not in dict(processes).values()
    if ending == "stop":
        assert emulator("stop").returncode == 0
        assert not any(process_start(pid) == started for pid, started in processes)
    else:
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: not any(process_start(pid) == started for pid, started in processes))

"""Small Python programs through the real engine and our language host, without any provider plugin."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import go_build, pulumi

ENVIRONMENT = Path(sys.prefix)
DEADLINE_SECONDS = 120


class Project:
    """A project with a stack `dev`, a backend and a PULUMI_HOME of its own."""

    def __init__(self, folder: Path, cli: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.environment = {
            "PATH": f"{cli}:{ENVIRONMENT / 'bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder}",
            "PULUMI_CONFIG_PASSPHRASE": "none",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            # The environment of these tests has pulumi_aws, whose plugin these programs do not need.
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }
        self.write("")
        self.pulumi("stack", "init", "dev")

    def write(self, program: str, environment: str = str(ENVIRONMENT)) -> None:
        runtime = json.dumps({"name": "python", "options": {"virtualenv": environment} if environment else {}})
        (self.folder / "Pulumi.yaml").write_text(f"name: small\nruntime: {runtime}\n")
        (self.folder / "__main__.py").write_text(program)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["pulumi", *arguments, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=DEADLINE_SECONDS)
        return process.returncode, output

    def preview(self, program: str, environment: str = str(ENVIRONMENT)) -> str:
        """The output of a preview that fails."""
        self.write(program, environment)
        code, output = self.run("preview")
        assert code != 0, output
        return output

    def pulumi(self, *arguments: str) -> str:
        code, output = self.run(*arguments)
        assert code == 0, output
        return output


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The CLI with our language host, also on a machine where `ensure` finds an official installation."""
    folder = tmp_path_factory.mktemp("cli")
    shutil.copy(pulumi.ensure() / "pulumi", folder)
    for path in go_build.language_host_files():
        shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, cli: Path) -> Project:
    return Project(tmp_path_factory.mktemp("small"), cli)


WHOLE = """
import sys
import pulumi
from beside import NAME

config = pulumi.Config()
print("said on stdout")
print("said on stderr", file=sys.stderr)
group = pulumi.ComponentResource("small:index:Group", "group")
kept = pulumi.Stash("kept", input={"numbers": [1, 2]}, opts=pulumi.ResourceOptions(parent=group))
pulumi.export("name", NAME)
pulumi.export("numbers", kept.output["numbers"])
pulumi.export("password", config.require_secret("password"))
pulumi.export("is_secret", pulumi.runtime.is_config_secret("small:password"))
"""


def test_a_program_is_deployed_read_previewed_again_and_destroyed(small: Project) -> None:
    (small.folder / ".venv").symlink_to(ENVIRONMENT)
    small.write(WHOLE, environment=".venv")
    (small.folder / "beside.py").write_text('NAME = "beside"\n')
    small.pulumi("config", "set", "--secret", "password", "hunter2")

    first = small.pulumi("preview")
    assert "4 to create" not in first
    assert "3 to create" in first
    up = small.pulumi("up", "--yes", "--skip-preview")
    assert "3 created" in up
    assert "said on stdout" in up
    assert "said on stderr" in up
    assert "hunter2" not in first + up
    assert "warning" not in up, "e.g. that the language host is not where the engine expects it"

    outputs = json.loads(small.pulumi("stack", "output", "--json"))
    assert outputs == {"name": "beside", "numbers": [1, 2], "password": "[secret]", "is_secret": True}
    shown = json.loads(small.pulumi("stack", "output", "--json", "--show-secrets"))
    assert shown["password"] == "hunter2"

    small.pulumi("preview", "--expect-no-changes")
    assert "3 deleted" in small.pulumi("destroy", "--yes", "--skip-preview")


def test_an_exception_is_shown_once_from_the_users_program_on(small: Project) -> None:
    output = small.preview("def find():\n    return {}['missing']\n\nfind()\n")
    assert output.count("Traceback (most recent call last)") == 1
    assert output.count("KeyError: 'missing'") == 1
    assert "pulumi_language_program" not in output
    assert "runpy" not in output


def test_a_run_error_is_its_message_alone(small: Project) -> None:
    """It is what a program raises for a mistake in the configuration."""
    output = small.preview("import pulumi\nraise pulumi.RunError('maxVcpus is below one instance')\n")
    assert "error: maxVcpus is below one instance\n" in output
    assert "Traceback" not in output
    assert "unhandled" not in output


def test_an_exception_in_an_apply_fails_the_program(small: Project) -> None:
    output = small.preview("import pulumi\npulumi.Output.from_input(1).apply(lambda one: one / 0)\n")
    assert output.count("ZeroDivisionError") == 1


def test_a_programs_own_exit_code_is_named(small: Project) -> None:
    output = small.preview("import sys\nsys.exit(3)\n")
    assert "exit code: 3" in output


def test_a_folder_without_a_program_is_said_to_have_none(small: Project) -> None:
    small.write("")
    (small.folder / "__main__.py").unlink()
    code, output = small.run("preview")
    assert code != 0
    assert "__main__.py does not exist" in output
    assert "Traceback" not in output


def test_a_missing_environment_is_named_with_the_remedy(small: Project) -> None:
    output = small.preview("", environment="none")
    assert "project/none, which Pulumi.yaml names as virtualenv" in output
    assert "uv sync" in output
    assert "Traceback" not in output


def test_the_plugins_of_installed_packages_are_asked_for(small: Project) -> None:
    small.write("")
    about = json.loads(small.pulumi("about", "--json"))
    assert sorted(plugin["name"] for plugin in about["plugins"]) == ["aws", "python"]
    assert about["runtime"]["executable"] == str(ENVIRONMENT / "bin" / "python")
    assert "pulumi-aws" not in {dependency["name"] for dependency in about["dependencies"]}, "rl-batch needs it"


def test_without_a_named_environment_the_python_on_path_is_used(small: Project) -> None:
    small.write("", environment="")
    about = json.loads(small.pulumi("about", "--json"))
    assert about["runtime"]["executable"] == str(ENVIRONMENT / "bin" / "python3")


BLOCKING = """
import os, pathlib, subprocess, sys, threading
child = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
pathlib.Path("pids.tmp").write_text(f"{os.getpid()} {os.getppid()} {child.pid}")
pathlib.Path("pids.tmp").rename("pids")
threading.Event().wait()
"""


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def running(pid: int) -> bool:
    """Whether a process runs; one that is dead but not yet collected by its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "the engine is killed"])
def test_when_the_engine_ends_so_do_host_program_and_its_children(
    tmp_path: Path, cli: Path, number: signal.Signals
) -> None:
    small = Project(tmp_path, cli)
    small.write(BLOCKING)
    engine = small.start("preview")
    eventually((small.folder / "pids").exists)
    pids = [int(pid) for pid in (small.folder / "pids").read_text().split()]
    assert all(running(pid) for pid in pids)
    engine.send_signal(number)
    output, _ = engine.communicate(timeout=DEADLINE_SECONDS)
    assert engine.returncode != 0
    assert "Traceback" not in output
    eventually(lambda: not any(running(pid) for pid in pids))

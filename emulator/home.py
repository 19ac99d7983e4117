"""The folder of one account: what is in it, which process it belongs to, and the environment that leads to it.

The account, the Pulumi backend and PULUMI_HOME are begun and wiped together: an old backend against a new account would
be a state full of resources that do not exist.
"""

import json
import os
import shlex
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
DEFAULT_FOLDER = CHECKOUT / ".emulator"
STACK = "emulator"

# What a person's shell may hold that would lead away from the emulated account.
_MISLEADING = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_CONFIG_PASSPHRASE_FILE",
)


class NotUpError(Exception):
    """No account is up in a folder."""


@dataclass(frozen=True)
class Running:
    """The process that serves an account; `started` (clock ticks since boot) tells it from a later one of its id."""

    pid: int
    started: int
    url: str
    account_id: str
    region: str

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return process_start(self.pid) == self.started


def process_start(pid: int) -> int | None:
    """When a process began, in clock ticks since boot, or None when there is none or it has ended.

    Source: proc_pid_stat(5): field 22; field 2, the name, may hold spaces and parentheses; field 3 is the state.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


class Home:
    """The folder of an account.

    Args:
        folder: Anywhere; by default `.emulator` in the checkout.
    """

    def __init__(self, folder: Path = DEFAULT_FOLDER) -> None:
        self.folder = folder.resolve()
        self.log = self.folder / "emulator.log"
        self.previous_log = self.folder / "emulator.log.previous"
        self.lock = self.folder / "lock"
        self.backend = self.folder / "backend"
        self.pulumi_home = self.folder / "pulumi"
        self.jobs_home = self.folder / "jobs"
        self._state = self.folder / "state.json"
        self._cli = self.folder / "cli"

    def command(self, name: str) -> str:
        """Return the shell command that does something with this account, for messages."""
        words = [sys.executable, "-m", "emulator", name]
        return shlex.join(words if self.folder == DEFAULT_FOLDER else [*words, "--home", str(self.folder)])

    def begin(self) -> None:
        """Make the folder ready for a new account; what an account before it left is gone."""
        self.wipe()
        for folder in (self.backend, self.pulumi_home, self.jobs_home):
            folder.mkdir(parents=True)

    def rotate_log(self) -> None:
        """Keep the log of the account before, and no older one."""
        if self.log.exists():
            self.log.replace(self.previous_log)

    def wipe(self) -> None:
        """Remove the account, the Pulumi backend and PULUMI_HOME; the log stays."""
        self._state.unlink(missing_ok=True)
        self._cli.unlink(missing_ok=True)
        for folder in (self.backend, self.pulumi_home, self.jobs_home):
            shutil.rmtree(folder, ignore_errors=True)

    def record(self, running: Running) -> None:
        """Write down which process serves the account; whole or not at all."""
        staged = self._state.with_suffix(".new")
        staged.write_text(json.dumps(asdict(running)))
        staged.replace(self._state)

    def recorded(self) -> Running | None:
        """Read which process serves, or served, the account."""
        try:
            return Running(**json.loads(self._state.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def running(self) -> Running:
        """Return the process that serves the account.

        Raises:
            NotUpError: None does.
        """
        recorded = self.recorded()
        if recorded is None or not recorded.alive:
            raise NotUpError(f"No account is up in {self.folder}. Begin one with `{self.command('up')}`.")
        return recorded

    def remember_cli(self, folder: Path) -> None:
        """Keep the folder of the Pulumi CLI, so that `environment` can put it on PATH without looking again."""
        self._cli.write_text(str(folder))

    def environment(self) -> dict[str, str]:
        """Make the variables that lead AWS's and Pulumi's programs, and `submitter`, to this account.

        Raises:
            NotUpError: No account is up here.
        """
        running = self.running()
        programs = [self._cli.read_text()] if self._cli.exists() else []
        programs.append(str(Path(sys.executable).parent))
        path = [entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if entry not in programs]
        direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
        return {
            "AWS_ENDPOINT_URL": running.url,
            "AWS_REGION": running.region,
            "AWS_DEFAULT_REGION": running.region,
            "AWS_ACCESS_KEY_ID": "emulator",
            "AWS_SECRET_ACCESS_KEY": "emulator",
            # A person's own files could name another endpoint or a profile.
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "NO_PROXY": f"{direct},127.0.0.1" if direct else "127.0.0.1",
            # Without the files of attributes beside each state: an engine that is killed can leave one empty, and then
            # Pulumi (3.274.1) takes the state itself for empty.
            "PULUMI_BACKEND_URL": f"{self.backend.as_uri()}?metadata=skip",
            "PULUMI_HOME": str(self.pulumi_home),
            "PULUMI_CONFIG_PASSPHRASE": STACK,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "SUBMITTER_RUN_COMMAND": "python examples/train.py --env-id CartPole-v1",
            # Jobs are processes of this machine: what an image's tag means makes no difference to them.
            "SUBMITTER_RUN_PIN": "false",
            "PATH": os.pathsep.join([*programs, *path]),
        }

    def misleading(self) -> list[str]:
        """Name the variables of this process's environment that would lead away from the account."""
        endpoints = [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL_")]
        return [name for name in (*_MISLEADING, *endpoints, "no_proxy") if name in os.environ]

    def process_environment(self) -> dict[str, str]:
        """Return this process's environment, led to the account, for a process that it starts.

        Raises:
            NotUpError: No account is up here.
        """
        misleading = self.misleading()
        kept = {name: value for name, value in os.environ.items() if name not in misleading}
        return {**kept, **self.environment()}

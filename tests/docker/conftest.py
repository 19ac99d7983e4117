"""A Docker Engine and a registry of these tests' own, and the image that this project's Dockerfile makes."""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.docker import ensure

ROOT = Path(__file__).parents[2]
IMAGE = "rl-batch-test:1"
WITH_PYGAME = "rl-batch-test-pygame:1"
SUBMITTER = str(Path(sys.executable).with_name("submitter"))

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Engine:
    """An engine: the variables that lead docker and the submitter to it, and the name of its base image."""

    environment: dict[str, str]
    base: str

    def __call__(self, *command: str, check: bool = True, timeout: float = 120, **more: str) -> Done:
        """Run a command that uses the engine: `engine("docker", "ps")`; keywords are variables."""
        done = subprocess.run(
            command,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        assert not check or done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done

    def run(self, *arguments: str, check: bool = True) -> Done:
        """Run a container to its end: `engine.run("--network=none", IMAGE, "true")`."""
        return self("docker", "run", "--rm", *arguments, check=check)

    def containers(self) -> list[str]:
        """The names of all containers, also of those that have ended."""
        return self("docker", "ps", "--all", "--format", "{{.Names}}").stdout.split()


@pytest.fixture(scope="session")
def wait_until() -> Callable[..., None]:
    """Wait for a condition, and fail when it does not come true."""

    def wait(condition: Callable[[], object], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not true within {seconds} seconds"
            time.sleep(0.05)

    return wait


@contextmanager
def process(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process for as long as the block lasts."""
    with log.open("wb") as output:
        started = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
    try:
        yield started
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait(60)


@contextmanager
def unmounted(folder: Path) -> Iterator[None]:
    """Let go of the network namespace that an engine leaves mounted when it ends: nobody could remove the folder."""
    try:
        yield
    finally:
        for left in (folder / "netns").glob("*"):
            subprocess.run(["umount", str(left)], check=True)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory, wait_until: Callable[..., None]) -> Iterator[Engine]:
    """A Docker Engine with a socket of its own; its layers stay in the cache, so that a second time is quick."""
    cached, folder = ensure(), tmp_path_factory.mktemp("engine")
    plugins = folder / "config" / "cli-plugins"
    plugins.mkdir(parents=True)
    shutil.copy(cached / "buildx" / "docker-buildx", plugins)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SUBMITTER_", "WANDB_"))}
    environment |= {
        "DOCKER_HOST": f"unix://{folder}/docker.sock",
        "DOCKER_CONFIG": str(folder / "config"),
        "HOME": str(folder),
        "PATH": f"{environment['PATH']}:/usr/sbin:/sbin",
    }
    command = ["dockerd", "--host", environment["DOCKER_HOST"], "--data-root", str(cached / "data")]
    command += ["--exec-root", str(folder / "exec"), "--pidfile", str(folder / "docker.pid")]
    made = Engine(environment, f"rl-batch-base:{(cached / 'base' / 'version').read_text()}")
    with (cached / "data.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with unmounted(folder / "exec"), process(command, folder / "dockerd.log", environment) as daemon:

            def answers() -> bool:
                assert daemon.poll() is None, (folder / "dockerd.log").read_text()[-2000:]
                return made("docker", "version", check=False).returncode == 0

            wait_until(answers)
            if left := made.containers():
                made("docker", "rm", "--force", *left)
            base = str(cached / "base" / "base.tar")
            certificates = "/etc/ssl/certs/ca-certificates.crt"
            trust = [f"--change=ENV {name}={certificates}" for name in ("SSL_CERT_FILE", "PIP_CERT")]
            if not made("docker", "images", "--quiet", made.base).stdout:
                made("docker", "import", *trust, base, made.base)
            yield made
            made("docker", "image", "prune", "--force")


@pytest.fixture(scope="session")
def image(engine: Engine) -> str:
    """The image of this project's Dockerfile, on a base without CUDA."""
    engine(SUBMITTER, "build", "--image", IMAGE, "--build-arg", f"BASE_IMAGE={engine.base}", str(ROOT), timeout=1800)
    return IMAGE


@pytest.fixture(scope="session")
def image_with_pygame(engine: Engine, image: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same with one package more, as a user extends it."""
    folder = tmp_path_factory.mktemp("pygame")
    (folder / "Dockerfile").write_text(f"FROM {image}\nRUN uv pip install --no-cache pygame==2.6.1\n")
    engine(SUBMITTER, "build", "--image", WITH_PYGAME, str(folder), timeout=600)
    return WITH_PYGAME


@pytest.fixture(scope="session")
def registry(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory, wait_until: Callable[..., None]
) -> Iterator[str]:
    """A registry on the loopback interface, which Docker trusts without TLS: `127.0.0.1:PORT`."""
    folder = tmp_path_factory.mktemp("registry")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "config.yml").write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder}/images}}}}\nhttp: {{addr: '{address}'}}\n"
    )
    host, _, port = address.partition(":")

    def answers() -> bool:
        with socket.socket() as asking:
            return asking.connect_ex((host, int(port))) == 0

    with process(["docker-registry", "serve", str(folder / "config.yml")], folder / "registry.log", engine.environment):
        wait_until(answers)
        yield address

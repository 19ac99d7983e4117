"""The Docker Engine that the docker command line would talk to."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import docker
from docker.constants import DEFAULT_TIMEOUT_SECONDS
from docker.context import ContextAPI
from docker.errors import DockerException

from submitter.errors import ConfigurationError
from submitter.registry import ODD

_MIB: Final = 1024 * 1024

_SECONDS: Final = 20
"""How long a daemon has to say what it is."""


@dataclass(frozen=True)
class Engine:
    """A Docker Engine with the cores and the memory, in MiB, that it has for containers."""

    client: docker.DockerClient
    cores: int
    memory_mib: int


def connect(environment: dict[str, str], *, seconds: int = _SECONDS) -> Engine:
    """Return the Docker Engine that DOCKER_HOST names, else docker's current context.

    Args:
        environment: The caller's variables.
        seconds: How long each of two questions may take, whether it is there and what it has.

    Raises:
        ConfigurationError: No daemon answers there.
    """
    host = environment["DOCKER_HOST"] if "DOCKER_HOST" in environment else _current_host()
    client = None
    try:
        if host and host.startswith("unix://") and not Path(host.removeprefix("unix://")).exists():
            raise FileNotFoundError(host)  # before docker's client does, which then leaves its socket open
        # A connection for each container whose log is followed, and no warning when there are many.
        client = (
            docker.from_env(environment=environment, max_pool_size=512, timeout=seconds)
            if "DOCKER_HOST" in environment
            else docker.DockerClient(base_url=host, max_pool_size=512, timeout=seconds)
        )
        facts: dict[str, Any] = client.info()
        engine = Engine(client, int(facts["NCPU"]), int(facts["MemTotal"]) // _MIB)
    except (DockerException, OSError, *ODD) as error:
        if client:
            with suppress(DockerException, OSError):
                client.close()
        raise ConfigurationError(
            f"No Docker daemon answers at {host or 'its usual place'}.", "Start Docker, or set DOCKER_HOST."
        ) from error
    client.api.timeout = DEFAULT_TIMEOUT_SECONDS
    return engine


def _current_host() -> str | None:
    """Return the address of docker's current context.

    Raises:
        ConfigurationError: It is there no more, or cannot be read.
    """
    try:
        host: str | None = ContextAPI.get_current_context().Host
    except (DockerException, OSError, *ODD) as error:  # None is a context that was deleted
        raise ConfigurationError(
            "Docker's current context cannot be read.", "Choose one: `docker context use default`; or set DOCKER_HOST."
        ) from error
    return host

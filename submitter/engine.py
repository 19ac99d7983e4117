"""The Docker Engine that the docker command line would talk to."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import docker
from docker.context import ContextAPI
from docker.errors import DockerException

from submitter.errors import ConfigurationError

_MIB: Final = 1024 * 1024


@dataclass(frozen=True)
class Engine:
    """A Docker Engine with the cores and the memory, in MiB, that it has for containers."""

    client: docker.DockerClient
    cores: int
    memory_mib: int


def connect(environment: dict[str, str]) -> Engine:
    """Return the Docker Engine that DOCKER_HOST names, else docker's current context.

    Raises:
        ConfigurationError: No daemon answers there.
    """
    host = environment.get("DOCKER_HOST")
    try:
        if host is None:
            host = ContextAPI.get_current_context().Host
        if host and host.startswith("unix://") and not Path(host.removeprefix("unix://")).exists():
            raise FileNotFoundError(host)  # before docker's client does, which then leaves its socket open
        # A connection for each container whose log is followed, and no warning when there are many.
        client = (
            docker.from_env(environment=environment, max_pool_size=512)
            if "DOCKER_HOST" in environment
            else docker.DockerClient(base_url=host, max_pool_size=512)
        )
        facts: dict[str, Any] = client.info()
    except (DockerException, OSError) as error:
        raise ConfigurationError(
            f"No Docker daemon answers at {host or 'its usual place'}.", "Start Docker, or set DOCKER_HOST."
        ) from error
    return Engine(client, int(facts["NCPU"]), int(facts["MemTotal"]) // _MIB)

"""The runner that carries jobs out as containers of this machine's Docker: `--runner docker`."""

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from signal import SIGKILL
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container

from emulator.batch.runner import CannotStartError, Execution, Task

LABEL = "rl-batch.account"
# Source: "Troubleshooting Amazon ECS OutOfMemoryError errors", Amazon ECS developer guide.
OUT_OF_MEMORY = "OutOfMemoryError: Container killed due to memory usage"


class DockerRunner:
    """Runs a job's container, on the host's network as AWS Batch does on EC2.

    Args:
        environment: What every job finds, before its own variables; only what leads to the account is used, the rest
            is the image's business.
    """

    def __init__(self, *, environment: Mapping[str, str]) -> None:
        self._environment = {name: value for name, value in environment.items() if name.startswith("AWS_")}
        self._mark = uuid.uuid4().hex
        self._starting: set[asyncio.Task[_ContainerExecution]] = set()
        self._running: set[_ContainerExecution] = set()

    async def start(self, task: Task, output: Callable[[bytes], None]) -> Execution:
        """Start a container.

        Raises:
            CannotStartError: There is no such image or command, or no Docker.
        """
        starting = asyncio.get_running_loop().create_task(self._started(task, output))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        return await starting

    async def _started(self, task: Task, output: Callable[[bytes], None]) -> "_ContainerExecution":
        try:
            container, stream = await asyncio.to_thread(self._start, task)
        except DockerException as error:
            raise CannotStartError(_words("CannotStartContainerError", error)) from None
        execution = _ContainerExecution(container, stream, output)
        self._running.add(execution)
        execution.ended.add_done_callback(lambda _: self._running.discard(execution))
        return execution

    async def close(self) -> None:
        """Kill and remove every container that this runner has made; one whose start is under way is waited for."""
        await asyncio.gather(*self._starting, return_exceptions=True)
        running = list(self._running)
        for execution in running:
            execution.signal(SIGKILL)
        for execution in running:
            await execution.wait()
        if "_client" in vars(self):
            await asyncio.to_thread(self._remove_all)

    @cached_property
    def _client(self) -> docker.DockerClient:
        return docker.from_env(max_pool_size=512)

    def _start(self, task: Task) -> tuple[Container, Iterator[bytes]]:
        image = str(task.container["image"])
        try:
            self._client.images.get(image)
        except ImageNotFound:
            self._pull(image)
        needs = {need["type"]: int(need["value"]) for need in task.container.get("resourceRequirements", ())}
        shared = task.container.get("linuxParameters", {}).get("sharedMemorySize")
        options: dict[str, Any] = {"shm_size": f"{shared}m"} if shared else {}
        # As ECS has it: vCPUs are shares, memory is a limit.
        if "MEMORY" in needs:
            options["mem_limit"] = f"{needs['MEMORY']}m"
        container = self._client.containers.create(
            image,
            list(task.command),
            name=f"batch-{task.id}",
            labels={LABEL: self._mark},
            environment={**self._environment, **task.environment},
            network_mode="host",
            cpu_shares=1024 * needs.get("VCPU", 1),
            **options,
        )
        try:
            # Before the start: following the log of a container that is just ending can miss its last words.
            stream = container.attach(stream=True)
            container.start()
        except APIError:
            container.remove(force=True)
            raise
        return container, stream

    def _pull(self, image: str) -> None:
        try:
            self._client.images.pull(image)
        except DockerException as error:
            raise CannotStartError(_words("CannotPullContainerError", error)) from None

    def _remove_all(self) -> None:
        """Also those that did not go when they ended."""
        for container in self._client.containers.list(all=True, filters={"label": f"{LABEL}={self._mark}"}):
            with suppress(NotFound):
                container.remove(force=True, v=True)
        self._client.close()


class _ContainerExecution:
    """A container as the scheduler sees it; a thread of its own reads its output and removes it in the end."""

    def __init__(self, container: Container, stream: Iterator[bytes], output: Callable[[bytes], None]) -> None:
        self.reason: str | None = None
        self._container = container
        self._stream = stream
        self._output = output
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int] = self._loop.create_future()
        threading.Thread(target=self._watch, daemon=True).start()

    async def wait(self) -> int:
        """Wait until the container is gone; return its exit code."""
        return await asyncio.shield(self.ended)

    def signal(self, number: int) -> None:
        """Send a signal to its first process."""
        threading.Thread(target=self._kill, args=(number,), daemon=True).start()

    def _kill(self, number: int) -> None:
        with suppress(APIError):  # it has just ended
            self._container.kill(signal=number)

    def _watch(self) -> None:
        code = 128 + SIGKILL
        with suppress(DockerException, OSError):  # removed under its hands, or the daemon is gone: it was killed
            for chunk in self._stream:
                self._loop.call_soon_threadsafe(self._output, chunk)
            code = int(self._container.wait()["StatusCode"])
            self._container.reload()
            if self._container.attrs["State"]["OOMKilled"]:
                self.reason = OUT_OF_MEMORY
            self._container.remove(v=True)
        self._loop.call_soon_threadsafe(self.ended.set_result, code)


def _words(kind: str, error: DockerException) -> str:
    """Return ECS's words for an error of Docker's."""
    return f"{kind}: Error response from daemon: {getattr(error, 'explanation', None) or error}"

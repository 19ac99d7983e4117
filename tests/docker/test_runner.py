"""The runner of containers by itself."""

import asyncio
import gc
import threading
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from emulator.batch.docker_runner import DockerRunner
from emulator.batch.runner import Task

if TYPE_CHECKING:
    from tests.docker.conftest import Engine


class Hesitant(DockerRunner):
    """Starts nothing until it is told to."""

    def __init__(self) -> None:
        super().__init__(environment={})
        self.asked, self.go_on = threading.Event(), threading.Event()

    def _start(self, task: Task) -> Any:
        self.asked.set()
        assert self.go_on.wait(60)
        return super()._start(task)


def test_a_container_whose_start_is_under_way_does_not_survive_the_end(
    engine: "Engine", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine.environment["DOCKER_HOST"])

    async def start_and_close() -> int:
        runner = Hesitant()
        task = Task(id="late", command=("sleep", "600"), environment={}, container={"image": engine.base})
        starting = asyncio.create_task(runner.start(task, print))
        assert await asyncio.to_thread(runner.asked.wait, 60)
        closing = asyncio.create_task(runner.close())
        await asyncio.sleep(0)
        runner.go_on.set()
        await closing
        assert not engine.containers()
        return await asyncio.wait_for((await starting).wait(), 60)

    assert asyncio.run(start_and_close()) == 137
    with warnings.catch_warnings():
        # Docker's own library leaves the socket of a container's output to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()

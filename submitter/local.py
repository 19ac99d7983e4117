"""Runs a sweep's runs in this machine's Docker: one at a time on each set of cores, logs into files.

The command in a container is the same wrapper that AWS gets. Each container is made, watched and removed by one thread,
whatever happens to it, so that an interruption only has to stop containers.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.types import DeviceRequest

from submitter.containers import ALL_GPUS, ContainerPlan, Seat
from submitter.engine import Engine
from submitter.errors import ConfigurationError
from submitter.images import Reference
from submitter.names import safe_name
from submitter.numbers import NumberSet
from submitter.render import count
from submitter.secrets import Secrets
from submitter.sweep import Run
from submitter.wrapper import wrapper_argv

LABEL: Final = "rl-batch.sweep"

_STOP_SECONDS: Final = 30
"""From SIGTERM to SIGKILL, as ECS has it."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A run that has ended.

    Attributes:
        run: Which.
        exit_code: Its exit code; None when there was no container to exit.
        reason: Why it did not succeed, in words; None when it did.
        seconds: How long it took.
        log: The file with its output.
    """

    run: Run
    exit_code: int | None
    reason: str | None
    seconds: float
    log: Path


def ensure_image(engine: Engine, image: str, say: Callable[[str], None]) -> None:
    """Pull an image that this Docker does not have.

    Raises:
        ConfigurationError: It is nowhere to be had; in Docker's words.
    """
    try:
        engine.client.images.get(image)
    except ImageNotFound:
        say(f"Pulling {image}.")
        reference = Reference.parse(image)
        try:
            engine.client.images.pull(reference.repository, reference.digest or reference.tag or "latest")
        except DockerException as error:
            raise ConfigurationError(
                f"There is no image {image} here, and Docker could not pull it: {_words(error)}",
                "Build it with `submitter build`, or name another with --image.",
            ) from error


class LocalRuns:
    """The runs of one command.

    Args:
        plan: What to run.
        engine: Where.
        places: How many at once, and on which cores.
        secrets: Values that containers get as variables.
        logs: Folder for the log files.
        ended: Told of each run that has ended, in this thread.
        say: Told, in sentences, what the user waits for.
    """

    def __init__(
        self,
        plan: ContainerPlan,
        engine: Engine,
        places: Sequence[Seat],
        *,
        secrets: Secrets,
        logs: Path,
        ended: Callable[[Finished], None],
        say: Callable[[str], None],
    ) -> None:
        self._plan, self._engine, self._places = plan, engine, places
        self._secrets, self._logs, self._tell, self._say = secrets, logs, ended, say
        self._waiting = iter(plan.runs)
        self._containers: dict[int, Container] = {}
        self._lock = threading.Lock()
        self._stopping = False
        self._events: queue.SimpleQueue[Finished | Exception | None] = queue.SimpleQueue()

    def run(self) -> list[Finished]:
        """Run all of them and return how each ended; an interruption ends these containers first, and no others.

        Raises:
            KeyboardInterrupt: The user does not want to wait; nothing of it runs any more.
            ConfigurationError: Docker failed.
        """
        self._logs.mkdir(parents=True, exist_ok=True)
        threads = [threading.Thread(target=self._work, args=(place,)) for place in self._places]
        for thread in threads:
            thread.start()
        done: list[Finished] = []
        failure: Exception | None = None
        working = len(threads)
        try:
            while working:
                match self._events.get():
                    case None:
                        working -= 1
                    case Finished() as ended:
                        done.append(ended)
                        self._tell(ended)
                    case error:
                        failure = failure or error
                        self._stop(_STOP_SECONDS)
        except BaseException:
            self._stop(_STOP_SECONDS)
            raise
        finally:
            _join(threads, or_else=lambda: self._stop(0))
        if failure:
            raise ConfigurationError(f"Docker failed: {_words(failure)}") from failure
        return done

    def _stop(self, seconds: int) -> None:
        """Start nothing any more, and stop what runs: SIGTERM, and SIGKILL after some seconds."""
        with self._lock:
            self._stopping = True
            running = list(self._containers.values())
        if running and seconds:
            self._say(f"Ending {count(len(running), 'container')}, within {seconds} seconds.")
        stops = [threading.Thread(target=_stop_container, args=(container, seconds)) for container in running]
        for stop in stops:
            stop.start()

    def _work(self, place: Seat) -> None:
        """Run one run after another on these cores."""
        try:
            while True:
                with self._lock:
                    run = None if self._stopping else next(self._waiting, None)
                if run is None:
                    return
                if ended := self._run(run, place):
                    self._events.put(ended)
        except Exception as error:  # noqa: BLE001 - handed to the thread that waits, which raises it
            self._events.put(error)
        finally:
            self._events.put(None)

    def _run(self, run: Run, place: Seat) -> Finished | None:
        """Run one container; None when it was not even started."""
        log = self._logs / f"{run.number:04}{'' if run.seed is None else f'-seed-{run.seed}'}.log"
        began = time.monotonic()
        container = self._create(run, place)
        timed_out = threading.Event()

        def end() -> None:
            timed_out.set()
            _stop_container(container, _STOP_SECONDS)

        limit = threading.Timer(self._plan.timeout_seconds, end)
        limit.daemon = True
        try:
            with self._lock:
                if self._stopping:
                    return None
                self._containers[run.number] = container
                try:
                    # Before the start: following the log of a container that is just ending can miss its last words.
                    output = container.attach(stream=True)
                    container.start()
                except APIError as error:
                    log.write_text(f"{_words(error)}\n")
                    return self._ended(run, None, f"it did not start: {_words(error)}", began, log)
            limit.start()
            with log.open("wb", buffering=0) as file:
                for chunk in output:
                    file.write(chunk)
            with suppress(OSError):  # its other end is closed
                output.close()
            code = int(container.wait()["StatusCode"])
            reason = None if code == 0 else f"exit code {code}"
            if timed_out.is_set():
                reason = "its time was up"
            elif code and _out_of_memory(container):
                reason = f"out of memory ({self._plan.memory_mib} MiB)"
            return self._ended(run, code, reason, began, log)
        finally:
            limit.cancel()
            with self._lock:
                self._containers.pop(run.number, None)
            with suppress(NotFound):
                container.remove(force=True, v=True)

    def _ended(self, run: Run, code: int | None, reason: str | None, began: float, log: Path) -> Finished:
        return Finished(run=run, exit_code=code, reason=reason, seconds=time.monotonic() - began, log=log)

    def _create(self, run: Run, place: Seat) -> Container:
        plan = self._plan
        runs = plan.asked.runs.runs(NumberSet((run.number,)))
        options: dict[str, Any] = {}
        if plan.memory_mib is not None:
            # No swap beside it, and half of it shared, as on AWS.
            limit = f"{plan.memory_mib}m"
            options |= {"mem_limit": limit, "memswap_limit": limit, "shm_size": f"{max(1, plan.memory_mib // 2)}m"}
        if place.gpu:
            ids = {"count": -1} if place.gpu == ALL_GPUS else {"device_ids": [place.gpu]}
            options["device_requests"] = [DeviceRequest(**ids, capabilities=[["gpu"]])]
        return self._engine.client.containers.create(
            plan.image,
            wrapper_argv(plan.asked.template, plan.nonce, runs, vcpus=plan.vcpus),
            name=f"{safe_name(plan.name, 64)}-{plan.nonce}-{run.number}",
            labels={LABEL: f"{plan.name}-{plan.nonce}"},
            environment={**plan.environment, **self._secrets.reveal()},
            cpuset_cpus=place.cores,
            **options,
        )


def _join(threads: Sequence[threading.Thread], *, or_else: Callable[[], None]) -> None:
    """Wait for threads; whoever interrupts once more has the containers killed."""
    for thread in threads:
        while thread.is_alive():
            try:
                thread.join()
            except KeyboardInterrupt:
                or_else()


def _stop_container(container: Container, seconds: int) -> None:
    with suppress(APIError):  # it has just ended, or been removed
        container.stop(timeout=seconds)


def _out_of_memory(container: Container) -> bool:
    container.reload()
    return bool(container.attrs["State"].get("OOMKilled"))


def _words(error: Exception) -> str:
    return str(getattr(error, "explanation", None) or error).strip()

"""A job's processes end wholly, in every way in which a job can end, and nobody else's do."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.batch import supervisor
from emulator.batch.runner import Execution, ProcessRunner, Task, _Process

# Two processes that have left the job's session, of which one is nobody's child any more, without any of its variables
# and with the job's output closed: nothing but descent ties them to the job.
LEAVE_BEHIND = """
(env -i setsid sh -c 'echo $$ > {folder}/orphan; exec sleep 600 >/dev/null 2>&1' &)
env -i setsid sh -c 'echo $$ > {folder}/child; exec sleep 600 >/dev/null 2>&1' &
until [ -s {folder}/orphan ] && [ -s {folder}/child ]; do sleep 0.02; done
"""

ENDINGS: dict[str, Callable[[Any, str], Any]] = {
    "terminate": lambda lab, job_id: lab.batch.terminate_job(jobId=job_id, reason="stop"),
    "timeout": lambda lab, _: lab.server.control.advance(61),
    "reclaim": lambda lab, job_id: lab.server.loop.call(lab.server.batch.scheduler.reclaim, job_id),
}


def left_behind(lab: Any, folder: Path) -> list[int]:
    return [int(lab.file(folder / name)) for name in ("orphan", "child")]


def test_what_a_command_leaves_behind_ends_with_it(lab: Any, tmp_path: Path, alive: Callable[[int], bool]) -> None:
    job = lab.ended(lab.submit(LEAVE_BEHIND.format(folder=tmp_path) + "exit 4"))
    assert job["container"]["exitCode"] == 4
    assert not [pid for pid in left_behind(lab, tmp_path) if alive(pid)]


@pytest.mark.parametrize("ending", ENDINGS)
def test_everything_that_a_job_started_ends_with_it(
    lab: Any, tmp_path: Path, alive: Callable[[int], bool], ending: str
) -> None:
    job_id = lab.submit(LEAVE_BEHIND.format(folder=tmp_path) + "exec sleep 600", timeout={"attemptDurationSeconds": 60})
    pids = left_behind(lab, tmp_path)
    lab.reaches(job_id, "RUNNING")
    assert all(alive(pid) for pid in pids)
    ENDINGS[ending](lab, job_id)
    assert lab.ended(job_id)["status"] == "FAILED"
    assert not [pid for pid in pids if alive(pid)]


def test_nothing_of_another_job_or_of_the_person_is_ended(
    lab: Any, tmp_path: Path, alive: Callable[[int], bool]
) -> None:
    other = lab.submit(LEAVE_BEHIND.format(folder=tmp_path) + "exec sleep 600")
    mine = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        pids = left_behind(lab, tmp_path)
        victim = lab.submit("sleep 600 & exec sleep 600")
        lab.reaches(victim, "RUNNING")
        lab.batch.terminate_job(jobId=victim, reason="stop")
        lab.ended(victim)
        assert all(alive(pid) for pid in [*pids, mine.pid])
        assert lab.job(other)["status"] == "RUNNING"
    finally:
        mine.kill()
        mine.wait()


def test_no_process_of_a_job_is_left_when_the_account_stops(
    lab: Any, tmp_path: Path, alive: Callable[[int], bool]
) -> None:
    lab.submit(LEAVE_BEHIND.format(folder=tmp_path) + "trap '' TERM; while :; do sleep 1; done")
    pids = left_behind(lab, tmp_path)
    assert all(alive(pid) for pid in pids)
    lab.server.__exit__(None, None, None)
    assert not [pid for pid in pids if alive(pid)]


RUN_ONE = """
import asyncio, pathlib, sys
from emulator.batch.runner import ProcessRunner, Task

async def main():
    folder = pathlib.Path(sys.argv[1])
    runner = ProcessRunner(folder=folder, environment={"PATH": "/usr/bin:/bin"})
    await (await runner.start(Task(id="one", command=("sh", "-c", sys.argv[2]), environment={}), print)).wait()

asyncio.run(main())
"""


def test_jobs_do_not_outlive_an_emulator_that_is_killed(
    wait_until: Any, tmp_path: Path, alive: Callable[[int], bool]
) -> None:
    script = LEAVE_BEHIND.format(folder=tmp_path) + f"echo $$ > {tmp_path}/main; exec sleep 600"
    root = Path(__file__).parents[3]
    emulator = subprocess.Popen([sys.executable, "-c", RUN_ONE, str(tmp_path), script], cwd=root)
    try:
        paths = [tmp_path / name for name in ("orphan", "child", "main")]
        wait_until(lambda: all(path.exists() and path.read_text().endswith("\n") for path in paths))
        pids = [int(path.read_text()) for path in paths]
        assert all(alive(pid) for pid in pids)
    finally:
        os.kill(emulator.pid, signal.SIGKILL)
        emulator.wait()
    wait_until(lambda: not any(alive(pid) for pid in pids))


def test_a_log_group_that_is_deleted_under_a_running_job_costs_its_lines_only(lab: Any, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    job_id = lab.submit(f"until [ -e {go_on} ]; do sleep 0.02; done; seq 1 25000; echo end")
    lab.reaches(job_id, "RUNNING")
    lab.aws("logs").delete_log_group(logGroupName="jobs")
    go_on.touch()
    job = lab.ended(job_id)
    assert (job["status"], job["statusReason"]) == ("SUCCEEDED", "Essential container in task exited")


# A supervisor whose second job can not be forked.
WITHOUT_FORK = """
import os, runpy
fork, calls = os.fork, []
def fail_once():
    calls.append(1)
    if len(calls) == 2:
        raise {error}
    return fork()
os.fork = fail_once
runpy.run_path({path!r}, run_name="__main__")
"""


@pytest.fixture
def without_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let a runner's supervisor meet an error when it forks for its second job."""

    def use(error: str) -> None:
        script = tmp_path / "supervisor.py"
        script.write_text(WITHOUT_FORK.format(error=error, path=supervisor.__file__))
        monkeypatch.setattr(supervisor, "__file__", str(script))

    return use


def test_a_machine_without_a_process_left_fails_that_job_only(
    tmp_path: Path, without_fork: Callable[[str], None]
) -> None:
    without_fork("BlockingIOError(11, 'Resource temporarily unavailable')")
    output = bytearray()

    async def run() -> list[int]:
        runner = ProcessRunner(folder=tmp_path, environment={"PATH": "/usr/bin:/bin"})
        first = await runner.start(Task(id="first", command=("sleep", "600"), environment={}), output.extend)
        others = []
        for name in ("second", "third"):
            execution = await runner.start(Task(id=name, command=("true",), environment={}), output.extend)
            others.append(await asyncio.wait_for(execution.wait(), 20))
        first.signal(signal.SIGTERM)
        codes = [await asyncio.wait_for(first.wait(), 20), *others]
        await runner.close()
        return codes

    assert asyncio.run(run()) == [143, 126, 0]
    assert b"Resource temporarily unavailable" in output


def test_a_supervisor_that_fails_takes_its_jobs_along_and_the_next_one_is_waited_for(
    tmp_path: Path, without_fork: Callable[[str], None], alive: Callable[[int], bool], wait_until: Callable[..., Any]
) -> None:
    without_fork("MemoryError")
    pid = tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600' & exec sleep 600"

    async def run() -> None:
        runner = ProcessRunner(folder=tmp_path, environment={"PATH": "/usr/bin:/bin"})

        async def start(name: str) -> tuple[Execution, int]:
            execution = await runner.start(Task(id=name, command=("sh", "-c", script), environment={}), print)
            await asyncio.to_thread(wait_until, pid.exists)
            grandchild = int(pid.read_text())
            pid.unlink()
            return execution, grandchild

        first, grandchild = await start("first")
        second = await runner.start(Task(id="second", command=("true",), environment={}), print)
        assert [await asyncio.wait_for(each.wait(), 20) for each in (first, second)] == [137, 137]
        assert not alive(grandchild)
        third, grandchild = await start("third")
        await asyncio.wait_for(runner.close(), 20)
        assert await asyncio.wait_for(third.wait(), 20) == 137
        assert not alive(grandchild)

    asyncio.run(run())


def test_no_job_begins_once_the_account_is_closing(lab: Any, tmp_path: Path) -> None:
    scheduler = lab.server.batch.scheduler
    lab.server.loop.call(scheduler.set_capacity, "queue-environment", available=False)
    job_id = lab.submit(f"echo > {tmp_path}/begun; exec sleep 600")
    lab.reaches(job_id, "RUNNABLE")

    async def place_and_close() -> None:
        scheduler.set_capacity("queue-environment", available=True)
        # In the same breath: a task of its own would let the job begin before.
        async with asyncio.timeout(20):
            await scheduler.close()

    lab.server.loop.run(place_and_close())
    assert not (tmp_path / "begun").exists()


def test_a_job_ends_although_nobody_takes_the_last_of_its_output() -> None:
    def refuse(_: bytes) -> None:
        raise RuntimeError("no room")

    async def run() -> int:
        reading, writing = os.pipe()
        os.write(writing, b"last words")
        os.close(writing)
        process = _Process(reading, refuse, lambda _: None)
        with pytest.raises(RuntimeError, match="no room"):
            process.end(3)
        return await asyncio.wait_for(process.wait(), 20)

    assert asyncio.run(run()) == 3


def test_a_job_can_write_a_great_deal_and_every_line_arrives_once(lab: Any) -> None:
    job = lab.ended(lab.submit("seq 1 25000; head -c 300000 /dev/zero | tr '\\0' x"))
    assert job["status"] == "SUCCEEDED"
    read, token = [], None
    stream = {"logGroupName": "jobs", "logStreamName": job["container"]["logStreamName"], "startFromHead": True}
    while True:
        page = lab.aws("logs").get_log_events(**stream, **({"nextToken": token} if token else {}))
        if page["nextForwardToken"] == token:
            break
        token = page["nextForwardToken"]
        read += [event["message"] for event in page["events"]]
    assert read[:25000] == [str(number) for number in range(1, 25001)]
    # CloudWatch takes no longer event than 256 KiB: the driver cuts the line.
    assert [len(part) for part in read[25000:]] == [262118, 300000 - 262118]

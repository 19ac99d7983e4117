"""A queue on which jobs really run, and short ways to submit and to watch."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.server import EmulatorServer

FINAL = ("SUCCEEDED", "FAILED")


class Lab:
    """One account with the queue `queue` (c5a.large, at most 16 vCPUs), the definition `job` and the log group `jobs`.

    `job` asks for 1 vCPU and 1800 MiB, so that two fit one host.
    """

    def __init__(self, server: EmulatorServer, aws: Callable[..., Any], wait_until: Callable[..., Any]) -> None:
        self.server = server
        self.aws = aws
        self.wait_until = wait_until
        self.batch = aws("batch")
        aws("logs").create_log_group(logGroupName="jobs")
        self.define("job")

    def define(self, name: str, vcpus: int = 1, memory_mib: int = 1800, **changes: Any) -> str:
        """Register a definition whose container properties and other members are as given; returns name:revision.

        A container property of None is left out.
        """
        members = {key: changes.pop(key) for key in ("retryStrategy", "timeout", "parameters") if key in changes}
        container = {
            "image": "unused",
            "resourceRequirements": [
                {"type": "VCPU", "value": str(vcpus)},
                {"type": "MEMORY", "value": str(memory_mib)},
            ],
            "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "jobs"}},
            **changes,
        }
        made = self.batch.register_job_definition(
            jobDefinitionName=name,
            type="container",
            containerProperties={key: value for key, value in container.items() if value is not None},
            **members,
        )
        return f"{name}:{made['revision']}"

    def submit(self, script: str | None = None, *, size: int | None = None, **changes: Any) -> str:
        """Submit a job, or an array of `size`, whose command is a shell script; returns its id."""
        request: dict[str, Any] = {"jobName": "test", "jobQueue": "queue", "jobDefinition": "job", **changes}
        if script is not None:
            request["containerOverrides"] = {"command": ["sh", "-c", script], **request.get("containerOverrides", {})}
        if size is not None:
            request["arrayProperties"] = {"size": size}
        job_id: str = self.batch.submit_job(**request)["jobId"]
        return job_id

    def job(self, job_id: str) -> dict[str, Any]:
        """Describe one job."""
        (described,) = self.batch.describe_jobs(jobs=[job_id])["jobs"]
        return dict(described)

    def reaches(self, job_id: str, *statuses: str) -> dict[str, Any]:
        """Wait until a job has one of the states, and describe it."""
        found: dict[str, Any] = self.wait_until(
            lambda: job if (job := self.job(job_id))["status"] in statuses else None
        )
        return found

    def ended(self, job_id: str) -> dict[str, Any]:
        """Wait until a job has ended, and describe it."""
        return self.reaches(job_id, *FINAL)

    def log(self, stream: str, group: str = "jobs") -> list[str]:
        """Read the lines of a log stream."""
        events = self.aws("logs").get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True)["events"]
        return [event["message"] for event in events]

    def output(self, job_id: str) -> list[str]:
        """Wait for a job's end and read the log of its last attempt."""
        return self.log(self.ended(job_id)["attempts"][-1]["container"]["logStreamName"])

    def file(self, path: Path) -> str:
        """Wait until a job has written a file with a whole line, and read it."""
        found: str = self.wait_until(lambda: path.exists() and (text := path.read_text()).endswith("\n") and text)
        return found.strip()


@pytest.fixture
def lab(
    server: EmulatorServer,
    aws: Callable[..., Any],
    wait_until: Callable[..., Any],
    queue: Callable[..., dict[str, Any]],
) -> Lab:
    """An account on whose queue `queue` jobs can run."""
    queue("queue")
    return Lab(server, aws, wait_until)


@pytest.fixture(scope="session")
def alive() -> Callable[[int], bool]:
    """Tell whether a process runs; one that has ended and only waits to be reaped does not."""

    def check(pid: int) -> bool:
        try:
            status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            return False
        return status.rpartition(")")[2].split()[0] != "Z"

    assert check(os.getpid())
    return check

"""AWS Batch put together: its records, its operations as one WSGI application, and the scheduler behind them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.batch.definitions import Definitions
from emulator.batch.environments import Environments
from emulator.batch.jobs import Jobs
from emulator.batch.policies import SchedulingPolicies
from emulator.batch.queues import Queues
from emulator.batch.runner import ProcessRunner, Runner
from emulator.batch.scheduler import Scheduler
from emulator.batch.state import State
from emulator.batch.tagging import Tagging
from emulator.batch.transitions import Transitions
from emulator.restjson import RestJson

if TYPE_CHECKING:
    from emulator.account import Account
    from emulator.batch.cores import Cores
    from emulator.clock import Clock
    from emulator.loop import LoopThread

# Source: "AWS Batch service quotas", AWS Batch user guide.
_PAYLOAD_LIMITS = {"SubmitJob": 30 * 1024}


class Batch:
    """AWS Batch of one account.

    Args:
        account: The rest of the account.
        clock: The account's clock.
        loop: The loop that owns the records and runs every operation.
        folder: Working folder of the jobs.
        environment: What every job finds in its environment.
        cores: What jobs of all regions run on.
        runner: What carries jobs out: `process` or `docker`.
    """

    def __init__(
        self,
        account: "Account",
        clock: "Clock",
        loop: "LoopThread",
        *,
        folder: Path,
        environment: Mapping[str, str],
        cores: "Cores",
        runner: str = "process",
    ) -> None:
        self.state = State()
        self.scheduler = Scheduler(
            self.state,
            account,
            _runner(runner, folder, environment),
            log_writer=account.put_log_events,
            clock=clock,
            cores=cores,
        )
        self.jobs = Jobs(self.state, account, self.scheduler, clock)
        self.transitions = Transitions(loop, clock)
        operations = (
            Environments(self.state, account, self.scheduler, self.transitions),
            Queues(self.state, account, self.scheduler, self.transitions),
            Definitions(self.state, account),
            self.jobs,
            SchedulingPolicies(self.state, account),
            Tagging(self.state, self._job_tags),
        )
        self.app = RestJson("batch", operations, call=loop.call, payload_limits=_PAYLOAD_LIMITS)

    def _job_tags(self, job_id: str) -> dict[str, str] | None:
        job = self.scheduler.store.get(job_id)
        return job.spec.tags if job else None


def _runner(kind: str, folder: Path, environment: Mapping[str, str]) -> Runner:
    if kind == "docker":
        from emulator.batch.docker_runner import DockerRunner  # noqa: PLC0415 - most accounts need no Docker

        return DockerRunner(environment=environment)
    return ProcessRunner(folder=folder, environment=environment)

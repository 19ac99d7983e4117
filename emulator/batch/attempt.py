"""One attempt of a job: its environment, its start, its log, and the ways in which it is ended."""

import asyncio
from collections.abc import Callable, Mapping
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING, Any

from emulator.batch.logs import LogStream, LogWriter
from emulator.batch.model import Attempt, Job
from emulator.batch.runner import CannotStartError, Execution, Runner, Task

if TYPE_CHECKING:
    from emulator.account import Account
    from emulator.clock import Clock

TASK_EXITED = "Essential container in task exited"
TASK_NOT_STARTED = "Task failed to start"
TIMED_OUT = "Job attempt duration exceeded timeout"
DEFAULT_LOG_GROUP = "/aws/batch/job"
TASK_SERVICE = "ecs-tasks.amazonaws.com"
STOP_SECONDS = 30.0
"""From SIGTERM to SIGKILL: ECS_CONTAINER_STOP_TIMEOUT, "Amazon ECS container agent configuration"."""


class TaskRefusedError(Exception):
    """ECS does not start the task; the message is the status reason in its words."""


def log_target(job: Job, attempt: Attempt) -> tuple[str, str] | None:
    """Name the log group and stream of an attempt, or return None when another log driver is configured.

    Source: Batch user guide, "Using the awslogs log driver".
    """
    configuration: Mapping[str, Any] = job.spec.container.get("logConfiguration", {})
    if configuration.get("logDriver", "awslogs") != "awslogs":
        return None
    options = configuration.get("options", {})
    prefix = options.get("awslogs-stream-prefix", job.spec.definition_name[:200])
    return options.get("awslogs-group", DEFAULT_LOG_GROUP), f"{prefix}/default/{attempt.task_id}"


def job_environment(job: Job, attempt: Attempt, number: int) -> dict[str, str]:
    """Make the variables that the job definition, its overrides and Batch give to attempt `number`, from 1.

    Source: Batch user guide, "AWS Batch job environment variables".
    """
    variables = {item["name"]: item.get("value", "") for item in job.spec.container.get("environment", ())}
    variables |= {
        "AWS_BATCH_JOB_ID": job.id,
        "AWS_BATCH_JOB_ATTEMPT": str(number),
        "AWS_BATCH_JQ_NAME": job.spec.queue,
        "AWS_BATCH_CE_NAME": attempt.host.environment,
    }
    if job.array is not None:
        variables |= {
            "AWS_BATCH_JOB_ARRAY_INDEX": str(job.index),
            "AWS_BATCH_JOB_ARRAY_SIZE": str(job.array.size),
        }
    return variables


class AttemptRun:
    """Carries out one attempt and writes down how it went; `interruption` is why it was ended from outside."""

    def __init__(self, job: Job, attempt: Attempt, *, account: "Account", clock: "Clock") -> None:
        self.interruption: str | None = None
        self.timed_out = False
        self._host_lost = False
        self._job = job
        self.attempt = attempt
        self._account = account
        self._clock = clock
        self._signal: int | None = None
        self._execution: Execution | None = None
        self._timers: set[asyncio.Task[None]] = set()

    async def run(self, runner: Runner, write: LogWriter, running: Callable[[], None]) -> None:
        """Start the task, tell `running` when it does, and return when nothing of it is left."""
        log: LogStream | None = None
        try:
            self._check_roles()
            task = Task(
                id=self.attempt.task_id,
                command=tuple(self._job.spec.container.get("command", ())),
                environment=self._variables(),
                container=self._job.spec.container,
            )
            log = self._open_log(write)
            self._execution = await runner.start(task, log.feed if log else lambda _: None)
        except CannotStartError as error:
            self.attempt.reason, self.attempt.status_reason = str(error), TASK_NOT_STARTED
        except TaskRefusedError as error:
            self.attempt.status_reason = str(error)
        else:
            self.attempt.started_at = self._clock.now_ms()
            running()
            await self._watch(self._execution)
        finally:
            if log is not None:
                log.close()
        self.attempt.stopped_at = self._clock.now_ms()

    def stop(self, reason: str) -> None:
        """Ask the task to end as ECS does: SIGTERM, and SIGKILL when it is still there after the stop timeout."""
        if self.interruption is None:
            self.interruption = reason
            self._send(SIGTERM)
            self._after(STOP_SECONDS, lambda: self._send(SIGKILL))

    def lose_host(self, reason: str) -> None:
        """End the task at once, because its host goes; nobody is left to report an exit code."""
        self._host_lost = True
        self.interruption = reason
        self._send(SIGKILL)

    def _check_roles(self) -> None:
        """Let ECS assume the job's roles, which it does before anything of the task is made.

        Raises:
            TaskRefusedError: A role does not exist, or does not trust ECS.
        """
        for member in ("executionRoleArn", "jobRoleArn"):
            role = self._job.spec.container.get(member)
            if role and not self._account.role_trusts(role, TASK_SERVICE):
                raise TaskRefusedError(
                    f"ECS was unable to assume the role '{role}' that was provided for this task. Please verify that "
                    "the role being passed has the proper trust relationship and permissions and that your IAM user "
                    "has permissions to pass this role."
                )

    def _open_log(self, write: LogWriter) -> LogStream | None:
        """Do what the awslogs driver does before the container starts: find the group and make the stream."""
        target = log_target(self._job, self.attempt)
        if target is None:
            return None
        group, stream = target
        options = self._job.spec.container.get("logConfiguration", {}).get("options", {})
        if not self._account.log_group_exists(group):
            if group != DEFAULT_LOG_GROUP and options.get("awslogs-create-group") != "true":
                raise CannotStartError(
                    "CannotStartContainerError: Error response from daemon: failed to initialize logging driver: "
                    "failed to create Cloudwatch log stream: ResourceNotFoundException: The specified log group does "
                    "not exist."
                )
            self._account.create_log_group(group)
        write(group, stream, [])
        return LogStream(write, self._clock.now_ms, group, stream)

    def _variables(self) -> dict[str, str]:
        """The job's variables and secrets; raises TaskRefusedError for a secret that is not there."""
        number = len(self._job.attempts) + 1
        secrets = {
            secret["name"]: resolve_secret(self._account, secret["valueFrom"])
            for secret in self._job.spec.container.get("secrets", ())
        }
        return secrets | job_environment(self._job, self.attempt, number)

    async def _watch(self, execution: Execution) -> None:
        if self._signal is not None:
            execution.signal(self._signal)
        if self._job.spec.timeout_seconds is not None:
            self._after(self._job.spec.timeout_seconds, self._time_out)
        try:
            exit_code = await execution.wait()
        finally:
            for timer in self._timers:
                timer.cancel()
        if not self._host_lost:
            self.attempt.exit_code, self.attempt.reason = exit_code, execution.reason
        self.attempt.status_reason = self.interruption or TASK_EXITED

    def _time_out(self) -> None:
        self.timed_out = self.interruption is None
        self.stop(TIMED_OUT)

    def _send(self, number: int) -> None:
        self._signal = number
        if self._execution is not None:
            self._execution.signal(number)

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        async def wait_and_act() -> None:
            await self._clock.sleep(seconds)
            action()

        self._timers.add(asyncio.get_running_loop().create_task(wait_and_act()))


def resolve_secret(account: "Account", value_from: str) -> str:
    """Read the value that a container secret refers to: `secretArn`, or `secretArn:JSONKEY:LABEL:VERSION`.

    Source: Amazon ECS developer guide, "Pass Secrets Manager secrets through environment variables".

    Raises:
        TaskRefusedError: There is no such secret, key or version.
    """
    parts = value_from.split(":")
    json_key, label, version = [*parts[7:], "", "", ""][:3]
    try:
        return account.secret_value(":".join(parts[:7]), json_key, label, version)
    except LookupError as error:
        raise TaskRefusedError(
            "ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval "
            f"failed: unable to retrieve secret from asm: service call has been retried 1 time(s): {error}"
        ) from None

"""Places jobs on hosts and runs them; all of it on the one event loop that owns the state of Batch."""

import asyncio
import logging
import secrets
from collections import defaultdict, deque
from itertools import islice
from typing import TYPE_CHECKING

from emulator.batch.attempt import AttemptRun
from emulator.batch.fleet import Fleet
from emulator.batch.lifecycle import Lifecycle
from emulator.batch.model import (
    FAILED,
    FINAL,
    RUNNABLE,
    RUNNING,
    STARTING,
    SUCCEEDED,
    AnyJob,
    Attempt,
    Job,
    Spec,
)
from emulator.batch.placement import Host, Launch, Wait, place
from emulator.batch.retry import Outcome, retries
from emulator.batch.store import JobStore
from emulator.batch.waiting import WaitingJobs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.account import Account
    from emulator.batch.cores import Cores
    from emulator.batch.logs import LogWriter
    from emulator.batch.runner import Runner
    from emulator.batch.state import JobQueue, State
    from emulator.clock import Clock

_log = logging.getLogger(__name__)

ADMISSION_SECONDS = 0.02
"""How long a new job is SUBMITTED, in real time: long enough for a client to meet the state."""


class NoSuchHostError(LookupError):
    """No instance has an id, and no job on an instance."""


class Scheduler:
    """The jobs of the account.

    Every method is called on the event loop's thread, and none of them blocks. A job that placement has put on a host
    is STARTING until one of this machine's cores is free for it.

    Args:
        state: The queues and environments.
        account: What jobs need of the rest of the account: instance types, secrets, log groups.
        runner: What carries tasks out.
        log_writer: Puts events into a log stream: `Account.put_log_events`.
        clock: The account's clock.
        cores: What tasks run on.
    """

    def __init__(
        self,
        state: "State",
        account: "Account",
        runner: "Runner",
        *,
        log_writer: "LogWriter",
        clock: "Clock",
        cores: "Cores",
    ) -> None:
        self.store = JobStore()
        self.fleet = Fleet(state, account)
        self._state = state
        self._account = account
        self._runner = runner
        self._write = log_writer
        self._clock = clock
        self._cores = cores
        cores.when_freed.append(self._start_placed)
        self._lifecycle = Lifecycle(self.store, clock.now_ms, self._runnable)
        self._waiting: defaultdict[str, WaitingJobs] = defaultdict(WaitingJobs)
        self._placed: deque[Job] = deque()
        self._runs: dict[Job, AttemptRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = float("inf")
        self._closed = False

    def submit(self, spec: Spec, size: int | None) -> AnyJob:
        """Take a job, or an array of `size` children."""
        job = self.store.add(spec, size, self._clock.now_ms())
        asyncio.get_running_loop().call_later(ADMISSION_SECONDS, self._admit, job)
        return job

    def cancel(self, job: AnyJob, reason: str) -> None:
        """Fail a job that has not been placed; nothing happens to one that has, as in AWS's CancelJob."""
        self._lifecycle.fail_waiting(job, reason, cancelled=True)
        self.changed()

    def terminate(self, job: AnyJob, reason: str) -> None:
        """Fail a job that waits, and end one that runs; of an array all children."""
        self._lifecycle.fail_waiting(job, reason, terminated=True)
        for one in tuple(self._runs):
            if job in (one, one.array):
                one.terminated = True
                self._interrupt(one, reason)
        self.changed()

    def reclaim(self, target: str) -> list[str]:
        """Take a host away without notice, as EC2 does with Spot capacity; returns the ids of the jobs that it ran.

        Args:
            target: The host's instance id, or the id of a job that is on it.

        Raises:
            NoSuchHostError: There is no such host, and no such job on a host.
        """
        host = self.fleet.get(target) or next(
            (run.attempt.host for job, run in self._runs.items() if job.id == target), None
        )
        if host is None:
            raise NoSuchHostError(f"No instance and no job on an instance has the id {target}.")
        return self.lose([host])

    def lose(self, hosts: "Iterable[Host]") -> list[str]:
        """End what runs on hosts that go, those that have gone already aside; returns the ids of the jobs."""
        lost = []
        for host in hosts:
            if self.fleet.get(host.id) is None:
                continue
            self.fleet.remove(host)
            jobs = [job for job, run in self._runs.items() if run.attempt.host is host]
            for job in jobs:
                self._interrupt(job, f"Host EC2 (instance {host.id}) terminated.", at_once=True)
            lost += [job.id for job in jobs]
        self.changed()
        return lost

    def set_capacity(self, environment: str, *, available: bool) -> None:
        """Say whether EC2 has instances for a compute environment; without, its jobs wait as AWS's do."""
        (self.fleet.without_capacity.discard if available else self.fleet.without_capacity.add)(environment)
        self.changed()

    def keep_summaries(self, keep: bool) -> None:
        """Let arrays remember from now on what their summaries were, or no more."""
        self._lifecycle.keeps_summaries = keep

    def account_changed(self) -> None:
        """Look again at what can be placed, since roles or networks have changed."""
        self.fleet.account_changed()
        self.changed()

    def changed(self) -> None:
        """Look again at what can be placed; called whenever an environment, a queue or a job has changed."""
        if self._closed:
            return
        now = self._clock.now()
        # Jobs that are in a disabled queue go on: Batch API Reference, UpdateJobQueue, state.
        queues = [queue for queue in self._state.queues.values() if queue.status != "DELETING"]
        queues.sort(key=lambda queue: -queue.priority)
        wake = [self.fleet.retire(now), *(self._place_all(queue, now) for queue in queues)]
        self._start_placed()
        self._wake_at(min((time for time in wake if time is not None), default=None))

    def queue_deleted(self, name: str) -> None:
        """End every job of a queue that is being deleted."""
        for job in list(self.store.newest_first(name)):
            if job.status not in FINAL:
                self.terminate(job, "The job queue was deleted.")

    def unfinished(self, queue_name: str) -> int:
        """Count the jobs of a queue that have not ended; an array counts once for each child."""
        return self.store.unfinished(queue_name)

    def front(self, queue_name: str, most: int) -> list[Job]:
        """The first RUNNABLE jobs of a queue."""
        return list(islice(self._waiting[queue_name].front(), most))

    async def close(self) -> None:
        """End every job; when it returns, no process of a job is left."""
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        await self._runner.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _admit(self, job: AnyJob) -> None:
        self._lifecycle.admit(job)
        self.changed()

    def _runnable(self, job: AnyJob) -> None:
        self._waiting[job.spec.queue].append(job)

    def _place_all(self, queue: "JobQueue", now: float) -> float | None:
        """Place a queue's jobs until the head must wait; returns when to look at it again, if at a certain time."""
        waiting = self._waiting[queue.name]
        while (job := waiting.head()) is not None:
            where = place(job.spec.need, self.fleet.offers(queue))
            if isinstance(where, Wait):
                since = waiting.blocked(job, where, now)
                if (said := since + where.after_seconds) > now:
                    return said
                limit = _limit_seconds(queue, where)
                if limit is None or since + limit > now:
                    return None if limit is None else since + limit
                reason = f"Canceled by JobStateTimeLimit action due to reason: {where.reason}"
                self._lifecycle.fail_waiting(job, reason, cancelled=True)
                continue
            host = self.fleet.launch(where, now) if isinstance(where, Launch) else where
            if host.joined:
                self._put_on(host, job)
                waiting.placed(job)
        return None

    def _put_on(self, host: Host, job: Job) -> None:
        self.fleet.take(host, job.spec.need)
        job.current = attempt = Attempt(task_id=secrets.token_hex(16), host=host)
        self._runs[job] = AttemptRun(job, attempt, account=self._account, clock=self._clock)
        self._lifecycle.move(job, STARTING)
        self._placed.append(job)

    def _start_placed(self) -> None:
        while self._cores.free and self._placed and not self._closed:
            self._start(self._placed.popleft())

    def _start(self, job: Job) -> None:
        if job not in self._runs:
            return
        self._cores.take()
        task = asyncio.get_running_loop().create_task(self._run(job, self._runs[job]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, job: Job, run: AttemptRun) -> None:
        if self._closed:
            return
        try:
            await run.run(self._runner, self._write, lambda: self._lifecycle.move(job, RUNNING))
        except Exception:  # noqa: BLE001 - the job ends, and the log has the traceback
            _log.exception("an attempt at job %s failed inside the emulator", job.id)
            run.attempt.status_reason = "The emulator failed; its log has the traceback."
        finally:
            self._cores.give_back()
        self._attempt_over(job, run)
        self.changed()

    def _interrupt(self, job: Job, reason: str, *, at_once: bool = False) -> None:
        run = self._runs[job]
        if job in self._placed:
            self._placed.remove(job)
            run.interruption = reason
            self._attempt_over(job, run)
        elif at_once:
            run.lose_host(reason)
        else:
            run.stop(reason)

    def _attempt_over(self, job: Job, run: AttemptRun) -> None:
        """Decide what follows an attempt that has ended in whatever way."""
        attempt = run.attempt
        del self._runs[job]
        job.current = None
        job.attempts.append(attempt)
        if run.interruption:
            attempt.status_reason = run.interruption
        attempt.stopped_at = attempt.stopped_at or self._clock.now_ms()
        self.fleet.give_back(attempt.host, job.spec.need, self._clock.now())
        self._waiting[job.spec.queue].released(job)
        outcome = Outcome(exit_code=attempt.exit_code, reason=attempt.reason, status_reason=attempt.status_reason)
        if attempt.exit_code == 0 and not run.interruption:
            self._lifecycle.move(job, SUCCEEDED, attempt.status_reason)
        elif self._is_last(job, run, outcome):
            self._lifecycle.move(job, FAILED, attempt.status_reason)
        else:
            self._lifecycle.move(job, RUNNABLE, attempt.status_reason)
            self._waiting[job.spec.queue].put_back(job)

    def _is_last(self, job: Job, run: AttemptRun, outcome: Outcome) -> bool:
        """Whether a failed attempt is not retried; after a timeout, cancel or terminate none ever is."""
        ended_on_purpose = run.timed_out or job.terminated or (job.array is not None and job.array.cancelled)
        return ended_on_purpose or not retries(job.spec.retry_strategy, len(job.attempts), outcome)

    def _wake_at(self, time: float | None) -> None:
        """Have `changed` called at a time; an alarm that is set for earlier stays and sets the next one."""
        if time is None or time >= self._alarm_at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = time
        self._alarm = asyncio.get_running_loop().create_task(self._sleep_until(time))

    async def _sleep_until(self, time: float) -> None:
        await self._clock.sleep(time - self._clock.now())
        self._alarm, self._alarm_at = None, float("inf")
        self.changed()


def _limit_seconds(queue: "JobQueue", wait: Wait) -> float | None:
    """The time after which a queue cancels a head that waits so; None when it lets it wait."""
    actions = queue.job_state_time_limit_actions
    return min((action["maxTimeSeconds"] for action in actions if action["reason"] == wait.reason), default=None)

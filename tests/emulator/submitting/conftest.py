"""A stack as `pulumi up` leaves it, made by boto3, and commands that work on it by the account's clock."""

import dataclasses
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import boto3
import botocore.auth
import pytest

from emulator.faults import Rule
from emulator.server import EmulatorServer
from infra.outputs import StackOutputs, stack_outputs
from submitter.batch import Batch
from submitter.cancel import cancel
from submitter.cli.main import execute
from submitter.history import Choose, Generation, Record
from submitter.ledger import Ledger
from submitter.logs import LogReader
from submitter.numbers import NumberSet
from submitter.plan import JobSpec, job_definition
from submitter.retry import Changes, Retried, Retry
from submitter.session import Clock
from submitter.status import RunStatus, StatusReader, SweepStatus
from submitter.submission import Order, Outcome, run
from submitter.sweep import RunTable
from submitter.template import Template
from tests.queues import C5A_LARGE_SPOT

if TYPE_CHECKING:
    from mypy_boto3_batch.literals import JobStatusType

SWEEP = "ada/first"
QUEUE = "c5a-large-spot"
STATUSES: tuple["JobStatusType", ...] = (
    "SUBMITTED",
    "PENDING",
    "RUNNABLE",
    "STARTING",
    "RUNNING",
    "SUCCEEDED",
    "FAILED",
)
"""In the order that a job has them: one that moves on while they are listed is seen twice, never not at all."""


def everything(generation: Generation) -> NumberSet:
    """Choose all runs."""
    return generation.table.runs().numbers


@dataclass
class Machine:
    """A person's machine, its clock off by `skew` seconds, with everything that a command needs."""

    contract: StackOutputs
    session: boto3.Session
    server: EmulatorServer
    skew: float = 0.0
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = Clock(now=lambda: self.server.clock.now() + self.skew, sleep=self.server.control.advance)
        self.ledger = Ledger(self.session, self.contract.ledger_table, self.clock)
        self.batch = Batch(self.session, self.clock)
        self.status_reader = StatusReader(self.contract, self.ledger, self.batch)
        self.logs = LogReader(self.session, self.contract.log_group, self.batch, clock=self.clock)

    def order(self, seeds: Sequence[int] = (1, 2, 3), command: str = "echo seed", **spec: Any) -> Order:
        spec = {"image": "trainer:1", "vcpus": 1, "memory_mib": 512, "gpus": 0, "attempts": 2, **spec}
        job_spec = JobSpec(timeout_seconds=57_600, **spec)
        return Order(
            sweep=SWEEP,
            wanted=RunTable.product([()], seeds),
            record=Record(command=command, axes=(), image=job_spec.image),
            template=Template.parse(command, ()),
            spec=job_spec,
            queue=QUEUE,
            definition=job_definition(job_spec, self.contract),
        )

    def run(
        self, seeds: Sequence[int] = (1, 2, 3), command: str = "echo seed", *, fresh: bool = False, **spec: Any
    ) -> Outcome:
        return self.submit(self.order(seeds, command, **spec), fresh=fresh)

    def submit(self, order: Order, **more: Any) -> Outcome:
        return run(order, ledger=self.ledger, batch=self.batch, clock=self.clock, say=self.said.append, **more)

    def cancel(self, choose: Choose = everything, *, sweep: str = SWEEP) -> NumberSet:
        return cancel(sweep, choose, ledger=self.ledger, batch=self.batch, clock=self.clock, say=self.said.append)

    def retry(self, choose: Choose = everything, **changes: Any) -> Retried:
        return Retry(
            SWEEP,
            choose,
            Changes(**changes),
            contract=self.contract,
            ledger=self.ledger,
            batch=self.batch,
            reader=self.status_reader,
            clock=self.clock,
            say=self.said.append,
        ).work()

    def statuses(self) -> list[str]:
        """Return the status of each run, by number."""
        return [run.status for run in self.status(runs=True).runs]

    def status(self, *, runs: bool = False) -> SweepStatus:
        return self.status_reader.read(SWEEP, runs=runs)

    def run_status(self, number: int) -> RunStatus:
        return self.status(runs=True).runs[number - 1]

    def calls(self, service: str) -> Counter[str]:
        """Count the service's calls so far by operation."""
        return Counter(call.operation for call in self.server.control.record.calls(service))

    def jobs_by_name(self) -> dict[str, str]:
        """Return the ids of all jobs that the account has, by name; two of one name fail the test."""
        client = self.session.client("batch")
        found = set()
        for status in STATUSES:
            for page in client.get_paginator("list_jobs").paginate(jobQueue=QUEUE, jobStatus=status):
                found |= {(job["jobName"], job["jobId"]) for job in page["jobSummaryList"]}
        assert len(dict(found)) == len(found)
        return dict(found)

    def let_all_arrive(self) -> None:
        """Wait until nothing is on its way to the account any more."""
        for thread in threading.enumerate():
            while thread.name.endswith("(_act_late)") and thread.is_alive():
                self.clock.sleep(5)
                thread.join(0.05)

    def assert_each_run_has_one_job(self, seeds: Sequence[int]) -> None:
        """Nothing twice, nothing lost: every seed has exactly one job, and the ledger knows every job.

        What is still on its way to the account arrives before.
        """
        self.let_all_arrive()
        jobs = self.jobs_by_name()
        entries = self.ledger.entries(SWEEP)
        assert {slot.name: slot.sent for entry in entries for slot in entry.slots if slot.sent} == jobs
        runs = Counter(number for entry in entries for slot in entry.slots if slot.name in jobs for number in slot.runs)
        table = [seed for entry in entries for _, seed in entry.added]
        assert sorted(table[number - 1] or 0 for number in runs.elements()) == sorted(seeds)


class KilledError(BaseException):
    """The process ends here, whatever it was doing."""


@pytest.fixture
def fault(server: EmulatorServer) -> Callable[..., None]:
    """Let calls go wrong: `fault("batch", "SubmitJob", "drop", count=1)`."""
    return lambda service, operation, kind, **rule: server.control.faults.add(
        Rule(service=service, operation=operation, kind=kind, **rule)
    )


@pytest.fixture
def killed() -> Callable[..., AbstractContextManager[None]]:
    """Kill a command before or after some call: `with killed(machine.ledger, "record", before=True): machine.run()`."""

    @contextmanager
    def context(owner: object, method: str, *, before: bool, call: int = 1) -> Iterator[None]:
        original, calls = getattr(owner, method), count(1)

        def dying(*args: Any, **kwargs: Any) -> Any:
            if next(calls) != call:
                return original(*args, **kwargs)
            if not before:
                original(*args, **kwargs)
            raise KilledError

        setattr(owner, method, dying)
        with pytest.raises(KilledError):
            yield

    return context


MakeMachine = Callable[..., Machine]


@pytest.fixture
def contract(
    server: EmulatorServer,
    aws: Callable[..., Any],
    role: Callable[[str, str], str],
    environment: Callable[..., dict[str, Any]],
    wait_until: Callable[..., Any],
) -> StackOutputs:
    """The outputs of a stack with one Spot queue of at most 16 vCPUs."""
    on = environment("spot", type="SPOT", allocationStrategy="SPOT_PRICE_CAPACITY_OPTIMIZED")
    order = [{"order": 1, "computeEnvironment": on["computeEnvironmentArn"]}]
    arn = aws("batch").create_job_queue(jobQueueName=QUEUE, priority=1, computeEnvironmentOrder=order)["jobQueueArn"]
    wait_until(lambda: aws("batch").describe_job_queues(jobQueues=[QUEUE])["jobQueues"][0]["status"] == "VALID")
    aws("logs").create_log_group(logGroupName="/jobs")
    aws("dynamodb").create_table(
        TableName="ledger",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "sweep", "KeyType": "HASH"}, {"AttributeName": "n", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "sweep", "AttributeType": "S"},
            {"AttributeName": "n", "AttributeType": "N"},
        ],
    )
    queue = dataclasses.replace(C5A_LARGE_SPOT, arn=arn, compute_environment="spot")
    return StackOutputs(
        schema_version=1,
        region=server.region,
        account_id=server.account_id,
        queue_names=(QUEUE,),
        queues={QUEUE: queue},
        job_role_arn=role("job", "ecs-tasks"),
        execution_role_arn=role("execution", "ecs-tasks"),
        submitter_policy_arn="",
        log_group="/jobs",
        ledger_table="ledger",
        secret_arn=aws("secretsmanager").create_secret(Name="values")["ARN"],
        artifacts_bucket=None,
        image_repository=None,
    )


@pytest.fixture
def make_machine(
    server: EmulatorServer,
    boto3_session: boto3.Session,
    contract: StackOutputs,
    monkeypatch: pytest.MonkeyPatch,
) -> MakeMachine:
    """Make a machine on which one may type commands: `make_machine(skew=-200)`."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)

    def make(*, skew: float = 0.0) -> Machine:
        if skew:  # the signatures of a machine have its clock's date

            def now(remove_tzinfo: bool = True) -> datetime:
                date = datetime.now(UTC) + timedelta(seconds=skew)
                return date.replace(tzinfo=None) if remove_tzinfo else date

            monkeypatch.setattr(botocore.auth, "get_current_datetime", now)
        return Machine(contract, boto3_session, server, skew)

    return make


@pytest.fixture
def machine(make_machine: MakeMachine) -> Machine:
    """A machine whose clock is right."""
    return make_machine()


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document


@pytest.fixture
def submitter(
    contract: StackOutputs,
    server: EmulatorServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Done]:
    """Run `submitter` with the stack's outputs in a file: `submitter("status", "first")`."""
    values = {key: value for key, value in vars(contract).items() if key != "schema_version"}
    values["queues"] = {name: dataclasses.asdict(queue) for name, queue in contract.queues.items()}
    outputs = tmp_path / "outputs.json"
    outputs.write_text(json.dumps(stack_outputs(**values)))
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "emulator")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "emulator")
    monkeypatch.setenv("SUBMITTER_OUTPUTS", str(outputs))
    monkeypatch.setenv("SUBMITTER_RUN_PIN", "false")  # the images of these tests are in no registry, so that none is
    docker = tmp_path / "no-registry" / "docker"  # asked
    docker.parent.mkdir()
    docker.write_text("#!/bin/sh\necho 'there is no registry' >&2\nexit 1\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(docker.parent), prepend=":")

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        code = execute(list(arguments))
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def why(submitter: Callable[..., Done]) -> Callable[..., list[tuple[str, str]]]:
    """Ask `submitter why`, and return the sentences with their remedies: `why("ada/first")`."""

    def ask(sweep: str = "ada/first") -> list[tuple[str, str]]:
        findings = submitter("why", sweep, "--json").document["findings"]
        assert all(found["queue"] == QUEUE for found in findings)
        return [(found["sentence"], found["remedy"]) for found in findings]

    return ask


@pytest.fixture
def update_environment(aws: Callable[..., Any], wait_until: Callable[..., Any]) -> Callable[..., None]:
    """Change the queue's environment and wait until that is done: `update_environment(state="DISABLED")`."""

    def update(status: str = "VALID", **changes: Any) -> None:
        aws("batch").update_compute_environment(computeEnvironment="spot", **changes)
        wait_until(
            lambda: (
                aws("batch").describe_compute_environments(computeEnvironments=["spot"])["computeEnvironments"][0][
                    "status"
                ]
                == status
            )
        )

    return update


@pytest.fixture
def submit_to_wait(machine: Machine, wait_until: Callable[..., Any]) -> Callable[..., None]:
    """Submit runs that would last, and wait until AWS has considered them: `submit_to_wait(seeds=(1, 2))`."""

    def submit(seeds: Sequence[int] = (1, 2), **spec: Any) -> None:
        machine.run(seeds, command="exec sleep 600 # {seed}", **spec)
        wait_until(lambda: {"submitted", "pending"}.isdisjoint(machine.status().counts))

    return submit

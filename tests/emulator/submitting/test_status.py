"""How runs stand, from the ledger and Batch together."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from submitter.errors import UsageError
from submitter.numbers import NumberSet
from submitter.reasons import SPOT_RECLAIMED
from submitter.status import SweepStatus

WaitUntil = Callable[..., Any]
FAIL_2 = "test {seed} != 2"
"""A command that fails for seed 2."""


def ended(machine: Any, wait_until: WaitUntil) -> SweepStatus:
    status: SweepStatus = wait_until(lambda: (now := machine.status()).over and now, seconds=60)
    return status


def test_each_run_has_its_state_reason_attempts_and_log(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1, 2, 3], command=FAIL_2)
    assert ended(machine, wait_until).counts == {"succeeded": 2, "failed": 1}
    runs = machine.status(runs=True).runs
    assert [(run.number, run.seed, run.status, run.reason, run.attempts) for run in runs] == [
        (1, 1, "succeeded", None, 1),
        (2, 2, "failed", "exit code 1", 1),
        (3, 3, "succeeded", None, 1),
    ]
    assert all(run.log_stream and run.started_at <= run.stopped_at for run in runs)


def test_a_plain_job_has_its_state_and_reason(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([2], command=FAIL_2)
    assert ended(machine, wait_until).counts == {"failed": 1}
    assert machine.run_status(1).reason == "exit code 1"


def test_what_has_ended_is_told_after_aws_has_forgotten_it(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1, 2, 3], command=FAIL_2)
    ended(machine, wait_until)
    machine.clock.sleep(9 * 86_400)
    before = machine.calls("batch")
    assert machine.status().counts == {"succeeded": 2, "failed": 1}
    assert machine.calls("batch") == before
    run = machine.run_status(2)
    assert (run.status, run.reason, run.attempts, run.log_stream) == ("failed", "exit code 1", None, None)


def test_what_nobody_saw_before_aws_forgot_it_is_unknown(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1, 2])
    [job] = machine.jobs_by_name().values()
    wait_until(lambda: machine.batch.describe([job])[job]["status"] == "SUCCEEDED")
    machine.clock.sleep(9 * 86_400)
    status = machine.status(runs=True)
    assert status.counts == {"unknown": 2}
    assert status.over
    assert not status.succeeded


def test_counts_of_a_running_sweep_take_one_query_and_one_call(machine: Any, wait_until: WaitUntil) -> None:
    machine.run(range(5), command="sleep 600; echo {seed}")
    wait_until(lambda: machine.status().counts.get("running") == 2)
    before = {service: machine.calls(service) for service in ("batch", "dynamodb")}
    status = machine.status()
    assert sum(status.counts.values()) == 5
    assert not status.over
    assert machine.calls("batch") - before["batch"] == {"DescribeJobs": 1}
    assert machine.calls("dynamodb") - before["dynamodb"] == {"Query": 1}


def fails_or_goes_on(folder: Path) -> str:
    """A command that fails for seed 1; for other seeds it says so by a file, and goes on when it is told to end."""
    return f"test {{seed}} != 1 && trap '' TERM && touch {folder}/{{seed}} && while :; do sleep 1; done"


def test_counts_of_a_partly_cancelled_array_under_way_tell_the_failed_from_the_cancelled(
    machine: Any, wait_until: WaitUntil, tmp_path: Path
) -> None:
    """Run 1 had failed when it was cancelled, run 2 takes its time to end, run 8 ends at once as it never ran."""
    machine.run(range(1, 9), command=fails_or_goes_on(tmp_path))
    wait_until(lambda: machine.statuses()[0] == "failed" and {file.name for file in tmp_path.iterdir()} == {"2", "3"})
    machine.cancel(lambda _: NumberSet([1, 2, 8]))
    wait_until(lambda: machine.statuses()[7] == "cancelled")
    before = machine.calls("batch")
    counts = machine.status().counts
    assert machine.calls("batch") - before == {"DescribeJobs": 1, "ListJobs": 1}
    assert counts == Counter(machine.statuses())
    assert (counts["failed"], counts["cancelled"]) == (1, 1)


def test_counts_of_an_array_with_cancelled_runs_take_one_call_until_one_has_ended(
    machine: Any, wait_until: WaitUntil, tmp_path: Path
) -> None:
    machine.run([2, 3], command=fails_or_goes_on(tmp_path))
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
    machine.cancel(lambda _: NumberSet([1]))
    before = machine.calls("batch")
    assert machine.status().counts == {"running": 2}
    assert machine.calls("batch") - before == {"DescribeJobs": 1}


def test_counts_of_an_array_under_way_leave_out_what_was_sent_again(machine: Any, wait_until: WaitUntil) -> None:
    machine.run(range(1, 4), command="test {seed} != 1 && exec sleep 600")
    wait_until(lambda: machine.status().counts == {"failed": 1, "running": 2})
    machine.retry()  # there is no core for it before run 3 has ended
    wait_until(lambda: machine.statuses() == ["starting", "running", "running"])
    assert machine.status().counts == {"starting": 1, "running": 2}
    machine.cancel(lambda _: NumberSet([3]))
    wait_until(lambda: machine.statuses() == ["failed", "running", "cancelled"])
    assert machine.status().counts == {"failed": 1, "running": 1, "cancelled": 1}


def test_counts_lag_as_awss_summary_of_an_array_does_and_each_runs_status_does_not(
    machine: Any, wait_until: WaitUntil
) -> None:
    machine.server.control.delay_summaries(3600)
    machine.run([1, 2], command="exec sleep 600 # {seed}")
    wait_until(lambda: machine.statuses() == ["running", "running"])
    assert machine.status().counts == {"pending": 2}
    machine.clock.sleep(3600)
    assert machine.status().counts == {"running": 2}


def test_counts_of_told_runs_are_theirs(machine: Any, submitter: Callable[..., Any], wait_until: WaitUntil) -> None:
    machine.server.control.delay_summaries(3600)
    machine.run([1, 2], command="exec sleep 600 # {seed}")
    wait_until(lambda: machine.statuses() == ["running", "running"])
    assert submitter("status", "ada/first", "--runs", "--json").document["counts"] == {"running": 2}


def test_reasons_that_the_ledger_does_not_keep_are_awss_own_while_it_has_them(
    machine: Any, wait_until: WaitUntil
) -> None:
    seeds = range(1, 25)
    machine.run(seeds, command="exit {seed}", attempts=1)
    wait_until(lambda: machine.status().over, seconds=60)
    assert [run.reason for run in machine.status(runs=True).runs] == [f"exit code {seed}" for seed in seeds]
    machine.clock.sleep(9 * 86_400)
    assert sum(run.reason is None for run in machine.status(runs=True).runs) == 4


def test_a_reclaimed_run_says_so_in_its_next_attempt(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1], command="sleep 600; echo {seed}")
    job = machine.run_status(1).job
    wait_until(lambda: machine.run_status(1).status == "running")
    machine.server.control.reclaim(job)
    again = wait_until(lambda: (run := machine.run_status(1)).status == "running" and run.attempts == 2 and run)
    assert again.reason == f"attempt 1: {SPOT_RECLAIMED}"


def test_a_run_that_was_reclaimed_at_its_last_attempt_says_so(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1, 2], command="sleep 600; echo {seed}", attempts=1)
    wait_until(lambda: machine.status().counts.get("running") == 2)
    lost: set[str] = set()
    for run in machine.status(runs=True).runs:
        if run.job not in lost:  # both may be on one host
            lost |= set(machine.server.control.reclaim(run.job))
    assert ended(machine, wait_until).counts == {"failed": 2}
    assert {run.reason for run in machine.status(runs=True).runs} == {SPOT_RECLAIMED}


def test_an_on_demand_instance_that_goes_is_no_spot_interruption(
    machine: Any, aws: Callable[..., Any], environment: Callable[..., Any], wait_until: WaitUntil
) -> None:
    """AWS takes such an instance away for the update of its environment, for one."""
    made = environment("on-demand")
    order = [{"order": 1, "computeEnvironment": made["computeEnvironmentArn"]}]
    arn = aws("batch").create_job_queue(jobQueueName="c5a-large", priority=1, computeEnvironmentOrder=order)
    wait_until(lambda: {each["status"] for each in aws("batch").describe_job_queues()["jobQueues"]} == {"VALID"})
    names = {"name": "c5a-large", "arn": arn["jobQueueArn"], "compute_environment": "on-demand"}
    queue = replace(machine.contract.queues["c5a-large-spot"], **names, purchase="on-demand")
    contract = replace(machine.contract, queues={**machine.contract.queues, "c5a-large": queue})
    machine = replace(machine, contract=contract)
    machine.submit(replace(machine.order([1], command="sleep 600; echo {seed}", attempts=1), queue="c5a-large"))
    wait_until(lambda: machine.run_status(1).status == "running")
    update = {"updatePolicy": {"terminateJobsOnUpdate": True}, "computeResources": {"instanceTypes": ["c5a.xlarge"]}}
    aws("batch").update_compute_environment(computeEnvironment="on-demand", **update)
    assert ended(machine, wait_until).counts == {"failed": 1}
    assert machine.run_status(1).reason.startswith("the instance was lost: Host EC2 (instance i-")


def test_a_run_that_waits_for_its_next_attempt_has_the_reasons_of_both(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1], command="sleep 600; echo {seed}")
    wait_until(lambda: machine.run_status(1).status == "running")
    machine.server.control.set_capacity("spot", available=False)
    machine.server.control.reclaim(machine.run_status(1).job)
    run = wait_until(lambda: (run := machine.run_status(1)).status == "runnable" and run)
    assert run.reason.startswith(f"attempt 1: {SPOT_RECLAIMED}; CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - ")


def test_a_run_that_took_too_long_or_found_no_secret_says_so(machine: Any, wait_until: WaitUntil) -> None:
    machine.run([1], command="sleep 600; echo {seed}")
    wait_until(lambda: machine.run_status(1).status == "running")
    machine.clock.sleep(57_601)
    assert ended(machine, wait_until).counts == {"failed": 1}
    assert machine.run_status(1).reason.startswith("Job attempt duration exceeded timeout; exit code ")
    gone = f"{machine.contract.secret_arn}:KEY::"
    machine.run([1], fresh=True, secrets={"KEY": gone})
    assert ended(machine, wait_until).counts == {"failed": 1}
    assert machine.run_status(1).reason.startswith("ResourceInitializationError: unable to pull secrets")


def test_looking_decides_what_a_killed_run_left_open(
    machine: Any, killed: Callable[..., AbstractContextManager[None]]
) -> None:
    with killed(machine.ledger, "record", before=True):
        machine.run([1, 2])
    assert "deciding" not in machine.status().counts
    assert machine.ledger.entries("ada/first")[0].slots[0].sent


def test_what_was_never_sent_is_deciding_and_then_not_submitted(
    machine: Any, killed: Callable[..., AbstractContextManager[None]]
) -> None:
    with killed(machine.batch, "submit", before=True):
        machine.run([1, 2])
    status = machine.status(runs=True)
    assert status.counts == {"deciding": 2}
    assert not status.over
    machine.clock.sleep(1000)
    status = machine.status(runs=True)
    assert status.counts == {"not submitted": 2}
    assert status.over


def test_another_machine_with_the_stack_alone_sees_the_same(
    make_machine: Callable[[], Any], wait_until: WaitUntil
) -> None:
    make_machine().run([1, 2, 3], command=FAIL_2)
    assert ended(make_machine(), wait_until).counts == {"succeeded": 2, "failed": 1}


def test_there_is_no_such_sweep(machine: Any) -> None:
    with pytest.raises(UsageError, match="no sweep ada/first"):
        machine.status()


def test_how_an_array_of_thousands_ended_is_read_from_lists_of_its_children(
    machine: Any, wait_until: WaitUntil
) -> None:
    machine.run(range(1, 2001), command="sleep 600; echo {seed}")
    [job] = machine.jobs_by_name().values()
    machine.batch.terminate(job, "enough")
    assert ended(machine, wait_until).counts == {"failed": 2000}
    written = machine.ledger.entries("ada/first")[0].slots[0].ended
    assert {how.state for how in written} == {"failed"}
    assert NumberSet(number for how in written for number in how.runs) == NumberSet(range(1, 2001))
    assert all("enough" in how.reason for how in written)


def test_a_job_that_aws_does_not_show_yet_is_submitted_and_not_forgotten(
    machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.run([1, 2], command="exec sleep 60 # {seed}")
    describe = machine.batch.describe

    def late(ids: Any) -> dict[str, Any]:
        describe(ids)  # which tells the date
        return {}

    monkeypatch.setattr(machine.batch, "describe", late)
    assert machine.status().counts == {"submitted": 2}
    assert machine.statuses() == ["submitted", "submitted"]
    assert not machine.status().over


def test_a_submission_that_is_not_decided_is_unknown_once_its_queue_is_gone(machine: Any, killed: Any) -> None:
    """Every command on the sweep would fail, and there is no queue to look for the job on."""
    with killed(machine.batch, "submit", before=True):
        machine.submit(replace(machine.order([1]), queue="gone"))
    assert machine.status().counts == {"unknown": 1}
    assert str(machine.run([1]).unknown) == "1"
    machine.cancel()


def test_runs_of_an_array_that_ended_before_it_had_them_all_ended_with_it(
    machine: Any, wait_until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.run([1, 2, 3], command="exit {seed}", attempts=1)
    parent = machine.ledger.entries("ada/first")[0].slots[0].job
    wait_until(lambda: machine.batch.describe([parent])[parent]["status"] == "FAILED")
    describe, children = machine.batch.describe, machine.batch.children
    monkeypatch.setattr(
        machine.batch, "describe", lambda ids: {i: j for i, j in describe(ids).items() if i != f"{parent}:2"}
    )
    monkeypatch.setattr(machine.batch, "children", lambda *a: (j for j in children(*a) if j["jobId"] != f"{parent}:2"))
    assert machine.status().counts == {"deciding": 3}, "its listing may lag behind"
    machine.clock.sleep(90)
    assert machine.status().counts == {"failed": 3}

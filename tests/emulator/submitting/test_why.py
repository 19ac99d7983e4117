"""What runs wait for, told from the account's real state: each reason is caused, none is made up."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from submitter.batch import Batch

Aws = Callable[..., Any]
Submitter = Callable[..., Any]
WaitUntil = Callable[..., Any]

QUEUE = "c5a-large-spot"

Why = Callable[..., list[tuple[str, str]]]
Update = Callable[..., None]
Submit = Callable[..., None]


def test_an_environment_at_its_limit_is_told_with_the_limit(
    why: Why, update_environment: Update, submit_to_wait: Submit
) -> None:
    update_environment(computeResources={"maxvCpus": 2})
    submit_to_wait(seeds=(1, 2, 3))
    [(sentence, remedy)] = why()
    assert sentence == "spot is at its limit: 2 of 2 vCPUs are in use."
    assert "maxVcpus" in remedy


def test_a_disabled_queue_is_told_beside_what_else_keeps_the_runs(
    aws: Aws, why: Why, update_environment: Update, submit_to_wait: Submit
) -> None:
    update_environment(computeResources={"maxvCpus": 2})
    submit_to_wait(seeds=(1, 2, 3))
    aws("batch").update_job_queue(jobQueue=QUEUE, state="DISABLED")
    assert [sentence for sentence, _ in why()] == [
        f"The queue {QUEUE} is disabled: it takes no new runs, and starts those that it has.",
        "spot is at its limit: 2 of 2 vCPUs are in use.",
    ]


def test_another_sweep_at_the_head_of_the_queue_is_named_with_why_it_waits(
    machine: Any, why: Why, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    other = machine.order([1], command="exec sleep 600 # {seed}", memory_mib=8192, tags={"rl-batch:sweep": "bob/large"})
    machine.submit(replace(other, sweep="bob/large"))
    wait_until(lambda: machine.status_reader.read("bob/large").counts == {"runnable": 1})
    submit_to_wait()
    [(sentence, remedy)] = why()
    assert sentence.startswith(f"The sweep bob/large is at the head of {QUEUE} and waits itself: MISCONFIGURATION:JOB_")
    assert "`submitter why bob/large`" in remedy
    assert why("bob/large")[0][0].startswith("A run needs 1 vCPU, 8192 MiB")


def test_older_runs_of_the_sweep_itself_at_the_head_are_told_with_why_they_wait(
    machine: Any, why: Why, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    machine.server.control.set_capacity("spot", available=False)
    submit_to_wait(tags={"rl-batch:sweep": "ada/first"})
    machine.run([1, 2], fresh=True, tags={"rl-batch:sweep": "ada/first"})
    wait_until(lambda: machine.status().counts == {"runnable": 2})
    [(sentence, remedy), (reason, _)] = why()
    assert sentence == f"Runs of this sweep from before --new are before these at the head of {QUEUE}."
    assert "`submitter cancel ada/first`" in remedy
    assert reason.startswith("EC2 has no c5a.large to give at present (CAPACITY:")


def test_runs_of_an_array_whose_count_lags_are_not_said_to_wait(machine: Any, why: Why, wait_until: WaitUntil) -> None:
    machine.server.control.delay_summaries(3600)
    machine.run([1, 2], command="exec sleep 600 # {seed}")
    wait_until(lambda: machine.statuses() == ["running", "running"])
    assert [sentence for sentence, _ in why()] == [
        "AWS counts 2 runs as waiting but lists none that waits: its count lags behind."
    ]


def test_a_job_that_is_of_no_sweep_at_the_head_is_named(
    aws: Aws, machine: Any, why: Why, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    machine.server.control.set_capacity("spot", available=False)
    definition = machine.batch.definition(machine.order([1]).definition)
    job = aws("batch").submit_job(jobName="by-hand", jobQueue=QUEUE, jobDefinition=definition)["jobId"]
    wait_until(lambda: machine.batch.describe([job])[job]["status"] == "RUNNABLE")
    submit_to_wait()
    assert f"The job {job}, which is of no sweep, is at the head" in why()[0][0]


def test_a_spot_price_above_the_bid_is_told_with_both(
    machine: Any, why: Why, update_environment: Update, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    update_environment(computeResources={"bidPercentage": 50})
    machine.server.control.set_spot_price("c5a.large", 0.05)
    submit_to_wait()
    [(sentence, remedy)] = why()
    assert sentence == (
        "Spot costs $0.0500 an hour at least, and spot pays $0.0385 at most: 50 % of the On-Demand price, $0.0770."
    )
    assert "spotBidPercentage" in remedy
    machine.server.control.set_spot_price("c5a.large", 0.03)
    wait_until(lambda: machine.status().counts.get("running") == 2)


def test_an_instance_that_is_found_is_told(
    machine: Any, why: Why, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    """The account starts two jobs at once; the third has its instance and waits for the image, so to speak."""
    submit_to_wait(seeds=(1, 2, 3))
    wait_until(lambda: machine.status().counts == {"running": 2, "starting": 1})
    [(sentence, _)] = why()
    assert sentence == "An instance has been found for 1 run: the image is pulled, the run starts."


def test_runs_that_were_never_sent_are_told_with_how_to_send_them(
    machine: Any, submitter: Submitter, killed: Callable[..., Any]
) -> None:
    with killed(machine.batch, "submit", before=True):
        machine.run([1, 2])
    [finding] = submitter("why", "ada/first", "--json").document["findings"]
    assert finding["queue"] is None
    assert finding["sentence"].startswith("Whether AWS has taken 2 runs is not known yet")
    machine.clock.sleep(1000)
    machine.status()
    assert "AWS does not have 2 runs" in submitter("why", "ada/first").out


def test_people_read_the_sentences_with_an_arrow_before_what_to_do(
    machine: Any, submitter: Submitter, submit_to_wait: Submit
) -> None:
    machine.server.control.set_capacity("spot", available=False)
    submit_to_wait()
    lines = submitter("why", "ada/first").out.splitlines()
    assert lines[0] == "ada/first: 2 runs: 2 runnable"
    assert lines[2] == f"{QUEUE}:"
    assert lines[3].startswith("  EC2 has no c5a.large")
    assert lines[4].startswith("    -> AWS keeps trying.")


def test_a_sweep_of_which_nothing_waits_says_so(machine: Any, submitter: Submitter, wait_until: WaitUntil) -> None:
    machine.run([1])
    wait_until(lambda: machine.status().over)
    assert submitter("why", "ada/first").out.splitlines()[-1] == "No run waits."


def test_the_head_of_the_queue_that_only_waits_its_turn_is_named_beside_the_limit(
    machine: Any, why: Why, update_environment: Update, wait_until: WaitUntil, submit_to_wait: Submit
) -> None:
    update_environment(computeResources={"maxvCpus": 2})
    other = machine.order([1, 2, 3], command="exec sleep 600 # {seed}", tags={"rl-batch:sweep": "bob/first"})
    machine.submit(replace(other, sweep="bob/first"))
    wait_until(lambda: machine.status_reader.read("bob/first").counts.get("runnable") == 1)
    submit_to_wait()
    assert [sentence for sentence, _ in why()] == [
        f"The sweep bob/first is at the head of {QUEUE}.",
        "spot is at its limit: 2 of 2 vCPUs are in use.",
    ]


def test_a_queue_that_is_deleted_between_two_questions_is_told(
    aws: Aws, machine: Any, why: Why, *, wait_until: WaitUntil, submit_to_wait: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its jobs have ended with it."""
    machine.server.control.set_capacity("spot", available=False)
    submit_to_wait()
    ask, batch = Batch.queues, aws("batch")

    def described(*, status: str) -> bool:
        return [queue["status"] for queue in batch.describe_job_queues()["jobQueues"]] == [status]

    def delete_and_ask(self: Batch, names: Any) -> Any:
        batch.update_job_queue(jobQueue=QUEUE, state="DISABLED")
        wait_until(lambda: described(status="VALID"))
        batch.delete_job_queue(jobQueue=QUEUE)
        wait_until(lambda: not batch.describe_job_queues()["jobQueues"])
        return ask(self, names)

    monkeypatch.setattr(Batch, "queues", delete_and_ask)
    [(sentence, remedy)] = why()
    assert sentence == f"The queue {QUEUE} does not exist any more."
    assert "`pulumi up`" in remedy


def test_who_may_not_read_the_front_of_the_queue_is_told_so(
    machine: Any, why: Why, fault: Callable[..., None], submit_to_wait: Submit
) -> None:
    words = "User is not authorized to perform: batch:GetJobQueueSnapshot"
    fault("batch", "GetJobQueueSnapshot", "refuse", code="AccessDeniedException", message=words)
    machine.server.control.set_capacity("spot", available=False)
    submit_to_wait()
    [(sentence, _)] = why()
    assert sentence.startswith("AWS gives no reason, and the queue's front could not be read. The runs have waited")


@pytest.mark.parametrize(
    ("service", "operation", "code"),
    [
        ("ec2", "DescribeSpotPriceHistory", "UnauthorizedOperation"),
        ("pricing", "GetProducts", "AccessDeniedException"),
    ],
)
def test_a_price_that_may_not_be_read_is_not_guessed(
    machine: Any,
    why: Why,
    fault: Callable[..., None],
    *,
    update_environment: Update,
    submit_to_wait: Submit,
    service: str,
    operation: str,
    code: str,
) -> None:
    fault(service, operation, "refuse", code=code, message="You are not authorized to perform this operation.")
    update_environment(computeResources={"bidPercentage": 50})
    machine.server.control.set_spot_price("c5a.large", 0.05)
    submit_to_wait()
    [(sentence, remedy)] = why()
    assert sentence == "spot pays 50 % of the On-Demand price at most; whether Spot costs more at present is not known."
    assert "spotBidPercentage" in remedy


def test_another_environment_of_the_queue_is_looked_at_when_one_is_closed(
    aws: Aws,
    why: Why,
    environment: Callable[..., Any],
    *,
    update_environment: Update,
    wait_until: WaitUntil,
    submit_to_wait: Submit,
) -> None:
    environment("second", maxvCpus=2)
    order = [{"order": n, "computeEnvironment": name} for n, name in enumerate(("spot", "second"), 1)]
    aws("batch").update_job_queue(jobQueue=QUEUE, computeEnvironmentOrder=order)
    wait_until(lambda: aws("batch").describe_job_queues()["jobQueues"][0]["status"] == "VALID")
    update_environment(state="DISABLED")
    submit_to_wait(seeds=(1, 2, 3))
    assert [sentence for sentence, _ in why()] == [
        "The environment spot is disabled and starts no run.",
        "second is at its limit: 2 of 2 vCPUs are in use.",
    ]


def test_runs_that_aws_has_forgotten_are_told_apart_from_those_that_wait(
    machine: Any, submitter: Submitter, wait_until: WaitUntil
) -> None:
    machine.run([1, 2])
    [job] = machine.jobs_by_name().values()
    wait_until(lambda: machine.batch.describe([job])[job]["status"] == "SUCCEEDED")
    machine.clock.sleep(9 * 86_400)
    assert "AWS has forgotten 2 runs before anybody saw how they ended." in submitter("why", "ada/first").out
    waited = submitter("wait", "ada/first")
    assert waited.code == 1
    assert "AWS has forgotten 2 runs before anybody saw how they ended. Look at their results" in waited.err
    assert "logs" not in waited.err
    assert "retry" not in waited.err

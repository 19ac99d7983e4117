"""What runs wait for, told from the account's real state: each reason is caused, none is made up."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from submitter.diagnosis import diagnose
from submitter.evidence import Evidence
from submitter.prices import read_price

Aws = Callable[..., Any]
Submitter = Callable[..., Any]
WaitUntil = Callable[..., Any]

QUEUE = "c5a-large-spot"
FOR_LONG = "exec sleep 600 # {seed}"


@pytest.fixture
def why(submitter: Submitter) -> Callable[..., list[tuple[str, str]]]:
    """Ask `submitter why`, and return the sentences with their remedies: `why("ada/first")`."""

    def ask(sweep: str = "ada/first") -> list[tuple[str, str]]:
        findings = submitter("why", sweep, "--json").document["findings"]
        assert all(found["queue"] == QUEUE for found in findings)
        return [(found["sentence"], found["remedy"]) for found in findings]

    return ask


@pytest.fixture
def update_environment(aws: Aws, wait_until: WaitUntil) -> Callable[..., None]:
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


Why = Callable[..., list[tuple[str, str]]]
Update = Callable[..., None]


def submit(machine: Any, wait_until: WaitUntil, seeds: Any = (1, 2), **spec: Any) -> None:
    machine.run(seeds, command=FOR_LONG, **spec)
    wait_until(lambda: {"submitted", "pending"}.isdisjoint(machine.status().counts))


def test_no_instance_to_be_had_is_told_with_where_else_to_go(machine: Any, why: Why, wait_until: WaitUntil) -> None:
    machine.server.control.set_capacity("spot", available=False)
    submit(machine, wait_until)
    [(sentence, remedy)] = why()
    assert sentence.startswith("EC2 has no c5a.large to give at present (CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY")
    assert "the On-Demand queue, c5a-large" in remedy
    assert machine.run_status(1).reason.startswith("CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY")
    machine.server.control.set_capacity("spot", available=True)
    wait_until(lambda: machine.status().counts.get("running") == 2)
    assert why() == []


def test_an_environment_at_its_limit_is_told_with_the_limit(
    machine: Any, why: Why, update_environment: Update, wait_until: WaitUntil
) -> None:
    update_environment(computeResources={"maxvCpus": 2})
    submit(machine, wait_until, seeds=(1, 2, 3))
    [(sentence, remedy)] = why()
    assert sentence == "spot is at its limit: 2 of 2 vCPUs are in use."
    assert "maxVcpus" in remedy


def test_an_environment_that_may_not_have_one_instance_is_told(
    machine: Any, why: Why, update_environment: Update, wait_until: WaitUntil
) -> None:
    update_environment(computeResources={"maxvCpus": 1})
    submit(machine, wait_until)
    [(sentence, remedy)] = why()
    assert sentence.startswith(
        "The environment may have 1 vCPUs at once, fewer than one instance has (MISCONFIGURATION"
    )
    assert "maxVcpus" in remedy


def test_a_disabled_environment_is_told_with_how_to_enable_it(
    machine: Any, why: Why, update_environment: Update, wait_until: WaitUntil
) -> None:
    update_environment(state="DISABLED")
    submit(machine, wait_until)
    [(sentence, remedy)] = why()
    assert sentence == "The environment spot is disabled and starts no run."
    assert "update-compute-environment --state ENABLED --compute-environment spot" in remedy


def test_an_invalid_environment_is_told_in_awss_words(
    aws: Aws, machine: Any, why: Why, update_environment: Update, wait_until: WaitUntil
) -> None:
    aws("iam").remove_role_from_instance_profile(InstanceProfileName="instance", RoleName="instance")
    aws("iam").delete_instance_profile(InstanceProfileName="instance")
    update_environment("INVALID", computeResources={"maxvCpus": 8})
    submit(machine, wait_until)
    [(sentence, _)] = why()
    assert sentence == "The environment spot is INVALID: CLIENT_ERROR - Invalid IamInstanceProfile: instance"


def test_a_disabled_queue_is_told_beside_what_else_keeps_the_runs(
    aws: Aws, machine: Any, why: Why, update_environment: Update, wait_until: WaitUntil
) -> None:
    update_environment(computeResources={"maxvCpus": 2})
    submit(machine, wait_until, seeds=(1, 2, 3))
    aws("batch").update_job_queue(jobQueue=QUEUE, state="DISABLED")
    assert [sentence for sentence, _ in why()] == [
        f"The queue {QUEUE} is disabled: it takes no new runs, and starts those that it has.",
        "spot is at its limit: 2 of 2 vCPUs are in use.",
    ]


def test_what_fits_no_instance_is_told_with_what_an_instance_has(machine: Any, why: Why, wait_until: WaitUntil) -> None:
    submit(machine, wait_until, memory_mib=8192)
    [(sentence, remedy)] = why()
    assert sentence.startswith("A run needs 1 vCPU, 8192 MiB and 0 GPU, and a c5a.large has 2 vCPU, about 3")
    assert "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT" in sentence
    assert "--num-memory" in remedy


def test_another_sweep_at_the_head_of_the_queue_is_named_with_why_it_waits(
    machine: Any, why: Why, wait_until: WaitUntil
) -> None:
    other = machine.order([1], command=FOR_LONG, memory_mib=8192, tags={"rl-batch:sweep": "bob/large"})
    machine.submit(replace(other, sweep="bob/large"))
    wait_until(lambda: machine.status_reader.read("bob/large").counts == {"runnable": 1})
    submit(machine, wait_until)
    [(sentence, remedy)] = why()
    assert sentence.startswith(f"The sweep bob/large is at the head of {QUEUE} and waits itself: MISCONFIGURATION:JOB_")
    assert "`submitter why bob/large`" in remedy
    assert why("bob/large")[0][0].startswith("A run needs 1 vCPU, 8192 MiB")


def test_a_job_that_is_of_no_sweep_at_the_head_is_named(
    aws: Aws, machine: Any, why: Why, wait_until: WaitUntil
) -> None:
    machine.server.control.set_capacity("spot", available=False)
    definition = machine.batch.definition(machine.order([1]).definition)
    job = aws("batch").submit_job(jobName="by-hand", jobQueue=QUEUE, jobDefinition=definition)["jobId"]
    wait_until(lambda: machine.batch.describe([job])[job]["status"] == "RUNNABLE")
    submit(machine, wait_until)
    assert f"The job {job}, which is of no sweep, is at the head" in why()[0][0]


def test_a_spot_price_above_the_bid_is_told_with_both(
    machine: Any, why: Why, update_environment: Update, wait_until: WaitUntil
) -> None:
    update_environment(computeResources={"bidPercentage": 50})
    machine.server.control.set_spot_price("c5a.large", 0.05)
    submit(machine, wait_until)
    [(sentence, remedy)] = why()
    assert sentence == (
        "Spot costs $0.0500 an hour at least, and spot pays $0.0385 at most: 50 % of the On-Demand price, $0.0770."
    )
    assert "spotBidPercentage" in remedy
    machine.server.control.set_spot_price("c5a.large", 0.03)
    wait_until(lambda: machine.status().counts.get("running") == 2)


def test_runs_that_a_time_limit_has_cancelled_are_told_with_what_they_waited_for(
    aws: Aws, machine: Any, why: Why, wait_until: WaitUntil
) -> None:
    limit = {"reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY", "state": "RUNNABLE", "action": "CANCEL"}
    aws("batch").update_job_queue(jobQueue=QUEUE, jobStateTimeLimitActions=[{**limit, "maxTimeSeconds": 600}])
    machine.server.control.set_capacity("spot", available=False)
    submit(machine, wait_until, seeds=(1,))
    assert why()[-1][0] == "The queue cancels a run that has been its head for 10 min 00 s for this reason."
    machine.clock.sleep(601)
    wait_until(lambda: machine.status().over)
    [(sentence, remedy)] = why()
    assert sentence == (
        "The queue has cancelled 1 run after a time limit for waiting for this reason: "
        "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"
    )
    assert "`submitter retry`" in remedy
    assert machine.run_status(1).reason.startswith("Canceled by JobStateTimeLimit action")


def test_an_instance_that_is_found_is_told(machine: Any, why: Why, wait_until: WaitUntil) -> None:
    """The account starts two jobs at once; the third has its instance and waits for the image, so to speak."""
    submit(machine, wait_until, seeds=(1, 2, 3))
    wait_until(lambda: machine.status().counts == {"running": 2, "starting": 1})
    [(sentence, _)] = why()
    assert sentence == "An instance has been found for 1 run: the image is pulled, the run starts."


def test_where_aws_gives_no_reason_and_none_is_seen_that_is_said(machine: Any, why: Why, wait_until: WaitUntil) -> None:
    """Spot may cost more than On-Demand for a while, which an environment that pays all of it does not show."""
    machine.server.control.set_spot_price("c5a.large", 0.08)
    submit(machine, wait_until)
    [(sentence, remedy)] = why()
    assert sentence.startswith("AWS gives no reason. The runs have waited for ")
    assert remedy == "Wait, then ask again."

    machine.clock.sleep(3600)  # by the account's clock, which the command line does not have
    evidence = Evidence(machine.contract, machine.batch, partial(read_price, machine.session), machine.clock)
    [waiting] = evidence.waiting(machine.status().generation)
    [finding] = diagnose(waiting)
    assert finding.sentence.startswith("AWS gives no reason, and none is seen")
    assert finding.sentence.endswith("have waited for 1 h 00 min is not known.")
    assert "quotas" in finding.remedy


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
    machine: Any, submitter: Submitter, wait_until: WaitUntil
) -> None:
    machine.server.control.set_capacity("spot", available=False)
    submit(machine, wait_until)
    lines = submitter("why", "ada/first").out.splitlines()
    assert lines[0] == "ada/first: 2 runs: 2 runnable"
    assert lines[2] == f"{QUEUE}:"
    assert lines[3].startswith("  EC2 has no c5a.large")
    assert lines[4].startswith("    -> AWS keeps trying.")


def test_a_sweep_of_which_nothing_waits_says_so(machine: Any, submitter: Submitter, wait_until: WaitUntil) -> None:
    machine.run([1])
    wait_until(lambda: machine.status().over)
    assert submitter("why", "ada/first").out.splitlines()[-1] == "No run waits."

"""Why runs wait: which of many facts decides, and what is said where a fact is missing."""

from dataclasses import replace

import pytest

from submitter.diagnosis import cancelled_for_waiting, diagnose, not_with_aws
from submitter.facts import Environment, Head, Need, Price, Waiting

ENVIRONMENT = Environment(
    name="spot",
    state="ENABLED",
    status="VALID",
    status_reason="",
    spot=True,
    bid_percentage=100,
    max_vcpus=16,
    desired_vcpus=0,
    service_role="arn:aws:iam::123456789012:role/batch",
)
NEED = Need(vcpus=1, memory_mib=1800, gpus=0)
OURS = Head(job="ours", sweep="ada/first", own=True, older=False, need=NEED, status_reason="")
WAITING = Waiting(
    queue="c5a-large-spot",
    hardware=None,
    exists=True,
    state="ENABLED",
    status="VALID",
    status_reason="",
    limits={},
    environments=(ENVIRONMENT,),
    runs={"runnable": 3},
    lagging=0,
    waited_seconds=3600,
    need=NEED,
    head=OURS,
    front_known=True,
    price=None,
)


def only(waiting: Waiting) -> str:
    [finding] = diagnose(waiting)
    assert finding.remedy
    return finding.sentence


def test_a_reason_that_aws_has_added_is_told_in_its_words() -> None:
    words = "CAPACITY:OF_ANOTHER_KIND - Something that nobody knows yet."
    assert only(replace(WAITING, head=replace(OURS, status_reason=words))) == f"AWS says: {words}"


def test_older_runs_of_the_sweep_at_the_head_are_told_with_what_they_need() -> None:
    words = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - It does not fit."
    needs = replace(NEED, memory_mib=9000)
    head = Head(job="older", sweep="ada/first", own=False, older=True, need=needs, status_reason=words)
    first, reason = diagnose(replace(WAITING, head=head))
    assert first.sentence == "Runs of this sweep from before --new are before these at the head of c5a-large-spot."
    assert "`submitter cancel ada/first`" in first.remedy
    assert reason.sentence.startswith("A run needs 1 vCPU, 9000 MiB")


def test_runs_that_an_array_only_counts_as_waiting_are_not_said_to_wait() -> None:
    assert only(replace(WAITING, runs={}, lagging=3)) == (
        "AWS counts 3 runs as waiting but lists none that waits: its count lags behind."
    )


def test_an_invalid_queue_is_told_in_awss_words() -> None:
    found = diagnose(replace(WAITING, status="INVALID", status_reason="it says why"))
    assert found[0].sentence == "The queue c5a-large-spot is INVALID: it says why"


def test_what_is_seen_is_told_although_the_front_may_not_be_read() -> None:
    full = replace(WAITING, head=None, front_known=False, environments=(replace(ENVIRONMENT, desired_vcpus=16),))
    assert only(full) == "spot is at its limit: 16 of 16 vCPUs are in use."


@pytest.mark.parametrize(
    "price", [Price(spot=None, on_demand=0.077), Price(spot=0.05, on_demand=None), Price(spot=None, on_demand=None)]
)
def test_a_price_that_is_not_known_is_not_guessed(price: Price) -> None:
    half = replace(WAITING, environments=(replace(ENVIRONMENT, bid_percentage=50),), price=price)
    assert only(half).endswith("whether Spot costs more at present is not known.")


def test_a_bid_above_the_price_is_no_reason() -> None:
    half = replace(
        WAITING, environments=(replace(ENVIRONMENT, bid_percentage=50),), price=Price(spot=0.03, on_demand=0.077)
    )
    assert "is not known" in only(half)
    assert "Spot" not in only(half)


def test_runs_that_aws_does_not_have_are_told_apart() -> None:
    found = not_with_aws({"deciding": 1, "not submitted": 2, "unknown": 3, "running": 4})
    assert [finding.sentence.partition(":")[0] for finding in found] == [
        "Whether AWS has taken 1 run is not known yet",
        "AWS does not have 2 runs",
        "AWS has forgotten 3 runs before anybody saw how they ended.",
    ]
    assert not_with_aws({"running": 4}) == []


def test_only_what_a_time_limit_has_cancelled_is_told_of_what_has_failed() -> None:
    reasons = {"exit code 1": 3, "Canceled by JobStateTimeLimit action due to reason: SOME:REASON": 2}
    [finding] = cancelled_for_waiting(reasons)
    assert finding.sentence.endswith("cancelled 2 runs after a time limit for waiting for this reason: SOME:REASON")

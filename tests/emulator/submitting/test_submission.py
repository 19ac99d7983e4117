"""`run` when nothing goes wrong, and when the user asks for what cannot be."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from submitter import plan
from submitter.errors import AwsError, UsageError
from submitter.history import Entry


def test_a_first_run_makes_one_array_with_one_put_one_submission_and_one_update(machine: Any) -> None:
    before = {service: machine.calls(service) for service in ("batch", "dynamodb")}
    outcome = machine.run([1, 2, 3])
    assert str(outcome.submitted) == "1-3"
    assert machine.calls("dynamodb") - before["dynamodb"] == Counter(TransactWriteItems=1, UpdateItem=1)
    assert machine.calls("batch") - before["batch"] == Counter(
        DescribeJobDefinitions=1, RegisterJobDefinition=1, SubmitJob=1
    )
    machine.assert_each_run_has_one_job([1, 2, 3])


def test_the_same_again_sends_nothing_and_does_not_ask_batch(machine: Any) -> None:
    machine.run([1, 2, 3])
    before = {service: machine.calls(service) for service in ("batch", "dynamodb")}
    outcome = machine.run([1, 2, 3])
    assert (str(outcome.submitted), str(outcome.present)) == ("", "1-3")
    assert machine.calls("dynamodb") - before["dynamodb"] == Counter(TransactWriteItems=1, Query=1)
    assert machine.calls("batch") == before["batch"]


def test_one_run_is_a_plain_job(machine: Any) -> None:
    machine.run([7])
    [job] = machine.jobs_by_name().values()
    assert "arrayProperties" not in machine.batch.describe([job])[job]


def test_more_seeds_are_added_to_those_there_are(machine: Any) -> None:
    machine.run([1, 2, 3])
    outcome = machine.run([1, 2, 3, 4, 5])
    assert (str(outcome.submitted), str(outcome.present)) == ("4-5", "1-3")
    machine.assert_each_run_has_one_job([1, 2, 3, 4, 5])


def test_one_definition_serves_both_until_its_content_changes(machine: Any) -> None:
    machine.run([1])
    machine.run([2])
    assert machine.calls("batch")["RegisterJobDefinition"] == 1
    machine.run([3], memory_mib=1024)
    assert machine.calls("batch")["RegisterJobDefinition"] == 2


def test_a_new_generation_submits_everything_again(machine: Any) -> None:
    first = machine.run([1, 2])
    second = machine.run([1, 2], fresh=True)
    assert str(second.submitted) == "1-2"
    assert second.generation.nonce != first.generation.nonce
    assert len(machine.jobs_by_name()) == 2
    assert str(machine.run([1, 2]).present) == "1-2"


def test_a_sweep_can_be_begun_as_a_new_generation(machine: Any) -> None:
    assert str(machine.run([1], fresh=True).submitted) == "1"
    machine.assert_each_run_has_one_job([1])


@pytest.mark.parametrize("change", [{"command": "echo another"}, {"image": "trainer:2"}])
def test_another_command_or_image_under_the_same_name_is_refused_and_changes_nothing(
    machine: Any, change: dict[str, str]
) -> None:
    machine.run([1])
    before = machine.calls("batch")
    with pytest.raises(UsageError, match="was begun with the"):
        machine.run([2], **change)
    assert machine.calls("batch") == before
    assert len(machine.ledger.entries("ada/first")) == 1


def test_a_job_that_aws_refuses_is_one_sentence_and_is_sent_when_the_cause_is_gone(machine: Any) -> None:
    order = machine.order([1, 2])
    with pytest.raises(AwsError, match="SubmitJob") as refused:
        machine.submit(replace(order, queue="c5a-larg-spot"))
    assert "\n" not in refused.value.message
    assert str(machine.submit(order).submitted) == "1-2"
    machine.assert_each_run_has_one_job([1, 2])


def test_a_definition_that_aws_refuses_leaves_nothing_undecided(machine: Any) -> None:
    order = machine.order([1, 2])
    bad = {**order.definition, "timeout": {"attemptDurationSeconds": 1}}
    with pytest.raises(Exception, match="RegisterJobDefinition"):
        machine.submit(replace(order, definition=bad))
    assert str(machine.submit(order).submitted) == "1-2"
    machine.assert_each_run_has_one_job([1, 2])


def test_after_a_refusal_the_arrays_behind_it_are_not_sent(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MAX_ARRAY", 2)
    before = machine.calls("batch")
    with pytest.raises(AwsError):
        machine.submit(replace(machine.order(range(6)), queue="c5a-larg-spot"))
    assert (machine.calls("batch") - before)["SubmitJob"] == 1
    assert [slot.job for slot in machine.ledger.entries("ada/first")[0].slots] == ["-", "-", "-"]


def test_what_the_jobs_need_is_put_there_once_the_ledger_says_so_and_before_they_are_sent(machine: Any) -> None:
    """Else `prune` could take away, in between, what it does not know to be needed."""
    seen: list[tuple[int, int]] = []

    def ready(_: Entry) -> None:
        seen.append((len(machine.ledger.entries("ada/first")), machine.calls("batch")["SubmitJob"]))

    machine.submit(machine.order([1]), ready=ready)
    assert seen == [(1, 0)]


def test_without_what_the_jobs_need_nothing_is_sent_nor_waited_for(machine: Any) -> None:
    def ready(_: Entry) -> None:
        raise UsageError("no room")

    with pytest.raises(UsageError, match="no room"):
        machine.submit(machine.order([1]), ready=ready)
    assert machine.status().counts == {"not submitted": 1}
    assert not machine.calls("batch")["SubmitJob"]


@pytest.mark.parametrize("fresh", [False, True])
def test_what_others_submit_after_the_ledger_was_read_is_not_sent_again(machine: Any, fresh: bool) -> None:
    """Between the look that the announcement is made of and the put there may be minutes: a build, for example."""
    machine.run([1])
    read = machine.ledger.entries("ada/first")
    machine.run([1, 2], fresh=fresh)
    outcome = machine.submit(machine.order([1, 2, 3]), entries=read, fresh=fresh)
    assert (str(outcome.submitted), str(outcome.present)) == ("3", "1-2")
    assert outcome.generation.nonce == machine.status().generation.nonce


def test_what_is_known_to_be_submitted_needs_no_call_at_all(machine: Any) -> None:
    machine.run([1, 2])
    read = machine.ledger.entries("ada/first")
    before = {service: machine.calls(service) for service in ("batch", "dynamodb")}
    assert str(machine.submit(machine.order([1, 2]), entries=read).present) == "1-2"
    assert {service: machine.calls(service) for service in before} == before

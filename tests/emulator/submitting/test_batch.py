"""What the submitter asks of Batch besides submitting, and who it asks as."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from submitter.batch import Accepted
from submitter.errors import ConfigurationError
from submitter.names import job_name
from submitter.session import caller_name


def send(machine: Any, name: str) -> str:
    order = machine.order([1])
    request = {
        "jobName": name,
        "jobQueue": order.queue,
        "jobDefinition": machine.batch.definition(order.definition),
        "containerOverrides": {"command": ["true"]},
    }
    answer = machine.batch.submit(request, sign_until=machine.clock.now() + 60)
    assert isinstance(answer, Accepted)
    return answer.job


def test_a_job_is_found_by_its_exact_name_only(machine: Any) -> None:
    """The filter of ListJobs ignores case, and one name may begin with another."""
    jobs = {name: send(machine, name) for name in ("exp-1", "EXP-1", "exp-10")}
    for name, job in jobs.items():
        assert machine.batch.find("c5a-large-spot", name)[0] == job
    assert machine.batch.find("c5a-large-spot", "exp")[0] is None


def test_a_job_is_found_behind_a_page_of_others(machine: Any) -> None:
    """A page of ListJobs has 100 jobs, the newest first; these names are all the same to its filter."""
    names = ["".join(letters) for letters in product("aA", "bB", "cC", "dD", "eE", "fF", "gG")][:101]
    first, *_ = [send(machine, name) for name in names]
    assert machine.batch.find("c5a-large-spot", names[0])[0] == first
    assert machine.calls("batch")["ListJobs"] == 2


def test_a_look_for_a_job_has_the_date_of_aws(machine: Any) -> None:
    machine.clock.sleep(5000)
    _, date = machine.batch.find("c5a-large-spot", "exp")
    assert abs(date - machine.server.clock.now()) < 60


def test_jobs_are_described_a_hundred_at_a_time_and_throttled_calls_again(
    machine: Any, fault: Callable[..., None]
) -> None:
    job = send(machine, "exp")
    fault("batch", "DescribeJobs", "throttle", skip=2, count=1)
    assert set(machine.batch.describe([*(f"{job}:{index}" for index in range(249)), job])) == {job}
    assert machine.calls("batch")["DescribeJobs"] == 4


def test_the_newest_revision_of_a_definition_is_used(machine: Any) -> None:
    definition = machine.order([1]).definition
    first = machine.batch.definition(definition)
    machine.session.client("batch").register_job_definition(**definition)
    assert first.endswith(":1")
    assert machine.batch.definition(definition) == first.removesuffix("1") + "2"


def test_queues_are_described_by_name(machine: Any) -> None:
    found = machine.batch.queues(["c5a-large-spot", "no-such-queue"])
    assert [queue["state"] for queue in found.values()] == ["ENABLED"]


def test_the_caller_is_named_when_the_account_is_the_stack_s(machine: Any) -> None:
    assert caller_name(machine.session, machine.contract)
    with pytest.raises(ConfigurationError, match="The stack is in account 999999999999"):
        caller_name(machine.session, replace(machine.contract, account_id="999999999999"))


def test_a_job_s_name_is_one_that_batch_takes_however_long_the_sweep_s_is(machine: Any) -> None:
    send(machine, job_name("ada/" + "x" * 150 + ".y", "abcdefghij", 1000, 99))

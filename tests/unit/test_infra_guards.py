"""What the guards decide, apart from the engine; tests/e2e has them in an update."""

from typing import Any

import pulumi
import pytest

from infra.facts import Account
from infra.guards import RunGuard, removed_queues, replaces_hosts, unfinished_runs

ACCOUNT = Account(account_id="123456789012", region="us-east-1", partition="aws")


class FakeBatch:
    """Lists jobs in pages of two and describes arrays, as AWS Batch does."""

    def __init__(self, jobs: dict[str, str], arrays: dict[str, dict[str, int]]) -> None:
        self.jobs = jobs
        self.arrays = arrays
        self.described: list[int] = []

    def get_paginator(self, operation: str) -> "FakeBatch":
        assert operation == "list_jobs"
        return self

    def paginate(self, *, jobQueue: str, jobStatus: str) -> list[dict[str, Any]]:  # noqa: N803  # the names are AWS's
        assert jobQueue == "c5a-large"
        found: list[dict[str, Any]] = [{"jobId": job} for job, status in self.jobs.items() if status == jobStatus]
        if jobStatus == "PENDING":
            found += [{"jobId": job, "arrayProperties": {"size": 9}} for job in self.arrays]
        return [{"jobSummaryList": found[start : start + 2]} for start in range(0, len(found), 2)]

    def describe_jobs(self, *, jobs: list[str]) -> dict[str, Any]:
        self.described.append(len(jobs))
        return {"jobs": [{"arrayProperties": {"statusSummary": self.arrays[job]}} for job in jobs]}


def test_runs_of_arrays_are_counted_one_by_one_and_finished_ones_are_not() -> None:
    batch = FakeBatch(
        {"a": "RUNNING", "b": "RUNNABLE", "c": "SUCCEEDED", "d": "RUNNING", "e": "RUNNING", "f": "PENDING"},
        {"g": {"SUCCEEDED": 4, "RUNNING": 2, "RUNNABLE": 3}, "h": {"FAILED": 9}},
    )
    assert unfinished_runs(batch, "c5a-large") == 5 + 5
    assert unfinished_runs(batch, "c5a-large", ["STARTING", "RUNNING"]) == 3 + 2


def test_arrays_are_described_a_hundred_at_a_time() -> None:
    batch = FakeBatch({}, {str(number): {"RUNNING": 1} for number in range(250)})
    assert unfinished_runs(batch, "c5a-large") == 250
    assert batch.described == [100, 100, 50]


@pytest.mark.parametrize(
    ("wanted", "fair_share", "removed"),
    [
        (["one", "two"], False, []),
        (["two", "three"], False, ["one"]),
        ([], False, ["one", "two"]),
        (["one", "two"], True, ["one", "two"]),
    ],
)
def test_a_queue_goes_when_nobody_wants_it_or_when_it_changes_how_it_shares(
    wanted: list[str], fair_share: bool, removed: list[str]
) -> None:
    queues = {"two": {"fair_share": False}, "one": {"fair_share": False}}
    assert removed_queues(queues, wanted, fair_share=fair_share) == removed


@pytest.mark.parametrize(
    ("change", "replaces"),
    [
        ({"maxVcpus": 4, "minVcpus": 1, "desiredVcpus": 2}, False),
        ({"bidPercentage": 60}, True),
        ({"launchTemplate": {"version": "2"}}, True),
        ({"tags": {"team": "rl"}}, True),
    ],
)
def test_only_scaling_leaves_the_hosts_of_an_environment_alone(change: dict[str, Any], replaces: bool) -> None:
    old = {"computeResources": {"maxVcpus": 2, "bidPercentage": 50, "launchTemplate": {"version": "1"}}, "tags": {}}
    new = {"computeResources": old["computeResources"] | change, "tags": {"of": "the environment"}}
    assert replaces_hosts(old, new) == replaces


class Guard(RunGuard):
    """A guard of a stack with one queue, on which a number of runs, or an error, is found."""

    def __init__(self, found: int | Exception) -> None:
        super().__init__(ACCOUNT, allow_interruption=True)
        self._deployed = {"c5a-large": {"fair_share": False}}
        self._found = found

    def _client(self) -> FakeBatch:
        if isinstance(self._found, Exception):
            raise self._found
        return FakeBatch({str(number): "RUNNABLE" for number in range(self._found)}, {})


def test_an_update_that_deletes_unfinished_runs_is_refused_with_their_number_and_what_to_do() -> None:
    with pytest.raises(pulumi.RunError) as refused:
        Guard(3).check_removals(["c6g-medium"], fair_share=False)
    assert str(refused.value) == (
        "3 runs are unfinished on c5a-large, and this update would delete the queue; wait, end what is there with "
        "`submitter cancel`, or let the update end it: `pulumi config set allowInterruption true`."
    )


def test_an_update_is_refused_when_nobody_can_tell_whether_runs_are_unfinished() -> None:
    with pytest.raises(pulumi.RunError, match=r"is unknown \(no credentials\); if none is, use `pulumi config set"):
        Guard(PermissionError("no credentials")).check_removals([], fair_share=False)


def test_many_queues_are_looked_at_with_one_client_and_one_question_whose_credentials_these_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    class Session:
        def __init__(self, **_: Any) -> None: ...

        def client(self, service: str) -> Any:
            made.append(service)
            return self if service == "sts" else FakeBatch({}, {})

        def get_caller_identity(self) -> dict[str, str]:
            made.append("identity")
            return {"Account": ACCOUNT.account_id}

    monkeypatch.setattr("boto3.Session", Session)
    guard = RunGuard(ACCOUNT, allow_interruption=True)
    clients = {id(guard._client()) for _ in range(3)}
    assert (len(clients), made) == (1, ["sts", "identity", "batch"])


def test_an_update_that_deletes_an_idle_queue_or_none_is_not_refused() -> None:
    Guard(0).check_removals([], fair_share=False)
    Guard(3).check_removals(["c5a-large"], fair_share=False)

"""What a status says of a sweep as a whole."""

import pytest

from submitter.history import Generation
from submitter.status import SweepStatus


def status(*, under_way: bool, **counts: int) -> SweepStatus:
    return SweepStatus(sweep="ada/first", generation=Generation([]), counts=counts, under_way=under_way)


@pytest.mark.parametrize("counts", [{"succeeded": 3}, {"failed": 1, "succeeded": 2}, {"unknown": 1}, {"cancelled": 1}])
def test_what_has_ended_is_over_unless_a_job_itself_has_not_ended(counts: dict[str, int]) -> None:
    """The summary that an array gives of its children may be ahead of the array."""
    assert status(under_way=False, **counts).over
    assert not status(under_way=True, **counts).over


@pytest.mark.parametrize("state", ["running", "runnable", "starting", "pending", "submitted", "deciding"])
def test_what_may_still_change_is_not_over(state: str) -> None:
    assert not status(under_way=False, **{state: 1, "succeeded": 2}).over

"""Telling a process of this machine that is gone from one that is not, or may not be."""

from dataclasses import replace

from submitter.writer import Writer

NO_SUCH_PROCESS = 2**22 + 1
"""Above the largest process number of Linux and macOS."""


def test_this_process_is_not_gone() -> None:
    assert not Writer.here().is_gone()


def test_a_process_that_is_not_there_is_gone() -> None:
    assert replace(Writer.here(), pid=NO_SUCH_PROCESS).is_gone()


def test_a_process_number_that_was_used_again_does_not_bring_its_first_owner_back() -> None:
    assert replace(Writer.here(), started="long ago").is_gone()


def test_nothing_is_known_of_a_process_of_another_machine() -> None:
    assert not replace(Writer.here(), host="elsewhere 01234567", pid=NO_SUCH_PROCESS).is_gone()


def test_two_commands_of_one_process_are_told_apart() -> None:
    assert Writer.here() != Writer.here()

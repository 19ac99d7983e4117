"""What holds for every test."""

import signal

import pytest


@pytest.fixture(scope="session", autouse=True)
def _interrupts_reach_commands() -> None:
    """Let Ctrl-C reach the commands that tests start, also where the tests run in the background of a script.

    A shell without job control starts what it puts into the background with SIGINT ignored, and that is inherited.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)

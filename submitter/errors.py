"""One exception type for each exit code. A message is one sentence; the remedy, where there is one, a second line."""

from typing import ClassVar

EXIT_DONE = 0
EXIT_RUNS_FAILED = 1
EXIT_DECLINED = 1
EXIT_USAGE = 2
EXIT_CONFIGURATION = 3
EXIT_AWS = 4
EXIT_TIMEOUT = 124
EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141
"""As shells tell of a program that SIGPIPE has ended, which is how others end when nobody reads on."""


class SubmitterError(Exception):
    """What goes wrong in a way that the user can act on: shown without a traceback.

    Args:
        message: One clear sentence that says what is wrong.
        remedy: What to do about it; printed as a second line.
    """

    exit_code: ClassVar[int] = EXIT_AWS

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}\n{self.remedy}"


class RunsFailedError(SubmitterError):
    """Runs ended as failed or were cancelled (`run --wait`, `wait`)."""

    exit_code = EXIT_RUNS_FAILED


class UsageError(SubmitterError):
    """The command line asks for something that does not make sense or can never work."""

    exit_code = EXIT_USAGE


class ConfigurationError(SubmitterError):
    """The stack, the configuration or the credentials are missing or do not fit."""

    exit_code = EXIT_CONFIGURATION


class AwsError(SubmitterError):
    """AWS refused a call, or could not be reached."""

    exit_code = EXIT_AWS


class WaitTimeoutError(SubmitterError):
    """The time that the user allowed for waiting is up; the runs go on."""

    exit_code = EXIT_TIMEOUT

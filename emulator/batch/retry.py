"""Whether a failed attempt is followed by another: pure.

Source: AWS Batch API Reference, EvaluateOnExit and RetryStrategy; Batch user guide, "Automated job retries".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How an attempt ended, as the conditions of a retry strategy see it."""

    exit_code: int | None = None
    reason: str | None = None
    status_reason: str | None = None


def retries(strategy: Mapping[str, Any], attempts_made: int, outcome: Outcome) -> bool:
    """Whether Batch makes another attempt after this one failed.

    The first condition that matches decides; without a match, or without conditions, the attempts that are left do.
    Cancelled, terminated and timed-out attempts are never retried and are not asked about here.

    Args:
        strategy: A RetryStrategy in the API's shape.
        attempts_made: How many attempts there have been, this one included.
        outcome: How this one ended.
    """
    if attempts_made >= strategy.get("attempts", 1):
        return False
    for condition in strategy.get("evaluateOnExit", ()):
        if _holds(condition, outcome):
            # "The values aren't case sensitive": EvaluateOnExit, AWS Batch API reference.
            return str(condition["action"]).upper() == "RETRY"
    return True


def _holds(condition: Mapping[str, Any], outcome: Outcome) -> bool:
    """Whether every pattern of a condition matches; a value that an attempt does not have counts as empty."""
    exit_code = "" if outcome.exit_code is None else str(outcome.exit_code)
    seen = {"onExitCode": exit_code, "onReason": outcome.reason or "", "onStatusReason": outcome.status_reason or ""}
    return all(_matches(condition[name], value) for name, value in seen.items() if name in condition)


def _matches(pattern: str, value: str) -> bool:
    """Match the whole value, or its beginning when the pattern ends with an asterisk."""
    return value.startswith(pattern[:-1]) if pattern.endswith("*") else value == pattern

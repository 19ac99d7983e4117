"""Batch's account of a job, in words. Pure."""

import math
from collections.abc import Mapping
from typing import Any, Final, Literal

FINAL: Final[frozenset[Literal["SUCCEEDED", "FAILED"]]] = frozenset({"SUCCEEDED", "FAILED"})
"""The statuses that a job, an array or a child never leaves."""

SPOT_RECLAIMED: Final = "Spot interruption: EC2 has reclaimed the instance"

CANCEL_REASON: Final = "cancelled by `submitter cancel`"
"""What Batch is told when a run is cancelled, and gives back as its status reason."""

_GENERIC: Final = frozenset({"Essential container in task exited", "Array Child Job failed"})
"""Status reasons that say nothing beyond the status."""


def state(job: Mapping[str, Any], *, told: float | None = None) -> str:
    """Return a job's status in lower case, or `cancelled` where that is how it failed.

    Args:
        job: A job of DescribeJobs, or a summary of ListJobs.
        told: When its run was told to end by a cancel, in seconds since the epoch by AWS's clock; None when it was not.
            Batch may have words of its own for why such a job ended, and what had ended before has an end of its own.
    """
    return "cancelled" if _cancelled(job, told) else str(job["status"]).lower()


def reason(job: Mapping[str, Any], *, spot: bool, told: float | None = None) -> str | None:
    """Return why a job is as it is, or None when there is nothing to say.

    Args:
        job: A job of DescribeJobs, or a summary of ListJobs.
        spot: Whether its queue runs on Spot instances.
        told: As for :func:`state`.
    """
    if job["status"] == "SUCCEEDED" or _cancelled(job, told):
        return None
    if job["status"] != "FAILED" and (attempts := job.get("attempts")):
        why = _reason(attempts[-1], spot=spot) or "failed"
        waits = job.get("statusReason") if job["status"] == "RUNNABLE" else None
        return f"attempt {len(attempts)}: {why}" + (f"; {waits}" if waits and not _host_lost(waits) else "")
    return _reason(job, spot=spot)


def attempts(job: Mapping[str, Any]) -> int:
    """Return how many attempts a job of DescribeJobs has begun; `attempts` lists those that have ended."""
    under_way = job["status"] in {"STARTING", "RUNNING"}
    return len(job.get("attempts", ())) + under_way


def log_streams(job: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return the log stream of each attempt that has one, after the attempt's number.

    The stream of an attempt that goes on is the container's (JobDetail, ContainerDetail in the Batch API reference).
    """
    ended = job.get("attempts", ())
    streams = [
        (number, attempt["container"]["logStreamName"])
        for number, attempt in enumerate(ended, 1)
        if attempt.get("container", {}).get("logStreamName")
    ]
    newest = job.get("container", {}).get("logStreamName")
    if newest and newest not in (name for _, name in streams):
        streams.append((len(ended) + (job["status"] not in FINAL), newest))
    return streams


def _reason(attempt: Mapping[str, Any], *, spot: bool) -> str | None:
    """Return why an attempt, or a job by its last attempt, ended or waits."""
    status, container = attempt.get("statusReason"), attempt.get("container", {})
    if status and _host_lost(status):
        return SPOT_RECLAIMED if spot else f"the instance was lost: {status}"
    words = [] if not status or status in _GENERIC else [status]
    if said := container.get("reason"):
        words.append(said)
    elif container.get("exitCode"):
        words.append(f"exit code {container['exitCode']}")
    return "; ".join(words) or None


def _cancelled(job: Mapping[str, Any], told: float | None) -> bool:
    if job["status"] != "FAILED":
        return False
    if job.get("statusReason") == CANCEL_REASON:
        return True
    never_exited = job.get("container", {}).get("exitCode") is None
    return told is not None and never_exited and job.get("stoppedAt", math.inf) / 1000 >= told


def _host_lost(status_reason: str) -> bool:
    """Tell whether Batch says that the host went away ("Automated job retries" in the Batch user guide)."""
    return status_reason.startswith("Host EC2")

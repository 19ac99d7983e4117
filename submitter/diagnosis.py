"""Why runs wait, in words: facts about the account in, findings out. Pure.

AWS's own reasons come first, then what the queue, its environments and its head show; only then what is likely.
Sources: "Jobs stuck in a RUNNABLE status", "INVALID compute environment" and "Job queue parameters" in the AWS Batch
user guide.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from submitter.blocked import explain, reason_of
from submitter.facts import Environment, Waiting
from submitter.render import count, duration

TIME_LIMIT: Final = "Canceled by JobStateTimeLimit action due to reason: "
"""What the status reason of a job begins with that a queue has cancelled because it waited too long."""

_BOOT_SECONDS: Final = 600
"""An instance usually takes minutes to start and to join its cluster; longer than this is no longer usual."""

_QUOTAS: Final = (
    "Look at the account's EC2 quotas (a new account may have 5 On-Demand vCPUs, and none for GPU Spot instances) and "
    "at the Auto Scaling group's activity in the EC2 console."
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One reason, as a sentence, and what to do about it."""

    sentence: str
    remedy: str


def diagnose(waiting: Waiting) -> list[Finding]:
    """Return why the runs wait, the surest reason first; never nothing."""
    if not waiting.exists:
        sentence = f"The queue {waiting.queue} does not exist any more."
        return [
            Finding(sentence=sentence, remedy="Deploy it again (`pulumi up`), or `submitter run` on another queue.")
        ]
    if not waiting.runs:
        return [*_lagging(waiting)]
    found = [*_lagging(waiting), *_starting(waiting), *_closed(waiting)]
    if set(waiting.runs) <= {"starting"} or (found and all(map(_unusable, waiting.environments))):
        return found
    return [*found, *(_behind(waiting) or _first(waiting) or [_unknown(waiting)])]


def not_with_aws(counts: Mapping[str, int]) -> list[Finding]:
    """Return what is to be said of runs that wait for nobody, since AWS does not have them.

    Args:
        counts: How many runs have each status.
    """
    found = []
    if number := counts.get("deciding"):
        found.append(
            Finding(
                sentence=f"Whether AWS has taken {count(number, 'run')} is not known yet: its answer was lost.",
                remedy="Ask again: it is known some minutes after the submission at the latest.",
            )
        )
    if number := counts.get("not submitted"):
        found.append(
            Finding(
                sentence=f"AWS does not have {count(number, 'run')}: it refused them, or their submission was cut.",
                remedy="Type the same `submitter run` line again: it submits what is missing.",
            )
        )
    if number := counts.get("unknown"):
        found.append(
            Finding(
                sentence=f"AWS has forgotten {count(number, 'run')} before anybody saw how they ended.",
                remedy="Look at their results; `submitter run --new` begins the sweep afresh.",
            )
        )
    return found


def cancelled_for_waiting(reasons: Mapping[str, int]) -> list[Finding]:
    """Return what is to be said of runs that the queue has cancelled because they had waited too long at its head.

    Args:
        reasons: How many runs have failed for which reason.
    """
    return [
        Finding(
            sentence=f"The queue has cancelled {count(number, 'run')} after a time limit for waiting for this reason: "
            f"{reason.removeprefix(TIME_LIMIT)}",
            remedy="`submitter retry` submits them again, --queue on another queue; the stack's setting "
            "jobStateTimeLimitActions says how long runs may wait for which reason.",
        )
        for reason, number in reasons.items()
        if reason.startswith(TIME_LIMIT)
    ]


def _lagging(waiting: Waiting) -> Iterator[Finding]:
    if number := waiting.lagging:
        yield Finding(
            sentence=f"AWS counts {count(number, 'run')} as waiting but lists none that waits: its count lags behind.",
            remedy="`submitter status --runs` tells how each of them stands.",
        )


def _starting(waiting: Waiting) -> Iterator[Finding]:
    if starting := waiting.runs.get("starting"):
        yield Finding(
            sentence=f"An instance has been found for {count(starting, 'run')}: the image is pulled, the run starts.",
            remedy="Wait; a large image takes minutes on each new instance.",
        )


def _closed(waiting: Waiting) -> Iterator[Finding]:
    """Say what keeps the whole queue from starting runs."""
    if waiting.status == "INVALID":
        yield Finding(
            sentence=f"The queue {waiting.queue} is INVALID: {waiting.status_reason}",
            remedy="Mend what AWS names, then `pulumi up`.",
        )
    if waiting.state == "DISABLED":
        yield Finding(
            sentence=f"The queue {waiting.queue} is disabled: it takes no new runs, and starts those that it has.",
            remedy=f"`aws batch update-job-queue --state ENABLED --job-queue {waiting.queue}`, or "
            "`pulumi up --refresh`.",
        )
    for environment in waiting.environments:
        if environment.status == "INVALID":
            yield Finding(
                sentence=f"The environment {environment.name} is INVALID: {environment.status_reason}",
                remedy="Mend what AWS names and run `pulumi up`; the runs then start by themselves.",
            )
        elif environment.state == "DISABLED":
            yield Finding(
                sentence=f"The environment {environment.name} is disabled and starts no run.",
                remedy="`aws batch update-compute-environment --state ENABLED --compute-environment "
                f"{environment.name}`, or `pulumi up --refresh`.",
            )


def _unusable(environment: Environment) -> bool:
    return environment.status == "INVALID" or environment.state == "DISABLED"


def _behind(waiting: Waiting) -> list[Finding]:
    """Say that others are before these runs, and why those wait; nothing when the head is one of these."""
    head = waiting.head
    if head is None or head.own:
        return []
    if head.older:
        first = Finding(
            sentence=f"Runs of this sweep from before --new are before these at the head of {waiting.queue}.",
            remedy=f"Wait for them; or `submitter cancel {head.sweep}` ends them, and these with them, which "
            f"`submitter retry {head.sweep}` then sends again.",
        )
        return [first, *_first(replace(waiting, need=head.need))]
    if head.sweep is None:
        sentence, look = f"The job {head.job}, which is of no sweep, is at the head of {waiting.queue}", ""
    else:
        sentence, look = (
            f"The sweep {head.sweep} is at the head of {waiting.queue}",
            f", see `submitter why {head.sweep}`",
        )
    why = f" and waits itself: {head.status_reason.rstrip('.')}" if head.status_reason else ""
    first = Finding(
        sentence=f"{sentence}{why}.",
        remedy=f"AWS places one job after the other: wait{look}, or submit to another queue.",
    )
    return [first, *_full(waiting)]


def _first(waiting: Waiting) -> list[Finding]:
    """Say why the first of the queue's runs waits: AWS's own reason, else what is seen."""
    words = waiting.head.status_reason if waiting.head else ""
    reason = reason_of(words)
    found = [*_bid(waiting), *(_aws_says(waiting, words) if words else _full(waiting))]
    if found and reason in waiting.limits:
        found.append(
            Finding(
                sentence=f"The queue cancels a run that has been its head for {duration(waiting.limits[reason])} for "
                "this reason.",
                remedy="`submitter retry` submits what was cancelled; the stack's setting jobStateTimeLimitActions "
                "says how long runs may wait.",
            )
        )
    return found


def _aws_says(waiting: Waiting, words: str) -> Iterator[Finding]:
    sentence, remedy = explain(waiting, words)
    yield Finding(sentence=sentence, remedy=remedy)


def _bid(waiting: Waiting) -> Iterator[Finding]:
    """Say that Spot instances cost more than the environment pays, or that this cannot be told."""
    price = waiting.price
    for environment in waiting.environments:
        if not environment.spot or environment.bid_percentage >= 100 or price is None:
            continue
        share = f"{environment.bid_percentage} % of the On-Demand price"
        remedy = (
            "Raise the stack's setting spotBidPercentage (100 costs no more than the Spot price of the moment), or use "
            "the On-Demand queue."
        )
        if price.spot is None or price.on_demand is None:
            yield Finding(
                sentence=f"{environment.name} pays {share} at most; whether Spot costs more at present is not known.",
                remedy=remedy,
            )
        elif price.spot > (bid := price.on_demand * environment.bid_percentage / 100):
            yield Finding(
                sentence=f"Spot costs ${price.spot:.4f} an hour at least, and {environment.name} pays ${bid:.4f} at "
                f"most: {share}, ${price.on_demand:.4f}.",
                remedy=remedy,
            )


def _full(waiting: Waiting) -> Iterator[Finding]:
    size = waiting.hardware.vcpus if waiting.hardware else waiting.need.vcpus
    for environment in waiting.environments:
        if not _unusable(environment) and environment.desired_vcpus + size > environment.max_vcpus:
            yield Finding(
                sentence=f"{environment.name} is at its limit: {environment.desired_vcpus} of {environment.max_vcpus} "
                "vCPUs are in use.",
                remedy="Wait for runs to end, or raise the stack's setting maxVcpus and `pulumi up`.",
            )


def _unknown(waiting: Waiting) -> Finding:
    """Say that no reason is known, and what is likely."""
    asked = "" if waiting.front_known else ", and the queue's front could not be read"
    if waiting.waited_seconds < _BOOT_SECONDS:
        return Finding(
            sentence=f"AWS gives no reason{asked}. The runs have waited for {duration(waiting.waited_seconds)}, and "
            "starting an instance takes some minutes: probably nothing is wrong.",
            remedy="Wait, then ask again.",
        )
    return Finding(
        sentence=f"AWS gives no reason{asked}, and none is seen in the queue and its environments: why the runs have "
        f"waited for {duration(waiting.waited_seconds)} is not known.",
        remedy=_QUOTAS,
    )

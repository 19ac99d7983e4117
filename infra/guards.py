"""Refusals of `pulumi up` for the sake of runs that are unfinished.

Deleting a queue ends its jobs, and AWS ends those on an environment that is replaced. Updates come to that without
saying so, hence these guards. `pulumi destroy` is not guarded: it says what it does.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from infra.facts import Account

_QUEUE: Final = "aws:batch/jobQueue:JobQueue"
_ON_HOSTS: Final = ("STARTING", "RUNNING")
_UNFINISHED: Final = ("SUBMITTED", "PENDING", "RUNNABLE", *_ON_HOSTS)
_DESCRIBE_LIMIT: Final = 100

# All that Batch changes without replacing hosts (AWS Batch User Guide, "Perform scaling updates").
_SCALING: Final = frozenset({"desiredVcpus", "maxVcpus", "minVcpus"})

_OVERRIDE: Final = "`pulumi config set allowInterruption true`"


@dataclass(frozen=True)
class DeployedQueue:
    """A queue as the stack has it before an update."""

    name: str
    fair_share: bool


def deployed_queues(resources: Mapping[str, Mapping[str, Any]]) -> dict[str, DeployedQueue]:
    """Return the queues among a stack's resources (outputs by URN), by name."""
    found = [
        DeployedQueue(outputs["name"], bool(outputs.get("schedulingPolicyArn")))
        for urn, outputs in resources.items()
        if urn.split("::")[2].rpartition("$")[2] == _QUEUE and "name" in outputs
    ]
    return {queue.name: queue for queue in found}


def removed_queues(deployed: Iterable[DeployedQueue], wanted: Iterable[str], *, fair_share: bool) -> list[str]:
    """Return the names of the queues that an update deletes, those that it makes anew included."""
    kept = set(wanted)
    return sorted(queue.name for queue in deployed if queue.name not in kept or queue.fair_share != fair_share)


def replaces_hosts(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether an update of a compute environment's inputs replaces its hosts."""
    before, after = (
        {k: v for k, v in inputs["computeResources"].items() if k not in _SCALING} for inputs in (old, new)
    )
    return before != after


def unfinished_runs(batch: Any, queue: str, statuses: Iterable[str] = _UNFINISHED) -> int:
    """Count the runs of a queue that are in one of these states, with the client of AWS Batch.

    An array job waits as PENDING while its children run, so its children are counted by its own summary.
    """
    wanted = set(statuses)
    count, arrays = 0, []
    for status in sorted({*wanted, "PENDING"}):
        pages = batch.get_paginator("list_jobs").paginate(jobQueue=queue, jobStatus=status)
        for job in (job for page in pages for job in page["jobSummaryList"]):
            if "size" in job.get("arrayProperties", {}):
                arrays.append(job["jobId"])
            elif status in wanted:
                count += 1
    for start in range(0, len(arrays), _DESCRIBE_LIMIT):
        for job in batch.describe_jobs(jobs=arrays[start : start + _DESCRIBE_LIMIT])["jobs"]:
            summary = job["arrayProperties"].get("statusSummary", {})
            count += sum(number for status, number in summary.items() if status in wanted)
    return count


class RunGuard:
    """Looks at the live queues before an update does what would end runs there.

    Args:
        account: Where the stack lives.
        allow_interruption: Whether to look at nothing and refuse nothing.
    """

    def __init__(self, account: Account, *, allow_interruption: bool) -> None:
        self._account = account
        self._active = not allow_interruption
        self._deployed = _deployed() if self._active else {}

    def check_removals(self, wanted: Iterable[str], *, fair_share: bool) -> None:
        """Refuse an update that deletes queues with unfinished runs; a preview only says that it will be refused.

        Raises:
            pulumi.RunError: There are such runs, or nobody can tell.
        """
        removed = removed_queues(self._deployed.values(), wanted, fair_share=fair_share)
        problems = [problem for queue in removed if (problem := self._problem(queue, _UNFINISHED, "delete the queue"))]
        if problems and pulumi.runtime.is_dry_run():
            pulumi.log.warn(f"`pulumi up` will refuse this: {' '.join(problems)}")
        elif problems:
            raise pulumi.RunError(" ".join(problems))

    def hooks(self, queue: str) -> pulumi.ResourceHookBinding | None:
        """Return hooks for the environment of a queue, which refuse to replace it or its hosts under running runs."""
        if queue not in self._deployed:
            return None

        async def look(args: pulumi.ResourceHookArgs) -> None:
            if args.old_inputs is None:  # another environment is made for a queue that is there
                action = "replace the environment"
            elif replaces_hosts(args.old_inputs, args.new_inputs or {}):
                action = "replace the hosts"
            else:
                return
            if problem := await asyncio.to_thread(self._problem, queue, _ON_HOSTS, action):
                raise pulumi.RunError(problem)

        hook = pulumi.ResourceHook(f"runs-on-{queue}", look)
        return pulumi.ResourceHookBinding(before_create=[hook], before_update=[hook])

    def _problem(self, queue: str, statuses: Iterable[str], action: str) -> str | None:
        """Return why an update must not do something to a queue now, if anything."""
        try:
            count = unfinished_runs(self._client(), queue, statuses)
        except Exception as error:  # noqa: BLE001 - whatever is wrong, the answer is the same
            return (
                f"This update would {action} of {queue}, and whether runs are unfinished there is unknown ({error}); "
                f"if none is, use {_OVERRIDE}."
            )
        if not count:
            return None
        state = "are unfinished" if set(statuses) == set(_UNFINISHED) else "are running"
        return (
            f"{count} runs {state} on {queue}, and this update would {action}; wait for them, end them with "
            f"`submitter cancel`, or let the update end them: {_OVERRIDE}."
        )

    def _client(self) -> Any:
        """Return a client of AWS Batch; the program has no other way to ask for jobs.

        Raises:
            PermissionError: The credentials that boto3 finds are of another account than the provider's.
        """
        import boto3  # noqa: PLC0415 - it takes half a second, and most updates need none

        session = boto3.Session(profile_name=pulumi.Config("aws").get("profile"), region_name=self._account.region)
        account_id = session.client("sts").get_caller_identity()["Account"]
        if account_id != self._account.account_id:
            raise PermissionError(f"the AWS credentials of this shell are of account {account_id}")
        return session.client("batch")


def name_hint(queue: str) -> pulumi.ResourceHookBinding:
    """Return a hook that says what to do when the name of a queue is taken."""

    def hint(args: pulumi.ErrorHookArgs) -> bool:
        if args.failed_operation == "create" and any("already exists" in error for error in args.errors):
            pulumi.log.error(
                f"A queue {queue} is in this account and region already, made by another stack or by hand; give this "
                "stack names of its own with `pulumi config set queuePrefix NAME`."
            )
        return False  # not again

    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook(f"name-of-{queue}", hint)])


def _deployed() -> dict[str, DeployedQueue]:
    """Ask the engine for the queues of this stack as the last update left them; there may have been none."""
    name = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
    reply = pulumi.runtime.invoke("pulumi:pulumi:readStackResourceOutputs", {"stackName": name}).value
    return deployed_queues((reply or {}).get("outputs") or {})

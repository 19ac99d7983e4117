"""Refusals of `pulumi up` for the sake of runs that are unfinished.

Deleting a queue ends its jobs, and AWS ends those on an environment that is replaced. Updates come to that without
saying so, hence these guards. `pulumi destroy` is not guarded: it says what it does.
"""

import asyncio
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pulumi

from infra.facts import Account

_ON_HOSTS: Final = ("STARTING", "RUNNING")
_UNFINISHED: Final = ("SUBMITTED", "PENDING", "RUNNABLE", *_ON_HOSTS)
_DESCRIBE_LIMIT: Final = 100

# All that Batch changes without replacing hosts (AWS Batch User Guide, "Perform scaling updates").
_SCALING: Final = frozenset({"desiredVcpus", "maxVcpus", "minVcpus"})

_OVERRIDE: Final = "`pulumi config set allowInterruption true`"


def removed_queues(deployed: Mapping[str, Mapping[str, Any]], wanted: Iterable[str], *, fair_share: bool) -> list[str]:
    """Return the names of the queues that an update deletes, those that it makes anew included.

    Args:
        deployed: The contract's rows of the queues that there are, by name.
        wanted: Names of the queues that there are to be.
        fair_share: Whether those are to share their instances between users.
    """
    kept = set(wanted)
    return sorted(name for name, row in deployed.items() if name not in kept or row["fair_share"] != fair_share)


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
        self._batch: Any = None
        self._making = threading.Lock()
        self._deployed = {} if allow_interruption else _deployed()

    def check_removals(self, wanted: Iterable[str], *, fair_share: bool) -> None:
        """Refuse an update that deletes queues with unfinished runs; a preview only says that it will be refused.

        Raises:
            pulumi.RunError: There are such runs, or nobody can tell.
        """
        removed = removed_queues(self._deployed, wanted, fair_share=fair_share)
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
                await self._refuse([queue], "replace the environment")
            elif replaces_hosts(args.old_inputs, args.new_inputs or {}):
                await self._refuse([queue], "replace the hosts")

        hook = pulumi.ResourceHook(f"runs-on-{queue}", look)
        return pulumi.ResourceHookBinding(before_create=[hook], before_update=[hook])

    def template_hooks(self) -> pulumi.ResourceHookBinding | None:
        """Return hooks for the launch template, which refuse another version of it while runs are running anywhere.

        Else the version would be there when the environments refuse it, and taking the change back would not help.
        """
        if not self._deployed:
            return None

        async def look(args: pulumi.ResourceHookArgs) -> None:
            if _untagged(args.old_inputs) != _untagged(args.new_inputs):
                await self._refuse(sorted(self._deployed), "replace the hosts")

        return pulumi.ResourceHookBinding(before_update=[pulumi.ResourceHook("runs-on-hosts", look)])

    async def _refuse(self, queues: Iterable[str], action: str) -> None:
        looks = (asyncio.to_thread(self._problem, queue, _ON_HOSTS, action) for queue in queues)
        if problems := [problem for problem in await asyncio.gather(*looks) if problem]:
            raise pulumi.RunError(" ".join(problems))

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
        state = "running" if statuses == _ON_HOSTS else "unfinished"
        return (
            f"{count} {'run is' if count == 1 else 'runs are'} {state} on {queue}, and this update would {action}; "
            f"wait, end what is there with `submitter cancel`, or let the update end it: {_OVERRIDE}."
        )

    def _client(self) -> Any:
        """Return the client of AWS Batch, for all threads; the program has no other way to ask for jobs.

        Raises:
            PermissionError: The credentials that boto3 finds are of another account than the provider's.
        """
        import boto3  # noqa: PLC0415 - it takes half a second, and most updates need none

        with self._making:
            if self._batch is None:
                profile = pulumi.Config("aws").get("profile")
                session = boto3.Session(profile_name=profile, region_name=self._account.region)
                account_id = session.client("sts").get_caller_identity()["Account"]
                if account_id != self._account.account_id:
                    raise PermissionError(f"the AWS credentials of this shell are of account {account_id}")
                self._batch = session.client("batch")
            return self._batch


def _untagged(inputs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a launch template's versions consist of."""
    return {name: value for name, value in (inputs or {}).items() if name != "tags"}


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


def _deployed() -> Mapping[str, Mapping[str, Any]]:
    """Ask the engine for the contract's queues as the last update of this stack left them; there may be none yet."""
    name = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
    reply = pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", {"name": name}).value
    return (reply or {}).get("outputs", {}).get("queues") or {}

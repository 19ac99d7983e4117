"""Tags of everything in Batch that has an ARN and tags."""

from collections.abc import Callable

from emulator.batch.refusals import check_tags, plainly_refused
from emulator.batch.state import State


class Tagging:
    """The operations on tags, each a method that runs on the event loop.

    Args:
        state: The control plane's records.
        job_tags: Finds the tags of a job by its id; None when there is no such job.
    """

    def __init__(self, state: State, job_tags: Callable[[str], dict[str, str] | None]) -> None:
        self._state = state
        self._job_tags = job_tags

    def tag_resource(self, resourceArn: str, tags: dict[str, str]) -> dict[str, object]:  # noqa: N803
        """Add tags; a key that is there gets the new value."""
        found = self._tags(resourceArn)
        check_tags({**found, **tags})
        found.update(tags)
        return {}

    def untag_resource(self, resourceArn: str, tagKeys: list[str]) -> dict[str, object]:  # noqa: N803
        """Remove tags; keys that are not there do not matter."""
        found = self._tags(resourceArn)
        for key in tagKeys:
            found.pop(key, None)
        return {}

    def list_tags_for_resource(self, resourceArn: str) -> dict[str, object]:  # noqa: N803
        """Return the tags."""
        return {"tags": dict(self._tags(resourceArn))}

    def _tags(self, arn: str) -> dict[str, str]:
        kind, _, name = arn.rpartition(":batch:")[2].partition(":")[2].partition(":")[2].partition("/")
        state = self._state
        of_name, _, revision = name.partition(":")
        if kind == "job" and (tags := self._job_tags(name)) is not None:
            return tags
        found = {
            "compute-environment": state.environments.get(name),
            "job-queue": state.queues.get(name),
            "scheduling-policy": state.policies.get(name),
            "job-definition": state.definitions.get(of_name, {}).get(int(revision) if revision.isdecimal() else 0),
        }.get(kind)
        if found is None:
            raise plainly_refused(f"Resource {arn} does not exist")
        return found.tags

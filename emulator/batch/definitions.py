"""Job definitions: registered in revisions, looked up by name, name:revision or ARN, never deleted by a request."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from emulator.batch.definition_rules import check_definition
from emulator.batch.paging import page
from emulator.batch.refusals import check_name, check_tags, plainly_refused
from emulator.batch.state import JobDefinition, State

if TYPE_CHECKING:
    from emulator.account import Account

# What a container has in Batch's answers although it was not sent.
_CONTAINER_DEFAULTS: dict[str, Any] = {
    "command": [],
    "volumes": [],
    "environment": [],
    "mountPoints": [],
    "ulimits": [],
    "resourceRequirements": [],
    "secrets": [],
}


class Definitions:
    """The operations on job definitions, each a method that runs on the event loop."""

    def __init__(self, state: State, account: "Account") -> None:
        self._all = state.definitions
        self._account = account

    def register_job_definition(self, **request: Any) -> dict[str, Any]:
        """Register the next revision of a definition."""
        name = request["jobDefinitionName"]
        check_name("jobDefinitionName", name)
        check_tags(request.get("tags", {}))
        check_definition(request)
        revisions = self._all.setdefault(name, {})
        revision = max(revisions, default=0) + 1
        arn = self._account.arn("batch", f"job-definition/{name}:{revision}")
        accepted = {key: value for key, value in request.items() if key not in ("tags", "jobDefinitionName")}
        accepted["containerProperties"] = {**_CONTAINER_DEFAULTS, **request["containerProperties"]}
        revisions[revision] = JobDefinition(
            name=name,
            revision=revision,
            arn=arn,
            status="ACTIVE",
            registered={"parameters": {}, "propagateTags": False, "platformCapabilities": ["EC2"], **accepted},
            tags=dict(request.get("tags", {})),
        )
        return {"jobDefinitionName": name, "jobDefinitionArn": arn, "revision": revision}

    def deregister_job_definition(self, jobDefinition: str) -> dict[str, Any]:  # noqa: N803
        """Make one revision INACTIVE; jobs that have it go on."""
        name, _, revision = jobDefinition.rpartition("/")[2].partition(":")
        if not revision.isdecimal():
            raise plainly_refused(f"{jobDefinition} must be an ARN or a name with its revision")
        found = self._all.get(name, {}).get(int(revision))
        if found is None:
            raise plainly_refused(f"Job definition {jobDefinition} does not exist")
        found.status = "INACTIVE"
        return {}

    def describe_job_definitions(
        self,
        jobDefinitions: list[str] | None = None,  # noqa: N803
        maxResults: int | None = None,  # noqa: N803
        jobDefinitionName: str | None = None,  # noqa: N803
        status: str | None = None,
        nextToken: str | None = None,  # noqa: N803
    ) -> dict[str, Any]:
        """Describe the revisions that are named, or a page of those of a name and status."""
        if jobDefinitions:
            if any((maxResults, jobDefinitionName, nextToken)):
                raise plainly_refused("jobDefinitions can't be used with other parameters.")
            found = {each.arn: each for key in jobDefinitions for each in self._named(key)}
            return {"jobDefinitions": [_detail(each) for each in found.values() if status in (None, each.status)]}
        name = jobDefinitionName
        revisions = self._all.values() if name is None else [self._all.get(name, {})]
        by_key = {
            f"{each.name}:{each.revision:09}": each
            for of_name in revisions
            for each in of_name.values()
            if status in (None, each.status)
        }
        keys, more = page(by_key, maxResults, nextToken)
        return {"jobDefinitions": [_detail(by_key[key]) for key in keys], **more}

    def _named(self, key: str) -> Iterator[JobDefinition]:
        """Yield the revisions that a name, name:revision or ARN means; a name alone means all of them."""
        name = key.rpartition("/")[2].partition(":")[0]
        for each in self._all.get(name, {}).values():
            if key in (each.arn, f"{each.name}:{each.revision}", each.name):
                yield each


def _detail(definition: JobDefinition) -> dict[str, Any]:
    return {
        "jobDefinitionName": definition.name,
        "jobDefinitionArn": definition.arn,
        "revision": definition.revision,
        "status": definition.status,
        "containerOrchestrationType": "ECS",
        "tags": dict(definition.tags),
        **definition.registered,
    }

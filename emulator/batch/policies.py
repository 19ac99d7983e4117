"""Scheduling policies of fair-share queues. Source: FairsharePolicy and ShareAttributes, AWS Batch API reference."""

import re
from typing import TYPE_CHECKING, Any

from emulator.batch.paging import page
from emulator.batch.refusals import check_name, check_supported, check_tags, check_within, plainly_refused, refused
from emulator.batch.state import SchedulingPolicy, State

if TYPE_CHECKING:
    from emulator.account import Account

_WEEK_SECONDS = 604_800
_QUOTA = 500  # Source: "AWS Batch service quotas", AWS Batch user guide.
_SHARE = re.compile(r"[A-Za-z0-9]{1,255}\*?")


class SchedulingPolicies:
    """The operations on scheduling policies, each a method that runs on the event loop."""

    def __init__(self, state: State, account: "Account") -> None:
        self._state = state
        self._policies = state.policies
        self._account = account

    def create_scheduling_policy(self, **request: Any) -> dict[str, Any]:
        """Create a policy; it is there at once."""
        name = request["name"]
        check_name("name", name)
        check_tags(request.get("tags", {}))
        check_supported(request, ("quotaSharePolicy",))
        if name in self._policies:
            raise plainly_refused("Object already exists")
        if len(self._policies) >= _QUOTA:
            raise refused(f"Account has reached the limit of {_QUOTA} scheduling policies")
        policy = SchedulingPolicy(
            name=name,
            arn=self._account.arn("batch", f"scheduling-policy/{name}"),
            fairshare_policy=_checked(request.get("fairsharePolicy", {})),
            tags=dict(request.get("tags", {})),
        )
        self._policies[name] = policy
        return {"name": name, "arn": policy.arn}

    def update_scheduling_policy(self, arn: str, **request: Any) -> dict[str, Any]:
        """Replace what the policy says."""
        policy = self._state.policy(arn)
        if policy is None:
            raise refused(f"Scheduling policy {arn} does not exist")
        check_supported(request, ("quotaSharePolicy",))
        policy.fairshare_policy = _checked(request.get("fairsharePolicy", {}))
        return {}

    def delete_scheduling_policy(self, arn: str) -> dict[str, Any]:
        """Delete a policy that no queue uses; one that does not exist is deleted already."""
        policy = self._state.policy(arn)
        if policy is None:
            return {}
        if any(queue.scheduling_policy_arn == arn for queue in self._state.queues.values()):
            raise plainly_refused("Cannot delete, found existing JobQueue relationship")
        del self._policies[policy.name]
        return {}

    def describe_scheduling_policies(self, arns: list[str]) -> dict[str, Any]:
        """Describe the policies that are named."""
        found = [policy for arn in arns if (policy := self._state.policy(arn))]
        return {
            "schedulingPolicies": [
                {"name": each.name, "arn": each.arn, "fairsharePolicy": each.fairshare_policy, "tags": dict(each.tags)}
                for each in found
            ]
        }

    def list_scheduling_policies(
        self,
        maxResults: int | None = None,  # noqa: N803
        nextToken: str | None = None,  # noqa: N803
    ) -> dict[str, Any]:
        """List the ARNs of a page of policies."""
        names, more = page(self._policies, maxResults, nextToken)
        return {"schedulingPolicies": [{"arn": self._policies[name].arn} for name in names], **more}


def _checked(fairshare: dict[str, Any]) -> dict[str, Any]:
    check_within("shareDecaySeconds", fairshare.get("shareDecaySeconds"), 0, _WEEK_SECONDS)
    check_within("computeReservation", fairshare.get("computeReservation"), 0, 99)
    shares = fairshare.get("shareDistribution", [])
    for share in shares:
        if not _SHARE.fullmatch(share["shareIdentifier"]):
            raise refused("A shareIdentifier has 1 to 255 letters and digits, and may end with an asterisk")
        if not 0.0001 <= share.get("weightFactor", 1.0) <= 999.9999:
            raise refused("weightFactor must be between 0.0001 and 999.9999")
    names = [share["shareIdentifier"] for share in shares]
    for name in names:
        others = [other for other in names if other is not name]
        if name in others or (name.endswith("*") and any(other.startswith(name[:-1]) for other in others)):
            raise refused("The share identifiers of a fair-share policy can't overlap")
    # AWS answers with zeros for what was not sent.
    return {"shareDecaySeconds": 0, "computeReservation": 0, "shareDistribution": [], **fairshare}

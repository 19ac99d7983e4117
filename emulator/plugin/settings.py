"""What the AWS provider is configured with: the stack's `aws:` keys, or an explicit provider's arguments."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from emulator.plugin.aws import Account, PluginError
from emulator.plugin.schema import UNKNOWN, Values

# Accepted and without effect here: the emulated account takes any credentials and has nothing to skip or to retry.
_WITHOUT_EFFECT: Final = frozenset(
    {
        "maxRetries",
        "profile",
        "retryMode",
        "skipCredentialsValidation",
        "skipMetadataApiCheck",
        "skipRegionValidation",
        "skipRequestingAccountId",
        "version",
    }
)
_SERVED: Final = frozenset({"allowedAccountIds", "defaultTags", "forbiddenAccountIds", "region"})


def _decoded(value: Any) -> Any:
    """Return a setting's value: whatever is not text arrives as JSON in text."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        return json.loads(value)
    return value


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The provider's settings that have an effect here."""

    region: str = ""
    allowed_account_ids: tuple[str, ...] = ()
    forbidden_account_ids: tuple[str, ...] = ()
    default_tags: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def failures(values: Values) -> Iterator[tuple[str, str]]:
        """Yield (setting, reason) for each setting that is not served."""
        for name in sorted(values.keys() - _SERVED - _WITHOUT_EFFECT):
            yield name, f"the stand-in AWS plugin does not serve the provider's setting {name}"

    @classmethod
    def read(cls, values: Values) -> "Settings":
        """Return the settings of a Configure request; the region is looked for in the environment too.

        Raises:
            PluginError: There is no region.
        """
        decoded = {name: _decoded(value) for name, value in values.items() if value != UNKNOWN}
        region = decoded.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not region:
            raise PluginError("no AWS region is configured: set it with `pulumi config set aws:region us-east-1`")
        return cls(
            region=region,
            allowed_account_ids=tuple(map(str, decoded.get("allowedAccountIds") or ())),
            forbidden_account_ids=tuple(map(str, decoded.get("forbiddenAccountIds") or ())),
            default_tags=(decoded.get("defaultTags") or {}).get("tags") or {},
        )

    def require_account(self, account: Account) -> None:
        """Refuse an account that the settings do not allow.

        Raises:
            PluginError: It is not among the allowed ones, or it is a forbidden one.
        """
        if not self.allowed_account_ids and not self.forbidden_account_ids:
            return
        found = account.account_id
        if found in self.forbidden_account_ids or (self.allowed_account_ids and found not in self.allowed_account_ids):
            allowed = ", ".join(self.allowed_account_ids) or "any"
            raise PluginError(f"AWS account ID not allowed: {found} (allowed by aws:allowedAccountIds: {allowed})")

    def tagged(self, tags: Any) -> Any:
        """Return a resource's tags with the provider's default ones, which the real plugin too merges in Check."""
        if tags is None or isinstance(tags, dict):
            return {**self.default_tags, **(tags or {})}
        return tags

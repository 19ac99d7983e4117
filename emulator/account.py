"""What the emulated Batch asks the rest of the account.

Everything here reads moto's backends in process; only logs and Batch's service-linked role are written. All of it
is quick enough for the event loop. moto keeps its backends per process, so one process has one account at a time.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from moto.backends import get_backend
from moto.core.exceptions import JsonRESTError, ServiceException, _RESTError
from moto.iam.access_control import PermissionResult
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy
from moto.iam.policy_validation import IAMTrustPolicyDocumentValidator
from moto.moto_api._internal.models import moto_api_backend
from moto.s3.models import FakeBucket

from emulator.instance_types import instance_family, instance_type, zones_offering
from emulator.permissions import allows

if TYPE_CHECKING:
    from moto.ec2.models import EC2Backend
    from moto.iam.models import IAMBackend, InstanceProfile, Role
    from moto.logs.models import LogsBackend

_BATCH_SERVICE = "batch.amazonaws.com"


@cache
def _aws_policies(account_id: str) -> list[AWSManagedPolicy]:
    """Read AWS's 1,500 managed policies, which exist in every account, once in a process and not for each account."""
    facts = json.loads(aws_managed_policies_data)
    return [AWSManagedPolicy.from_data(name, account_id, Account.partition, facts[name]) for name in facts]


def _no_opinion(*_: object) -> PermissionResult:
    """Judge no request by a bucket's policy.

    moto (5.2.5) leaves the conditions of a policy out, so that one that refuses plain HTTP refuses every request.
    """
    return PermissionResult.NEUTRAL


FakeBucket.get_permission = _no_opinion  # type: ignore[method-assign,assignment]  # there is no switch


def forget_everything(account_id: str) -> None:
    """Make moto's state that of an empty account."""
    # moto's reset builds what it then throws away anew, which takes long for these two.
    get_backend("iam").clear()
    get_backend("ec2").clear()
    moto_api_backend.reset()
    iam = get_backend("iam")[account_id][Account.partition]
    # Of AWS's policies only the number of attachments changes.
    iam.managed_policies = {policy.arn: copy(policy) for policy in _aws_policies(account_id)}
    iam.aws_managed_policies = list(iam.managed_policies.values())


@dataclass
class IamLag:
    """From when on what is made in IAM is not seen by other services, in UTC as moto gives it; None: all is seen.

    Source: "Troubleshoot IAM", IAM user guide: "Changes that I make are not always immediately visible".
    """

    unseen_since: datetime | None = None

    def hides(self, made: datetime) -> bool:
        """Whether something that was made then is not seen yet."""
        return self.unseen_since is not None and made >= self.unseen_since


class Account:
    """The account as Batch sees it in a region.

    Args:
        account_id: 12 digits.
        region: The region of everything that has one.
        iam_lag: What of IAM is not seen yet; IAM has no regions.
    """

    partition = "aws"

    def __init__(self, account_id: str, region: str, iam_lag: IamLag | None = None) -> None:
        self.account_id = account_id
        self.region = region
        self.iam_lag = iam_lag or IamLag()

    def in_region(self, region: str) -> "Account":
        """Return the account as Batch sees it in another region."""
        return Account(self.account_id, region, self.iam_lag)

    def arn(self, service: str, resource: str) -> str:
        """Make the ARN of a resource of this account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account_id}:{resource}"

    @property
    def _iam(self) -> "IAMBackend":
        return get_backend("iam")[self.account_id][self.partition]

    @property
    def _ec2(self) -> "EC2Backend":
        return get_backend("ec2")[self.account_id][self.region]

    @property
    def _logs(self) -> "LogsBackend":
        return get_backend("logs")[self.account_id][self.region]

    def _role(self, name_or_arn: str) -> "Role | None":
        for role in tuple(self._iam.get_roles()):
            if name_or_arn in (role.arn, role.name):
                return role
        return None

    def arn_of_role(self, name: str) -> str:
        """Make the ARN of a role by its name, whether it exists or not."""
        return f"arn:{self.partition}:iam::{self.account_id}:role/{name.lstrip('/')}"

    def role_exists(self, arn: str) -> bool:
        """Whether a role of this ARN exists."""
        return self._role(arn) is not None

    def role_trusts(self, arn: str, service: str) -> bool:
        """Whether the trust policy of a role lets an AWS service (`batch.amazonaws.com`) assume it."""
        role = self._role(arn)
        if role is None or self.iam_lag.hides(role.create_date):
            return False
        statements = json.loads(role.assume_role_policy_document)["Statement"]
        for statement in statements if isinstance(statements, list) else [statements]:
            principal = statement.get("Principal", {})
            # "*" means every principal of AWS's accounts; a service is only meant where it is named.
            services = [] if principal == "*" else principal.get("Service", [])
            if statement["Effect"] == "Allow" and service in ([services] if isinstance(services, str) else services):
                return True
        return False

    def role_may(self, arn: str, actions: Iterable[str]) -> bool:
        """Whether a role exists and its policies, managed ones and its own, allow all of these actions.

        Batch's service-linked role has the permissions that AWS gives it, which nobody can take away.
        """
        role = self._role(arn)
        return role is not None and (arn == self.batch_service_linked_role_arn or allows(_documents(role), actions))

    @property
    def batch_service_linked_role_arn(self) -> str:
        """ARN of AWSServiceRoleForBatch, whether it exists yet or not."""
        return self.arn_of_role(f"aws-service-role/{_BATCH_SERVICE}/AWSServiceRoleForBatch")

    def ensure_batch_service_linked_role(self) -> str:
        """Make AWSServiceRoleForBatch, as Batch does when it first needs it, and return its ARN.

        Source: "Using service-linked roles for AWS Batch", Batch user guide.
        """
        arn = self.batch_service_linked_role_arn
        if not self.role_exists(arn):
            trust = {"Effect": "Allow", "Principal": {"Service": _BATCH_SERVICE}, "Action": "sts:AssumeRole"}
            self._iam.create_role(
                role_name="AWSServiceRoleForBatch",
                assume_role_policy_document=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
                path=f"/aws-service-role/{_BATCH_SERVICE}/",
                permissions_boundary=None,
                description="",
                tags=[],
                max_session_duration="3600",
                linked_service=_BATCH_SERVICE,
            )
        return arn

    def instance_profile_exists(self, name_or_arn: str) -> bool:
        """Whether an instance profile exists; Batch takes its name or its ARN."""
        return any(not self.iam_lag.hides(profile.create_date) for profile in self._instance_profiles(name_or_arn))

    def instance_profile_may(self, name_or_arn: str, actions: Iterable[str]) -> bool:
        """Whether the policies of an instance profile's role allow all of these actions."""
        roles = (role for profile in self._instance_profiles(name_or_arn) for role in profile.roles)
        return any(allows(_documents(role), actions) for role in roles)

    def _instance_profiles(self, name_or_arn: str) -> "list[InstanceProfile]":
        profiles = tuple(self._iam.get_instance_profiles())
        return [profile for profile in profiles if name_or_arn in (profile.arn, profile.name)]

    def zones(self, subnet_ids: Iterable[str]) -> frozenset[str]:
        """Name the availability zones of those of the subnets that exist."""
        subnets = (_found(self._ec2.get_subnet, subnet_id) for subnet_id in subnet_ids)
        return frozenset(subnet.availability_zone for subnet in subnets if subnet is not None)

    def zones_offering(self, name: str) -> frozenset[str]:
        """Name the region's availability zones in which EC2 has an instance type."""
        return zones_offering(name, self.region)

    def subnet_exists(self, subnet_id: str) -> bool:
        """Whether a subnet exists."""
        return _found(self._ec2.get_subnet, subnet_id) is not None

    def security_group_exists(self, group_id: str) -> bool:
        """Whether a security group exists."""
        return self._ec2.get_security_group_from_id(group_id) is not None

    def launch_template_exists(self, *, template_id: str | None, name: str | None, version: str | None) -> bool:
        """Whether a launch template, by id or name, exists and has the version; None means its default version."""
        template = (
            _found(self._ec2.get_launch_template, template_id)
            if template_id
            else _found(self._ec2.get_launch_template_by_name, name)
        )
        if template is None:
            return False
        known = {str(known.number) for known in template.versions}
        return (version or "$Default") in known | {"$Default", "$Latest"}

    instance_type = staticmethod(instance_type)
    instance_family = staticmethod(instance_family)

    def secret_value(self, secret_id: str, json_key: str = "", label: str = "", version_id: str = "") -> str:
        """Read a secret as ECS does for a container: a staging label, a key of the JSON object, or the whole string.

        Raises:
            LookupError: There is no such secret, label or key; the message is in the words of Secrets Manager or ECS.
        """
        backend = get_backend("secretsmanager")[self.account_id][self.region]
        try:
            found = backend.get_secret_value(secret_id, version_id, label or "AWSCURRENT")
            text = found["SecretString"]
        except (JsonRESTError, KeyError) as error:
            what = getattr(error, "message", None) or "Secrets Manager can't find the specified secret value."
            raise LookupError(f"ResourceNotFoundException: {what}") from None
        if not json_key:
            return str(text)
        try:
            value = json.loads(text)[json_key]
        except (ValueError, KeyError, TypeError):
            raise LookupError(f"retrieved secret from Secrets Manager did not contain json key {json_key}") from None
        return value if isinstance(value, str) else json.dumps(value)

    def _secret(self, name_or_arn: str) -> Any:
        secrets = get_backend("secretsmanager")[self.account_id][self.region].secrets
        return secrets.get(name_or_arn)

    def secret_labels(self, name_or_arn: str) -> frozenset[str]:
        """The staging labels that are attached to the versions of a secret; none when it does not exist."""
        secret = self._secret(name_or_arn)
        versions = secret.versions.values() if secret else ()
        return frozenset(label for version in versions for label in version["version_stages"])

    def secret_is_scheduled_for_deletion(self, name: str) -> bool:
        """Whether a secret of this name exists and waits for its deletion."""
        secret = self._secret(name)
        return secret is not None and bool(secret.is_deleted())

    def trust_policy_error(self, document: str) -> str | None:
        """Say what is wrong with a trust policy, or None."""
        try:
            IAMTrustPolicyDocumentValidator(document).validate()
        except (ServiceException, _RESTError) as error:
            return str(error.message)
        return None

    def log_stream_exists(self, group: str, stream: str) -> bool:
        """Whether a log group exists and has a stream."""
        found = self._logs.groups.get(group)
        return found is not None and stream in found.streams

    def log_group_exists(self, name: str) -> bool:
        """Whether a log group exists."""
        return name in self._logs.groups

    def create_log_group(self, name: str) -> None:
        """Make a log group unless it exists, as Batch makes `/aws/batch/job`."""
        from moto.logs.models import LogGroup  # noqa: PLC0415 - as below

        if not self.log_group_exists(name):
            made = LogGroup(self.account_id, self.region, name)  # type: ignore[abstract]  # as moto itself makes it
            self._logs.groups = {**self._logs.groups, name: made}

    def put_log_events(self, group: str, stream: str, events: Sequence[tuple[int, str]]) -> None:
        """Append events, pairs of epoch milliseconds and message, to a stream that is made when it is missing.

        Raises:
            LookupError: The log group does not exist.
        """
        from moto.logs.models import LogStream  # noqa: PLC0415 - it takes long, and is not needed before jobs run

        found = self._logs.groups.get(group)
        if found is None:
            raise LookupError("ResourceNotFoundException: The specified log group does not exist.")
        if stream not in found.streams:
            # A request may be going through groups or streams in its own thread: mappings are replaced, never changed.
            found.streams = {**found.streams, stream: LogStream(found, stream)}
        if events:
            # Past the front of moto's backend on purpose: it refuses events by real time, not by the account's clock.
            found.put_log_events(
                stream, [{"timestamp": timestamp, "message": message} for timestamp, message in events]
            )


def _found(look_up: Any, key: str | None) -> Any:
    """Call one of moto's look-ups, and turn its not-found error into None."""
    try:
        return look_up(key)
    except ServiceException:
        return None


def _documents(role: "Role") -> "Iterator[str]":
    """The texts of a role's policies, as they are in force."""
    for policy in tuple(role.managed_policies.values()):
        yield from (version.document for version in policy.versions if version.is_default)
    yield from tuple(role.policies.values())

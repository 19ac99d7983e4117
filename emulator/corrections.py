"""What AWS refuses and moto lets pass, or words differently, where this project would be misled by it.

Each check looks at a request before moto sees it. Seen in moto 5.2.5; each is covered by a test, so that what a newer
moto gets right can be taken out.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from emulator.calls import read_members
from emulator.replies import error_reply
from emulator.restjson import ApiError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from emulator.account import Account
    from emulator.calls import Call
    from emulator.regions import Regions

Members = Mapping[str, object]

# Source: PutRetentionPolicy, Amazon CloudWatch Logs API reference.
_RETENTION_DAYS = frozenset(
    {1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}
)
# Source: "AWS Secrets Manager quotas", AWS Secrets Manager user guide: labels attached across all versions of a secret.
_MOST_LABELS = 20
# Source: TransactWriteItems, "ClientRequestToken", Amazon DynamoDB API reference: ten minutes.
_TOKEN_SECONDS = 600


class Corrected:
    """moto as a WSGI application, with the checks before it.

    Args:
        moto: The application.
        regions: What the checks look at.
    """

    def __init__(self, moto: "WSGIApplication", regions: "Regions") -> None:
        self._moto = moto
        self._regions = regions
        self._transactions: dict[tuple[str, str], tuple[float, Members]] = {}

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Serve a request, or refuse it as AWS would."""
        call: Call = environ["emulator.call"]
        if rule := _RULES.get((call.service, call.operation)):
            try:
                rule(self._regions.account(call.region), read_members(environ, environ["wsgi.input"].getvalue()))
            except ApiError as error:
                return error_reply(call.service, error.code, error.message, error.status, start_response)
        if call.operation == "TransactWriteItems":
            return self._transaction(call, environ, start_response)
        reply = self._moto(environ, start_response)
        return map(_as_a_user, reply) if call.operation == "GetCallerIdentity" else reply

    def _transaction(
        self, call: "Call", environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Make a transaction once, however often it is sent with its token; moto takes no notice of that."""
        members = read_members(environ, environ["wsgi.input"].getvalue())
        key = call.region, str(members.get("ClientRequestToken"))
        made = self._transactions.get(key)
        if made and call.time <= made[0] + _TOKEN_SECONDS:
            if made[1] == members:
                start_response("200 OK", [("Content-Type", "application/x-amz-json-1.0")])
                return [b"{}"]
            words = "The token has been used with other parameters."
            return error_reply(call.service, "IdempotentParameterMismatchException", words, 400, start_response)
        statuses: list[str] = []

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            statuses.append(status)
            return start_response(status, headers, *more)

        reply = list(self._moto(environ, start))
        if statuses[-1].startswith("200") and "ClientRequestToken" in members:
            self._transactions[key] = call.time, members
        return reply


def _as_a_user(data: bytes) -> bytes:
    """Name the caller in the form that IAM users have: names of sweeps are made of it."""
    return re.sub(rb"arn:aws:sts::(\d{12}):user/moto", rb"arn:aws:iam::\1:user/emulator", data)


def _retention(_: "Account", members: Members) -> None:
    """A stack with a retention that AWS does not know must fail here too."""
    if members.get("retentionInDays") not in _RETENTION_DAYS:
        allowed = ", ".join(str(days) for days in sorted(_RETENTION_DAYS))
        raise ApiError(
            "InvalidParameterException",
            f"1 validation error detected: Value '{members.get('retentionInDays')}' at 'retentionInDays' failed to "
            f"satisfy constraint: Member must satisfy enum value set: [{allowed}]",
        )


def _log_stream(account: "Account", members: Members) -> None:
    """Moto says of a missing stream that the group does not exist: a reader of logs must tell the two apart."""
    group, stream = str(members.get("logGroupName")), str(members.get("logStreamName"))
    if account.log_group_exists(group) and not account.log_stream_exists(group, stream):
        raise ApiError("ResourceNotFoundException", "The specified log stream does not exist.")


def _log_streams(account: "Account", members: Members) -> None:
    """Moto leaves out streams that do not exist: AWS refuses the whole search."""
    group, names = str(members.get("logGroupName")), members.get("logStreamNames")
    for stream in names if isinstance(names, list) else ():
        _log_stream(account, {"logGroupName": group, "logStreamName": stream})


def _launch_templates(account: "Account", members: Members) -> None:
    """Moto leaves out an id that does not exist: a program that asks for it would take it for an empty answer."""
    for name, value in members.items():
        if name.startswith("LaunchTemplateId.") and not account.launch_template_exists(
            template_id=str(value), name=None, version=None
        ):
            raise ApiError(
                "InvalidLaunchTemplateId.NotFound",
                f"The specified launch template, with template ID {value}, does not exist.",
            )


def _trust_policy(account: "Account", members: Members) -> None:
    """Moto checks a trust policy only when it is updated."""
    if words := account.trust_policy_error(str(members.get("AssumeRolePolicyDocument"))):
        raise ApiError("MalformedPolicyDocument", words)


def _labels(account: "Account", members: Members) -> None:
    """Whoever labels versions must meet the limit here before meeting it in a real account."""
    labels = account.secret_labels(str(members.get("SecretId")))
    wanted = members.get("VersionStages")
    if len(labels | set(wanted if isinstance(wanted, list) else ())) > _MOST_LABELS:
        raise ApiError("LimitExceededException", "You have exceeded the number of staging labels for this secret.")


def _scheduled_for_deletion(account: "Account", members: Members) -> None:
    """The error is another one than for a name that is in use, and so is the remedy."""
    if account.secret_is_scheduled_for_deletion(str(members.get("Name"))):
        raise ApiError(
            "InvalidRequestException",
            "You can't create this secret because a secret with this name is already scheduled for deletion.",
        )


_RULES: dict[tuple[str, str], Callable[["Account", Members], None]] = {
    ("logs", "PutRetentionPolicy"): _retention,
    ("logs", "GetLogEvents"): _log_stream,
    ("logs", "FilterLogEvents"): _log_streams,
    ("ec2", "DescribeLaunchTemplates"): _launch_templates,
    ("iam", "CreateRole"): _trust_policy,
    ("secretsmanager", "PutSecretValue"): _labels,
    ("secretsmanager", "CreateSecret"): _scheduled_for_deletion,
}

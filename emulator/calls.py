"""Which operation a request is, read from the request itself, and the bounded record of all requests."""

import json
import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

_SCOPE = re.compile(r"Credential=[^/]+/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request")

# Members that name what a request is about. Nothing else of a body is ever recorded: it may hold secret values.
_NAMES = (
    "jobName",
    "jobId",
    "jobQueue",
    "jobQueueName",
    "computeEnvironment",
    "computeEnvironmentName",
    "jobDefinition",
    "jobDefinitionName",
    "resourceArn",
    "TableName",
    "SecretId",
    "Name",
    "logGroupName",
    "RoleName",
    "PolicyName",
    "PolicyArn",
    "InstanceProfileName",
    "GroupName",
    "GroupId",
    "LaunchTemplateName",
    "LaunchTemplateId",
)


# How the names of operations begin that change nothing; requests to S3 are recorded by their HTTP method.
_READING = ("BatchGet", "Describe", "GET", "Get", "HEAD", "Head", "List", "Query", "Scan")


@dataclass(frozen=True)
class Call:
    """One request: `time` in seconds since the epoch by the account's clock, `status` that of the reply in HTTP."""

    service: str
    operation: str
    resource: str
    time: float
    status: int = 0
    region: str = ""

    @property
    def changes(self) -> bool:
        """Whether it asks for a change, and not only for what there is."""
        return not self.operation.startswith(_READING)


def read_call(
    environ: "WSGIEnvironment", body: bytes, now: float, batch_operation: Callable[[str, str], str]
) -> Call | None:
    """Tell the service, operation and main resource of a request, or return None when it is not signed for AWS.

    Args:
        environ: The request.
        body: Its whole body.
        now: The account's time in epoch seconds.
        batch_operation: Names Batch's operation from method and path.
    """
    scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    if scope is None:
        return None
    service, region = scope["service"], scope["region"]
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    if service == "s3":
        return Call(service, method, path, now, region=region)
    members = read_members(environ, body)
    if target := environ.get("HTTP_X_AMZ_TARGET"):
        operation = target.rpartition(".")[2]
    elif service == "batch":
        operation = batch_operation(method, path)
    else:
        operation = str(members.get("Action", ""))
    resource = next((str(members[name])[:300] for name in _NAMES if name in members), "")
    return Call(service, operation, resource, now, region=region)


def read_members(environ: "WSGIEnvironment", body: bytes) -> dict[str, object]:
    """Read the top-level members of a request, or its form's fields; nothing when it has neither."""
    if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return {name: values[0] for name, values in parse_qs(body.decode(errors="replace")).items()}
    try:
        read = json.loads(body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


class CallRecord:
    """The last `size` calls, oldest first, of any thread."""

    def __init__(self, size: int = 20_000) -> None:
        self._calls: deque[Call] = deque(maxlen=size)
        self._lock = threading.Lock()

    def add(self, call: Call, status: int) -> None:
        """Record a call with the HTTP status of its reply, whether or not the client ever gets it."""
        with self._lock:
            self._calls.append(replace(call, status=status))

    def calls(self, service: str | None = None, operation: str | None = None) -> list[Call]:
        """Return the recorded calls, of one service and operation where given."""
        with self._lock:
            calls = list(self._calls)
        return [
            call
            for call in calls
            if (service is None or call.service == service) and (operation is None or call.operation == operation)
        ]

    def clear(self) -> None:
        """Forget every call."""
        with self._lock:
            self._calls.clear()

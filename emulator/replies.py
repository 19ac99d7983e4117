"""Errors in the shape that each AWS protocol gives them, for what is refused before a service sees the request."""

import json
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

# Source: "protocol" of each service's model in botocore; all others here are JSON.
_EC2 = "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors></Response>"
_QUERY = (
    "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
)
_S3 = "<Error><Code>{code}</Code><Message>{message}</Message></Error>"
_XML = {"ec2": _EC2, "iam": _QUERY, "sts": _QUERY, "s3": _S3}

# What a service answers when it is asked too much, and how it says that it failed: code and HTTP status.
# Source: the error lists of each service's API reference.
_THROTTLED = {
    "batch": ("TooManyRequestsException", 429),
    "dynamodb": ("ThrottlingException", 400),
    "ec2": ("RequestLimitExceeded", 503),
    "iam": ("Throttling", 400),
    "s3": ("SlowDown", 503),
}


def error_reply(service: str, code: str, message: str, status: int, start_response: "StartResponse") -> list[bytes]:
    """Answer a request with an AWS error."""
    if template := _XML.get(service):
        kind, data = "text/xml", template.format(code=code, message=escape(message)).encode()
    else:
        kind, data = "application/x-amz-json-1.1", json.dumps({"__type": code, "message": message}).encode()
    headers = [("Content-Type", kind), ("Content-Length", str(len(data)))]
    start_response(f"{status} Error", headers if template else [*headers, ("x-amzn-errortype", code)])
    return [data]


def throttled(service: str) -> tuple[str, str, int]:
    """Code, message and HTTP status of a service that is asked too much."""
    code, status = _THROTTLED.get(service, ("ThrottlingException", 400))
    return code, "Rate exceeded", status


def failed(service: str) -> tuple[str, str, int]:
    """Code, message and HTTP status of a service that fails."""
    code = "ServerException" if service == "batch" else "InternalFailure"
    return code, "The service failed.", 500


def expired(service: str) -> tuple[str, str, int]:
    """Code, message and HTTP status when the caller's temporary credentials have expired."""
    code = "ExpiredToken" if service in _XML else "ExpiredTokenException"
    return code, "The security token included in the request is expired", 403

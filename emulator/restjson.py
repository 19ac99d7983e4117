"""A REST-JSON service of AWS served from botocore's own model of it: routes, validation and the shape of errors.

It knows no operation: handlers are found by name. Protocol: "AWS restJson1 protocol", smithy.io.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from botocore import xform_name
from botocore.loaders import Loader
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StructureShape

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment
    from botocore.model import OperationModel

_log = logging.getLogger(__name__)

Handler = Callable[..., Mapping[str, Any]]


class ApiError(Exception):
    """What a handler raises to refuse a request: AWS's error code and words, and the HTTP status of the reply."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


class RestJson:
    """A WSGI application for one service.

    Args:
        service_name: The service as botocore names it (`batch`).
        handlers: Objects whose methods are the operations, by their snake_case names; the first that has one serves it.
        call: Runs a handler; the Batch API passes :meth:`emulator.loop.LoopThread.call`.
        payload_limits: Largest body in bytes, for the operations that have a limit.
    """

    def __init__(
        self,
        service_name: str,
        handlers: Iterable[object],
        *,
        call: Callable[..., Mapping[str, Any]],
        payload_limits: Mapping[str, int],
    ) -> None:
        # Not by a session: that would read the person's AWS configuration.
        self._model = ServiceModel(Loader().load_service_model(service_name, "service-2"), service_name)
        self._handlers = tuple(handlers)
        self._call = call
        self._payload_limits = payload_limits
        self._routes = [(op.http["method"], _pattern(op), op) for op in self._operations()]

    def _operations(self) -> "list[OperationModel]":
        return [self._model.operation_model(name) for name in self._model.operation_names]

    def operation(self, method: str, path: str) -> str:
        """Name the operation of a request, or an empty string when there is none."""
        found = self._route(method, path)
        return found[0].name if found else ""

    def _route(self, method: str, path: str) -> "tuple[OperationModel, dict[str, str]] | None":
        for route_method, pattern, operation in self._routes:
            if route_method == method and (match := pattern.fullmatch(path)):
                return operation, match.groupdict()
        return None

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> list[bytes]:
        """Serve one request; a refusal becomes AWS's error reply, a defect of the emulator a logged ServerException."""
        status, headers = 200, [("Content-Type", "application/json")]
        try:
            body = self._reply(environ)
        except ApiError as error:
            status, body = error.status, {"message": error.message}
            headers.append(("x-amzn-errortype", error.code))
        except Exception:  # noqa: BLE001 - a client must get a reply, and the log the traceback
            _log.exception("%s failed inside the emulator", environ["PATH_INFO"])
            status, body = 500, {"message": "The emulator failed; its log has the traceback."}
            headers.append(("x-amzn-errortype", "ServerException"))
        data = json.dumps(body).encode()
        start_response(f"{status} {'OK' if status == 200 else 'Error'}", [*headers, ("Content-Length", str(len(data)))])
        return [data]

    def _reply(self, environ: "WSGIEnvironment") -> Mapping[str, Any]:
        route = self._route(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        if route is None:
            raise ApiError("UnknownOperationException", "There is no such operation.", 404)
        operation, in_path = route
        raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        limit = self._payload_limits.get(operation.name)
        if limit is not None and len(raw) > limit:
            raise ApiError(
                "ClientException", f"The request payload of {operation.name} exceeds {limit // 1024} KiB.", 413
            )
        request = {**_body(raw), **in_path, **_query(operation, environ.get("QUERY_STRING", ""))}
        arguments = validated(operation.input_shape, request) if operation.input_shape else {}
        name = xform_name(operation.name)
        for handlers in self._handlers:
            if handler := getattr(handlers, name, None):
                return self._call(handler, **arguments)
        raise ApiError("ClientException", f"{operation.name} is not part of this emulated account.", 501)


def _pattern(operation: "OperationModel") -> re.Pattern[str]:
    """Make the pattern of an operation's path; a parameter may hold slashes, as ARNs do."""
    return re.compile(re.sub(r"\{(\w+)\+?\}", r"(?P<\1>.+)", operation.http["requestUri"].split("?")[0]))


def _body(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw) if raw else {}
    except ValueError:
        raise ApiError("SerializationException", "The request body is not JSON.") from None
    if not isinstance(body, dict):
        raise ApiError("SerializationException", "The request body is not a JSON object.")
    return body


def _query(operation: "OperationModel", query: str) -> dict[str, Any]:
    """Read the members that travel in the query string; a list repeats its name."""
    if operation.input_shape is None or not query:
        return {}
    sent = parse_qs(query, keep_blank_values=True)
    members: dict[str, Any] = {}
    for name, shape in operation.input_shape.members.items():
        values = sent.get(shape.serialization.get("name", name))
        if shape.serialization.get("location") == "querystring" and values:
            members[name] = values if shape.type_name == "list" else values[0]
    return members


def validated(shape: Shape, value: Any) -> Any:
    """Check a value against botocore's shape and return it without nulls and members that AWS does not know.

    Raises:
        ApiError: The value has the wrong type, lacks a required member or breaks a limit of the model.
    """
    errors: list[str] = []
    result = _checked(shape, value, "", errors)
    if errors:
        plural = "s" if len(errors) > 1 else ""
        raise ApiError("ClientException", f"{len(errors)} validation error{plural} detected: {'; '.join(errors)}")
    return result


_TYPES: dict[str, tuple[type, ...]] = {
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
}


def _checked(shape: Shape, value: Any, path: str, errors: list[str]) -> Any:
    if not _has_type(value, _TYPES[shape.type_name]):
        raise ApiError("SerializationException", f"{path or 'The request'} is not of type {shape.type_name}.")
    if broken := _broken_limit(shape, value):
        errors.append(f"Value '{value}' at '{path}' failed to satisfy constraint: {broken}")
    if isinstance(shape, StructureShape):
        for name in shape.required_members:
            if value.get(name) is None:
                where = f"{path}.{name}".lstrip(".")
                errors.append(f"Value null at '{where}' failed to satisfy constraint: Member must not be null")
        return {
            name: _checked(member, value[name], f"{path}.{name}".lstrip("."), errors)
            for name, member in shape.members.items()
            if value.get(name) is not None
        }
    if isinstance(shape, ListShape):
        return [_checked(shape.member, item, f"{path}.{n}.member", errors) for n, item in enumerate(value, 1)]
    if isinstance(shape, MapShape):
        return {key: _checked(shape.value, item, f"{path}.{key}", errors) for key, item in value.items()}
    return value


def _has_type(value: Any, expected: tuple[type, ...]) -> bool:
    return isinstance(value, expected) and (bool in expected or not isinstance(value, bool))


_IN_ANY_CASE = frozenset({"RetryAction"})
"""Enumerations whose values "aren't case sensitive", which the model does not say: EvaluateOnExit, API reference."""


def _broken_limit(shape: Shape, value: Any) -> str | None:
    """Say which limit of the model a value breaks, in AWS's words."""
    limits = shape.metadata
    if "enum" in limits and (value.upper() if shape.name in _IN_ANY_CASE else value) not in limits["enum"]:
        return f"Member must satisfy enum value set: [{', '.join(limits['enum'])}]"
    if "pattern" in limits and not re.search(limits["pattern"], value):
        return f"Member must satisfy regular expression pattern: {limits['pattern']}"
    size, what = (len(value), "length ") if isinstance(value, str | list | dict) else (value, "value ")
    if "min" in limits and size < limits["min"]:
        return f"Member must have {what}greater than or equal to {limits['min']}"
    if "max" in limits and size > limits["max"]:
        return f"Member must have {what}less than or equal to {limits['max']}"
    return None

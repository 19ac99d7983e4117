"""Pulumi's provider protocol, for any resource types and functions: nothing here knows AWS's.

The engine calls from many threads at once. What it may ask for, and in which order, is described in the Pulumi SDK's
proto/pulumi/provider.proto.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc, status_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from typing_extensions import override

from emulator.plugin import schema
from emulator.plugin.aws import Account, Aws, PluginError, explain
from emulator.plugin.messages import from_struct, to_struct
from emulator.plugin.naming import automatic_name
from emulator.plugin.resource import Function, ResourceType
from emulator.plugin.schema import UNKNOWN, Values
from emulator.plugin.settings import Settings

_DEFAULTS: Final = "__defaults"
_KINDS: Final = {"add": pb.PropertyDiff.ADD, "delete": pb.PropertyDiff.DELETE, "update": pb.PropertyDiff.UPDATE}
_REPLACING: Final = {
    "add": pb.PropertyDiff.ADD_REPLACE,
    "delete": pb.PropertyDiff.DELETE_REPLACE,
    "update": pb.PropertyDiff.UPDATE_REPLACE,
}

log: Final = logging.getLogger(__name__)
Request = TypeVar("Request")
Reply = TypeVar("Reply")


def _program(struct: struct_pb2.Struct) -> Values:
    """Return a message's properties without the marks that Check leaves for itself."""
    values = from_struct(struct)
    values.pop(_DEFAULTS, None)
    return values


class HalfMadeError(Exception):
    """A resource exists, but not all that should have followed its creation or change has happened."""

    def __init__(self, resource_id: str, inputs: Values, state: Values, reason: str) -> None:
        super().__init__(reason)
        self.details = pb.ErrorResourceInitFailed(
            id=resource_id, properties=to_struct(state), reasons=[reason], inputs=to_struct(inputs)
        )


def answered(method: Callable[["Plugin", Request, grpc.ServicerContext], Reply]) -> Callable[..., Reply]:
    """Turn whatever a method raises into the one message that the engine shows."""

    def answer(self: "Plugin", request: Request, context: grpc.ServicerContext) -> Reply:
        try:
            return method(self, request, context)
        except HalfMadeError as error:
            # The engine puts the resource into the state only if it finds these details.
            status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
            status.details.add().Pack(error.details)
            context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except Exception as error:  # noqa: BLE001 - reported below, with its traceback where nobody expected it
            subject = getattr(request, "urn", "") or getattr(request, "tok", "")
            context.abort(grpc.StatusCode.UNKNOWN, self.message(error, method.__name__, subject))

    return answer


class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    """The servicer of one plugin process.

    Args:
        version: The version of `pulumi_aws` whose properties are served.
        types: The resource types.
        functions: The functions by token.
        endpoint: URL of the emulated account.
        log_file: Where unexpected errors go with their traceback, to be named to the user.
    """

    def __init__(
        self,
        version: str,
        types: Iterable[ResourceType],
        functions: Mapping[str, Function],
        endpoint: str,
        log_file: str,
    ) -> None:
        self.version = version
        self.types = {kind.type_name: kind for kind in types}
        self.functions = functions
        self.endpoint = endpoint
        self.log_file = log_file
        self.settings = Settings()
        self._account: Account | None = None

    def message(self, error: Exception, method: str, subject: str) -> str:
        """Return what the user is told of an error; one that nobody expected goes into the log as well."""
        if (known := explain(error, self.endpoint)) is not None:
            return known
        log.error("%s %s", method, subject, exc_info=error)
        return f"the stand-in AWS plugin failed unexpectedly ({type(error).__name__}: {error}), see {self.log_file}"

    def _kind(self, urn: str) -> ResourceType:
        token = urn.split("::")[2].rsplit("$", maxsplit=1)[-1]
        if token not in self.types:
            raise PluginError(f"the stand-in AWS plugin does not serve {token}, only {', '.join(sorted(self.types))}")
        return self.types[token]

    def _aws(self, kind: ResourceType | None = None, timeout_seconds: float = 0) -> Aws:
        if self._account is None:
            raise PluginError("the engine has not configured the AWS provider yet")
        return Aws(self._account, timeout_seconds or (kind or ResourceType).timeout_seconds)

    # The plugin itself.

    @override
    @answered
    def Handshake(self, request: pb.ProviderHandshakeRequest, context: grpc.ServicerContext) -> Any:
        # Secrets are not accepted: the engine takes them off and puts them on again by the input's name.
        return pb.ProviderHandshakeResponse()

    @override
    @answered
    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> Any:
        return plugin_pb2.PluginInfo(version=self.version)

    @override
    @answered
    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> Any:
        if self._account:
            self._account.cancelled.set()
        return empty_pb2.Empty()

    @override
    @answered
    def CheckConfig(self, request: pb.CheckRequest, context: grpc.ServicerContext) -> Any:
        failed = [
            pb.CheckFailure(property=name, reason=why) for name, why in Settings.failures(from_struct(request.news))
        ]
        return pb.CheckResponse(inputs=request.news, failures=failed)

    @override
    @answered
    def DiffConfig(self, request: pb.DiffRequest, context: grpc.ServicerContext) -> Any:
        old, new = from_struct(request.olds), from_struct(request.news)
        changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
        # What is in another region is another resource, so a provider of another region replaces all it has made.
        return pb.DiffResponse(
            changes=pb.DiffResponse.DIFF_SOME if changed else pb.DiffResponse.DIFF_NONE,
            diffs=changed,
            replaces=[name for name in changed if name == "region"],
        )

    @override
    @answered
    def Configure(self, request: pb.ConfigureRequest, context: grpc.ServicerContext) -> Any:
        self.settings = Settings.read(from_struct(request.args))
        account = Account(self.endpoint, self.settings.region)
        self.settings.require_account(account)
        self._account = account
        return pb.ConfigureResponse(supportsPreview=True)

    @override
    @answered
    def Invoke(self, request: pb.InvokeRequest, context: grpc.ServicerContext) -> Any:
        if (function := self.functions.get(request.tok)) is None:
            raise PluginError(f"the stand-in AWS plugin does not serve {request.tok}, only {', '.join(self.functions)}")
        args = from_struct(request.args)
        if wrong := sorted(args.keys() - function.inputs):
            failed = [pb.CheckFailure(property=name, reason=f"{request.tok}: {name} is not served") for name in wrong]
            return pb.InvokeResponse(failures=failed)
        reply = pb.InvokeResponse()
        getattr(reply, "return").CopyFrom(to_struct(function.call(self._aws(), args)))  # `return` is a keyword
        return reply

    # One resource.

    @override
    @answered
    def Check(self, request: pb.CheckRequest, context: grpc.ServicerContext) -> Any:
        kind, olds, news = self._kind(request.urn), from_struct(request.olds), _program(request.news)
        failed = [pb.CheckFailure(property=name, reason=why) for name, why in schema.failures(kind.inputs, news)]
        checked = schema.with_defaults(kind.inputs, news)
        if "tags" in kind.inputs and (tags := self.settings.tagged(news.get("tags"))):
            checked["tags"] = tags
        if kind.name and kind.name not in news:
            kept = olds.get(kind.name) if kind.name in olds.get(_DEFAULTS, ()) else None
            checked[kind.name] = automatic_name(kind, request.urn, news.get("namePrefix"), kept, request.randomSeed)
        checked[_DEFAULTS] = sorted(checked.keys() - news.keys())
        return pb.CheckResponse(inputs=to_struct(checked), failures=failed)

    @override
    @answered
    def Diff(self, request: pb.DiffRequest, context: grpc.ServicerContext) -> Any:
        kind, old, new = self._kind(request.urn), _program(request.old_inputs), _program(request.news)
        ignored = tuple(request.ignoreChanges)
        found = [
            difference
            for difference in schema.differences(kind.inputs, old, new)
            if not any(
                difference.path == path or difference.path.startswith((f"{path}.", f"{path}[")) for path in ignored
            )
        ]
        replacing = {difference.path for difference in found if kind.replaces(difference, old, new)}
        # Two resources cannot have the same name, so one that was named by the program goes before its replacement.
        generated = kind.name in from_struct(request.news).get(_DEFAULTS, ())
        named_alike = kind.name is not None and not generated and old.get(kind.name) == new.get(kind.name)
        return pb.DiffResponse(
            changes=pb.DiffResponse.DIFF_SOME if found else pb.DiffResponse.DIFF_NONE,
            replaces=sorted({difference.names[0] for difference in found if difference.path in replacing}),
            diffs=sorted({difference.names[0] for difference in found}),
            deleteBeforeReplace=bool(replacing) and named_alike,
            hasDetailedDiff=True,
            detailedDiff={
                difference.path: pb.PropertyDiff(
                    kind=(_REPLACING if difference.path in replacing else _KINDS)[difference.kind], inputDiff=True
                )
                for difference in found
            },
        )

    @override
    @answered
    def Create(self, request: pb.CreateRequest, context: grpc.ServicerContext) -> Any:
        kind, inputs = self._kind(request.urn), _program(request.properties)
        aws = self._aws(kind, request.timeout)
        if request.preview:
            return pb.CreateResponse(properties=to_struct(self._planned(aws, kind, inputs)))
        resource_id = kind.create(aws, inputs)
        state = self._completed(aws, kind, resource_id, inputs, work=lambda: kind.settle(aws, resource_id, inputs))
        return pb.CreateResponse(id=resource_id, properties=to_struct(state))

    @override
    @answered
    def Update(self, request: pb.UpdateRequest, context: grpc.ServicerContext) -> Any:
        kind, state = self._kind(request.urn), from_struct(request.olds)
        old, new = _program(request.old_inputs), _program(request.news)
        aws = self._aws(kind, request.timeout)
        if request.preview:
            changed = {difference.names[0] for difference in schema.differences(kind.inputs, old, new)}
            return pb.UpdateResponse(properties=to_struct(self._planned_update(kind, state, new, changed)))

        if not kind.looks_again and not any(schema.differences(kind.inputs, old, new)):
            live = self._live(aws, kind, request.id) or {}
            return pb.UpdateResponse(properties=to_struct(self._state(aws, kind, new, live)))

        def apply() -> None:
            # Not what the state says: after a failure the engine keeps inputs there that never reached the account.
            live = self._live(aws, kind, request.id) or {}
            before = schema.observed(kind.inputs, old, live)
            changed = {difference.names[0] for difference in schema.differences(kind.inputs, before, new)}
            if changed != {"tags"}:  # nothing changed: the engine wants to see whether what is half made is well now
                kind.update(aws, request.id, before, new, changed - {"tags"})
            if "tags" in changed:
                tags, wanted = before.get("tags", {}), new.get("tags", {})
                # The state of what was half made may lack the ARN.
                kind.retag(aws, request.id, {**state, **live}, wanted, sorted(tags.keys() - wanted.keys()))

        return pb.UpdateResponse(properties=to_struct(self._completed(aws, kind, request.id, new, work=apply)))

    @override
    @answered
    def Read(self, request: pb.ReadRequest, context: grpc.ServicerContext) -> Any:
        kind, old = self._kind(request.urn), from_struct(request.inputs)
        aws = self._aws(kind)
        live = self._live(aws, kind, request.id)
        if live is None:
            return pb.ReadResponse()
        if request.inputs.fields:
            inputs = {**schema.observed(kind.inputs, _program(request.inputs), live), _DEFAULTS: old.get(_DEFAULTS, [])}
        else:  # An import: all that the account has is what the program will have to say.
            inputs = schema.pruned(schema.Input(fields=kind.inputs), live) or {}
        state = self._state(aws, kind, inputs, live)
        return pb.ReadResponse(id=request.id, properties=to_struct(state), inputs=to_struct(inputs))

    @override
    @answered
    def Delete(self, request: pb.DeleteRequest, context: grpc.ServicerContext) -> Any:
        kind = self._kind(request.urn)
        state = {**from_struct(request.properties), **_program(request.old_inputs)}
        try:
            kind.delete(self._aws(kind, request.timeout), request.id, state)
        except Exception as error:
            if not kind.is_gone(error):
                raise
        return empty_pb2.Empty()

    def _completed(
        self, aws: Aws, kind: ResourceType, resource_id: str, inputs: Values, *, work: Callable[[], None]
    ) -> Values:
        """Do the work that may leave a resource half made, and return the state that the account has then."""
        try:
            work()
            live = self._live(aws, kind, resource_id)
            if live is None:
                raise PluginError(f"{resource_id} is not there any more")
            seen = schema.observed(kind.inputs, inputs, live)
            if missed := [difference.path for difference in schema.differences(kind.inputs, inputs, seen)]:
                raise PluginError(f"the emulated account has not taken {', '.join(missed)} of {resource_id}")
        except Exception as error:
            reason = self.message(error, "Settling", resource_id)
            raise HalfMadeError(resource_id, inputs, self._half(aws, kind, resource_id, inputs), reason) from error
        return self._state(aws, kind, inputs, live)

    def _half(self, aws: Aws, kind: ResourceType, resource_id: str, inputs: Values) -> Values:
        """Return the state of a resource that is half made, as far as it can be read."""
        try:
            live = self._live(aws, kind, resource_id) or {}
        except Exception as error:
            log.warning("reading %s after an error", resource_id, exc_info=error)
            live = {}
        return self._state(aws, kind, inputs, live)

    def _live(self, aws: Aws, kind: ResourceType, resource_id: str) -> Values | None:
        try:
            return kind.read(aws, resource_id)
        except Exception as error:
            if kind.is_gone(error):
                return None
            raise

    def _state(self, aws: Aws, kind: ResourceType, inputs: Values, live: Values) -> Values:
        """Return a resource's properties: inputs as the account has them, what AWS filled in, outputs."""
        shown = schema.observed(kind.inputs, {k: v for k, v in inputs.items() if k != _DEFAULTS}, live)
        filled = {
            name: value
            for name, field in kind.inputs.items()
            if name not in inputs and (value := schema.pruned(field, live.get(name))) is not None
        }
        outputs = {name: live[name] for name in kind.outputs if live.get(name) is not None}
        tags_all = {"tagsAll": live.get("tags") or {}} if "tagsAll" in kind.outputs else {}
        region = {"region": aws.region} if "region" in kind.outputs else {}
        return {**outputs, **filled, **shown, **tags_all, **region}

    def _planned(self, aws: Aws, kind: ResourceType, inputs: Values) -> Values:
        """Return a preview's properties of a resource that is not made yet."""
        computed = [name for name, field in kind.inputs.items() if field.computed and name not in inputs]
        unknown = dict.fromkeys([*kind.outputs, *computed], UNKNOWN)
        region = {"region": aws.region} if "region" in kind.outputs else {}
        return {**unknown, **inputs, **self._tags_all(kind, inputs), **region}

    def _planned_update(self, kind: ResourceType, state: Values, new: Values, changed: set[str]) -> Values:
        """Return a preview's properties of a resource that will be changed."""
        kept = {name: value for name, value in state.items() if name not in kind.inputs or kind.inputs[name].computed}
        unknown = dict.fromkeys(kind.updated_outputs(changed, new), UNKNOWN)
        return {**kept, **self._tags_all(kind, new), **new, **unknown}

    @staticmethod
    def _tags_all(kind: ResourceType, inputs: Values) -> Values:
        return {"tagsAll": inputs.get("tags", {})} if "tagsAll" in kind.outputs else {}

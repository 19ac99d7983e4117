"""The names that the plugin serves are those of pulumi_aws."""

import importlib
import inspect
import types
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pulumi
import pytest

from emulator.plugin.functions import FUNCTIONS
from emulator.plugin.resource import ResourceType
from emulator.plugin.resources import TYPES
from emulator.plugin.schema import Fields

# pulumi_aws.ec2 and s3 warn of deprecated classes of their own when they are imported.
pytestmark = pytest.mark.filterwarnings("ignore:.* has been deprecated in favor of:DeprecationWarning")


# Where a bucket's website or its content is found by name: nothing here serves either.
NOT_SERVED = {
    "aws:s3/bucket:Bucket": {"bucketRegionalDomainName", "hostedZoneId", "websiteDomain", "websiteEndpoint"},
}


def sdk_class(kind: ResourceType) -> Any:
    module, name = kind.type_name.removeprefix("aws:").split("/")[0], kind.type_name.rpartition(":")[2]
    return getattr(importlib.import_module(f"pulumi_aws.{module}"), name)


def sdk_args(kind: ResourceType) -> Any:
    """Return the SDK's class of a type's inputs, which is InitArgs where a block has the resource's own name."""
    cls = sdk_class(kind)
    module = importlib.import_module(cls.__module__)
    return getattr(module, f"{cls.__name__}InitArgs", None) or getattr(module, f"{cls.__name__}Args")


def getters(cls: Any) -> dict[str, Any]:
    """Return the getters of an SDK class by their Python name."""
    found = {name: member.fget for name, member in inspect.getmembers(cls) if isinstance(member, property)}
    return {name: getter for name, getter in found.items() if hasattr(getter, "_pulumi_name")}


def names(cls: Any) -> dict[str, Any]:
    """Return the properties of an SDK class by Pulumi's name, each with its type."""
    return {
        getter._pulumi_name: get_type_hints(getter, localns={"Output": pulumi.Output, "T": Any}).get("return")
        for getter in getters(cls).values()
    }


def block(hint: Any) -> Any:
    """Return the SDK's class of a block's arguments that is somewhere in a type."""
    if isinstance(hint, type) and hint.__name__.endswith("Args"):
        return hint
    return next((found for part in get_args(hint) if (found := block(part))), None)


def unknown(fields: Fields, cls: Any, path: str = "") -> Iterator[str]:
    known = names(cls)
    for name, field in fields.items():
        if name not in known:
            yield f"{path}{name}"
        elif field.fields is not None:
            yield from unknown(field.fields, block(known[name]), f"{path}{name}.")


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.type_name)
def test_inputs_and_outputs_exist_in_the_sdk(kind: ResourceType) -> None:
    assert list(unknown(kind.inputs, sdk_args(kind))) == []
    assert set(kind.outputs) <= names(sdk_class(kind)).keys() - kind.inputs.keys()


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.type_name)
def test_every_output_that_only_aws_knows_is_served(kind: ResourceType) -> None:
    """A program that reads one gets its value, not None."""
    only_aws = names(sdk_class(kind)).keys() - names(sdk_args(kind)).keys()
    assert only_aws - NOT_SERVED.get(kind.type_name, set()) <= set(kind.outputs)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.type_name)
def test_what_the_sdk_requires_is_required(kind: ResourceType) -> None:
    signature = inspect.signature(sdk_args(kind).__init__)
    required = [
        name for name, parameter in signature.parameters.items() if parameter.default is inspect.Parameter.empty
    ]
    by_python_name = {name: getter._pulumi_name for name, getter in getters(sdk_args(kind)).items()}
    assert {by_python_name[name] for name in required if name != "__self__"} <= {
        name for name, field in kind.inputs.items() if field.required
    }


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.type_name)
def test_each_schema_has_its_source(kind: ResourceType) -> None:
    path, _, commit = kind.source.partition(" at ")
    assert path.startswith("internal/service/")
    assert len(commit) == 40


def sdk_function(token: str) -> types.FunctionType:
    module, _, name = token.removeprefix("aws:").split(":")[0].partition("/")
    package = importlib.import_module("pulumi_aws" if module == "index" else f"pulumi_aws.{module}")
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    found: types.FunctionType = getattr(package, snake)
    return found


@pytest.mark.parametrize("token", FUNCTIONS)
def test_arguments_of_functions_exist_in_the_sdk(token: str) -> None:
    known = {parameter.replace("_", "") for parameter in inspect.signature(sdk_function(token)).parameters}
    assert {name.lower() for name in FUNCTIONS[token].inputs} <= known

"""Properties as the messages of Pulumi's protocol have them."""

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format, struct_pb2

from emulator.plugin.schema import Values


def from_struct(struct: struct_pb2.Struct) -> Values:
    """Return a message's properties: whole numbers as int (protobuf knows only floats), nulls left out."""
    return dict(_plain(json_format.MessageToDict(struct)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    """Return properties as a message."""
    return json_format.ParseDict(_plain(dict(values)), struct_pb2.Struct())

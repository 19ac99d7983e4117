"""Entries of the ledger as items of DynamoDB, in plain types that a person can read in the console, and back. Pure."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, TypeVar

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from submitter.errors import ConfigurationError
from submitter.history import KINDS, Ended, Entry, Record, Slot
from submitter.numbers import NumberSet
from submitter.plan import JobSpec
from submitter.sweep import RunTable
from submitter.writer import Writer

T = TypeVar("T")

_SERIALIZER: Final = TypeSerializer()
_DESERIALIZER: Final = TypeDeserializer()


def key_of(sweep: str, n: int) -> dict[str, Any]:
    """Return the key of an entry's item."""
    return {"sweep": {"S": sweep}, "n": {"N": str(n)}}


def serialized(value: Any) -> dict[str, Any]:
    """Return a plain value as DynamoDB takes it."""
    return _SERIALIZER.serialize(_decimal(value))  # type: ignore[return-value] # one of many kinds of attribute


def to_item(sweep: str, entry: Entry) -> dict[str, Any]:
    """Return an entry as the item that it is put as."""
    values: dict[str, Any] = {
        "sweep": sweep,
        "n": entry.n,
        "nonce": entry.nonce,
        "kind": entry.kind,
        "at": _from_time(entry.at),
        "by": vars(entry.by),
        "queue": entry.queue,
        "definition": entry.definition,
        "runs": str(entry.runs),
        "slots": [{"name": slot.name, "runs": str(slot.runs)} for slot in entry.slots],
    }
    if entry.asked is not None:
        values["asked"] = _from_time(entry.asked)
    if entry.spec:
        values["spec"] = vars(entry.spec)
    if entry.added:
        values["added"] = json.dumps(entry.added.to_json(), separators=(",", ":"), ensure_ascii=False)
    if entry.record:
        values["record"] = _without_none(vars(entry.record) | {"axes": list(entry.record.axes)})
    return {name: serialized(value) for name, value in values.items()}


def from_item(item: Mapping[str, Any]) -> Entry:
    """Return the entry that an item holds.

    Raises:
        ConfigurationError: A newer submitter has written it.
    """
    values = to_plain(item)
    if values["kind"] not in KINDS:
        raise _newer(values)
    return Entry(
        n=values["n"],
        nonce=values["nonce"],
        kind=values["kind"],
        at=to_time(values["at"]),
        by=_known(Writer, values["by"], values),
        queue=values["queue"],
        definition=values["definition"],
        spec=_known(JobSpec, values["spec"], values) if "spec" in values else None,
        runs=NumberSet.parse(values["runs"]),
        added=RunTable.from_json(json.loads(values.get("added", "[]"))),
        slots=tuple(map(_to_slot, values["slots"])),
        record=to_record(values),
        asked=to_time(values["asked"]) if "asked" in values else None,
        done=values.get("done", False),
    )


def _known(make: Callable[..., T], fields: Mapping[str, Any], values: Mapping[str, Any]) -> T:
    """Return what is made of these fields of an entry's values, all of which this submitter must know."""
    try:
        return make(**fields)
    except TypeError:
        raise _newer(values) from None


def _newer(values: Mapping[str, Any]) -> ConfigurationError:
    return ConfigurationError(
        f"A newer submitter has written to the sweep {values['sweep']} ({values['kind']} {values['n']}).",
        "Install the newer submitter to work with it.",
    )


def _to_slot(values: Mapping[str, Any]) -> Slot:
    ended = tuple(
        Ended(state=one["state"], reason=one.get("reason"), runs=NumberSet.parse(one["runs"]))
        for one in values.get("ended", ())
    )
    return Slot(name=values["name"], runs=NumberSet.parse(values["runs"]), job=values.get("job"), ended=ended)


def ended_value(ended: Ended) -> dict[str, str]:
    """Return how runs ended as a plain value of a slot."""
    return _without_none({"state": ended.state, "reason": ended.reason, "runs": str(ended.runs)})


def to_record(values: Mapping[str, Any]) -> Record | None:
    """Return the record among an item's plain values, when there is one.

    Raises:
        ConfigurationError: A newer submitter has written it.
    """
    if "record" not in values:
        return None
    record = values["record"]
    return _known(Record, {**record, "axes": tuple(record["axes"])}, values)


def to_time(text: str) -> float:
    """Return seconds since the epoch for a time as items have it."""
    return datetime.fromisoformat(text).timestamp()


def _from_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def to_plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item's attributes as plain values."""
    return {name: _undecimal(_DESERIALIZER.deserialize(value)) for name, value in item.items()}


def _decimal(value: Any) -> Any:
    """Return the value with decimals for floats, which boto3 refuses."""
    match value:
        case float():
            return Decimal(str(value))
        case Mapping():
            return {name: _decimal(each) for name, each in value.items()}
        case _:
            return value


def _undecimal(value: Any) -> Any:
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case dict():
            return {name: _undecimal(each) for name, each in value.items()}
        case list():
            return [_undecimal(each) for each in value]
        case _:
            return value

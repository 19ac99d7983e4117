"""The ledger: the DynamoDB table that holds what was meant and what was sent, key (`sweep`, `n`).

The conditions of the writes are the protocol's: an entry is put only where none is, and an answer is written only where
there is none.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from submitter.aws_errors import error_code
from submitter.errors import UsageError
from submitter.history import CANCEL, Ended, Entry, Record
from submitter.items import ended_value, from_item, key_of, serialized, to_item, to_plain, to_record, to_time
from submitter.numbers import NumberSet
from submitter.session import client_config, pages

if TYPE_CHECKING:
    import boto3

_MAX_ITEM_BYTES: Final = 400_000
"""An item's limit, "Maximum item size" in the DynamoDB quotas, is 400 KB."""

_ANSWER_BYTES: Final = 8
"""What recording how one run ended takes at most, on average: its number and a comma."""

_DELETES_AT_ONCE: Final = 99
"""A transaction has at most 100 items, "Transactions" in the DynamoDB quotas; one is a check."""

_SLOTS_PER_UPDATE: Final = 40
"""An update expression has at most 4 KB, "Expression parameters" in the DynamoDB quotas."""


@dataclass(frozen=True, kw_only=True)
class SweepSummary:
    """A sweep in a listing.

    Attributes:
        sweep: owner/name.
        nonce: Its newest generation.
        created: When its newest generation was begun, seconds since the epoch.
        updated: When its newest entry was put.
        runs: How many runs the generation has.
        record: What the sweep is.
    """

    sweep: str
    nonce: str
    created: float
    updated: float
    runs: int
    record: Record


class Ledger:
    """The entries of all sweeps in one table."""

    def __init__(self, session: "boto3.Session", table: str) -> None:
        self._client = session.client("dynamodb", config=client_config())
        self._table = table

    def put(self, sweep: str, entry: Entry) -> Entry | None:
        """Put an entry where none is; return None, or the other entry that is there.

        The other may be this very entry, by :attr:`Entry.by`: then it was put by a call whose reply was lost.

        Raises:
            UsageError: The entry is larger than an item may be.
        """
        try:
            self._client.put_item(**put_request(self._table, sweep, entry))
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            return from_item(error.response["Item"])  # type: ignore[typeddict-item] # there by ALL_OLD
        return None

    def entries(self, sweep: str) -> list[Entry]:
        """Return all entries of a sweep, in order, as they are now."""
        found = pages(
            self._client.query,
            {"LastEvaluatedKey": "ExclusiveStartKey"},
            TableName=self._table,
            KeyConditionExpression="sweep = :sweep",
            ExpressionAttributeValues={":sweep": {"S": sweep}},
            ConsistentRead=True,
        )
        return [from_item(item) for page in found for item in page["Items"]]

    def record(self, sweep: str, entry: Entry, answers: Mapping[int, str]) -> Entry:
        """Write what became of an entry's slots, by position; return the entry as it then is.

        The first writer of an answer wins, so the answer returned may be another's.
        """
        chunks = list(answers.items())
        for start in range(0, len(chunks), _SLOTS_PER_UPDATE):
            entry = self._write_once(sweep, entry, "job", dict(chunks[start : start + _SLOTS_PER_UPDATE]))
        return entry

    def ended(self, sweep: str, entry: Entry, index: int, ended: tuple[Ended, ...]) -> Entry:
        """Write how the runs of a slot ended, unless it is written; return the entry as it then is.

        Where the reasons make the item larger than an item may be, they are left out.
        """
        try:
            return self._write_once(sweep, entry, "ended", {index: [ended_value(one) for one in ended]})
        except ClientError as error:
            if error_code(error) != "ValidationException":
                raise
        return self._write_once(sweep, entry, "ended", {index: [ended_value(one) for one in _without_reasons(ended)]})

    def done(self, sweep: str, entry: Entry) -> Entry:
        """Write that every job that was sent before a cancel has been ended; return the entry as it then is."""
        return self._update(
            sweep, entry, UpdateExpression="SET done = :done", ExpressionAttributeValues={":done": {"BOOL": True}}
        )

    def sweeps(self, owner: str | None = None) -> list[SweepSummary]:
        """Return all sweeps, or an owner's, the newest first. Reads the whole table."""
        filters: dict[str, Any] = {}
        if owner is not None:
            filters = {
                "FilterExpression": "begins_with(sweep, :owner)",
                "ExpressionAttributeValues": {":owner": {"S": f"{owner}/"}},
            }
        items = self._scan(
            ProjectionExpression="sweep, n, nonce, kind, #at, #runs, #record",
            ExpressionAttributeNames={"#at": "at", "#runs": "runs", "#record": "record"},
            **filters,
        )
        found: dict[str, list[dict[str, Any]]] = {}
        for plain in map(to_plain, items):
            found.setdefault(plain["sweep"], []).append(plain)
        summaries = (summary for sweep in found.values() if (summary := _summary(sweep)))
        return sorted(summaries, key=lambda summary: summary.updated, reverse=True)

    def all_entries(self) -> dict[str, list[Entry]]:
        """Return the entries of every sweep, in order. Reads the whole table."""
        found: dict[str, list[Entry]] = {}
        for item in self._scan():
            found.setdefault(item["sweep"]["S"], []).append(from_item(item))
        return {sweep: sorted(entries, key=lambda entry: entry.n) for sweep, entries in found.items()}

    def _scan(self, **arguments: Any) -> Iterator[Mapping[str, Any]]:
        """Yield the table's items, without those that are no entry: they must not hide everybody's sweeps."""
        pages = self._client.get_paginator("scan").paginate(TableName=self._table, ConsistentRead=True, **arguments)
        return (item for page in pages for item in page["Items"] if "nonce" in item)

    def forget(self, sweep: str) -> bool:
        """Delete a sweep's entries, the newest first; False when somebody is submitting to it, and then it stays."""
        entries = self.entries(sweep)
        after = {"TableName": self._table, "Key": key_of(sweep, len(entries) + 1)}
        for last in range(len(entries), 0, -_DELETES_AT_ONCE):
            deletes: list[Any] = [
                {"Delete": {"TableName": self._table, "Key": key_of(sweep, n)}}
                for n in range(last, max(0, last - _DELETES_AT_ONCE), -1)
            ]
            unchanged: Any = {"ConditionCheck": {**after, "ConditionExpression": "attribute_not_exists(n)"}}
            try:
                self._client.transact_write_items(TransactItems=[unchanged, *deletes])
            except ClientError as error:
                if error_code(error) != "TransactionCanceledException":
                    raise
                return False
        return True

    def _write_once(self, sweep: str, entry: Entry, attribute: str, values: Mapping[int, object]) -> Entry:
        sets = ", ".join(f"#s[{i}].#a = if_not_exists(#s[{i}].#a, :v{i})" for i in values)
        return self._update(
            sweep,
            entry,
            UpdateExpression=f"SET {sets}",
            ExpressionAttributeNames={"#s": "slots", "#a": attribute},
            ExpressionAttributeValues={f":v{i}": serialized(value) for i, value in values.items()},
        )

    def _update(self, sweep: str, entry: Entry, **changes: Any) -> Entry:
        """Change an entry that is there; without the condition DynamoDB would make an item of the change alone."""
        try:
            reply = self._client.update_item(
                TableName=self._table,
                Key=key_of(sweep, entry.n),
                ConditionExpression="attribute_exists(n)",
                ReturnValues="ALL_NEW",
                **changes,
            )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            raise UsageError(
                f"Somebody's `prune` has forgotten the sweep {sweep} meanwhile.", "See `submitter list`."
            ) from None
        return from_item(reply["Attributes"])


def put_request(table: str, sweep: str, entry: Entry) -> dict[str, Any]:
    """Return PutItem's arguments for an entry.

    Raises:
        UsageError: The entry is larger than an item may be.
    """
    item = to_item(sweep, entry)
    if len(json.dumps(item).encode()) + _ANSWER_BYTES * len(entry.runs) > _MAX_ITEM_BYTES:
        raise UsageError(
            f"{len(entry.runs):,} runs with these parameters do not fit one entry of the ledger.",
            "Submit them in parts, for example some of the seeds first.",
        )
    return {
        "TableName": table,
        "Item": item,
        "ConditionExpression": "attribute_not_exists(n)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _without_reasons(ended: Sequence[Ended]) -> Iterator[Ended]:
    for state in dict.fromkeys(one.state for one in ended):
        yield Ended(
            state=state,
            reason=None,
            runs=NumberSet(number for one in ended if one.state == state for number in one.runs),
        )


def _summary(items: list[dict[str, Any]]) -> SweepSummary | None:
    """Return a sweep's summary; None when what opens its newest generation is missing."""
    items.sort(key=lambda item: item["n"])
    nonce = next((item["nonce"] for item in reversed(items) if item["kind"] != CANCEL), None)
    generation = [item for item in items if item["nonce"] == nonce]
    record = next((record for item in generation if (record := to_record(item))), None)
    if nonce is None or record is None:
        return None
    return SweepSummary(
        sweep=items[-1]["sweep"],
        nonce=nonce,
        created=to_time(generation[0]["at"]),
        updated=max(to_time(item["at"]) for item in generation if item["kind"] != CANCEL),
        runs=len(NumberSet(number for item in generation for number in NumberSet.parse(item["runs"]))),
        record=record,
    )

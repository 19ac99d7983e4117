"""The ledger: the DynamoDB table that holds what was meant and what was sent, key (`sweep`, `n`).

The conditions of the writes are the protocol's: an entry is put only where none is and after the one that its writer
has read, and an answer is written only where there is none, to the entry that it is about. `prune` may forget a sweep
at any moment, and somebody begin it again.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import ClientError

from submitter.aws_errors import error_code
from submitter.errors import AwsError, UsageError
from submitter.history import CANCEL, SIGNED_WITHIN, Ended, Entry, Record, check_whole
from submitter.items import ended_value, from_item, key_of, serialized, to_item, to_plain, to_record, to_time
from submitter.numbers import NumberSet
from submitter.session import Clock, Fence, FencePassedError, aws_time, client_config, pages

if TYPE_CHECKING:
    import boto3

T = TypeVar("T")

_TOKEN: Final = {"LastEvaluatedKey": "ExclusiveStartKey"}
"""Where an answer names the page after it, and where a call asks for it."""

_MAX_ITEM_BYTES: Final = 400_000
"""An item's limit, "Maximum item size" in the DynamoDB quotas, is 400 KB."""

_ANSWER_BYTES: Final = 8
"""What recording how one run ended takes at most, on average: its number and a comma."""

_MAX_RUNS: Final = _MAX_ITEM_BYTES // _ANSWER_BYTES
_IN_PARTS: Final = "Submit them in parts, for example some of the seeds first."

_DELETES_AT_ONCE: Final = 99
"""A transaction has at most 100 items, "Transactions" in the DynamoDB quotas; one is a check."""

_SLOTS_PER_UPDATE: Final = 40
"""An update expression has at most 4 KB, "Expression parameters" in the DynamoDB quotas."""

_BUSY: Final = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
"""Why a transaction is cancelled for the moment ("TransactionCanceledException" in the DynamoDB API reference)."""

_BUSY_SECONDS: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""The waits before an item is written again that somebody else is writing: botocore does not do that."""


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
    """The entries of all sweeps in one table.

    Attributes:
        read_at: AWS's clock at the newest :meth:`entries`, in seconds since the epoch; None where it was not told.
    """

    read_at: float | None = None

    def __init__(self, session: "boto3.Session", table: str, clock: Clock | None = None) -> None:
        self._client = session.client("dynamodb", config=client_config())
        self._table = table
        self._fence = Fence(clock or Clock())
        self._client.meta.events.register("before-send.dynamodb.TransactWriteItems", self._fence)

    def put(self, sweep: str, entry: Entry, *, after: Entry | None) -> bool:
        """Put an entry where none is, after the one that its writer has read last.

        Args:
            sweep: owner/name.
            entry: The entry.
            after: The sweep's entry of the number before; None for its first.

        Returns:
            Whether it is there; False where another is, or where the one before is there no more: then the entries are
            to be read again. A put whose reply is lost and that is sent again finds itself, and is there.

        Raises:
            UsageError: The entry is larger than an item may be.
            AwsError: A minute after the entry's date it is not known to be there.
        """
        request = put_request(self._table, sweep, entry, after=after)
        try:
            with self._fence.at(entry.at + SIGNED_WITHIN):
                _patiently(partial(self._client.transact_write_items, **request))
        except FencePassedError:
            # Later it could begin a sweep again that has come to its end and been forgotten.
            raise AwsError(
                "The ledger could not be written to within a minute.",
                "Type the same command again: nothing is sent twice.",
            ) from None
        except ClientError as error:
            if not _is_refused(error):
                raise
            there = _cancellation(error)[0].get("Item")
            return there is not None and from_item(there).by == entry.by
        return True

    def entries(self, sweep: str) -> list[Entry]:
        """Return all entries of a sweep, in order, as they are now.

        Raises:
            ConfigurationError: Some are missing.
        """
        found = pages(
            self._client.query,
            _TOKEN,
            TableName=self._table,
            KeyConditionExpression="sweep = :sweep",
            ExpressionAttributeValues={":sweep": {"S": sweep}},
            ConsistentRead=True,
        )
        entries: list[Entry] = []
        for page in found:
            self.read_at = aws_time(page)
            entries += map(from_item, page["Items"])
        check_whole(sweep, entries)
        return entries

    def entries_again(self, sweep: str, before: Sequence[Entry]) -> list[Entry]:
        """Return a sweep's entries as they are now, for a command that has read it before.

        Raises:
            UsageError: What was read is there no more: what the command has found out is of no use any more.
        """
        entries = self.entries(sweep)
        writers = {entry.n: entry.by for entry in entries}
        if any(writers.get(entry.n) != entry.by for entry in before):
            raise _forgotten(sweep)
        return entries

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
        return self._update(sweep, entry, "SET done = :done", {}, {":done": True})

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
        found = pages(self._client.scan, _TOKEN, TableName=self._table, ConsistentRead=True, **arguments)
        return (item for page in found for item in page["Items"] if "nonce" in item)

    def forget(self, sweep: str, entries: Sequence[Entry]) -> bool:
        """Delete a sweep's entries as they were read; False when somebody has put one since.

        Of more than a transaction can delete, the first and the newest go at once: the newest, so that nobody puts
        another, and the first, so that what is left when this is broken off is not taken for the sweep.
        """
        left = list(entries)
        while left:
            first, *others = left
            kept = max(0, len(others) + 1 - _DELETES_AT_ONCE)
            left, going = others[:kept], [first, *others[kept:]]
            deletes: list[Any] = [
                {"Delete": {"TableName": self._table, "Key": key_of(sweep, entry.n), **_condition(entry)}}
                for entry in going
            ]
            check = {"Key": key_of(sweep, going[-1].n + 1), "ConditionExpression": "attribute_not_exists(n)"}
            unchanged: Any = {"ConditionCheck": {"TableName": self._table, **check}}
            try:
                _patiently(partial(self._client.transact_write_items, TransactItems=[unchanged, *deletes]))
            except ClientError as error:
                if not _is_refused(error):
                    raise
                return False
        return True

    def _write_once(self, sweep: str, entry: Entry, attribute: str, values: Mapping[int, object]) -> Entry:
        sets = ", ".join(f"#s[{i}].#a = if_not_exists(#s[{i}].#a, :v{i})" for i in values)
        names = {"#s": "slots", "#a": attribute}
        return self._update(sweep, entry, f"SET {sets}", names, {f":v{i}": value for i, value in values.items()})

    def _update(
        self, sweep: str, entry: Entry, change: str, names: Mapping[str, str], values: Mapping[str, object]
    ) -> Entry:
        """Change an entry that is there; without the condition DynamoDB would make an item of the change alone."""
        condition = _condition(entry)
        try:
            reply = _patiently(
                lambda: self._client.update_item(
                    TableName=self._table,
                    Key=key_of(sweep, entry.n),
                    UpdateExpression=change,
                    ConditionExpression=condition["ConditionExpression"],
                    ExpressionAttributeNames={**condition["ExpressionAttributeNames"], **names},
                    ExpressionAttributeValues={
                        **condition["ExpressionAttributeValues"],
                        **{name: serialized(value) for name, value in values.items()},
                    },
                    ReturnValues="ALL_NEW",
                )
            )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            raise _forgotten(sweep) from None
        return from_item(reply["Attributes"])


def check_count(runs: int) -> None:
    """Check a number of runs before an entry is made of them, which takes long for many.

    Raises:
        UsageError: No entry can hold as many, whatever their parameters are.
    """
    if runs > _MAX_RUNS:
        raise UsageError(
            f"{runs:,} runs do not fit one entry of the ledger, which has room for {_MAX_RUNS:,} at most.", _IN_PARTS
        )


def put_request(table: str, sweep: str, entry: Entry, *, after: Entry | None) -> dict[str, Any]:
    """Return TransactWriteItems' arguments for an entry; see :meth:`Ledger.put`.

    Raises:
        UsageError: The entry is larger than an item may be.
    """
    item = to_item(sweep, entry)
    if len(json.dumps(item).encode()) + _ANSWER_BYTES * len(entry.runs) > _MAX_ITEM_BYTES:
        raise UsageError(
            f"{len(entry.runs):,} runs with these parameters do not fit one entry of the ledger.", _IN_PARTS
        )
    put: dict[str, Any] = {
        "TableName": table,
        "Item": item,
        "ConditionExpression": "attribute_not_exists(n)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    writes = [{"Put": put}]
    if after is not None:
        writes.append({"ConditionCheck": {"TableName": table, "Key": key_of(sweep, after.n), **_condition(after)}})
    return {"TransactItems": writes}


def _condition(entry: Entry) -> dict[str, Any]:
    """Return the condition that what is there is this very entry, and not one of a sweep that was begun again since."""
    return {
        "ConditionExpression": "#by.#token = :token",
        "ExpressionAttributeNames": {"#by": "by", "#token": "token"},
        "ExpressionAttributeValues": {":token": serialized(entry.by.token)},
    }


def _patiently(write: Callable[[], T]) -> T:
    """Make a write, and again while others are writing the same items."""
    for seconds in _BUSY_SECONDS:
        try:
            return write()
        except ClientError as error:
            reasons = {reason.get("Code", "None") for reason in _cancellation(error)} - {"None"}
            if error_code(error) != "TransactionConflictException" and not (reasons and reasons <= _BUSY):
                raise
        time.sleep(seconds)
    return write()


def _is_refused(error: ClientError) -> bool:
    """Tell whether a transaction was not made because of one of its conditions."""
    return any(reason.get("Code") == "ConditionalCheckFailed" for reason in _cancellation(error))


def _cancellation(error: ClientError) -> Sequence[Mapping[str, Any]]:
    """Return why each write of a transaction was not made."""
    return error.response.get("CancellationReasons", ())


def _forgotten(sweep: str) -> UsageError:
    return UsageError(
        f"Somebody's `prune` has forgotten the sweep {sweep} meanwhile.",
        "See `submitter list`; `submitter run` begins it anew.",
    )


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

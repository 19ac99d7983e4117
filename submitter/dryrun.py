"""`run --dry-run`: the requests that would change something, with the parameters that they would have."""

from collections.abc import Mapping, Sequence
from typing import Any

from submitter.history import Entry, Generation
from submitter.ledger import put_request
from submitter.submission import Order, Outlook, draft
from submitter.writer import Writer


def dry_run(
    order: Order,
    entries: Sequence[Entry],
    generation: Generation,
    outlook: Outlook,
    *,
    definition: str | None,
    table: str,
    now: float,
) -> dict[str, Any]:
    """Return a JSON document's values: what `run` would send now, in its order.

    Args:
        order: What is asked for.
        entries: The ledger's entries of the sweep.
        generation: The one that it would go on with.
        outlook: What it is about to do.
        definition: The job definition as name:revision, None while it is not registered.
        table: Name of the ledger's table.
        now: This machine's clock, in seconds since the epoch.

    Raises:
        UsageError: AWS Batch would not take a request.
    """
    requests: list[dict[str, Any]] = []
    if due := outlook.due:
        entry, submissions = draft(order, generation, due, n=len(entries) + 1, at=now, by=Writer.here())
        put = put_request(table, order.sweep, entry, after=entries[-1] if entries else None)
        requests.append(_request("dynamodb", "TransactWriteItems", put))
        if definition is None:
            requests.append(_request("batch", "RegisterJobDefinition", order.definition))
        # AWS gives the first revision of a name the number 1.
        revision = definition or f"{order.definition['jobDefinitionName']}:1"
        requests += (_request("batch", "SubmitJob", {**sent, "jobDefinition": revision}) for sent in submissions)
    return {
        "sweep": order.sweep,
        "queue": order.queue,
        "submitted": len(due),
        "already": outlook.present,
        "cancelled": outlook.cancelled,
        "undecided": outlook.undecided,
        "requests": requests,
    }


def _request(service: str, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"service": service, "operation": operation, "parameters": dict(parameters)}

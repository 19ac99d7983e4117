"""Entries of the ledger, as the model has them and as the submitter does."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from infra.outputs import StackOutputs
from submitter import history
from submitter import writer as writers
from submitter.history import Ended, Record
from submitter.names import job_name
from submitter.numbers import NumberSet
from submitter.plan import JobSpec, job_definition
from submitter.sweep import RunTable
from tests.queues import C5A_LARGE_SPOT
from tests.unit.protocol import world as model

SWEEP: Final = "ada/first"
QUEUE: Final = "c5a-large"
RECORD: Final = Record(command="train", axes=(), image="trainer:1")
SPEC: Final = JobSpec(image="trainer:1", vcpus=1, memory_mib=512, gpus=0, timeout_seconds=57_600, attempts=2)
CONTRACT: Final = StackOutputs(
    schema_version=1,
    region="us-east-1",
    account_id="123456789012",
    queue_names=(QUEUE,),
    queues={QUEUE: replace(C5A_LARGE_SPOT, name=QUEUE, purchase="on-demand")},
    job_role_arn="",
    execution_role_arn="",
    submitter_policy_arn="",
    log_group="",
    ledger_table="",
    secret_arn="",
    artifacts_bucket=None,
    image_repository=None,
)

STATES: Final = {"ok": "succeeded", "failed": "failed", "ended": "cancelled"}
"""The model's states of what has ended, and the submitter's."""


def writer(by: model.Writer) -> writers.Writer:
    return writers.Writer(host=by.host, pid=1, started="", token=by.command)


def model_name(name: str) -> str:
    return name.split("-", 1)[1]


def to_model(entry: history.Entry, before: str | None) -> model.Entry:
    return model.Entry(
        n=entry.n,
        nonce=entry.nonce,
        kind=entry.kind,
        runs=frozenset(entry.runs),
        at=entry.at,
        by=model.Writer(entry.by.host, entry.by.token),
        slots=tuple(model.Slot(model_name(slot.name), frozenset(slot.runs), slot.job) for slot in entry.slots),
        begins_after=before,
    )


def to_real(log: Iterable[model.Entry]) -> list[history.Entry]:
    """Return what the submitter would have written: the run of number n is that of seed n."""
    known: dict[str, int] = {}
    entries = []
    for entry in log:
        first, cancels = known.get(entry.nonce, 0), entry.kind == "cancel"
        added = [] if cancels else [run for run in sorted(entry.runs) if run > first]
        slots = (
            history.Slot(
                name=job_name(SWEEP, entry.nonce, entry.n, index),
                runs=NumberSet(slot.runs),
                job=slot.job,
                ended=ended_of(slot),
            )
            for index, slot in enumerate(entry.slots)
        )
        entries.append(
            history.Entry(
                n=entry.n,
                nonce=entry.nonce,
                kind=entry.kind,
                at=entry.at,
                by=writer(entry.by),
                queue="" if cancels else QUEUE,
                definition="" if cancels else str(job_definition(SPEC, CONTRACT)["jobDefinitionName"]),
                spec=None if cancels else SPEC,
                runs=NumberSet(entry.runs),
                added=RunTable.product([()], added) if added else RunTable(),
                slots=tuple(slots),
                record=RECORD if not first and not cancels else None,
                done=entry.done,
            )
        )
        known[entry.nonce] = max(first, *added, 0)
    return entries


def ended_of(slot: model.Slot) -> tuple[Ended, ...]:
    groups: dict[str, list[int]] = {}
    for run, state in slot.ended:
        groups.setdefault(STATES[state], []).append(run)
    return tuple(Ended(state=state, reason=None, runs=NumberSet(runs)) for state, runs in groups.items())

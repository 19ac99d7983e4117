"""What a command needs of the account, each part opened when it is first used."""

# ruff: noqa: PLC0415 - a command imports only what it uses: all together cost a short one a tenth of its time

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from infra.outputs import StackOutputs
from submitter.batch import Batch
from submitter.cli.output import note
from submitter.errors import ConfigurationError, SubmitterError, UsageError
from submitter.history import Entry, Generation
from submitter.ledger import Ledger
from submitter.names import owner_name
from submitter.numbers import NumberSet
from submitter.session import Clock, Watch, caller_name, open_session
from submitter.stack import StackSource, read_contract

if TYPE_CHECKING:
    import boto3

    from submitter.diagnosis import Finding
    from submitter.history import Choose
    from submitter.links import Links
    from submitter.logs import Line, LogReader, Part
    from submitter.prune import Pruning
    from submitter.repro import Repro
    from submitter.request import Prepared
    from submitter.retry import Changes, Retried
    from submitter.secrets import Secrets
    from submitter.selection import Selection
    from submitter.status import RunStatus, StatusReader, SweepStatus
    from submitter.submission import Order, Outcome, Outlook
    from submitter.sweep import Run


class Connection:
    """A stack, and the account that it is in with the caller's credentials."""

    def __init__(self, source: StackSource) -> None:
        self._source = source
        self.clock = Clock()
        self._watch = Watch(note)

    @cached_property
    def contract(self) -> StackOutputs:
        """The stack's outputs."""
        return read_contract(self._source, say=note)

    @cached_property
    def caller(self) -> str:
        """The caller's name as an owner of sweeps; asking for it checks that the account is the stack's."""
        return owner_name(caller_name(self._session, self.contract))

    @cached_property
    def ledger(self) -> Ledger:
        """The stack's ledger."""
        return Ledger(self._session, self.contract.ledger_table, self.clock)

    @cached_property
    def batch(self) -> Batch:
        """AWS Batch."""
        return Batch(self._session, self.clock)

    def prepare(self, **options: Any) -> "Prepared":
        """Check the options of `run` against the stack; see :func:`submitter.request.prepare`."""
        from submitter.provenance import current_commit
        from submitter.request import RunOptions, prepare

        return prepare(RunOptions(**options), self.contract, current_commit())

    def keep(self, secrets: "Secrets") -> None:
        """Put the values that only jobs may see where their definitions say that they are."""
        from submitter.secrets import SecretStore

        if secrets:
            store = SecretStore(self._session, self.contract.secret_arn)
            store.put(secrets, lambda: self.pruning.labels_in_use(self.clock.now()))

    def entries(self, prepared: "Prepared") -> list[Entry]:
        """Return the ledger's entries of the sweep that a request is about."""
        return self.ledger.entries(self.full_name(prepared.name, prepared.options.owner))

    def entries_if_reachable(self, prepared: "Prepared", say: Callable[[str], None]) -> list[Entry] | None:
        """Return the same; None without access to the account, and then `say` is told."""
        from botocore.exceptions import BotoCoreError

        try:
            return self.entries(prepared)
        except BotoCoreError as error:
            say(f"{error} This is what a first submission would send.")
            return None

    def submit(
        self,
        order: "Order",
        entries: Sequence[Entry],
        secrets: "Secrets",
        *,
        own: NumberSet,
        fresh: bool,
        say: Callable[[str], None],
    ) -> "Outcome":
        """Submit what is not submitted yet, with these values in reach; see :func:`submitter.submission.run`."""
        from submitter.submission import run

        return run(
            order,
            ledger=self.ledger,
            batch=self.batch,
            clock=self.clock,
            entries=entries,
            own=own,
            fresh=fresh,
            ready=lambda _: self.keep(secrets),
            say=say,
        )

    def dry_run(
        self, order: "Order", entries: Sequence[Entry], generation: Generation, outlook: "Outlook", *, offline: bool
    ) -> dict[str, Any]:
        """Return the requests that :meth:`submit` would send; see :func:`submitter.dryrun.dry_run`.

        Offline it is not looked whether the definition is registered.
        """
        from submitter.dryrun import dry_run

        definition = None if offline else self.batch.find_definition(order.definition["jobDefinitionName"])
        table, now = self.contract.ledger_table, self.clock.now()
        return dry_run(order, entries, generation, outlook, definition=definition, table=table, now=now)

    def generation(self, name: str, owner: str | None) -> tuple[str, Generation]:
        """Return a sweep's full name and its newest generation, by the ledger alone.

        Raises:
            UsageError: There is no such sweep.
        """
        sweep = self.full_name(name, owner)
        if not (entries := self.ledger.entries(sweep)):
            raise UsageError(f"There is no sweep {sweep}.", "See `submitter list`.")
        return sweep, Generation(entries)

    def cancel(self, status: "SweepStatus", selection: "Selection", *, say: Callable[[str], None]) -> NumberSet:
        """Cancel the runs of a status, all of the sweep's where nothing was chosen.

        Returns:
            The numbers of the cancelled runs.
        """
        from submitter.cancel import cancel

        chosen = NumberSet(run.number for run in status.runs)

        def choose(generation: Generation) -> NumberSet:
            if not selection:
                return generation.table.runs().numbers
            return chosen if generation.nonce == status.generation.nonce else NumberSet()

        return cancel(
            status.sweep,
            choose,
            before=status.entries,
            ledger=self.ledger,
            batch=self.batch,
            clock=self.clock,
            say=say,
        )

    def over(self, status: "SweepStatus") -> NumberSet:
        """Return the runs that a cancel does not end; see :func:`submitter.ends.over`."""
        from submitter.ends import over

        return over(status.generation, self.batch)

    def ended_by_themselves(self, generation: Generation) -> NumberSet:
        """Return the runs that a cancel named and did not end; see :func:`submitter.ends.by_themselves`."""
        from submitter.ends import by_themselves

        if not generation.told_to_end:
            return NumberSet()  # without a client, which a dry run may not be able to have
        return by_themselves(generation, self.batch)

    def under_way(self, entries: Sequence[Entry], *, but: str | None = None) -> int:
        """Return how many runs of a sweep may not have ended, in all of its generations but the one with this nonce."""
        from submitter.cancel import under_way

        return under_way(entries, {entry.nonce for entry in entries} - {but}, self.batch)

    def retry(
        self, sweep: str, choose: "Choose", changes: "Changes", secrets: "Secrets", *, say: Callable[[str], None]
    ) -> "Retried":
        """Send again what failed or was cancelled of the chosen runs, with these values in reach as well.

        See :class:`submitter.retry.Retry`.
        """
        from submitter.retry import Retry

        def ready(entry: Entry) -> None:
            self.keep(secrets)
            if lost := self._not_kept(entry.spec.secrets if entry.spec else {}):
                raise ConfigurationError(
                    f"`prune` has taken away {', '.join(sorted(lost))} at this very moment.",
                    "Type the same command again.",
                )

        return Retry(
            sweep,
            choose,
            changes,
            contract=self.contract,
            ledger=self.ledger,
            batch=self.batch,
            reader=self.status,
            clock=self.clock,
            ready=ready,
            say=say,
        ).work()

    def missing_keys(self, generation: Generation, numbers: NumberSet) -> set[str]:
        """Return the names of secrets that these runs were given, and that are kept no more."""
        requests = generation.newest_request()
        specs = [request.spec for number in numbers if (request := requests.get(number)) and request.spec]
        return self._not_kept(*(spec.secrets for spec in specs))

    def _not_kept(self, *references: Mapping[str, str]) -> set[str]:
        """Return the names of the secrets in what job definitions refer to that are kept no more."""
        from submitter.secrets import SecretStore, labels_of

        wanted = {
            (name, label)
            for values in references
            for name, value in values.items()
            for label in labels_of({name: value})
        }
        if not wanted:
            return set()
        there = SecretStore(self._session, self.contract.secret_arn).labels()
        return {name for name, label in wanted if label not in there}

    def repro(self, name: str, owner: str | None, selection: "Selection") -> "Repro":
        """Return how to repeat one run.

        Raises:
            UsageError: There is no such sweep, no such run, or several are like that.
        """
        from submitter.repro import repro
        from submitter.selection import Selection

        sweep, generation = self.generation(name, owner)
        if selection.failed:  # only how they stand tells
            runs = self.chosen_runs(sweep, replace(selection, failed=False)).runs
            failed = selection.choose_one(runs, generation.axes)
            selection = Selection(index=NumberSet([failed.number]))
        run = selection.choose_one(generation.runs(), generation.axes)
        return repro(sweep, generation, run, bucket=self.contract.artifacts_bucket)

    def wait(
        self,
        sweep: str,
        *,
        selection: "Selection | None" = None,
        poll_seconds: float,
        timeout_seconds: float | None = None,
        fail_fast: bool = False,
        seen: "Callable[[SweepStatus], None]",
        troubled: Callable[[SubmitterError], None],
    ) -> "SweepStatus":
        """Wait until every run of a sweep is over; see :func:`submitter.waiting.wait`.

        With a selection the stories of those runs are read at each look.
        """
        from submitter.waiting import wait

        before: Sequence[Entry] = ()

        def read() -> "SweepStatus":
            nonlocal before
            if selection is None:
                status = self.status.read(sweep, before=before)
            else:
                status = self.chosen_runs(sweep, selection, before=before)
            before = status.entries
            return status

        def trouble(error: SubmitterError) -> None:
            troubled(error)
            self._reconnect()

        return wait(
            read,
            clock=self.clock,
            poll_seconds=poll_seconds,
            timeout_seconds=timeout_seconds,
            fail_fast=fail_fast,
            seen=seen,
            troubled=trouble,
        )

    def _reconnect(self) -> None:
        """Open everything anew when it is next used: a session never reads credentials twice."""
        for name in ("_session", "ledger", "batch", "status", "logs", "links"):
            self.__dict__.pop(name, None)

    def why(self, sweep: str) -> "tuple[SweepStatus, dict[str | None, list[Finding]]]":
        """Return how a sweep stands, and for each queue with runs that wait, or that it has cancelled, the reasons.

        Under None stands what is to be said of runs that no queue has.
        """
        from submitter.diagnosis import cancelled_for_waiting, diagnose, not_with_aws
        from submitter.evidence import Evidence, reasons_of_ended
        from submitter.prices import read_price

        status = self.status.read(sweep)
        found: dict[str | None, list[Finding]] = {None: not_with_aws(status.counts)}
        evidence = Evidence(self.contract, self.batch, partial(read_price, self._session), self.clock)
        for waiting in evidence.waiting(sweep, status.generation):
            found[waiting.queue] = diagnose(waiting)
        for queue, reasons in reasons_of_ended(status.generation).items():
            found.setdefault(queue, []).extend(cancelled_for_waiting(reasons))
        return status, {queue: findings for queue, findings in found.items() if findings}

    def chosen_runs(self, sweep: str, selection: "Selection", *, before: Sequence[Entry] = ()) -> "SweepStatus":
        """Return how a sweep stands with the story of each chosen run; `before` is what was read of it before.

        Raises:
            UsageError: There is no such sweep, no such run in it, or it is forgotten since it was read before.
        """
        known = replace(selection, failed=False)

        def choose(generation: Generation) -> "Sequence[Run]":
            return known.choose(generation.runs(), generation.axes)

        status = self.status.read(sweep, runs=True, choose=choose if known else None, before=before)
        return replace(status, runs=tuple(selection.choose(status.runs, status.axes)))

    def with_links(self, status: "SweepStatus") -> "SweepStatus":
        """Return the status with the W&B link of each run that has printed one."""
        urls = self.links.read((run.started_at or 0, run.log_stream) for run in status.runs if run.log_stream)
        runs = tuple(replace(run, wandb=urls.get(run.log_stream or "")) for run in status.runs)
        return replace(status, runs=runs)

    def log_lines(
        self,
        runs: "Iterable[RunStatus]",
        part: "Part",
        *,
        follow: bool,
        say: Callable[[int, str], None],
        troubled: Callable[[SubmitterError], None],
    ) -> "Iterator[Line]":
        """Yield what runs have logged, or tell why there is nothing; see :meth:`submitter.logs.LogReader.read`.

        What may pass is told and waited for when the logs are followed, as by :meth:`wait`.
        """
        from submitter.logs import Job, never_sent

        reader = self.logs

        def trouble(error: SubmitterError) -> None:
            troubled(error)
            self._reconnect()
            reader.use(self._session, self.batch)

        jobs = {}
        for one in runs:
            if one.job is None:
                say(one.number, never_sent(one.status))
                continue
            queue = self.contract.queues.get(one.queue or "")
            spot = queue is not None and queue.purchase == "spot"
            jobs[one.number] = Job(id=one.job, spot=spot, definition=one.definition or "", sent_at=one.sent_at or 0.0)
        return reader.read(jobs, part, follow=follow, say=say, troubled=trouble if follow else None)

    @cached_property
    def pruning(self) -> "Pruning":
        """What nobody needs any more. The caller is looked at first: the account must be the stack's."""
        from submitter.prune import Pruning
        from submitter.secrets import SecretStore

        _ = self.caller
        secrets = SecretStore(self._session, self.contract.secret_arn)
        return Pruning(self.ledger, self.batch, secrets, self.contract.job_role_arn)

    @cached_property
    def status(self) -> "StatusReader":
        """How sweeps stand."""
        from submitter.status import StatusReader

        return StatusReader(self.contract, self.ledger, self.batch)

    @cached_property
    def logs(self) -> "LogReader":
        """The runs' logs."""
        from submitter.logs import LogReader

        return LogReader(self._session, self.contract.log_group, self.batch, clock=self.clock)

    @cached_property
    def links(self) -> "Links":
        """The runs' W&B links."""
        from submitter.links import Links

        return Links(self._session, self.contract.log_group)

    def full_name(self, name: str, owner: str | None) -> str:
        """Return owner/name for what was typed: NAME, OWNER/NAME, or NAME with --owner.

        Raises:
            UsageError: Two owners were named.
        """
        caller, named = self.caller, name.rpartition("/")[0]
        if named and owner and named != owner:
            raise UsageError(f"{name} is not {owner}'s.", "Leave out --owner, or what stands before the slash.")
        return name if named else f"{owner or caller}/{name}"

    @cached_property
    def _session(self) -> "boto3.Session":
        return open_session(self.contract, self._watch)

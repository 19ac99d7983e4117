"""The account's own endpoint, `/_emulator/...`: health, record of calls, faults, clock, reclaim, lag."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from emulator.batch.scheduler import NoSuchHostError
from emulator.faults import Rule

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from emulator.account import IamLag
    from emulator.calls import CallRecord
    from emulator.clock import Clock
    from emulator.faults import Faults
    from emulator.loop import LoopThread
    from emulator.regions import Regions

PREFIX = "/_emulator/"


class Control:
    """What tests and the command line do to the account itself; in process by its methods, else by HTTP.

    Args:
        loop: The loop that owns the account's state.
        clock: The account's clock.
        faults: The rules of misbehaviour.
        record: The record of calls.
        regions: Batch, whose hosts can be taken away and whose lists can be made to lag.
        iam_lag: What of IAM is not seen yet.
        facts: What `health` says about the account.
    """

    def __init__(
        self,
        *,
        loop: "LoopThread",
        clock: "Clock",
        faults: "Faults",
        record: "CallRecord",
        regions: "Regions",
        iam_lag: "IamLag",
        facts: dict[str, Any],
    ) -> None:
        self.loop = loop
        self.clock = clock
        self.faults = faults
        self.record = record
        self._regions = regions
        self._iam_lag = iam_lag
        self._facts = facts

    def advance(self, seconds: float) -> float:
        """Move the account's clock forward and return its time, in epoch seconds."""
        self.loop.call(self.clock.advance, seconds)
        return self.clock.now()

    def reclaim(self, target: str) -> list[str]:
        """Take a host away without notice, as EC2 does with Spot capacity, and return the ids of the jobs on it.

        Args:
            target: The instance's id, or the id of a job that is on it.

        Raises:
            LookupError: There is no such host or job.
        """
        for batch in self._regions.batches:
            with suppress(NoSuchHostError):
                return self.loop.call(batch.scheduler.reclaim, target)
        raise LookupError(f"No instance and no job on an instance has the id {target}.")

    def delay_listing(self, seconds: float) -> None:
        """Let ListJobs show a new job only after some time of the account's clock."""
        for batch in self._regions.batches:
            batch.jobs.listing_delay_seconds = seconds

    def delay_summaries(self, seconds: float) -> None:
        """Let DescribeJobs count an array's children as they were this long ago by the account's clock.

        What was before the first of these requests is not known, and is shown as it was then.
        """
        for batch in self._regions.batches:
            batch.jobs.summary_delay_seconds = seconds
            self.loop.call(batch.scheduler.keep_summaries, seconds > 0)

    def set_capacity(self, environment: str, *, available: bool) -> None:
        """Say whether EC2 has instances for a compute environment; without, its jobs wait as AWS's do."""
        for batch in self._regions.batches:
            self.loop.call(partial(batch.scheduler.set_capacity, environment, available=available))

    def set_spot_price(self, instance_type: str, dollars: float) -> None:
        """Change what a Spot instance of a type costs an hour; hosts that are there stay."""
        for batch in self._regions.batches:
            batch.scheduler.fleet.prices.set_spot(instance_type, dollars)
            self.loop.call(batch.scheduler.changed)

    def delay_iam(self, seconds: float) -> None:
        """Hide from Batch what is made in IAM from now on, for some time of the account's clock."""
        self._iam_lag.unseen_since = now = datetime.now(UTC).replace(tzinfo=None)

        async def show() -> None:
            await self.clock.sleep(seconds)
            if self._iam_lag.unseen_since is now:  # and not that of a later delay
                self._iam_lag.unseen_since = None

        self.loop.call(lambda: self.loop.spawn(show()))

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> list[bytes]:
        """Serve `/_emulator/...`; only to this machine, and never to a web page in a browser on it."""
        route = self._routes.get((environ["REQUEST_METHOD"], environ["PATH_INFO"].removeprefix(PREFIX)))
        if refusal := _refusal(environ):
            status, reply = 403, {"message": refusal}
        elif route is None:
            status, reply = 404, {"message": "The emulator has no such control."}
        else:
            try:
                status, reply = 200, route(_members(environ)) or {}
            except (ValueError, TypeError, LookupError) as error:
                status, reply = 400, {"message": f"{type(error).__name__}: {error}"}
        data = json.dumps(reply).encode()
        start_response(f"{status} -", [("Content-Type", "application/json"), ("Content-Length", str(len(data)))])
        return [data]

    @property
    def _routes(self) -> dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any] | None]]:
        return {
            ("GET", "health"): lambda _: {"status": "ok", "now": self.clock.now(), **self._facts},
            ("GET", "requests"): lambda wanted: {"requests": [asdict(call) for call in self.record.calls(**wanted)]},
            ("DELETE", "requests"): lambda _: self.record.clear(),
            ("GET", "faults"): lambda _: {"faults": self.faults.rules()},
            ("POST", "faults"): lambda sent: self.faults.add(Rule(**sent)),
            ("DELETE", "faults"): lambda _: self.faults.clear(),
            ("GET", "clock"): lambda _: {"now": self.clock.now()},
            ("POST", "clock"): lambda sent: {"now": self.advance(float(sent["advance"]))},
            ("POST", "reclaim"): lambda sent: {"jobs": self.reclaim(sent["target"])},
            ("POST", "listing"): lambda sent: self.delay_listing(float(sent["delay"])),
            ("POST", "summaries"): lambda sent: self.delay_summaries(float(sent["delay"])),
            ("POST", "capacity"): lambda sent: self.set_capacity(sent["environment"], available=sent["available"]),
            ("POST", "spot-price"): lambda sent: self.set_spot_price(sent["type"], float(sent["dollars"])),
            ("POST", "iam"): lambda sent: self.delay_iam(float(sent["delay"])),
        }


def _members(environ: "WSGIEnvironment") -> dict[str, Any]:
    """Read what was sent: a JSON object, or the query of a GET."""
    if raw := environ["wsgi.input"].read():
        return dict(json.loads(raw))
    return {name: values[0] for name, values in parse_qs(environ.get("QUERY_STRING", "")).items()}


def _refusal(environ: "WSGIEnvironment") -> str | None:
    """Say why a request to the control endpoint is refused.

    A web page could send it through the browser, but no JSON body without a preflight, which goes unanswered.
    """
    if environ["REQUEST_METHOD"] != "GET" and environ.get("CONTENT_TYPE") != "application/json":
        return "The control endpoint takes application/json only."
    return None

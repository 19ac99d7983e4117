"""Every call that `run`, `cancel` and `retry` make goes wrong in every way, then the same is typed again.

Whatever it was, each wanted run has exactly one job then, or after a cancel none that goes on, and the ledger knows it.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import pytest
from botocore.endpoint import Endpoint
from botocore.retries.standard import ExponentialBackoff

from submitter import plan
from submitter.errors import SubmitterError
from submitter.history import SIGNED_WITHIN, Generation
from submitter.reasons import FINAL
from submitter.retry import Changes, Retry

SEEDS: Final = (1, 2, 3)

FAULTS: Final = ("killed before", "killed after", "drop", "late", "error", "error-after", "overtaken")
"""`overtaken`: held up for longer than anything may be signed, while another does all of the same."""


Act = Callable[[Callable[[], Any], str, str], Any]
"""Makes a call, of a service and an operation, or does something else."""


class KilledError(BaseException):
    """The process ends here."""


class Calls:
    """The calls of a command, one of which is to go wrong; counts them from 0."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._act: Act | None = None
        self._at = self.made = 0
        make_request = Endpoint.make_request

        def request(endpoint: Endpoint, operation: Any, arguments: Any) -> Any:
            number, self.made = self.made, self.made + 1
            if self._act is None or number != self._at:
                return make_request(endpoint, operation, arguments)
            act, self._act = self._act, None
            service = operation.service_model.signing_name
            return act(lambda: make_request(endpoint, operation, arguments), service, operation.name)

        monkeypatch.setattr(Endpoint, "make_request", request)

    @contextmanager
    def count(self, at: int = -1, act: Act | None = None) -> Iterator[None]:
        """Count what is called from here on, and let `act` make the call number `at`."""
        self._act, self._at, self.made = act, at, 0
        yield
        self._act = None


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    monkeypatch.setattr(plan, "MAX_ARRAY", 2)
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0)
    return Calls(monkeypatch)


def order(machine: Any, sweep: str) -> Any:
    return replace(machine.order(SEEDS), sweep=sweep)


def run(machine: Any, sweep: str) -> None:
    machine.submit(order(machine, sweep))


def cancel(machine: Any, sweep: str) -> None:
    machine.cancel(sweep=sweep)


def retry(machine: Any, sweep: str) -> None:
    Retry(
        sweep,
        lambda generation: generation.table.runs().numbers,
        Changes(),
        contract=machine.contract,
        ledger=machine.ledger,
        batch=machine.batch,
        reader=machine.status_reader,
        clock=machine.clock,
        say=machine.said.append,
    ).work()


def nothing(machine: Any, sweep: str) -> None:
    """Nothing was done before."""


def lost_answers(machine: Any, sweep: str) -> None:
    """Somebody has died between sending and writing down."""

    def dying(*_: object) -> None:
        raise KilledError

    with pytest.MonkeyPatch.context() as patch, suppress(KilledError):
        patch.setattr(machine.ledger, "record", dying)
        run(machine, sweep)


def run_and_cancel(machine: Any, sweep: str) -> None:
    run(machine, sweep)
    cancel(machine, sweep)


def check(machine: Any, batch: Any, sweep: str, live: int) -> None:
    """Each run has so many jobs that have not ended, and the ledger knows every job."""
    machine.let_all_arrive()
    entries = machine.ledger.entries(sweep)
    names = [{"name": "JOB_NAME", "values": [f"{sweep.partition('/')[2]}-*"]}]
    listed = batch.list_jobs(jobQueue="c5a-large-spot", filters=names)["jobSummaryList"]
    slots = [slot for entry in entries for slot in entry.slots]
    assert sorted((slot.name, slot.sent) for slot in slots if slot.sent) == sorted(
        (job["jobName"], job["jobId"]) for job in listed
    )
    goes_on = {job["jobId"] for job in listed if job["status"] not in FINAL}
    runs = Counter(number for slot in slots if slot.sent in goes_on for number in slot.runs)
    assert runs == (Counter(dict.fromkeys(range(1, 4), live)) if live else Counter())
    assert sorted(seed or 0 for _, seed in Generation(entries).table) == list(SEEDS)


@dataclass(frozen=True)
class Typed:
    """What is typed, after what, by clocks that are off by `skew` seconds; how many jobs each run has at the end."""

    before: Callable[[Any, str], None]
    command: Callable[[Any, str], None]
    live: int = 1
    skew: int = 0


TYPED: Final = {
    "run": Typed(nothing, run),
    "run by a clock that is off": Typed(nothing, run, skew=200),
    "run after lost answers": Typed(lost_answers, run),
    "cancel": Typed(run, cancel, live=0),
    "retry": Typed(run_and_cancel, retry),
}


@pytest.mark.parametrize("typed", TYPED.values(), ids=TYPED)
def test_whatever_goes_wrong_with_a_call_the_same_command_typed_again_completes_it(
    typed: Typed,
    make_machine: Callable[..., Any],
    calls: Calls,
    fault: Callable[..., None],
    subtests: pytest.Subtests,
) -> None:
    machine, other = make_machine(skew=typed.skew), make_machine(skew=typed.skew)
    batch = machine.session.client("batch")
    batch.update_compute_environment(computeEnvironment="spot", state="DISABLED")  # jobs wait for ever

    def act(kind: str, sweep: str) -> Act:
        def acts(call: Callable[[], Any], service: str, operation: str) -> Any:
            if kind == "overtaken":
                typed.command(other, sweep)
                other.clock.sleep(SIGNED_WITHIN + 1)
            elif kind == "killed before":
                raise KilledError
            elif kind == "killed after":
                call()
                raise KilledError
            else:
                fault(service, operation, kind, count=1, seconds=90)
            return call()

        return acts

    typed.before(machine, "ada/undisturbed")
    with calls.count():
        typed.command(machine, "ada/undisturbed")
    check(other, batch, "ada/undisturbed", typed.live)
    assert calls.made > 4
    for number, kind in product(range(calls.made), FAULTS):
        sweep = f"ada/{number}{kind.replace(' ', '-')}"
        with subtests.test(kind, call=number):
            typed.before(machine, sweep)
            with calls.count(number, act(kind, sweep)), suppress(KilledError, SubmitterError):
                typed.command(machine, sweep)
            typed.command(other, sweep)
            check(other, batch, sweep, typed.live)

"""Misbehaviour on request: one WSGI middleware that throttles, fails, delays or withholds replies by rule."""

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from werkzeug.test import run_wsgi_app

from emulator.replies import error_reply, expired, failed, throttled
from emulator.wsgi import ReplyWithheldError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from emulator.calls import Call, CallRecord
    from emulator.clock import Clock
    from emulator.loop import LoopThread

Kind = Literal["throttle", "expired", "error", "refuse", "error-after", "drop", "delay", "late", "stall"]


@dataclass(kw_only=True)
class Rule:
    """What happens to the calls of one operation.

    Attributes:
        service: The service as its requests are signed (`batch`); `*` means every one.
        operation: The operation (`SubmitJob`); `*` means every one of the service.
        kind: `throttle`, `expired` (credentials), `error` and `refuse` (with `code` and `message`) refuse without
            acting, `error-after` acts and then answers 500, `drop` acts and closes the connection, `delay` waits before
            acting, `late` closes the connection at once and acts later, `stall` acts and waits before answering.
        changing: Whether it happens to calls only that ask for a change.
        count: How many calls it happens to; None means every one until the rule is removed.
        skip: How many matching calls pass unharmed first.
        share: The share of the matching calls after those that it happens to, evenly spread, not by chance.
        seconds: How long `delay`, `late` and `stall` wait, by the account's clock.
        code: AWS's code of what `refuse` answers (`ClientException`).
        message: AWS's words for it.
    """

    service: str
    operation: str
    kind: Kind
    count: int | None = None
    skip: int = 0
    share: float = 1.0
    seconds: float = 0.0
    changing: bool = False
    code: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"there is no fault {self.kind!r}; there are {', '.join(get_args(Kind))}")
        if not 0 < self.share <= 1 or self.seconds < 0 or self.skip < 0 or (self.count is not None and self.count < 1):
            raise ValueError("a share is above 0 and at most 1, a count at least 1, skip and seconds not negative")
        self._due = 0.0

    def hits(self, call: "Call") -> bool:
        """Whether it happens to this call; counts it."""
        if self.service not in ("*", call.service) or self.operation not in ("*", call.operation) or self.count == 0:
            return False
        if self.changing and not call.changes:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self._due += self.share
        if self._due < 1 - 1e-9:
            return False
        self._due -= 1
        if self.count is not None:
            self.count -= 1
        return True


_REFUSALS: dict[str, Callable[[str, Rule], tuple[str, str, int]]] = {
    "throttle": lambda service, _: throttled(service),
    "expired": lambda service, _: expired(service),
    "error": lambda service, _: failed(service),
    "refuse": lambda _, rule: (rule.code, rule.message, 400),
}


class Faults:
    """The middleware; `environ["emulator.call"]` says what a request is. It also records every call.

    Args:
        app: What really serves the requests.
        record: Where calls are recorded with their outcome.
        clock: The account's clock, for the rules that wait.
        loop: The loop that the clock waits on.
    """

    def __init__(self, app: "WSGIApplication", record: "CallRecord", clock: "Clock", loop: "LoopThread") -> None:
        self._app = app
        self._record = record
        self._clock = clock
        self._loop = loop
        self._rules: list[Rule] = []
        self._lock = threading.Lock()

    def add(self, rule: Rule) -> None:
        """Add a rule; the first that hits a call decides."""
        with self._lock:
            self._rules.append(rule)

    def clear(self) -> None:
        """Remove every rule."""
        with self._lock:
            self._rules.clear()

    def rules(self) -> list[dict[str, Any]]:
        """Return the rules with what is left of their counts."""
        with self._lock:
            return [asdict(rule) for rule in self._rules]

    def _hit(self, call: "Call") -> Rule | None:
        with self._lock:
            return next((rule for rule in self._rules if rule.hits(call)), None)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> list[bytes]:
        """Serve one request, as the rules have it."""
        call: Call = environ["emulator.call"]
        rule = self._hit(call)
        if rule and rule.kind in _REFUSALS:
            code, message, status = _REFUSALS[rule.kind](call.service, rule)
            self._record.add(call, status)
            return error_reply(call.service, code, message, status, start_response)
        if rule and rule.kind == "late":
            until = self._clock.now() + rule.seconds
            threading.Thread(target=self._act_late, args=(environ, until), daemon=True).start()
            raise ReplyWithheldError
        if rule and rule.kind == "delay":
            self._loop.run(self._clock.sleep(rule.seconds))
        status_line, headers, body = self._act(environ)
        if rule and rule.kind == "stall":
            self._stall(rule.seconds)
        if rule and rule.kind == "drop":
            raise ReplyWithheldError
        if rule and rule.kind == "error-after":
            return error_reply(call.service, *failed(call.service), start_response)
        start_response(status_line, headers)
        return [body]

    def _stall(self, seconds: float) -> None:
        try:
            self._loop.run(self._clock.sleep(seconds))
        except CancelledError:  # the account is stopped before the time has come
            raise ReplyWithheldError from None

    def _act(self, environ: "WSGIEnvironment") -> tuple[str, list[tuple[str, str]], bytes]:
        parts, status, headers = run_wsgi_app(self._app, environ, buffered=True)
        self._record.add(environ["emulator.call"], int(status.split()[0]))
        return status, list(headers.items()), b"".join(parts)

    def _act_late(self, environ: "WSGIEnvironment", until: float) -> None:
        with suppress(CancelledError):  # the account is stopped before the time has come
            self._loop.run(self._clock.sleep_until(until))
            self._act(environ)

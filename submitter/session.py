"""Credentials, clients and time: what every call to AWS needs."""

import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

import boto3
from botocore.config import Config

from infra.outputs import StackOutputs
from submitter.errors import ConfigurationError

_ATTEMPTS: Final = 8
"""Throttled and failed calls that change nothing twice are tried this often; botocore backs off up to 20 s."""

_SLOW_SECONDS: Final = 5.0
"""How long a call may take until a person is told what is waited for."""

_INVENTED: Final = re.compile(
    r"(?:botocore-session|aws-go-sdk|aws-sdk-[\w-]+|AWSCLI-Session)-?\d+|i-[0-9a-f]+", re.ASCII
)
"""Session names that an SDK makes up afresh in every process, or that EC2 gives: they name nobody."""


@dataclass(frozen=True)
class Clock:
    """This machine's clock, in seconds since the epoch, and how to wait."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], object] = time.sleep


class FencePassedError(Exception):
    """The request was signed too late."""


class Fence:
    """Looks at each request when it has just been signed: it leaves now, or never.

    AWS refuses a signature that is five minutes old, so that what has left by the fence arrives soon after, or never.

    Args:
        clock: The clock that signatures are dated by.

    Attributes:
        passed: Whether any request of the newest :meth:`at` has left.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = math.inf
        self.passed = False

    @contextmanager
    def at(self, until: float) -> Iterator[None]:
        """Let the requests of the context be signed until then, in seconds since the epoch; others at any time."""
        self._until, self.passed = until, False
        try:
            yield
        finally:
            self._until = math.inf

    def __call__(self, **_: object) -> None:
        """Let a request leave; registered as a handler of botocore's before-send."""
        if self._clock.now() > self._until:
            raise FencePassedError
        self.passed = True


class Watch:
    """Says, once for each call, that it is waited for, when that is so for some seconds.

    A call lasts from its first request to its answer, with all tries and the pauses between them. One thread looks at
    those that are under way, once a second, from the first call on.

    Args:
        say: Told the sentence.
        seconds: How long a call may take before.
    """

    def __init__(self, say: Callable[[str], None], *, seconds: float = _SLOW_SECONDS) -> None:
        self._say, self._seconds = say, seconds
        self._under_way: dict[int, tuple[float, str]] = {}
        self._thread: threading.Thread | None = None

    def over(self, session: boto3.Session) -> None:
        """Watch the calls of all clients that a session makes from now on."""
        session.events.register("before-call", self._begin)
        session.events.register("after-call", self._end)
        session.events.register("after-call-error", self._end)

    def _begin(self, *, model: Any, context: object, **_: object) -> None:
        service = model.service_model.metadata.get("serviceId", model.service_model.service_name)
        self._under_way[id(context)] = time.monotonic(), f"{model.name} of {service}"
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="watch", daemon=True)
            self._thread.start()

    def _end(self, *, context: object, **_: object) -> None:
        self._under_way.pop(id(context), None)

    def _look(self) -> None:
        while True:
            time.sleep(min(1.0, self._seconds))
            for call, (began, what) in list(self._under_way.items()):
                if time.monotonic() - began >= self._seconds and self._under_way.pop(call, None) is not None:
                    self._say(f"AWS has not answered {what} for {self._seconds:g} s, or asks for patience: waiting.")


def open_session(contract: StackOutputs, watch: Watch | None = None) -> boto3.Session:
    """Return a session in the stack's region, with the credentials that boto3 finds; no call is made.

    Args:
        contract: The stack's.
        watch: What is to tell of calls that take long.
    """
    session = boto3.Session(region_name=contract.region)
    if watch is not None:
        watch.over(session)
    return session


def client_config(*, attempts: int = _ATTEMPTS) -> Config:
    """Return how clients behave; with one attempt, a call is sent once whatever becomes of it.

    That one has a minute for its answer, since it is not asked for again.
    """
    return Config(
        retries={"mode": "standard", "total_max_attempts": attempts},
        connect_timeout=10,
        read_timeout=60 if attempts == 1 else 20,
        user_agent_extra="rl-batch-submitter",
    )


def caller_name(session: boto3.Session, contract: StackOutputs) -> str:
    """Return who is calling, by their own name; see :func:`name_in`. One call to STS.

    Raises:
        ConfigurationError: The credentials are for another account than the stack's.
    """
    identity = session.client("sts", config=client_config()).get_caller_identity()
    if identity["Account"] != contract.account_id:
        raise ConfigurationError(
            f"The stack is in account {contract.account_id}, the credentials are for {identity['Account']}.",
            "Set AWS_PROFILE to a profile of the stack's account.",
        )
    return name_in(identity["Arn"])


def name_in(arn: str) -> str:
    """Return a caller's name: a user's, or the session's of an assumed role.

    A role profile of the AWS config file without `role_session_name` gets a session name that every process makes up
    anew; then it is the role's name, the same each time. Who shares such a role sets `role_session_name`, or gives
    `--owner`.

    Args:
        arn: Like arn:aws:iam::123:user/path/NAME, arn:aws:sts::123:assumed-role/ROLE/SESSION, arn:aws:iam::123:root.
    """
    kind, *path = arn.rpartition(":")[2].split("/")
    if kind == "assumed-role" and _INVENTED.fullmatch(path[-1]):
        return path[-2]
    return path[-1] if path else kind


def pages(call: Callable[..., Any], token: Mapping[str, str], **arguments: Any) -> Iterator[Any]:
    """Yield the pages of an answer; what boto3's paginators do takes longer to load than a call takes.

    Args:
        call: The operation of a client.
        token: Which key of an answer, when it is there, is which argument of the call for the next page.
        arguments: The other arguments.
    """
    more: dict[str, Any] = {}
    while True:
        page = call(**arguments, **more)
        yield page
        more = {asks: page[tells] for tells, asks in token.items() if page.get(tells)}
        if not more:
            return


def aws_time(reply: Mapping[str, Any]) -> float | None:
    """Return AWS's clock when it replied, in seconds since the epoch: the Date header, which a proxy may have taken."""
    date = reply["ResponseMetadata"]["HTTPHeaders"].get("date")
    return None if date is None else parsedate_to_datetime(date).timestamp()

"""What happens next in an execution: a client's call is carried out, well or badly; what was under way arrives; a job
ends; a process is killed or held up; time passes.
"""

from dataclasses import dataclass

from tests.unit.protocol.world import LISTING_LAG, Call, Describe, Fault, Find, Pause, Query, Sleep, Submit


@dataclass(frozen=True)
class Step:
    client: int
    fault: Fault = Fault.NONE
    lag: float = LISTING_LAG


@dataclass(frozen=True)
class Reply:
    """A call other than SubmitJob is carried out and its reply is lost, so that the client sends it again."""

    client: int


@dataclass(frozen=True)
class Delay:
    """Such a call is held up, and the client sends it again meanwhile."""

    client: int


@dataclass(frozen=True)
class Deliver:
    """What was under way arrives, or never does."""

    index: int
    arrives: bool
    lag: float = LISTING_LAG


@dataclass(frozen=True)
class End:
    job: str
    state: str


@dataclass(frozen=True)
class Kill:
    client: int


@dataclass(frozen=True)
class Hold:
    client: int
    seconds: float


@dataclass(frozen=True)
class Pass:
    """Time passes; without a number, until the first client wakes up."""

    seconds: float | None = None


Action = Step | Reply | Delay | Deliver | End | Kill | Hold | Pass


def faults_of(call: Call) -> tuple[Fault | type[Reply] | type[Delay], ...]:
    """Return what may go wrong with a call."""
    match call:
        case Submit():
            return tuple(Fault)[1:]
        case Sleep() | Pause():
            return ()
        case Query() | Find() | Describe():
            return (Reply,)
        case _:
            return Reply, Delay

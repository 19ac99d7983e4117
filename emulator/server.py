"""The account's front door: one HTTP server on 127.0.0.1 that serves Batch itself and everything else by moto."""

import os
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Self

# moto reads it when EC2 is first used: making its 1,300 machine images takes half a second, and nothing looks at them.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from emulator.account import Account, forget_everything
from emulator.batch.api import Batch
from emulator.batch.cores import Cores
from emulator.batch.runner import clean_environment
from emulator.calls import Call, CallRecord, read_call
from emulator.clock import Clock
from emulator.control import PREFIX, Control
from emulator.corrections import Corrected
from emulator.faults import Faults
from emulator.loop import LoopThread
from emulator.market import Market
from emulator.regions import Regions
from emulator.replies import error_reply
from emulator.signatures import stale
from emulator.wsgi import HttpServer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_CHECKOUT = Path(__file__).parent.parent
_one_account = threading.Lock()
# What jobs wait for can be a role's policy or a subnet.
_MATTERING_TO_BATCH = frozenset({"ec2", "iam"})


class EmulatorServer:
    """An AWS account behind one URL, as a context manager; empty at first, gone afterwards.

    Args:
        home_folder: HOME of the jobs; None means a temporary folder.
        account_id: 12 digits.
        region: The region of jobs and commands that name none; the others are there as well.
        port: Port on 127.0.0.1; 0 means a free one.
        cores: How many jobs run at once; None means as many as this machine has cores.
        runner: What carries jobs out: `process` of this machine, or `docker`.

    Raises:
        RuntimeError: Another account is up in this process; moto keeps its state per process.
    """

    def __init__(
        self,
        home_folder: Path | None = None,
        *,
        account_id: str = "123456789012",
        region: str = "us-east-1",
        port: int = 0,
        cores: int | None = None,
        runner: str = "process",
    ) -> None:
        self.account_id = account_id
        self.region = region
        self._home_folder = home_folder
        self._port = port
        self._cores = cores
        self._runner = runner
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        if not _one_account.acquire(blocking=False):
            raise RuntimeError("an emulated account is up in this process already")
        with ExitStack() as opened:
            opened.callback(_one_account.release)
            self._open(opened)
            self._closing = opened.pop_all()
        return self

    def _open(self, opened: ExitStack) -> None:
        forget_everything(self.account_id)
        self.loop = LoopThread()
        opened.callback(self.loop.stop)
        self.clock = Clock()
        self.account = Account(self.account_id, self.region)
        http = HttpServer(self._port, self._serve)
        self.url = f"http://127.0.0.1:{http.port}"
        home = self._home_folder or Path(opened.enter_context(TemporaryDirectory(prefix="emulator-")))
        cores = Cores(self._cores or os.cpu_count() or 1)
        self._regions = Regions(self.account, lambda account: self._batch(account, home, cores))
        self.batch = self._regions.batch(self.region)
        opened.callback(self._close_batch)
        self.record = CallRecord()
        self._faults = Faults(self._act, self.record, self.clock, self.loop)
        self.control = Control(
            loop=self.loop,
            clock=self.clock,
            faults=self._faults,
            record=self.record,
            regions=self._regions,
            iam_lag=self.account.iam_lag,
            facts={"url": self.url, "account_id": self.account_id, "region": self.region, "pid": os.getpid()},
        )
        moto = Corrected(DomainDispatcherApplication(create_backend_app), self._regions)
        self._moto = Market(moto, self._regions, self.clock)
        self._moto_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        opened.callback(http.start())

    def _batch(self, account: Account, home: Path, cores: Cores) -> Batch:
        """Make AWS Batch of a region; `home` is the HOME of its jobs."""
        return Batch(
            account,
            self.clock,
            self.loop,
            folder=_CHECKOUT,
            environment=clean_environment(url=self.url, region=account.region, home=home),
            cores=cores,
            runner=self._runner,
        )

    def _close_batch(self) -> None:
        for batch in self._regions.batches:
            self.loop.run(batch.scheduler.close())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def _serve(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Serve any request of the port.

        It listens on loopback only, but a web page could still reach it through the browser, and its signature is
        never checked. A page's request has the page's own host name, after DNS rebinding too.
        """
        if environ.get("HTTP_HOST", "").rpartition(":")[0] not in ("127.0.0.1", "localhost"):
            message = "The account is served at 127.0.0.1 and localhost only."
            return error_reply("", "AccessDeniedException", message, 403, start_response)
        if environ["PATH_INFO"].startswith(PREFIX):
            return self.control(environ, start_response)
        call = read_call(environ, environ["wsgi.input"].getvalue(), self.clock.now(), self.batch.app.operation)
        if call is None:
            message = "Request is missing Authentication Token"
            return error_reply("", "MissingAuthenticationToken", message, 403, start_response)
        environ["emulator.call"] = call
        environ["emulator.offset"] = self.clock.offset

        def start(status: str, headers: list[tuple[str, str]], *_: object) -> Callable[[bytes], object]:
            own = {"Date": self.clock.http_date(), "x-amzn-RequestId": str(uuid.uuid4())}
            return start_response(
                status, [*((k, v) for k, v in headers if k.lower() not in ("date", "x-amzn-requestid")), *own.items()]
            )

        return self._faults(environ, start)

    def _act(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Do what a request asks for, unless its signature has grown too old on the way."""
        call: Call = environ["emulator.call"]
        date, offset = environ.get("HTTP_X_AMZ_DATE", ""), environ["emulator.offset"]
        if message := stale(date, now=self.clock.now(), offset=offset):
            code = "SignatureDoesNotMatch" if call.service in ("iam", "sts") else "InvalidSignatureException"
            return error_reply(call.service, code, message, 403, start_response)
        if call.service == "batch":
            return self._regions.batch(call.region).app(environ, start_response)
        environ["HTTP_X_MOTO_ACCOUNT_ID"] = self.account_id
        # moto reads and then changes its tables without a lock, so that a conditional put would not be atomic.
        with self._moto_locks[call.service]:
            reply = self._moto(environ, start_response)
        if call.changes and call.service in _MATTERING_TO_BATCH:
            for batch in self._regions.batches:
                self.loop.call(batch.scheduler.account_changed)
        return reply

"""The emulated account as a resource type sees it: clients, waiting, and errors that reach the user as sentences."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_POLL_SECONDS: Final = 0.05
_LONGEST_POLL_SECONDS: Final = 1.0

T = TypeVar("T")


class PluginError(Exception):
    """Something that the user can understand from its message alone."""


def require_loopback(endpoint: str) -> None:
    """Refuse an endpoint that is not on this machine: this plugin must never act on a real account.

    Raises:
        PluginError: The endpoint is empty or elsewhere.
    """
    if urlsplit(endpoint).hostname not in _LOOPBACK:
        raise PluginError(
            f"the stand-in AWS plugin only talks to an emulated account on this machine, and AWS_ENDPOINT_URL is "
            f"{endpoint!r}; set up this shell with `python -m emulator env`, or use Pulumi's own AWS plugin"
        )


class Account:
    """Clients of one region of the emulated account, made when first used and shared by all threads.

    Only dummy credentials are ever sent and neither a profile nor a configuration file is read, so that nothing of
    the person's own AWS set-up can leak into a run against the emulator.

    Raises:
        PluginError: The endpoint is not on this machine.
    """

    def __init__(self, endpoint: str, region: str) -> None:
        require_loopback(endpoint)
        self.endpoint = endpoint
        self.region = region
        self.cancelled = threading.Event()
        self._lock = threading.Lock()
        self._session: Any = None
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """Return the client of an AWS service; botocore's clients may be shared by threads, its session may not."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._make(service)
            return self._clients[service]

    def _make(self, service: str) -> Any:
        # Imported here because the engine waits for the plugin's port, and botocore takes longer than all else.
        import botocore.session  # noqa: PLC0415 - see above
        from botocore.config import Config  # noqa: PLC0415 - see above

        if self._session is None:
            nowhere = {"config_file": (None, None, "/dev/null", None), "profile": (None, None, None, None)}
            self._session = botocore.session.Session(session_vars=nowhere)
        return self._session.create_client(
            service,
            region_name=self.region,
            endpoint_url=self.endpoint,
            aws_access_key_id="emulator",
            aws_secret_access_key="emulator",  # noqa: S106 - a dummy, see the class
            config=Config(max_pool_connections=64, proxies={}, retries={"mode": "standard", "total_max_attempts": 10}),
        )

    @property
    def account_id(self) -> str:
        """The account's 12 digits, as STS gives them."""
        return str(self.client("sts").get_caller_identity()["Account"])

    def arn(self, service: str, resource: str, account_id: str) -> str:
        """Return the ARN of something in this region."""
        return f"arn:aws:{service}:{self.region}:{account_id}:{resource}"


class Aws:
    """What one request of the engine may use: the account, and until when it may wait."""

    def __init__(self, account: Account, timeout_seconds: float) -> None:
        self.account = account
        self.region = account.region
        self._seconds = timeout_seconds
        self._deadline = time.monotonic() + timeout_seconds

    def client(self, service: str) -> Any:
        """Return the client of an AWS service."""
        return self.account.client(service)

    def wait(self, what: str, probe: Callable[[], T | None]) -> T:
        """Return what `probe` gives as soon as that is true.

        Raises:
            PluginError: The request's time is up, or the engine has cancelled its requests.
        """
        pause = _POLL_SECONDS
        while not (result := probe()):
            if time.monotonic() > self._deadline:
                raise PluginError(f"{what} took longer than {self._seconds:g} s")
            if self.account.cancelled.wait(pause):
                raise PluginError(f"cancelled while waiting until {what}")
            pause = min(pause * 1.5, _LONGEST_POLL_SECONDS)
        return result


def error_code(error: Exception) -> str:
    """Return AWS's code of a botocore ClientError, else an empty string."""
    response = getattr(error, "response", None)
    return str(response["Error"].get("Code", "")) if isinstance(response, Mapping) and "Error" in response else ""


def explain(error: Exception, endpoint: str) -> str | None:
    """Return one sentence for an error that is AWS's, the network's or our own; None for one that nobody expected."""
    from botocore import exceptions  # noqa: PLC0415 - see Account._make

    if isinstance(error, PluginError):
        return str(error)
    if isinstance(error, exceptions.ClientError):
        details = error.response.get("Error", {})
        return f"{error.operation_name}: {details.get('Code', '')}: {details.get('Message', '')}".rstrip(": ")
    if isinstance(error, (exceptions.HTTPClientError, exceptions.ConnectionError)):
        return f"the emulated account at {endpoint} does not answer; is it up (`python -m emulator status`)?"
    if isinstance(error, exceptions.BotoCoreError):
        return " ".join(str(error).split())
    return None


def tag_list(tags: Mapping[str, str] | None) -> list[dict[str, str]]:
    """Return tags as most AWS services take them."""
    return [{"Key": key, "Value": value} for key, value in sorted((tags or {}).items())]


def tag_map(tags: Any) -> dict[str, str]:
    """Return tags from the form of most AWS services (a list) or of Batch and Logs (a map), without AWS's own."""
    pairs = tags.items() if isinstance(tags, Mapping) else ((tag["Key"], tag["Value"]) for tag in tags or ())
    return {key: value for key, value in sorted(pairs) if not key.startswith("aws:")}


def renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return `values` under other names: those in `names`, else the same."""
    return {names.get(name, name): value for name, value in values.items()}


def capitalised(value: Any) -> Any:
    """Return a value with the names of its blocks in EC2's spelling: `deviceName` becomes `DeviceName`."""
    if isinstance(value, Mapping):
        return {name[0].upper() + name[1:]: capitalised(item) for name, item in value.items()}
    return [capitalised(item) for item in value] if isinstance(value, list) else value


def uncapitalised(value: Any) -> Any:
    """Return a value with the names of its blocks in Pulumi's spelling: `DeviceName` becomes `deviceName`."""
    if isinstance(value, Mapping):
        return {name[0].lower() + name[1:]: uncapitalised(item) for name, item in value.items()}
    return [uncapitalised(item) for item in value] if isinstance(value, list) else value

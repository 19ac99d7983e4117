"""The plugin's process: prints its port on standard output and serves the engine until that wants no more.

Usage: python -m emulator.plugin LOG_FILE [ENGINE_ADDRESS]
"""

import logging
import os
import signal
import sys
from concurrent import futures
from importlib import metadata
from typing import Final

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from emulator.plugin.functions import FUNCTIONS
from emulator.plugin.protocol import Plugin
from emulator.plugin.resources import TYPES

_STOPPING: Final = frozenset({signal.SIGINT, signal.SIGTERM})
_THREADS: Final = 32
_LARGEST_MESSAGE: Final = 400 * 1024 * 1024  # bytes; the engine's own limit
_ORPHAN_CHECK_SECONDS: Final = 5


def serve(log_file: str) -> None:
    """Serve one engine, then leave at once: it would wait 10 s for a plugin that tidies up."""
    # Blocked in every thread, so that the main one can wait for them without a handler.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    engine = os.getppid()
    server = grpc.server(
        futures.ThreadPoolExecutor(_THREADS), options=[("grpc.max_receive_message_length", _LARGEST_MESSAGE)]
    )
    plugin = Plugin(metadata.version("pulumi-aws"), TYPES, FUNCTIONS, os.environ.get("AWS_ENDPOINT_URL", ""), log_file)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)  # noqa: T201 - the protocol: the engine reads the port from here
    # An engine that was killed sends no signal; then this process has another parent.
    while signal.sigtimedwait(_STOPPING, _ORPHAN_CHECK_SECONDS) is None and os.getppid() == engine:
        pass
    os._exit(0)


def main() -> None:
    """Set up the log and serve."""
    log_file = sys.argv[1]
    logging.basicConfig(filename=log_file, format="%(asctime)s plugin[%(process)d] %(message)s", level=logging.WARNING)
    serve(log_file)


if __name__ == "__main__":
    main()

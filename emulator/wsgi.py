"""The HTTP server under the account: WSGI with keep-alive connections on 127.0.0.1.

werkzeug's own handler closes each connection after one reply, which no AWS endpoint does: a client would pay for a new
connection on every call, and reuse of connections would never be met in a test.
"""

import io
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler
from werkzeug.test import run_wsgi_app

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class ReplyWithheldError(ConnectionError):
    """Raised by an application to close the connection without any reply."""


class Handler(WSGIRequestHandler):
    """Serves the requests of one connection, one after the other; the application sees the whole body at once."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body waits for the acknowledgement of the headers
    server: "HttpServer"

    def setup(self) -> None:
        """Register the connection, so that the server can close it at the end."""
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        """Forget the connection."""
        self.server.connections.discard(self.connection)
        super().finish()

    def run_wsgi(self) -> None:
        """Read one request, run the application to its end and send the reply."""
        environ = self.make_environ()
        chunked = environ.get("wsgi.input_terminated", False)
        body = environ["wsgi.input"].read(*(() if chunked else (int(environ.get("CONTENT_LENGTH") or 0),)))
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        try:
            parts, status, headers = run_wsgi_app(self.server.app, environ, buffered=True)
        except ReplyWithheldError:
            self.close_connection = True
            return
        data = b"".join(parts)
        code, _, reason = status.partition(" ")
        self.send_response_only(int(code), reason)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection"):
                self.send_header(name, value)
        # A reply to HEAD has the length of what GET would return.
        length = headers.get("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - the name is werkzeug's
        """Write nothing: the record of calls says who asked for what."""


class HttpServer(ThreadedWSGIServer):
    """Listens on a port of 127.0.0.1 (0: a free one) with one thread per connection."""

    def __init__(self, port: int, app: "WSGIApplication") -> None:
        self.connections: set[socket.socket] = set()
        # Bound here, since werkzeug would end the process when the port is taken.
        with socket.create_server(("127.0.0.1", port), backlog=128) as listening:
            super().__init__("127.0.0.1", port, app, handler=Handler, fd=listening.fileno())
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), name="emulator-http", daemon=True)

    def start(self) -> Callable[[], None]:
        """Serve in a thread of its own until the returned function is called; it closes every connection."""
        self._thread.start()
        return self._stop

    def _stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()
        for connection in tuple(self.connections):
            with suppress(OSError):  # its client or its thread has closed it just now
                connection.shutdown(socket.SHUT_RDWR)

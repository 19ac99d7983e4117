"""What servers on this machine answer, in place of Docker's daemon and of W&B."""

import json
from http.server import BaseHTTPRequestHandler

VERSION = {"ApiVersion": "1.41", "MinAPIVersion": "1.12", "Version": "20.10.24", "Os": "linux", "Arch": "amd64"}
"""What a Docker daemon says that it is."""


def reply(handler: BaseHTTPRequestHandler, document: object) -> None:
    """Answer a request with a document in JSON, or with a text as it is."""
    body = (document if isinstance(document, str) else json.dumps(document)).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)

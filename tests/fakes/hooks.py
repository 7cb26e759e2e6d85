"""A web hook to test against: it records the JSON that is posted, and fails when told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "hook-secret-1234"


class Hook:
    """A service on localhost, as Apprise's `json://` reaches it."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        """What was posted and taken."""
        self.status = 200
        self.url = ""

    @contextmanager
    def running(self) -> Iterator[Hook]:
        """Serve until the end of the block."""
        handler = type("Handler", (_Handler,), {"hook": self})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            server.daemon_threads = True
            self.url = f"json://127.0.0.1:{server.server_port}/{SECRET}"
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            try:
                yield self
            finally:
                server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    hook: Hook

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if self.hook.status == 200:
            self.hook.received.append(message)
        self.send_response(self.hook.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Stay silent."""

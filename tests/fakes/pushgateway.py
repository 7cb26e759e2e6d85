"""A Pushgateway to test against: it keeps what is pushed by its group, and fails when told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Push:
    """One request."""

    method: str
    path: str
    headers: Message
    body: str


class Pushgateway:
    """On localhost; `statuses` are those of the next answers, then 200."""

    def __init__(self) -> None:
        self.pushes: list[Push] = []
        self.statuses: list[int] = []
        self.says = ""
        """The reason in the status line, as a proxy might repeat what it was sent."""
        self.url = ""

    @contextmanager
    def running(self) -> Iterator[Pushgateway]:
        """Serve until the end of the block."""
        handler = type("Handler", (_Handler,), {"gateway": self})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            server.daemon_threads = True
            self.url = f"http://127.0.0.1:{server.server_port}"
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            try:
                yield self
            finally:
                server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    gateway: Pushgateway

    def do_PUT(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size).decode()
        self.gateway.pushes.append(Push(self.command, self.path, self.headers, body))
        status = self.gateway.statuses.pop(0) if self.gateway.statuses else 200
        self.send_response(status, self.gateway.says or None)
        if 300 <= status < 400:
            self.send_header("Location", f"{self.gateway.url}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET = do_PUT  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Stay silent."""

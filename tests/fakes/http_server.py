"""HTTP servers on localhost for what a test talks to: each says only what it answers."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """Takes requests of whatever method in one way, reads and answers them whole, and is silent."""

    def take(self) -> None:
        """Read a request and answer it."""
        raise NotImplementedError

    def do_POST(self) -> None:
        """As the standard library calls it."""
        self.take()

    do_GET = do_PUT = do_PATCH = do_POST  # noqa: N815

    def body(self) -> bytes:
        """What was sent."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(
        self,
        status: int,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        says: str | None = None,
    ) -> None:
        """Send an answer; `says` is the reason in its status line, `headers` win over what is set
        by themselves.
        """
        self.send_response(status, says)
        told = {} if status == 204 else {"Content-Length": str(len(body))}
        for name, value in {**told, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Stay silent."""


@contextmanager
def serving(handler: type[Handler], **given: object) -> Iterator[str]:
    """Serve until the end of the block, at the address that is yielded; `given` are attributes of
    the handler.
    """
    handler = type("Given", (handler,), given)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def free_port() -> int:
    """A port that nothing listens on. The system gives ports from 32768 on to connections, of which
    one could have it before the server that it is for.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port

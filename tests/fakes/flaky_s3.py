"""An S3 at its worst: a proxy in front of another S3, in a process of its own, told by HTTP.

python -m tests.fakes.flaky_s3 --upstream http://127.0.0.1:9000 --port 0

POST /-/faults    a JSON object of `Faults`, from now on
GET  /-/stats     what was asked and what failed, as `Stats`
"""

from __future__ import annotations

import argparse
import json
import random
import threading
import time
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.fakes.clients import call
from tests.fakes.processes import UNTIL_EOF, announce

_ERROR = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    "<Error><Code>{code}</Code><Message>Told to fail.</Message></Error>"
)
_CODES = {500: "InternalError", 503: "SlowDown"}
_HOPS = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


@dataclass
class Faults:
    """How it behaves."""

    share: float = 0.0
    """Of all requests, those that fail,"""
    late: float = 0.0
    """and of these, those that were carried out all the same: only the reply is lost."""
    statuses: tuple[int, ...] = (500, 503)
    outage_after: int | None = None
    """Requests after which the bucket is out,"""
    outage_seconds: float = 20.0
    """for so long,"""
    refuse: bool = False
    """and closes connections in place of answering 503."""
    seed: int = 0
    drips: str = ""
    """What is read below this path comes at a byte a second,"""
    drip_times: int = 1_000_000
    """for the first so many requests."""
    unconditional: bool = False
    """Conditions of a PUT are ignored, as some servers do."""


@dataclass
class Stats:
    """What it was asked."""

    requests: int = 0
    sent: int = 0
    """Bytes of what was asked for."""
    dripped: int = 0
    """Replies that came at a byte a second."""
    failed: dict[str, int] = field(default_factory=dict)
    """By method and status; `out` where the bucket was out."""
    out_for: float = 0.0
    """Seconds from the first request that met the outage to the last one."""


@dataclass(frozen=True)
class FlakyS3:
    """What tests hold of it."""

    port: int

    @property
    def endpoint(self) -> str:
        """What AWS_ENDPOINT_URL should be."""
        return f"http://127.0.0.1:{self.port}"

    def faults(self, **faults: Any) -> None:
        """Behave like this from now on, all else at its best, and count anew."""
        call(f"{self.endpoint}/-/faults", faults)

    def stats(self) -> dict[str, Any]:
        """As `Stats` says."""
        stats: dict[str, Any] = call(f"{self.endpoint}/-/stats")
        return stats


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], upstream: str) -> None:
        super().__init__(address, _Handler)
        self.upstream = urlsplit(upstream).netloc
        self.lock = threading.Lock()
        self.behave(Faults())

    def behave(self, faults: Faults) -> None:
        """Start anew with these faults."""
        with self.lock:
            self.faults, self.stats = faults, Stats()
            self.chance = random.Random(faults.seed)
            self.out_since: float | None = None

    def fate(self, method: str) -> tuple[int, bool]:
        """The status of the next request, 0: no answer; and whether it is carried out."""
        with self.lock:
            self.stats.requests += 1
            if self._is_out():
                return self._failed("out", 0 if self.faults.refuse else 503), False
            if self.chance.random() >= self.faults.share:
                return 200, True
            status = self.chance.choice(self.faults.statuses)
            self._failed(f"{method} {status}", status)
            return status, self.chance.random() < self.faults.late

    def drips(self, method: str, path: str) -> bool:
        """Whether a reply comes at a byte a second."""
        with self.lock:
            below = self.faults.drips
            if method != "GET" or not below or below not in path or "/-/" in path:
                return False
            self.stats.dripped += 1
            return self.stats.dripped <= self.faults.drip_times

    def _failed(self, how: str, status: int) -> int:
        self.stats.failed[how] = self.stats.failed.get(how, 0) + 1
        return status

    def _is_out(self) -> bool:
        after, now = self.faults.outage_after, time.monotonic()
        if after is None or self.stats.requests <= after:
            return False
        self.out_since = self.out_since or now
        lasted = now - self.out_since
        if lasted < self.faults.outage_seconds:
            self.stats.out_for = lasted
            return True
        return False


class _Handler(BaseHTTPRequestHandler):
    server: _Proxy
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith("/-/"):
            return self._told(body)
        status, carried_out = self.server.fate(self.command)
        if not status:
            self.close_connection = True
            return None
        found = self._upstream(body) if carried_out else None
        if found and status == 200:
            return self._answer(*found)
        text = _ERROR.format(code=_CODES[status]).encode()
        return self._answer(status, {"Content-Type": "application/xml"}, text)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve  # noqa: N815

    def _told(self, body: bytes) -> None:
        if self.path == "/-/faults":
            self.server.behave(Faults(**json.loads(body)))
        reply = json.dumps(asdict(self.server.stats)).encode()
        self._answer(200, {"Content-Type": "application/json"}, reply)

    def _upstream(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection(self.server.upstream, timeout=120)
        dropped = {"Expect", "If-None-Match"} if self.server.faults.unconditional else {"Expect"}
        headers = {name: value for name, value in self.headers.items() if name not in dropped}
        connection.request(self.command, self.path, body, headers)
        response = connection.getresponse()
        found = dict(response.getheaders())
        reply = response.read()
        connection.close()
        with self.server.lock:
            self.server.stats.sent += len(reply)
        return response.status, found, reply

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        length = str(len(body))
        for name, value in headers.items():
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value  # of what a GET would give
            if name.lower() not in _HOPS:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command == "HEAD":
            return
        if status in (200, 206) and self.server.drips(self.command, self.path):
            self._drip(body)
        else:
            self.wfile.write(body)

    def _drip(self, body: bytes) -> None:
        """Send a byte a second, until the client is gone."""
        for number in range(len(body)):
            try:
                self.wfile.write(body[number : number + 1])
                self.wfile.flush()
            except OSError:
                return
            time.sleep(1)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Stay silent."""


def main() -> None:
    """Run the proxy from the command line, until killed."""
    parser = argparse.ArgumentParser(description="An S3 that fails, for tests.")
    parser.add_argument("--upstream", required=True, help="the S3 that does the work")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument(UNTIL_EOF, action="store_true", help="stop when stdin closes")
    options = parser.parse_args()
    with _Proxy(("127.0.0.1", options.port), options.upstream) as server:
        announce(server.server_port, until_eof=options.until_eof)
        server.serve_forever()


if __name__ == "__main__":
    main()

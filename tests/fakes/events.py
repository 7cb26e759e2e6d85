"""A server to post events to: it records what comes, and answers what it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """What the server answers to one post."""

    status: int = 204
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class EventServer:
    """Takes events at `/api/events`, and answers 404 elsewhere."""

    url: str = ""
    posts: list[tuple[dict[str, str], Any]] = field(default_factory=list)
    """Headers and JSON of each."""
    answers: list[Answer] = field(default_factory=list)
    """To the next posts; then all is well."""

    @contextmanager
    def running(self) -> Iterator[EventServer]:
        """Serve until the end of the block."""
        handler = type("Handler", (_Handler,), {"events": self})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            server.daemon_threads = True
            self.url = f"http://127.0.0.1:{server.server_port}/api"
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            try:
                yield self
            finally:
                server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    events: EventServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        answer = Answer(404)
        if self.path == "/api/events":
            self.events.posts.append((dict(self.headers), body))
            answer = self.events.answers.pop(0) if self.events.answers else Answer()
        data = answer.body.encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Stay silent."""

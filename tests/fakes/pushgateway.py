"""A Pushgateway to test against: it keeps what is pushed by its group, and fails when told to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message

from tests.fakes.http_server import Handler, serving


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
        with serving(_Handler, gateway=self) as url:
            self.url = url
            yield self


class _Handler(Handler):
    gateway: Pushgateway

    def take(self) -> None:
        push = Push(self.command, self.path, self.headers, self.body().decode())
        self.gateway.pushes.append(push)
        status = self.gateway.statuses.pop(0) if self.gateway.statuses else 200
        moved = {"Location": f"{self.gateway.url}/elsewhere"} if 300 <= status < 400 else {}
        self.answer(status, headers=moved, says=self.gateway.says or None)

"""A server to post events to: it records what comes, and answers what it is told to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.http_server import Handler, serving


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
        with serving(_Handler, events=self) as url:
            self.url = f"{url}/api"
            yield self


class _Handler(Handler):
    events: EventServer

    def take(self) -> None:
        body = json.loads(self.body() or b"null")
        answer = Answer(404)
        if self.path == "/api/events":
            self.events.posts.append((dict(self.headers), body))
            answer = self.events.answers.pop(0) if self.events.answers else Answer()
        self.answer(answer.status, answer.body.encode(), answer.headers)

"""A web hook to test against: it records the JSON that is posted, and fails when told to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.fakes.http_server import Handler, serving

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
        with serving(_Handler, hook=self) as url:
            self.url = f"{url.replace('http', 'json')}/{SECRET}"
            yield self


class _Handler(Handler):
    hook: Hook

    def take(self) -> None:
        message = json.loads(self.body())
        if self.hook.status == 200:
            self.hook.received.append(message)
        self.answer(self.hook.status)

"""A judge that answers when a test says so, and no sooner; until then it shows what it was asked.

    python -m tests.fakes.holding --port 0

So a test counts who has how many requests under way, and no machine is too slow for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import count

from aiohttp import web

from tests.fakes.clients import JudgeServer
from tests.fakes.judge import Behaviour, Judge, main


class Holding(Judge):
    """The server."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour)
        self._numbers = count()
        self._held: dict[int, tuple[str, asyncio.Event]] = {}
        self._open = False

    def app(self) -> web.Application:
        """With routes for what is held."""
        app = super().app()
        app.add_routes([web.get("/held", self.show), web.post("/answer", self.answer)])
        return app

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer when told to; what the client gave up meanwhile is held no more."""
        number, told = next(self._numbers), asyncio.Event()
        if not self._open:
            self._held[number] = await request.text(), told
            try:
                await told.wait()
            finally:
                self._held.pop(number, None)
        return await super().chat(request)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Number and body of each request that is held, the oldest first."""
        return web.json_response([[number, body] for number, (body, _) in self._held.items()])

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer requests by number, or all, with all that are still to come."""
        numbers = (await request.json())["numbers"]
        self._open = numbers == "all"
        for number in list(self._held) if self._open else numbers:
            if number in self._held:  # not given up meanwhile
                self._held.pop(number)[1].set()
        return web.json_response({"ok": True})


class HoldingServer(JudgeServer):
    """What a test holds of it."""

    def held(self, asker: Callable[[str], str]) -> dict[str, list[int]]:
        """The requests under way by who asks, as their bodies tell: numbers, the oldest first."""
        found: dict[str, list[int]] = {}
        for number, body in self._control("held"):
            found.setdefault(asker(body), []).append(number)
        return found

    def answer(self, numbers: Iterable[int]) -> None:
        """Answer these."""
        self._control("answer", {"numbers": list(numbers)})

    def answer_all(self) -> None:
        """Answer all, and from now on whatever comes, at once."""
        self._control("answer", {"numbers": "all"})


if __name__ == "__main__":
    main(Holding)

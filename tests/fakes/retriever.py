"""A search to test against: a server on localhost with an index of its own, in its own process.

    python -m tests.fakes.retriever --port 0

`POST /builds/BUILD/search` takes `{"query": ..., "k": ...}`, `GET /search?q=...&build=...` as well.
`Behaviour` lists what it can be made to do, by `POST /faults`. Faults are drawn from the question
and its attempt number, so that a run repeats itself exactly.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from aiohttp import web

from tests.fakes.clients import call
from tests.fakes.processes import UNTIL_EOF, announce

HANG_SECONDS = 3600
KINDS = (
    "400",
    "401",
    "403",
    "404",
    "429",
    "500",
    "503",
    "redirect",
    "drop",
    "hang",
    "cut",
    "html",
    "no hits",
    "null hits",
    "other keys",
    "huge",
    "hundreds",
    "no text",
    "half a character",
)


@dataclass(frozen=True)
class Behaviour:
    """What the server does; everything but the defaults is a way to be difficult."""

    latency_ms: float = 0
    fail: Mapping[str, float] = field(default_factory=dict)
    """Kind of fault -> its share of the attempts."""
    fail_attempts: int | None = None
    """Only so many first attempts of each question can fail; None: all."""
    match: str = ""
    """Only questions with this text can fail."""
    after: int = 0
    """Only requests after so many can fail."""
    retry_after: float | None = None
    """Seconds that a 429 and a 503 ask to wait."""
    token: str | None = None
    """What the header Authorization must be; None: anything."""
    max_in_flight: int | None = None
    """Requests at work beyond which the next is answered 429."""


@dataclass
class Stats:
    """What the server was asked and what it answered since the last reset."""

    requests: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    """Good answers by question."""
    asked: Counter[str] = field(default_factory=Counter)
    by_status: Counter[str] = field(default_factory=Counter)
    builds: Counter[str] = field(default_factory=Counter)
    last_body: str = ""
    last_query: list[tuple[str, str]] = field(default_factory=list)
    last_headers: dict[str, str] = field(default_factory=dict)


class Search:
    """The server."""

    def __init__(self) -> None:
        self.behaviour, self.stats = Behaviour(), Stats()

    def app(self) -> web.Application:
        """The application with all its routes."""
        app = web.Application()
        app.add_routes(
            [
                web.post("/builds/{build}/search", self.post),
                web.get("/search", self.get),
                web.get("/documents/{id}", self.document),
                web.get("/stats", self.show_stats),
                web.post("/reset", self.reset),
                web.post("/faults", self.faults),
            ]
        )
        return app

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Search with a body."""
        self.stats.last_body = await request.text()
        body = json.loads(self.stats.last_body)
        return await self.search(request, body["query"], request.match_info["build"])

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Search with parameters."""
        return await self.search(request, request.query["q"], request.query.get("build", ""))

    async def document(self, request: web.Request) -> web.Response:
        """Look a document up by its id."""
        status = {"there": 200, "gone": 404}.get(request.match_info["id"], 500)
        return web.json_response({}, status=status)

    async def search(self, request: web.Request, query: str, build: str) -> web.StreamResponse:
        """Count, and answer well or badly."""
        stats, behaviour = self.stats, self.behaviour
        stats.requests += 1
        stats.asked[query] += 1
        stats.builds[build] += 1
        stats.last_query = list(request.query.items())
        stats.last_headers = {name.lower(): value for name, value in request.headers.items()}
        stats.in_flight += 1
        stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)
        try:
            response = await self.answer(request, behaviour, query, build)
        finally:
            stats.in_flight -= 1
        stats.by_status[str(response.status)] += 1
        return response

    async def answer(
        self, request: web.Request, behaviour: Behaviour, query: str, build: str
    ) -> web.StreamResponse:
        """One answer."""
        await asyncio.sleep(behaviour.latency_ms / 1000)
        sent = request.headers.get("Authorization")
        if behaviour.token is not None and sent != behaviour.token:
            return web.json_response({"error": f"no access with {sent}"}, status=401)
        most = behaviour.max_in_flight
        if most is not None and self.stats.in_flight > most:
            return self.refusal(429)
        fault = self.draw(query)
        if fault is None or fault in _HITS:
            self.stats.answered[query] += 1
            hits = _HITS[fault](query, build) if fault else hits_of(query, build)
            return web.json_response({"took": 3, "hits": hits, "answer": {"text": f"On {query}"}})
        return await self.spoil(request, fault)

    async def spoil(self, request: web.Request, fault: str) -> web.StreamResponse:
        """An answer that is none."""
        if fault == "hang":
            await asyncio.sleep(HANG_SECONDS)
        if fault == "drop" and request.transport is not None:
            request.transport.abort()
        if fault == "redirect":
            return web.Response(status=307, headers={"Location": "https://login.example.com/"})
        if fault == "html":
            return web.Response(text="<html>Please log in</html>", content_type="text/html")
        if fault == "cut":
            return web.Response(text='{"hits": [{"id": "1", "te')
        if fault == "other keys":
            return web.json_response({"results": [], "took": 3})
        return self.refusal(int(fault) if fault.isdecimal() else 500)

    def refusal(self, status: int) -> web.Response:
        """An error in JSON."""
        wait = self.behaviour.retry_after
        headers = {} if wait is None else {"Retry-After": f"{wait:g}"}
        return web.json_response({"error": "not now, or not so"}, status=status, headers=headers)

    def draw(self, query: str) -> str | None:
        """The fault that hits this attempt, if any."""
        behaviour, attempt = self.behaviour, self.stats.asked[query] - 1
        late = behaviour.fail_attempts is not None and attempt >= behaviour.fail_attempts
        if late or behaviour.match not in query or self.stats.requests <= behaviour.after:
            return None
        digest = hashlib.blake2b(f"{query}|{attempt}".encode(), digest_size=8).digest()
        place = int.from_bytes(digest, "big") / 2**64
        for kind, share in behaviour.fail.items():
            if place < share:
                return kind
            place -= share
        return None

    async def show_stats(self, request: web.Request) -> web.StreamResponse:
        """Show the counts."""
        return web.json_response(vars(self.stats))

    async def reset(self, request: web.Request) -> web.StreamResponse:
        """Forget the counts and all faults."""
        self.behaviour, self.stats = Behaviour(), Stats(in_flight=0)
        return web.json_response({"ok": True})

    async def faults(self, request: web.Request) -> web.StreamResponse:
        """Change the behaviour, setting by setting."""
        changes = await request.json()
        if unknown := set(changes.get("fail", {})) - set(KINDS):
            return web.json_response({"error": f"no such fault: {unknown}"}, status=400)
        self.behaviour = replace(self.behaviour, **changes)
        return web.json_response(asdict(self.behaviour))


def hits_of(query: str, build: str) -> list[dict[str, Any]]:
    """The three hits on a question, as this index has them."""
    return [
        {"id": f"{build}-{rank}", "text": f"Passage {rank} on {query}", "score": 1 / (rank + 1)}
        for rank in range(3)
    ]


_HITS = {
    "no hits": lambda query, build: [],
    "null hits": lambda query, build: None,
    "huge": lambda query, build: [{"id": "1", "text": "x" * 2_000_000, "score": 1}],
    "hundreds": lambda query, build: hits_of(query, build) * 100,
    "no text": lambda query, build: [{"id": "1", "score": 1}],
    "half a character": lambda query, build: [{"id": "1", "text": "cut \ud83d", "score": 1}],
}


@dataclass(frozen=True)
class SearchServer:
    """What tests hold of the server."""

    port: int

    @property
    def root(self) -> str:
        """Its address, without a slash."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, Any]:
        """`retriever:` that asks it well."""
        return {
            "url": f"{self.root}/builds/{{build}}/search",
            "body": {"query": "{user_input}", "k": 3},
            "contexts": "hits.text",
            "ids": "hits.id",
            "scores": "hits.score",
            "response": "answer.text",
        }

    def stats(self) -> dict[str, Any]:
        """What it was asked since the last reset."""
        stats: dict[str, Any] = call(f"{self.root}/stats")
        return stats

    def faults(self, **behaviour: Any) -> None:
        """Change its behaviour from now on, setting by setting."""
        call(f"{self.root}/faults", behaviour)

    def reset(self) -> None:
        """Forget the counts and all faults."""
        call(f"{self.root}/reset", {})


async def serve(port: int, *, until_eof: bool) -> None:
    """Listen on localhost and say where, until killed."""
    runner = web.AppRunner(Search().app(), access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    announce(runner.addresses[0][1], until_eof=until_eof)
    await asyncio.Event().wait()


def main() -> None:
    """Run the server from the command line."""
    parser = argparse.ArgumentParser(description="A search for tests.")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument(UNTIL_EOF, action="store_true", help="stop when stdin closes")
    options = parser.parse_args()
    asyncio.run(serve(options.port, until_eof=options.until_eof))


if __name__ == "__main__":
    main()

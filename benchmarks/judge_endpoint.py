"""The endpoint that the engine's benchmarks ask: the tests' fake judge, with what measuring needs.

    python -m benchmarks.judge_endpoint --port 0 --behaviour '{"latency_ms": 300}'

It answers the prompts of ragmetrics, ragas and DeepEval alike with replies of sensible length,
remembers them (so that it costs little while it is measured against), counts characters by kind
of request, and keeps the bodies it was sent for the floor client to send again.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from aiohttp import web

from benchmarks.peer_replies import is_question_prompt, peer_reply
from tests.fakes.decider import PATHS as DECIDING
from tests.fakes.judge import Judge, main
from tests.fakes.verdicts import Json, reply

_QUESTIONS = 3


class Endpoint(Judge):
    """The fake judge, measured."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._replies: dict[tuple[str, str, int], str] = {}
        self._begin()

    def app(self) -> web.Application:
        """The application with the routes of the measuring side too."""
        app = super().app()
        app.add_routes([web.post("/bodies", self.write_bodies)])
        return app

    def _begin(self) -> None:
        self._bodies: list[tuple[str, bytes]] = []
        self._asked: Counter[str] = Counter()
        self._kinds: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        self._cpu = time.process_time()

    async def admit(self, request: web.Request) -> tuple[Json, str | None]:
        """Keep the body and, of a request that is admitted, count the characters."""
        self._bodies.append((request.path, await request.read()))
        body, fault = await super().admit(request)
        if messages := body.get("messages"):
            kind = self._kinds[_kind(messages)]
            kind[0] += 1
            kind[1] += sum(len(message["content"]) for message in messages)
        return body, fault

    async def admit_texts(self, request: web.Request, texts: str | list[str]) -> str | None:
        """Keep the body of a request to a decision model too."""
        if request.path in DECIDING:
            self._bodies.append((request.path, await request.read()))
        return await super().admit_texts(request, texts)

    def content(self, messages: list[Json], schema: Json | None, fault: str | None) -> str:
        """A sensible reply, remembered; faults spoil it as they do the tests' replies."""
        turns = {message["role"]: message["content"] for message in messages}
        system, user = turns.get("system", ""), turns["user"]
        # ragas puts one prompt several times and wants another question each time.
        number = 0
        if is_question_prompt(user):
            number = self._asked[user] % _QUESTIONS
            self._asked[user] += 1
        key = (system, user, number)
        text = self._replies.get(key)
        if text is None:
            text = peer_reply(user, number)
            text = reply(system, user, schema) if text is None else text
            self._replies[key] = text
        self._kinds[_kind(messages)][2] += len(text)
        if fault in ("malformed", "truncated"):
            return text[: len(text) // 2]
        return f"Sure! Here is my verdict:\n```json\n{text}\n```" if fault == "prose" else text

    async def show_stats(self, request: web.Request) -> web.StreamResponse:
        """The counts, with characters by kind and the CPU this process took since the reset."""
        more = {"kinds": self._kinds, "cpu_seconds": time.process_time() - self._cpu}
        return web.json_response({**vars(self.stats), **more})

    async def reset(self, request: web.Request) -> web.StreamResponse:
        """Forget the counts and bodies, not the replies."""
        self._begin()
        return await super().reset(request)

    async def write_bodies(self, request: web.Request) -> web.StreamResponse:
        """Write what was sent to the file named, a line of path and body each."""
        path = Path((await request.json())["path"])
        with path.open("wb") as file:
            file.writelines(b"%s %s\n" % (where.encode(), body) for where, body in self._bodies)
        return web.json_response({"bodies": len(self._bodies)})


def _kind(messages: list[Json]) -> str:
    """What is asked: by the first words of the instructions."""
    return " ".join(messages[0]["content"].split()[:8])


if __name__ == "__main__":
    main(Endpoint)

"""The rerankers of the fake judge: the request and error forms of real servers.

    POST /v1/rerank    {"model", "query", "documents"}    Cohere, Jina, vLLM, Infinity
                       {"query", "texts"}                 text-embeddings-inference
    POST /v1/score     {"model", "text_1", "text_2"}      vLLM

`Behaviour.reranker` says whose form it has. A score is the share of the question's words that a
document has. `malformed` and `truncated` leave a score out, `nonsense` gives no number.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from tests.fakes.judge import Judge
    from tests.fakes.verdicts import Json

_WORD = re.compile(r"\w+")
_SPOILED = ("malformed", "truncated")


class Rerankers:
    """The endpoints; the judge counts requests and lets faults happen."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to the application."""
        return [web.post("/v1/rerank", self.rerank), web.post("/v1/score", self.score)]

    async def rerank(self, request: web.Request) -> web.StreamResponse:
        """Score documents, best first, in the form of the server that it plays."""
        form = self._judge.behaviour.reranker
        body = await request.json()
        documents = body.get("texts" if form == "tei" else "documents")
        if documents is None:
            return self._missing(form)
        if (most := self._judge.behaviour.most_documents) and len(documents) > most:
            said = f"batch size {len(documents)} > maximum allowed batch size {most}"
            return web.json_response({"error": said, "error_type": "Validation"}, status=422)
        scores, usage = await self._scores(request, body["query"], documents)
        if form == "tei":
            return web.json_response([{"index": place, "score": one} for place, one in scores])
        results = [{"index": place, "relevance_score": one} for place, one in scores]
        if form == "cohere":
            billed = {"tokens": {"input_tokens": usage["prompt_tokens"]}}
            return web.json_response({"id": "1", "results": results, "meta": billed})
        if form == "jina":
            usage = {"total_tokens": usage["prompt_tokens"]}
        return web.json_response({"model": body["model"], "results": results, "usage": usage})

    async def score(self, request: web.Request) -> web.StreamResponse:
        """Score one text with others, as vLLM does."""
        body = await request.json()
        scores, usage = await self._scores(request, body["text_1"], body["text_2"])
        data = [{"index": place, "object": "score", "score": one} for place, one in scores]
        return web.json_response({"object": "list", "data": data, "usage": usage})

    def _missing(self, form: str) -> web.StreamResponse:
        """What a server says to a body of another form."""
        if form == "tei":
            text = "Failed to deserialize the JSON body into the target type: missing field `texts`"
            return web.Response(text=text, status=422)
        return web.json_response({"detail": "documents: Field required"}, status=422)

    async def _scores(
        self, request: web.Request, question: str, documents: list[str]
    ) -> tuple[list[tuple[int, Any]], Json]:
        judge = self._judge
        fault = await judge.admit_texts(request, [question, *documents])
        usage = judge.use(sum(map(len, documents)), 0)
        await judge.wait(0)
        scores: list[tuple[int, Any]] = [
            (place, "high" if judge.behaviour.nonsense else overlap(question, document))
            for place, document in enumerate(documents)
        ]
        scores.sort(key=lambda pair: str(pair[1]), reverse=True)
        return scores[: -1 if fault in _SPOILED else None], usage


def overlap(question: str, document: str) -> float:
    """The share of the question's words that a document has."""
    asked = set(_WORD.findall(question.lower()))
    return len(asked & set(_WORD.findall(document.lower()))) / max(len(asked), 1)

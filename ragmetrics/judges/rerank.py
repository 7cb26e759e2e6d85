"""The judge `rerank`: a reranker grades how relevant contexts are to a question.

    POST {base_url}/rerank    {"model", "query", "documents"}    Cohere, Jina, vLLM, Infinity
    POST {base_url}/rerank    {"query", "texts"}                 text-embeddings-inference
    POST {base_url}           {"model", "text_1", "text_2"}      vLLM, if base_url ends with /score

The contexts of a row share one request. A score becomes a grade by the settings' `thresholds`:

    grade = [score >= thresholds[0]] + [score >= thresholds[1]]

The scores of two models have different scales, so `ragmetrics calibrate` fits the thresholds to
labelled rows or to another judge's grades. A reranker reads a question and a context, and no
instruction: it answers no other prompt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ragmetrics.errors import JudgeError, SettingsError
from ragmetrics.judges.base import Access, Reply, Tokens
from ragmetrics.judges.endpoint import Call, Endpoint, json_body
from ragmetrics.judges.gathering import JOINED, Divided, Gathering, Waiting, forecast, settle
from ragmetrics.judges.kinds.rerank import RerankSettings
from ragmetrics.judges.responses import Oversized, RequestRejected, count, mapping
from ragmetrics.metrics import GRADE
from ragmetrics.records import Ask, dump_json, fingerprint
from ragmetrics.text import SizedCache, neutralise

_ROWS_PER_SLOT = 8
"""Contexts per slot of the endpoint: those of a row share one."""
_MOST_DOCUMENTS = 100
_SCORES_KEPT = 1 << 20
"""Bytes of the scores kept in memory, for a calibration."""
_SCORE_BYTES = 200
_REQUEST_FORMS = ("documents", "texts")
_RERANK, _SCORE = "/rerank", "/score"
ONLY = frozenset({GRADE.name})
"""Names of the prompts that a reranker can answer."""


@dataclass(frozen=True, slots=True)
class _Scores:
    """The answer of a server: a score for each document, and the tokens that it read."""

    values: Sequence[float]
    tokens: int


class RerankJudge:
    """Grades contexts by a reranker. `Endpoint` does the retries and keeps to the limits."""

    note = "a reranker: it grades contexts by thresholds of its scores, and judges nothing else"
    cacheable = True
    only = ONLY
    joins = JOINED

    def __init__(self, access: Access, settings: RerankSettings) -> None:
        if settings.thresholds is None:
            raise SettingsError(
                "judge: thresholds: the judge rerank needs the scores from which a context gets "
                "grade 1 and grade 2; `ragmetrics calibrate LABELLED` fits them"
            )
        access, self._path = _at(access)
        self.name = f"rerank:{settings.model}"
        self.concurrency = _ROWS_PER_SLOT * settings.concurrency
        self.fingerprint = fingerprint(
            "rerank", settings.model, access.address + self._path, settings.thresholds
        )
        self._endpoint = Endpoint(access, settings, settings.model)
        self._model, self._thresholds = settings.model, settings.thresholds
        self._form = 0
        self._settled = False
        """Whether the endpoint has accepted the form of the requests."""
        asked = Divided(self._endpoint, _MOST_DOCUMENTS, self._call, self._grade)
        self._gathering: Gathering[str, str, Reply] = Gathering(asked.send)
        self._scores: SizedCache[str, float] = SizedCache(_SCORES_KEPT)

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The grade of one context. Raises JudgeError for a prompt that grades no context."""
        if request.prompt.name not in ONLY:
            raise JudgeError(f"the judge {self.name} cannot answer {request.prompt.name!r}")
        question, context = (neutralise(request.data[one]) for one in ("question", "context"))
        reply = await self._gathering.ask(question, context)
        self._scores.put(request.key, json.loads(reply.text)["score"], _SCORE_BYTES)
        return reply

    def evidence(self, request: Ask) -> Sequence[float] | None:
        """The reranker's score; None if the grade came from the reply cache."""
        score = self._scores.get(request.key)
        return None if score is None else [score]

    async def close(self) -> None:
        """Close the connections."""
        self._gathering.close()
        await self._endpoint.close()

    def _call(
        self, question: str, documents: Sequence[str]
    ) -> tuple[Call[_Scores], Callable[[RequestRejected], bool]]:
        """The request for the scores of contexts."""
        body, read = self._body(question, documents), partial(_read, len(documents))
        return Call(self._path, GRADE.name, body, read), partial(self._turn, self._form)

    def _grade(
        self, waiting: list[Waiting[str, Reply]], scores: _Scores, failures: Mapping[str, int]
    ) -> None:
        self._settled, replies = True, []
        for score in scores.values:
            grade = sum(score >= least for least in self._thresholds)
            replies.append(Reply(dump_json({"grade": grade, "score": score})))
        settle(waiting, replies, Tokens(scores.tokens), failures)

    def _turn(self, form: int, error: RequestRejected) -> bool:
        """Switch to the other form of requests after a rejection. True if a retry may succeed."""
        if self._path != _RERANK or isinstance(error, Oversized):
            return False
        if form != self._form:
            return True  # another request has switched meanwhile
        if self._settled or form + 1 == len(_REQUEST_FORMS):
            return False
        self._form = form + 1
        return True

    def _body(self, question: str, documents: Sequence[str]) -> bytes:
        body: dict[str, Any]
        if self._path == _SCORE:
            body = {"model": self._model, "text_1": question, "text_2": documents}
        elif _REQUEST_FORMS[self._form] == "documents":
            body = {"model": self._model, "query": question, "documents": documents}
        else:
            body = {"query": question, "texts": documents, "truncate": True}
        return json_body(body)


def forecast_rerank() -> Callable[[Ask], Awaitable[Reply]]:
    """Replies for a dry run, with a quarter of the characters as tokens."""
    ask = forecast(lambda parts: [sum(-(-len(text) // 4) for text in parts)])

    async def reply(request: Ask) -> Reply:
        question = request.data["question"]
        return await ask(question, question + request.data["context"])

    return reply


def _at(access: Access) -> tuple[Access, str]:
    """The address and the path of requests: `/rerank`, unless the address names the path."""
    whole = access.address.rstrip("/")
    for path in (_RERANK, _SCORE):
        if whole.endswith(path):
            return replace(access, address=whole.removesuffix(path) + "/"), path
    return access, _RERANK


def _read(documents: int, answer: Any) -> _Scores:
    """The scores of an answer by index. Raises ValueError, LookupError or TypeError if it does not
    have one finite score for each document.
    """
    items = answer if isinstance(answer, list) else answer.get("results", answer.get("data"))
    scores: dict[int, float] = {}
    for item in items:
        place = item["index"]
        score = item["relevance_score"] if "relevance_score" in item else item["score"]
        if isinstance(place, bool) or isinstance(score, bool) or place in scores:
            raise ValueError("an index comes twice, or is no number")
        scores[place] = float(score)
    if sorted(scores) != list(range(documents)):
        raise ValueError(f"{len(scores)} scores for {documents} documents")
    if not all(map(math.isfinite, scores.values())):
        raise ValueError("a score is not finite")
    return _Scores([scores[place] for place in range(documents)], _tokens(answer))


def _tokens(answer: Any) -> int:
    """Number of tokens that the server reports as read; 0 if it reports none."""
    fields = mapping(answer)
    usage, billed = mapping(fields.get("usage")), mapping(mapping(fields.get("meta")).get("tokens"))
    numbers = (usage.get("prompt_tokens"), usage.get("total_tokens"), billed.get("input_tokens"))
    return next((number for one in numbers if (number := count(one))), 0)

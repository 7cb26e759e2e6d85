"""The decision models of the fake judge: both protocols, strict about their documented limits.

    POST /v1/decisions    {"model", "input", "questions": [...]}      OpenAI
    POST /v1/systemone    {"model", "state", "questions": {id: ...}}  System One
    POST /v1/chat/completions with "logprobs": the tokens with which a chat model would begin

A probability is the share of the words of what is asked about that the contexts have. `malformed`
and `truncated` spoil one answer, `prose` gives no JSON, `nonsense` gives numbers that are none.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tests.fakes import reasoning
from tests.fakes.verdicts import overlap

if TYPE_CHECKING:
    from tests.fakes.judge import Judge
    from tests.fakes.verdicts import Json

PATHS = ("/v1/decisions", "/v1/systemone")
_MOST_QUESTIONS, _LEVELS, _CHOICES = 400, range(2, 11), range(2, 256)
_TOKEN = re.compile(r"\w{1,12}")
_SPOILED = ("malformed", "truncated")


class Deciders:
    """The endpoints; the judge counts requests and lets faults happen."""

    def __init__(self, judge: Judge, error: Any) -> None:
        self._judge, self._error = judge, error

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to the application."""
        return [web.post(PATHS[0], self.decisions), web.post(PATHS[1], self.system_one)]

    async def decisions(self, request: web.Request) -> web.StreamResponse:
        """Answer in OpenAI's form, in the order of the questions."""
        body, fault = await self._admit(request, "decisions", "input")
        questions = body["questions"]
        self._check(len(questions), isinstance(questions, list))
        for one in questions:
            levels = [level["label"] for level in one.get("levels", [])]
            choices = [choice["value"] for choice in one.get("choices", [])]
            self._check_options(one["type"], "predicate", levels, choices)
        state = _state(body["input"])
        answers = [self._answer(one, state) for one in questions]
        if fault in _SPOILED:
            answers[0] |= {"probability": 1.7, "probabilities": []}
        return await self._respond(body, body["input"], answers, fault)

    async def system_one(self, request: web.Request) -> web.StreamResponse:
        """Answer in the form of System One, by the ids of the questions."""
        body, fault = await self._admit(request, "systemone", "state")
        questions = body["questions"]
        self._check(len(questions), isinstance(questions, dict))
        answers: Json = {}
        state = _state(body["state"])
        for name, one in questions.items():
            criteria = list(one.get("criteria", []))
            self._check_options(one["type"], "noul", criteria, criteria)
            answers[name] = self._answer(one, state)
        if fault in _SPOILED:
            del answers[next(iter(answers))]
        return await self._respond(body, body["state"], answers, fault)

    async def one_token(self, body: Json, fault: str | None) -> web.StreamResponse:
        """Answer a chat completion of one token, with the likeliest tokens."""
        text = body["messages"][-1]["content"]
        state, end = json.JSONDecoder().raw_decode(text)
        words, _, asked = text[end:].strip().partition(": ")
        share = probability(words, state)
        shares = {" Yes": 0.6 * share, "yes": 0.4 * share, "no": 1 - share}
        if asked.startswith("which number"):
            levels = {"levels": [{"label": f"{n}"} for n in range(asked.count("; ") + 1)]}
            scored = _scored(levels, share)["probabilities"]
            shares = {one["label"]: one["probability"] for one in scored}
        if fault or self._judge.behaviour.nonsense:
            shares = {"Sure": 1.0}
        cached, spelt, thought = self._cached(text), "?", 0
        if self._judge.efforts(body["model"]):
            more = self._judge.behaviour.extra_tokens
            spelt, thought, _ = reasoning.limited(body, spelt, more)
        size = len(text) + len(body["messages"][0]["content"])
        usage = self._judge.use(size, len(spelt) + 4 * thought, cached)
        usage["completion_tokens_details"] = {"reasoning_tokens": thought}
        await self._judge.wait(1)
        choice: Json = {"index": 0, "message": {"content": spelt}, "finish_reason": "length"}
        lacking = self._judge.stats.requests == self._judge.behaviour.lacks_logprobs
        if spelt and self._judge.behaviour.logprobs and not lacking:
            choice["logprobs"] = {"content": [{"top_logprobs": _top(shares)}]}
        return web.json_response({"model": body["model"], "choices": [choice], "usage": usage})

    async def _admit(self, request: web.Request, form: str, key: str) -> tuple[Json, str | None]:
        behaviour = self._judge.behaviour
        if behaviour.decides not in ("both", form):
            raise self._error(404, "Not Found")
        body = json.loads(await request.read())
        if behaviour.models is not None and body["model"] not in behaviour.models:
            raise self._error(501, f"The model {body['model']} has no way of reading decisions.")
        self._judge.stats.by_model[body["model"]] += 1
        self._judge.stats.last_decision = body
        return body, await self._judge.admit_texts(request, body[key])

    def _check(self, count: int, fits: bool) -> None:
        if not fits or not 1 <= count <= min(_MOST_QUESTIONS, self._judge.behaviour.most_questions):
            raise self._error(400, f"Between 1 and 400 questions are allowed, got {count}.")

    def _check_options(self, kind: str, yes: str, levels: list[str], choices: list[str]) -> None:
        if kind == yes:
            return
        if kind not in ("score", "choice"):
            raise self._error(400, f"Unknown question type {kind!r}.")
        options, allowed = (levels, _LEVELS) if kind == "score" else (choices, _CHOICES)
        if len(options) not in allowed or len(set(options)) < len(options):
            raise self._error(400, f"A {kind} cannot have {len(options)} options.")
        if not all(_TOKEN.fullmatch(option) for option in options):
            raise self._error(400, "A label must be one token.")

    def _answer(self, question: Json, state: Json) -> Json:
        words = question["instructions"]
        if words in self._judge.behaviour.declines:
            return {"type": "refusal", "name": None}
        if words in self._judge.behaviour.rejects:
            raise self._error(400, "Invalid value: 'questions[0].instructions' is not allowed.")
        share = 7.5 if self._judge.behaviour.nonsense else probability(words, state)
        kind = question["type"]
        if kind in ("predicate", "noul"):
            key = "probability" if kind == "predicate" else "noul"
            return {"type": kind, "name": None, key: share}
        return _scored(question, share)

    async def _respond(
        self, body: Json, state: str, answers: Any, fault: str | None
    ) -> web.StreamResponse:
        judge = self._judge
        size = len(state) + len(json.dumps(body["questions"], separators=(",", ":")))
        used = judge.use(size, 0, self._cached(state))
        await judge.wait(0)
        if fault == "prose":
            return web.Response(text="Sure! Here are my probabilities.")
        usage = {
            "input_tokens": used["prompt_tokens"],
            "input_tokens_details": used["prompt_tokens_details"] | {"cache_write_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used["prompt_tokens"],
        }
        return web.json_response({"model": body["model"], "answers": answers, "usage": usage})

    def _cached(self, text: str) -> int:
        """Tokens of a state that were in the cache; then it is there."""
        messages, kind = [{"role": "user", "content": text}], self._judge.behaviour.prompt_cache
        cached = self._judge.prompts.cached_tokens(messages, kind)
        self._judge.prompts.add(messages, kind)
        return cached


def probability(words: str, state: Json) -> float:
    """How surely it is so, by shared words: `grade c1`, `needed 17`, `support 2`."""
    name, *parts = words.split()
    contexts = state["contexts"]
    named = [part for part in parts if part in contexts]
    texts = {key: _text(value) for key, value in contexts.items() if key in named or not named}
    whole = " ".join(texts.values())
    data = dict(_items(state["tasks"][name])).get("data", {})
    numbers = [part for part in parts if part.isdecimal()]
    lists = [value for value in data.values() if isinstance(value, dict)]
    if numbers and lists:
        return round(overlap(lists[-1][numbers[0]], whole), 4)
    if numbers:
        sentences = {n: text for one in contexts.values() for n, text in one.items()}
        return round(overlap(state["question"], sentences[numbers[0]]), 4)
    given = [value for value in data.values() if isinstance(value, str)]
    return round(overlap(state["question"], " ".join(given) or whole), 4)


def _top(shares: dict[str, float]) -> list[Json]:
    """The likeliest tokens: a tenth goes to what is no answer, and what is impossible is listed
    with a small number, as servers do.
    """
    chances = {"The": 0.1, **{token: 0.9 * share for token, share in shares.items()}}
    ordered = sorted(chances.items(), key=lambda pair: -pair[1])
    return [{"token": token, "logprob": math.log(max(one, 1e-12))} for token, one in ordered]


def _items(task: Any) -> list[tuple[str, Any]]:
    return list(task.items()) if isinstance(task, dict) else []


def _text(context: Any) -> str:
    return context if isinstance(context, str) else " ".join(context.values())


def _state(text: str) -> Json:
    state: Json = json.loads(text)
    return state


def _scored(question: Json, share: float) -> Json:
    """A distribution over the levels with its expectation at a share of the highest."""
    levels = question.get("levels") or question["criteria"]
    top = len(levels) - 1
    low = min(int(share * top), top - 1)
    shares = [0.0] * len(levels)
    shares[low], shares[low + 1] = round(1 - (share * top - low), 4), round(share * top - low, 4)
    expected = sum(level * one for level, one in enumerate(shares))
    answer = {"type": "score", "score": expected, "confidence": max(shares)}
    if "criteria" in question:
        return {**answer, "probabilities": {str(n): one for n, one in enumerate(shares)}}
    of_labels = [
        {"value": n, "label": level["label"], "probability": one}
        for n, (level, one) in enumerate(zip(levels, shares, strict=True))
    ]
    return {**answer, "name": None, "probabilities": of_labels}

"""Judges, embedders and metrics for a dry run: they count requests and send nothing.

The requests reach them through the panel, the clients and the reply cache of a real run. A request
without a cached reply gets the verdict of its prompt's baseline with a null lexicon, so that
metrics go on to their next requests. A metric whose prompt has no baseline ends there.

    prompt tokens = characters of the messages / 4
    reply tokens  = characters of the baseline's JSON / 4 * (length of cached replies / baseline)
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from pydantic import BaseModel

from ragmetrics.config import EmbeddingSettings, JudgeSettings, Settings
from ragmetrics.errors import Unanswered, UnreadableReply
from ragmetrics.judges import (
    Embedded,
    Embedder,
    EmbeddingClient,
    Judge,
    JudgeClient,
    MetricRequest,
    Reply,
    SingleFlight,
    batched_requests,
    make_embedder,
    make_member,
    names_of,
)
from ragmetrics.metrics import Metric
from ragmetrics.records import (
    Answer,
    Ask,
    Data,
    LogRow,
    Prompt,
    Request,
    Score,
    Status,
    Steps,
    Vector,
    dump_json,
    questions_of,
)
from ragmetrics.scoring.budget.certain_share import ExpectedCertainty, certain_shares
from ragmetrics.scoring.budget.plan import Spending
from ragmetrics.scoring.combination import by_agreement
from ragmetrics.scoring.metric_choice import add_price, unpaid
from ragmetrics.scoring.metric_run import Member
from ragmetrics.scoring.panel import JudgePool, PooledJudge
from ragmetrics.scoring.part import Clients
from ragmetrics.storage import Files

_OPENAI = "https://api.openai.com/v1"
_AT_ONCE = 1_024
_MARK = dump_json({"dry run": True})
"""The reply of a counting judge."""


class NullLexicon:
    """A lexicon that scores everything 0."""

    def coverage(self, claim: str, *passages: str) -> float:
        """Nothing is covered."""
        return 0.0

    def relevance(self, question: str, *passages: str) -> float:
        """Nothing is relevant."""
        return 0.0


class _Guess(BaseModel):
    """The verdict of a prompt's baseline; None when the prompt has no baseline."""

    verdict: BaseModel | None


class _DryPrompt(Prompt[Any]):
    """A prompt that reads the reply of a counting judge as a guess."""

    def parse(self, text: str, data: Data) -> Any:
        """The verdict. Other replies are read as in a real run. Raises UnreadableReply."""
        if _MARK in text:
            return _Guess(verdict=guess(self, data))
        return super().parse(text, data)


def guess(prompt: Prompt[Any], data: Data) -> BaseModel | None:
    """The baseline's verdict with a null lexicon, or the lowest that a decision model may give;
    None when the prompt has neither, or its questions fail.
    """
    verdict: BaseModel | None = None
    if prompt.baseline:
        verdict = prompt.baseline(data, NullLexicon())
    elif prompt.decides and prompt.expect:
        with suppress(UnreadableReply):
            lowest = [(1.0, *(0.0,) * (len(one.levels) - 1)) for one in questions_of(prompt, data)]
            verdict = prompt.expect(lowest, data)
    return verdict


class DryRun:
    """The counting judges and embedder of the settings, and what else a dry run finds out."""

    def __init__(self, settings: Settings, kept: Files) -> None:
        self.about = False
        """True when some requests depend on the answers to earlier ones."""
        self.open_ended: set[str] = set()
        """Metrics that had to ask a prompt without a baseline."""
        self._prompts: dict[str, _DryPrompt] = {}
        real = [make_member(one, settings=settings) for one in settings.panel]
        self.judges = [
            CountingJudge(judge, chosen, _batched(chosen, kept))
            for judge, chosen in zip(real, settings.panel, strict=True)
        ]
        self.embedder = CountingEmbedder(make_embedder(_without_key(settings)), settings.embedder)
        self._by_name = dict(zip(names_of(self.judges), self.judges, strict=True))
        judges = [
            PooledJudge(name, counting_judge.chosen, counting_judge, SingleFlight())
            for name, counting_judge in self._by_name.items()
        ]
        self.pool = JudgePool(judges, self.embedder, SingleFlight())
        self.free = unpaid(settings, list(self._by_name))
        self.certainty = ExpectedCertainty(certain_shares(settings, kept))

    def begin_part(self, clients: Clients) -> None:
        """Prepare for the rows of a part."""
        *_, vectors = clients.caches
        self.embedder.use_size(vectors.vector_sizes() if vectors else Counter())

    def spent(self, clients: Clients) -> Spending:
        """What the requests of a part have cost so far: one line of `Costs`."""
        embedded = _spending(clients.embeddings, self.embedder.prices)
        embedded[0] /= EmbeddingClient.texts_per_request  # the client counted texts
        embedded *= self.embedder.cacheable  # otherwise it computes on this machine
        judged = [
            _spending(member.client, judge.chosen)
            for member, judge in zip(clients.members, self.judges, strict=True)
            if judge.chosen.remote
        ]
        return np.concatenate([sum(judged, embedded), embedded])

    def end_part(self, clients: Clients, settings: Settings) -> dict[str, dict[str, Any]]:
        """The usage of a part, by judge and by metric."""
        for counter in clients.embeddings.counters.values():
            counter.requests = -(-counter.requests // EmbeddingClient.texts_per_request)
        for cache in filter(None, clients.caches):
            cache.close()
        return clients.usage(settings)

    def learn(self, name: str, ask: Ask, reply: Reply) -> None:
        """Note the length of a cached reply of a judge."""
        if _MARK not in reply.text:
            self._by_name[name].learn(ask, reply.text)

    def is_certain(self, member: Member, wanted: MetricRequest, answers: Sequence[Answer]) -> bool:
        """Whether a judge of a cascade is certain: by its cached replies, else as expected."""
        if any(isinstance(answer, _Guess) for answer in answers):
            return self.certainty.of(member.name, wanted)
        return by_agreement(member, wanted, answers)

    def metric(self, metric: Metric) -> Metric:
        """The metric with prompts that read the replies of counting judges."""

        def steps(row: LogRow, **parameters: Any) -> Steps[Score]:
            inner = metric.steps(row, **parameters)
            answers: list[Answer] | None = None
            while True:
                try:
                    requests = inner.send(answers)  # type: ignore[arg-type]  # None starts it
                except StopIteration as stop:
                    score: Score = stop.value
                    return score
                self.about |= answers is not None and any(map(self._is_paid, requests))
                asked = [metric.overridden(request, row.language) for request in requests]
                received = yield [self._readable(one) for one in asked]
                answers = [self._answer(metric.name, one) for one in received]

        return replace(metric, steps=steps, overrides=None)

    def _is_paid(self, request: Request) -> bool:
        """True when the request goes over a network."""
        if isinstance(request, Ask):
            return any(judge.chosen.remote for judge in self.judges)
        return self.embedder.cacheable

    def _readable(self, request: Request) -> Request:
        if not isinstance(request, Ask):
            return request
        prompt = request.prompt
        if prompt.digest not in self._prompts:
            values = {field.name: getattr(prompt, field.name) for field in fields(prompt)}
            self._prompts[prompt.digest] = _DryPrompt(**values)
        return replace(request, prompt=self._prompts[prompt.digest])

    def _answer(self, metric: str, answer: Answer) -> Answer:
        if not isinstance(answer, _Guess):
            return answer
        if answer.verdict is not None:
            return answer.verdict
        self.open_ended.add(metric)
        return Unanswered(Status.UNREADABLE, "not requested: this is an estimate")


def _spending(
    client: JudgeClient | EmbeddingClient, prices: JudgeSettings | EmbeddingSettings
) -> Spending:
    """Requests, tokens and US dollars that a client has counted."""
    usage = add_price(prices, client.counters.usage())
    return np.array([usage.requests, usage.tokens, usage.usd or 0.0])


def _without_key(settings: Settings) -> Settings:
    """The settings with an explicit address of the embedder, so that no key is needed. Its
    fingerprint does not change.
    """
    chosen = settings.embeddings
    remote = next((one for one in settings.panel if one.remote), settings.panel[0])
    base_url = chosen.base_url or remote.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI
    return settings.model_copy(
        update={"embeddings": chosen.model_copy(update={"base_url": base_url})}
    )


def _batched(chosen: JudgeSettings, kept: Files) -> set[str]:
    """The requests in open batches: a run waits for these at no further cost."""
    if not chosen.waits:
        return set()
    return batched_requests(kept, make_member(chosen).fingerprint)


@dataclass
class _Lengths:
    """Total length of the cached replies to a prompt and of its baseline's replies."""

    cached: int = 0
    baseline: int = 0
    replies: int = 0


class CountingJudge:
    """A judge that counts requests and sends none."""

    note = ""
    concurrency = _AT_ONCE

    def __init__(self, judge: Judge, chosen: JudgeSettings, batched: set[str]) -> None:
        self.name, self.fingerprint, self.cacheable = judge.name, judge.fingerprint, judge.cacheable
        self.chosen, self.only = chosen, getattr(judge, "only", None)
        forecast = chosen.kind.forecast
        self._forecast = forecast(chosen) if forecast else None
        self._batched = batched
        self._lengths: defaultdict[str, _Lengths] = defaultdict(_Lengths)

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """A reply that `_DryPrompt` can read, with the expected tokens."""
        text = _MARK
        if not self.chosen.remote:
            return Reply(text)
        if self._forecast:
            counted: Reply = await self._forecast(request)
            return replace(counted, text=text)
        if self._batched and f"{request.key}-0" in self._batched:
            return Reply(text, known=1)
        messages = request.prompt.messages(request.data)
        prompt = _tokens(sum(len(message["content"]) for message in messages))
        completion = _tokens(self._length(request))
        return Reply(text, prompt_tokens=prompt, completion_tokens=completion)

    def learn(self, ask: Ask, text: str) -> None:
        """Note the length of a cached reply."""
        lengths = self._lengths[ask.prompt.name]
        lengths.cached += len(text)
        lengths.replies += 1
        if (guessed := guess(ask.prompt, ask.data)) is not None:
            lengths.baseline += len(_as_json(guessed))

    def _length(self, ask: Ask) -> float:
        """Expected characters of a reply."""
        lengths, guessed = self._lengths[ask.prompt.name], guess(ask.prompt, ask.data)
        if guessed is not None:
            longer = lengths.cached / lengths.baseline if lengths.baseline else 1.0
            return len(_as_json(guessed)) * longer
        if lengths.replies:
            return lengths.cached / lengths.replies
        examples = [len(dump_json(verdict)) for _, verdict in ask.prompt.examples]
        return sum(examples) / len(examples) if examples else len(ask.prompt.reply_form)

    def evidence(self, request: Ask) -> None:
        """None."""

    async def close(self) -> None:
        """Nothing is open."""


class CountingEmbedder:
    """An embedder that counts the texts to embed, and sends none."""

    name = "dry run"
    concurrency = _AT_ONCE

    def __init__(self, embedder: Embedder, prices: EmbeddingSettings) -> None:
        self.fingerprint, self.cacheable = embedder.fingerprint, embedder.cacheable
        self.prices = prices
        self._vector: Vector = np.ones(1, dtype=np.float32)

    def use_size(self, sizes: Counter[int]) -> None:
        """Return vectors of the most frequent size."""
        size = sizes.most_common(1)[0][0] if sizes else 1
        self._vector = np.ones(size, dtype=np.float32)

    async def embed(self, text: str) -> Vector:
        """A vector."""
        return self._vector

    async def embed_metered(self, text: str) -> Embedded:
        """A vector. Each text counts as one request."""
        expected = EmbeddingClient.expected_of(text, self.prices)
        return Embedded(self._vector, requests=1, tokens=int(expected.tokens))

    async def close(self) -> None:
        """Nothing is open."""


def _as_json(verdict: BaseModel) -> str:
    return dump_json(verdict.model_dump(mode="json", by_alias=True))


def _tokens(characters: float) -> int:
    """Estimated number of tokens: a quarter of the characters."""
    return -int(-characters // 4)

"""Judges and embedders for a dry run: they count requests, read the reply cache, send nothing.

A request without a cached reply is answered by the prompt's baseline with a null lexicon.
"""

from __future__ import annotations

import os
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.errors import UnreadableReply
from ragmetrics.judges import (
    BatchRecords,
    Corpus,
    MetricRequest,
    ReplyCache,
    Spend,
    UsageCounters,
    expected_of,
    make_embedder,
    make_judges,
    names_of,
)
from ragmetrics.model import Answer, Ask, Embed, dump_json
from ragmetrics.storage import Files

_OPENAI = "https://api.openai.com/v1"
_REMEMBERED = 4_096  # size of the in-memory LRU cache, as in a real run


class NullLexicon:
    """A lexicon that scores everything 0."""

    def coverage(self, claim: str, passage: str) -> float:
        """Nothing is covered."""
        return 0.0

    def relevance(self, question: str, passage: str) -> float:
        """Nothing is relevant."""
        return 0.0


def _without_keys(settings: Settings) -> Settings:
    """The same judges with an explicit address, so that no key is needed. Their fingerprints do not
    change.
    """
    address = os.environ.get("OPENAI_BASE_URL") or _OPENAI

    def addressed(one: JudgeSettings) -> JudgeSettings:
        base_url = one.base_url or (address if one.remote else None)
        return one.model_copy(update={"base_url": base_url})

    base_url = settings.embeddings.base_url
    if settings.embeddings.name == "openai" and not any(one.remote for one in settings.panel):
        base_url = base_url or address
    return settings.model_copy(
        update={
            "judge": addressed(settings.judge),
            "judges": tuple(map(addressed, settings.judges)),
            "embeddings": settings.embeddings.model_copy(update={"base_url": base_url}),
        }
    )


def open_counting_judges(settings: Settings) -> list[CountingJudge]:
    """A counting judge for each judge of the panel. No key is needed."""
    keyless = _without_keys(settings)
    judges = make_judges(keyless, Corpus())
    alone = make_judges(keyless.model_copy(update={"fuse": None}), Corpus())
    named = zip(names_of(judges), settings.panel, judges, alone, strict=True)
    return [
        # Batches are registered under the fingerprint of the judge without fusing.
        CountingJudge(name, chosen, judge.fingerprint if judge.cacheable else None, one.fingerprint)
        for name, chosen, judge, one in named
    ]


class _ReplyCacheView:
    """The cached replies of one judge or embedder, in the question range of a part."""

    def __init__(self, fingerprint: str | None, ttl_days: int | None = None) -> None:
        self._fingerprint, self._ttl_days = fingerprint, ttl_days
        self._kept: ReplyCache | None = None
        self._of_part: set[str] = set()
        self._recent: OrderedDict[str, Answer] = OrderedDict()
        self.counters = UsageCounters()

    def open(self, kept: Files | None, low: str, high: str) -> None:
        """Load the cached replies of a range of questions."""
        if kept and self._fingerprint:
            self._kept = ReplyCache(kept, self._fingerprint, low, high, ttl_days=self._ttl_days)
            self._kept.load()

    def close(self) -> None:
        """Close the reply cache."""
        if self._kept:
            self._kept.close()
        self._kept = None
        self._of_part.clear()

    def recent(self, key: str) -> Answer | None:
        """The answer to an equal request, if a run would still have it in memory."""
        answer = self._recent.get(key)
        if answer is not None:
            self._recent.move_to_end(key)
        return answer

    def remember(self, key: str, answer: Answer) -> None:
        """Put an answer into the in-memory cache."""
        self._recent[key] = answer
        if len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)

    def is_first(self, key: str) -> bool:
        """True when a question's request is new in this part; a run caches each answer."""
        if not self._fingerprint:
            return True
        new = key not in self._of_part
        self._of_part.add(key)
        return new


@dataclass
class _Lengths:
    """Total length of the cached replies to a prompt and of its baseline's replies."""

    kept: int = 0
    baseline: int = 0
    replies: int = 0


class CountingJudge(_ReplyCacheView):
    """A judge that counts requests and sends none."""

    def __init__(
        self, name: str, chosen: JudgeSettings, fingerprint: str | None, batches: str
    ) -> None:
        super().__init__(fingerprint, chosen.ttl_days)
        self.name, self.chosen = name, chosen
        self._lengths: defaultdict[str, _Lengths] = defaultdict(_Lengths)
        self._batches = batches
        self._batched: set[str] | None = None

    def open(self, kept: Files | None, low: str, high: str) -> None:
        """Load the cached replies of a range of questions, and the requests in open batches."""
        super().open(kept, low, high)
        if self._batched is None and kept and self.chosen.name == "openai-batch":
            records = BatchRecords(kept, self._batches).refresh()
            self._batched = {name for record in records for name in record.requests}

    def is_at_work_on(self, ask: Ask) -> bool:
        """True when an open batch has the request: a run waits for it at no further cost."""
        return f"{ask.key}-0" in (self._batched or ())

    def known(self, row_key: str, ask: Ask) -> BaseModel | None:
        """The cached verdict."""
        text = self._kept.find(row_key + ask.key) if self._kept else None
        if text is None:
            return None
        try:
            verdict: BaseModel = ask.prompt.parse(text, ask.data)
        except UnreadableReply:
            return None
        lengths = self._lengths[ask.prompt.name]
        lengths.kept += len(text)
        lengths.replies += 1
        if (guessed := guess(ask)) is not None:
            lengths.baseline += len(_as_json(guessed))
        return verdict

    def reply_length(self, ask: Ask, fused: bool) -> float:
        """Expected length of the reply in characters."""
        lengths, guessed = self._lengths[ask.prompt.name], guess(ask)
        if guessed is not None:
            longer = lengths.kept / lengths.baseline if lengths.baseline else 1.0
            return (len(_as_json(guessed)) - fused * _frame_length(ask)) * longer
        if lengths.replies:
            return lengths.kept / lengths.replies
        examples = [len(dump_json(verdict)) for _, verdict in ask.prompt.examples]
        return sum(examples) / len(examples) if examples else len(ask.prompt.reply_form)


DUMMY_VECTOR = np.ones(1, dtype=np.float32)


class CountingEmbedder(_ReplyCacheView):
    """An embedder that counts the requests that would be paid for, and sends none."""

    def __init__(self, settings: Settings) -> None:
        embedder = make_embedder(_without_keys(settings), Corpus())
        super().__init__(embedder.fingerprint if embedder.cacheable else None)
        self.paid, self._prices = embedder.cacheable, settings.embeddings

    def begin(self, row_key: str, wanted: Sequence[MetricRequest]) -> Iterator[tuple[str, Spend]]:
        """Metric and cost of each text without a cached embedding."""
        for one in wanted:
            key, tally = one.request.key, self.counters[one.metric]
            if self.recent(key) is not None or not self.is_first(row_key + key):
                tally.shared += 1
                continue
            self.remember(key, DUMMY_VECTOR)
            if self._kept and self._kept.find_vector(row_key + key) is not None:
                tally.answered_from_store += 1
            elif isinstance(one.request, Embed):
                yield one.metric, expected_of(one.request.input, self._prices)


def guess(ask: Ask) -> BaseModel | None:
    """The baseline's verdict with a null lexicon; None when the prompt has no baseline."""
    baseline = ask.prompt.baseline
    verdict: BaseModel | None = baseline(ask.data, NullLexicon()) if baseline else None
    return verdict


def _as_json(verdict: BaseModel) -> str:
    return dump_json(verdict.model_dump(mode="json", by_alias=True))


def _frame_length(ask: Ask) -> int:
    """Characters that a fused reply saves: it omits the name of a verdict's only property."""
    name, *others = ask.prompt.schema["properties"]
    return 0 if others else len(f'{{"{name}":}}')


def tokens_of(characters: float) -> int:
    """Estimated number of tokens: a quarter of the characters."""
    return -int(-characters // 4)

"""Desks: where judges and embedders would be asked, which only count.

What the store knows is taken from it; what it lacks is answered by the prompt's baseline with a
lexicon that knows nothing.
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
_REMEMBERED = 4_096  # answers that a run, too, has at hand for equal requests of other questions


class NullLexicon:
    """A lexicon that knows nothing."""

    def coverage(self, claim: str, passage: str) -> float:
        """Nothing is covered."""
        return 0.0

    def relevance(self, question: str, passage: str) -> float:
        """Nothing is relevant."""
        return 0.0


def _keyless(settings: Settings) -> Settings:
    """The same judges, by an address that needs no key yet: who they are is the same."""
    address = os.environ.get("OPENAI_BASE_URL") or _OPENAI

    def addressed(one: JudgeSettings) -> JudgeSettings:
        there = one.base_url or (address if one.remote else None)
        return one.model_copy(update={"base_url": there})

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
    """One for each judge of the panel; none needs its key."""
    keyless = _keyless(settings)
    judges = make_judges(keyless, Corpus())
    alone = make_judges(keyless.model_copy(update={"fuse": None}), Corpus())
    named = zip(names_of(judges), settings.panel, judges, alone, strict=True)
    return [
        # Batches are on record under the judge's own fingerprint, fused or not.
        CountingJudge(name, chosen, judge.fingerprint if judge.keeps else None, one.fingerprint)
        for name, chosen, judge, one in named
    ]


class _ReplyCacheView:
    """What the store has of one judge or embedder, in the range of a part."""

    def __init__(self, fingerprint: str | None, ttl_days: int | None = None) -> None:
        self._fingerprint, self._ttl_days = fingerprint, ttl_days
        self._kept: ReplyCache | None = None
        self._of_part: set[str] = set()
        self._recent: OrderedDict[str, Answer] = OrderedDict()
        self.counters = UsageCounters()

    def open(self, kept: Files | None, low: str, high: str) -> None:
        """Read what is known in a range of questions."""
        if kept and self._fingerprint:
            self._kept = ReplyCache(kept, self._fingerprint, low, high, ttl_days=self._ttl_days)
            self._kept.load()

    def close(self) -> None:
        """Give it back."""
        if self._kept:
            self._kept.close()
        self._kept = None
        self._of_part.clear()

    def recent(self, key: str) -> Answer | None:
        """The answer to an equal request, where a run would still have it at hand."""
        answer = self._recent.get(key)
        if answer is not None:
            self._recent.move_to_end(key)
        return answer

    def remember(self, key: str, answer: Answer) -> None:
        """Have an answer at hand."""
        self._recent[key] = answer
        if len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)

    def is_first(self, key: str) -> bool:
        """Whether a request of a question is new in this part: a run keeps what it was answered."""
        if not self._fingerprint:
            return True
        new = key not in self._of_part
        self._of_part.add(key)
        return new


@dataclass
class _Lengths:
    """How long replies to a prompt are, beside those of its baseline."""

    kept: int = 0
    baseline: int = 0
    replies: int = 0


class CountingJudge(_ReplyCacheView):
    """Where one judge is asked, and only counts."""

    def __init__(
        self, name: str, chosen: JudgeSettings, fingerprint: str | None, batches: str
    ) -> None:
        super().__init__(fingerprint, chosen.ttl_days)
        self.name, self.chosen = name, chosen
        self._lengths: defaultdict[str, _Lengths] = defaultdict(_Lengths)
        self._batches = batches
        self._batched: set[str] | None = None

    def open(self, kept: Files | None, low: str, high: str) -> None:
        """Read what is known in a range of questions, and which requests batches have."""
        super().open(kept, low, high)
        if self._batched is None and kept and self.chosen.name == "openai-batch":
            records = BatchRecords(kept, self._batches).refresh()
            self._batched = {name for record in records for name in record.requests}

    def is_at_work_on(self, ask: Ask) -> bool:
        """Whether a batch on record has a request: a run waits for it and pays nothing."""
        return f"{ask.key}-0" in (self._batched or ())

    def known(self, row_key: str, ask: Ask) -> BaseModel | None:
        """The verdict that the store has."""
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
            lengths.baseline += len(_said(guessed))
        return verdict

    def reply_length(self, ask: Ask, fused: bool) -> float:
        """Characters of the reply that is to be expected."""
        lengths, guessed = self._lengths[ask.prompt.name], guess(ask)
        if guessed is not None:
            longer = lengths.kept / lengths.baseline if lengths.baseline else 1.0
            return (len(_said(guessed)) - fused * _frame(ask)) * longer
        if lengths.replies:
            return lengths.kept / lengths.replies
        examples = [len(dump_json(verdict)) for _, verdict in ask.prompt.examples]
        return sum(examples) / len(examples) if examples else len(ask.prompt.reply_form)


NOWHERE = np.ones(1, dtype=np.float32)


class CountingEmbedder(_ReplyCacheView):
    """Where embeddings are asked for, and only counted where they are paid for."""

    def __init__(self, settings: Settings) -> None:
        embedder = make_embedder(_keyless(settings), Corpus())
        super().__init__(embedder.fingerprint if embedder.keeps else None)
        self.paid, self._prices = embedder.keeps, settings.embeddings

    def begin(self, row_key: str, wanted: Sequence[MetricRequest]) -> Iterator[tuple[str, Spend]]:
        """Metric and costs of each text that nobody has embedded yet."""
        for one in wanted:
            key, tally = one.request.key, self.counters[one.metric]
            if self.recent(key) is not None or not self.is_first(row_key + key):
                tally.shared += 1
                continue
            self.remember(key, NOWHERE)
            if self._kept and self._kept.find_vector(row_key + key) is not None:
                tally.answered_from_store += 1
            elif isinstance(one.request, Embed):
                yield one.metric, expected_of(one.request.input, self._prices)


def guess(ask: Ask) -> BaseModel | None:
    """The verdict of one who knows nothing; None where the prompt has no baseline."""
    baseline = ask.prompt.baseline
    verdict: BaseModel | None = baseline(ask.data, NullLexicon()) if baseline else None
    return verdict


def _said(verdict: BaseModel) -> str:
    return dump_json(verdict.model_dump(mode="json", by_alias=True))


def _frame(ask: Ask) -> int:
    """Characters that a fused reply does without: of a verdict's only property, its name."""
    name, *others = ask.prompt.schema["properties"]
    return 0 if others else len(f'{{"{name}":}}')


def tokens_of(characters: float) -> int:
    """Tokens of a text so long."""
    return -int(-characters // 4)

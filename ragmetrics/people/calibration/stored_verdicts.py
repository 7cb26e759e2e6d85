"""Verdicts that the store has of a judge: cached replies to the requests of earlier nights.

The metrics run again over the logged rows, and each of their requests is looked up in the reply
cache. No request is sent. Rows or replies that were pruned give no verdict.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from pydantic import BaseModel

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.errors import StoreError, Unanswered, UnreadableReply
from ragmetrics.judges import ReplyCache, layout_of, levels_of, make_member, top_level
from ragmetrics.metrics import Metric
from ragmetrics.records import Answer, Ask, LogRow, Manifest, Request, Status
from ragmetrics.scoring import MetricRun, chosen_metrics
from ragmetrics.storage import Files, RunRef, Runs, StoredPart

log = logging.getLogger(__name__)
NIGHTS = 14
"""Newest nights whose verdicts are read."""
MOST = 5_000
"""Most verdicts on items of one prompt. Newer nights come first."""
_UNKNOWN = Unanswered(Status.JUDGE_FAILED, "not in the store")


@dataclass(frozen=True)
class StoredVerdict:
    """A request with the levels that the judge gave its items."""

    ask: Ask
    levels: tuple[int, ...]
    row: str
    """The row that made it first: night, shard and number."""
    run: Manifest
    """The newest run that made it."""
    since: date
    """The earliest night that made it, of those that were read."""


def stored_verdicts(settings: Settings, judge: JudgeSettings, files: Files) -> list[StoredVerdict]:
    """The verdicts of a judge on the newest nights, each distinct request once.

    Only of prompts whose verdicts have items. Raises StoreError.
    """
    metrics = [
        metric
        for metric in chosen_metrics(settings)
        if any(top_level(prompt) is not None for prompt in metric.prompts)
    ]
    reader = _Reader(metrics, make_member(judge).fingerprint, judge, files)
    found: list[StoredVerdict] = []
    for manifest in reversed(Runs(files).outlines(last=NIGHTS)):
        try:
            found += reader.read(manifest)
        except StoreError as error:
            log.warning("verdicts of %s are left out: %s", manifest.date, error)
        if reader.is_full:
            break
    return [replace(one, since=reader.since[one.ask.key]) for one in found]


class _Reader:
    """Reads runs, newest first, until there are enough verdicts of each prompt."""

    def __init__(
        self, metrics: Sequence[Metric], fingerprint: str, judge: JudgeSettings, files: Files
    ) -> None:
        self._metrics, self._fingerprint, self._files = metrics, fingerprint, files
        self._layout = layout_of(judge)
        self._prompts = sorted({prompt.name for metric in metrics for prompt in metric.prompts})
        self.since: dict[str, date] = {}
        """The earliest night so far of each request."""
        self._counts: Counter[str] = Counter()

    @property
    def is_full(self) -> bool:
        """Whether there are enough verdicts of every prompt that was seen."""
        return bool(self._counts) and min(self._counts.values()) >= MOST

    def read(self, manifest: Manifest) -> Iterator[StoredVerdict]:
        """The new verdicts of a run."""
        ref = RunRef.of(manifest)
        for shard in range(ref.shards):
            if self._files.exists(ref.rows(shard)) and not self.is_full:
                yield from self._shard(manifest, ref, shard)

    def _shard(self, manifest: Manifest, ref: RunRef, shard: int) -> Iterator[StoredVerdict]:
        path = ref.rows(shard)
        low, high = ref.key_range(shard)
        cache = ReplyCache(self._files, self._fingerprint, low, high, prompts=self._prompts)
        try:
            cache.load(StoredPart(self._files, path).question_keys())
            rows = (row for batch in StoredPart(self._files, path).row_batches() for row in batch)
            for number, row in enumerate(rows):
                name = f"{ref.date} {shard} {number}"
                for ask, levels in self._row(cache, row, ref.date):
                    yield StoredVerdict(ask, levels, name, manifest, ref.date)
        finally:
            cache.close()

    def _row(
        self, cache: ReplyCache, row: LogRow, night: date
    ) -> Iterator[tuple[Ask, tuple[int, ...]]]:
        for metric in self._metrics:
            run = MetricRun(metric, row)
            run.step(None)
            while run.score is None:
                answers: list[Answer] = []
                for request in run.asks():
                    verdict = self._verdict(cache, row, request)
                    answers.append(_UNKNOWN if verdict is None else verdict)
                    if isinstance(request, Ask) and verdict is not None:
                        yield from self._new(request, verdict, night)
                run.step(answers)

    def _verdict(self, cache: ReplyCache, row: LogRow, request: Request) -> BaseModel | None:
        """The cached verdict on a request; None without one that can be read."""
        if not isinstance(request, Ask):
            return None
        (sent,) = self._layout.arrange(row, [request]) if self._layout else (request,)
        text = cache.find(row.question_key + sent.key)
        if text is None:
            return None
        try:
            verdict: BaseModel = request.prompt.parse(text, request.data)
        except UnreadableReply:
            return None
        return verdict

    def _new(
        self, ask: Ask, verdict: BaseModel, night: date
    ) -> Iterator[tuple[Ask, tuple[int, ...]]]:
        digest = ask.prompt.digest
        if ask.key in self.since:
            self.since[ask.key] = min(night, self.since[ask.key])
            return
        if top_level(ask.prompt) is None or self._counts[digest] >= MOST:
            return
        levels = tuple(levels_of(ask, verdict))
        self.since[ask.key] = night
        self._counts[digest] += len(levels)
        if levels:
            yield ask, levels

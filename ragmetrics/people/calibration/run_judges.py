"""Judging one labelled set.

Each verdict is requested through the judge client, as in a night. A calibration measures the judge
of today. With a store, a second calibration on the same day pays nothing twice. On another day the
judge is asked again, because a cached reply cannot show that a judge has changed.

    calibrations/replies/dt=2026-11-19/judgements/judge=FINGERPRINT/...
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict, deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Coroutine,
    Iterable,
    Sequence,
    Set,
)
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.errors import JudgeRefused, Unanswered
from ragmetrics.judges import (
    Corpus,
    Embedder,
    EmbeddingClient,
    Judge,
    JudgeClient,
    ReplyCache,
    can_answer,
    make_embedder,
    make_judges,
    names_of,
)
from ragmetrics.metrics import Grade, Metric, metrics
from ragmetrics.people.calibration.attacks import (
    METRIC as ATTACKED_METRIC,
    Irrelevant,
    attack,
    irrelevant_contexts,
)
from ragmetrics.people.calibration.canaries import worded
from ragmetrics.people.calibration.labelled import LabelledRow
from ragmetrics.people.calibration.labelled_sets import (
    AskedRow,
    LabelledSet,
    LabelQuestion,
    LabelTarget,
    targets,
)
from ragmetrics.people.calibration.thresholds import fits_thresholds, with_thresholds
from ragmetrics.people.calibration.units import GoldScore, Unit, gold_metrics, units_of
from ragmetrics.records import (
    Answer,
    Ask,
    AttackResult,
    HasStrengths,
    JudgeInfo,
    LogRow,
    Request,
    Status,
    Usage,
)
from ragmetrics.scoring import add_price, chosen_metrics, run_metric
from ragmetrics.storage import AskedWays, Files, open_store

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
_ROWS_AT_ONCE = 16
_ALL_KEYS = ("00000000", "ffffffff")


@dataclass
class JudgedSet:
    """One judge's verdicts on one set."""

    judge: JudgeInfo
    units: dict[str, list[Unit]] = field(default_factory=dict)
    """Units by metric."""
    gold: list[GoldScore] = field(default_factory=list)
    fingerprints: dict[str, str] = field(default_factory=dict)
    """Fingerprints of judge and prompts, by metric."""
    prompts: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Digests of the prompts that it answered, by metric."""
    usage: Usage = field(default_factory=Usage)
    corpus: str | None = None
    """Digest of the set's texts, where the replies depend on all of them."""
    refused: str = ""
    """Why the judge could not be asked."""
    attacks: list[AttackResult] = field(default_factory=list)
    fingerprint: str = ""
    """That of the judge itself, however it is asked and whatever is fitted to it."""
    gives_probabilities: bool = False
    """Whether its strengths are meant to be probabilities."""
    reranks: bool = False
    """Whether the judge is a reranker, whose thresholds can be fitted."""
    unscored: Set[str] = frozenset()
    """The metrics that it cannot score, or that are another judge's."""


async def judge_set(
    settings: Settings,
    labelled: LabelledSet,
    wanted: Sequence[str] | None,
    at: datetime,
    files: Files | None,
    progress: Progress | None,
    attacks: int = 0,
) -> list[JudgedSet]:
    """The verdicts of every judge of the settings on a set, and on `attacks` attacked contexts.

    A judge under `also` that has nothing to score has no result. If one of several judges cannot
    be asked, its result says why. Raises JudgeRefused where none can be asked.
    """
    settings, corpus = with_thresholds(settings), Corpus()
    for row in labelled.rows:
        corpus.add(row.labelled.row.retrieved_contexts, row.labelled.row.user_input)
    hostile = irrelevant_contexts(labelled, attacks)
    async with AsyncExitStack() as stack:
        judges, embedder = make_judges(settings, corpus), make_embedder(settings, corpus)
        stack.push_async_callback(embedder.close)
        for judge in judges:
            stack.push_async_callback(judge.close)
        known = _metrics(settings, wanted or ())
        judging = _Judging(
            settings, labelled, hostile, wanted, known, corpus, embedder, at, files, progress
        )
        shares = shares_of(settings, judges, labelled, wanted)
        turns = zip(names_of(judges), judges, settings.panel, shares, strict=True)
        results = [await judging.by(*turn) for turn in turns if turn[-1]]
    refusals = [refusal for _, refusal in results if refusal is not None]
    if len(refusals) == len(results):
        raise refusals[0]
    return [judged for judged, _ in results]


@dataclass(frozen=True)
class _Judging:
    """Judges one set with each judge of the settings."""

    settings: Settings
    labelled: LabelledSet
    hostile: Sequence[Irrelevant]
    wanted: Sequence[str] | None
    metrics: dict[str, Metric]
    corpus: Corpus
    embedder: Embedder
    at: datetime
    files: Files | None
    progress: Progress | None

    async def by(
        self, name: str, judge: Judge, chosen: JudgeSettings, share: dict[str, Metric]
    ) -> tuple[JudgedSet, JudgeRefused | None]:
        """The verdicts of one judge on its share of the metrics; of one that cannot be asked the
        reason, and the error.
        """
        client, cache = await asyncio.to_thread(self._client, judge, chosen)
        asked = chosen.scored_fingerprint(judge.fingerprint)
        judged = JudgedSet(
            JudgeInfo(name=name, fingerprint=asked, note=judge.note),
            reranks=fits_thresholds(chosen),
            fingerprint=judge.fingerprint,
            gives_probabilities=chosen.decides or chosen.kind.fitted,
            unscored=self.metrics.keys() - share.keys(),
        )
        refusal = None
        try:
            able = [target for target in targets(self.wanted) if target.metric in share]
            session = _Session(client, share, able, self.wanted, judged)
            await session.judge_all(self.labelled, self.hostile, self.progress)
        except JudgeRefused as error:
            judged, refusal = JudgedSet(judged.judge, refused=str(error)), error
        else:
            await asyncio.to_thread(self._note, judged, client, chosen)
            if cache:
                await asyncio.to_thread(cache.compact)
        judged.usage = add_price(chosen, client.counters.usage())
        return judged, refusal

    def _client(self, judge: Judge, chosen: JudgeSettings) -> tuple[JudgeClient, ReplyCache | None]:
        # A reranker's scores are needed too, and a cached reply has its grade alone.
        cache = _reply_cache(None if fits_thresholds(chosen) else self.files, judge, self.at)
        files = self.files or (open_store(self.settings) if chosen.calibration else None)
        embeddings = EmbeddingClient(self.embedder)
        return JudgeClient.of(chosen, judge, embeddings, cache=cache, files=files), cache

    def _note(self, judged: JudgedSet, client: JudgeClient, chosen: JudgeSettings) -> None:
        """Note what the verdicts compare with: the judge as it was asked, which is stored."""
        compared = client.judge.fingerprint
        if self.files is not None:
            ways = AskedWays(self.files)
            ways.note(compared, client.asked)
            compared = ways.compared(compared)
        compared = chosen.scored_fingerprint(compared)
        judged.judge = judged.judge.model_copy(update={"fingerprint": compared})
        judged.fingerprints = {
            name: metric.fingerprint(compared, self.embedder.fingerprint)
            for name, metric in self.metrics.items()
        }
        if chosen.lexical:
            judged.corpus = hashlib.blake2b(self.corpus.to_bytes(), digest_size=6).hexdigest()


def shares_of(
    settings: Settings, judges: Sequence[Judge], labelled: LabelledSet, wanted: Sequence[str] | None
) -> list[dict[str, Metric]]:
    """The metrics that each judge scores on a set: those that it can.

    Under `also` the second one scores what the first cannot, and a judge has no share where the set
    has no labels for it; the first has its share where the set has none at all.
    """
    left, shares = _metrics(settings, wanted or ()), []
    for judge in judges:
        share = {name: metric for name, metric in left.items() if can_answer(judge, metric.prompts)}
        shares.append(share)
        if settings.joined == "also":
            left = {name: metric for name, metric in left.items() if name not in share}
    if settings.joined != "also":
        return shares
    used = [share if _is_labelled(labelled, wanted, share) else {} for share in shares]
    return used if any(used) else [shares[0], *used[1:]]


def _is_labelled(
    labelled: LabelledSet, wanted: Sequence[str] | None, share: Container[str]
) -> bool:
    """Whether a set has labels or gold figures for some of the metrics."""
    asked = [target.metric for target in targets(wanted) if target.metric in share]
    return any(
        any(row.questions[name] for name in asked) or gold_metrics(row.labelled, wanted, share)
        for row in labelled.rows
    )


def _metrics(settings: Settings, wanted: Sequence[str]) -> dict[str, Metric]:
    """All metrics, with the parameters and prompts of the settings."""
    named = {name for one in settings.metrics for name in ([one] if isinstance(one, str) else one)}
    everything = (*settings.metrics, *(name for name in metrics(wanted) if name not in named))
    chosen = chosen_metrics(settings.model_copy(update={"metrics": everything}))
    return {one.name: one for one in chosen}


def _reply_cache(files: Files | None, judge: Judge, at: datetime) -> ReplyCache | None:
    if files is None or not judge.cacheable:
        return None
    folder = f"calibrations/replies/dt={at:%Y-%m-%d}"
    cache = ReplyCache(files.at(folder), judge.fingerprint, *_ALL_KEYS)
    cache.load()
    return cache


@dataclass(frozen=True)
class _Session:
    """Judges one set with one judge."""

    client: JudgeClient
    metrics: dict[str, Metric]
    targets: Sequence[LabelTarget]
    wanted: Sequence[str] | None
    judged: JudgedSet

    async def judge_all(
        self, labelled: LabelledSet, hostile: Sequence[Irrelevant], progress: Progress | None
    ) -> None:
        """Judge the rows, then the attacked contexts, and put all into `judged`."""
        self.judged.units |= {target.metric: [] for target in self.targets}
        work = (self._judge_row(row) for row in labelled.rows)
        width = max(_ROWS_AT_ONCE, 2 * self.client.judge.concurrency)
        done = 0
        try:
            async for units, gold in _in_order(work, width):
                for metric, of_metric in units:
                    self.judged.units[metric] += of_metric
                self.judged.gold += gold
                done += 1
                if progress:
                    progress(labelled.name, done, len(labelled.rows))
            if ATTACKED_METRIC in self.metrics:
                self.judged.attacks = await attack(hostile, self._grade)
        finally:
            await self.client.stop()

    async def _grade(self, row: LogRow, ask: Ask) -> int | None:
        """A grade as `context_relevance` requests it; None where there is no verdict."""
        answer = await self._answer(self.metrics[ATTACKED_METRIC], row, ask)
        return answer.grade if isinstance(answer, Grade) else None

    def _answer(self, metric: Metric, row: LogRow, request: Request) -> Awaitable[Answer]:
        return self.client.answer(row.question_key, worded(self.client, metric, row, request))

    async def _judge_row(
        self, row: AskedRow
    ) -> tuple[list[tuple[str, list[Unit]]], list[GoldScore]]:
        asked = [(one, question) for one in self.targets for question in row.questions[one.metric]]
        found = await asyncio.gather(*(self._units(row, *one) for one in asked))
        units = [(target.metric, one) for (target, _), one in zip(asked, found, strict=True)]
        return units, await self._gold(row.labelled)

    async def _gold(self, labelled: LabelledRow) -> list[GoldScore]:
        """Run the metrics that the row has gold figures for, as in a night."""
        found = []
        for name, key, value in gold_metrics(labelled, self.wanted, self.metrics):
            metric = self.metrics[name]
            answer = partial(self._answer, metric, labelled.row)
            score = await run_metric(metric, labelled.row, answer)
            found.append(GoldScore(name, key, value, labelled.question, score))
        return found

    async def _units(
        self, row: AskedRow, target: LabelTarget, question: LabelQuestion
    ) -> list[Unit]:
        log_row = row.labelled.row
        ask = worded(self.client, self.metrics[target.metric], log_row, question.ask)
        answer = await self.client.answer(log_row.question_key, ask)
        if isinstance(answer, Unanswered):
            return units_of(row, question, None, Status(answer.status))
        strengths: Sequence[float] | None = None
        if isinstance(ask, Ask):
            self.judged.prompts[target.metric].add(ask.prompt.digest)
            strengths = self.client.judge.evidence(ask)
        if isinstance(answer, HasStrengths):
            strengths = answer.strengths
        return units_of(row, question, target.verdicts(answer, question), strengths=strengths)


async def _in_order(work: Iterable[Coroutine[Any, Any, T]], width: int) -> AsyncIterator[T]:
    """The results in order, with `width` tasks at once."""
    running: deque[asyncio.Task[T]] = deque()
    try:
        for coroutine in work:
            running.append(asyncio.create_task(coroutine))
            if len(running) >= width:
                yield await running.popleft()
        while running:
            yield await running.popleft()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

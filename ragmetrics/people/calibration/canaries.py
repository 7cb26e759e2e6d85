"""Canaries: ten contexts, five that answer their question and five about something else, as every
language model can tell that can judge at all.

A judge that answers at random gives plausible scores with narrow intervals, and nothing in a log
tells it from a good one. The questions are bundled in several languages (`canaries.toml`). They are
graded by the prompt of `context_relevance`, and their replies are cached as those of other
requests are: a judge whose fingerprint stays the same gets no further request for them. A night
asks its judges, within its budget, when it is published.
"""

from __future__ import annotations

import asyncio
import logging
import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files as resources
from typing import TYPE_CHECKING, NamedTuple

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.errors import RagmetricsError, Unanswered
from ragmetrics.http import run_coroutine
from ragmetrics.judges import (
    Corpus,
    EmbeddingClient,
    HashedEmbedder,
    Judge,
    JudgeClient,
    MetricRequest,
    ReplyCache,
    SpendLimiter,
    can_answer,
    make_judges,
    names_of,
    use_budget,
)
from ragmetrics.metrics import GRADE, Metric
from ragmetrics.records import (
    LEAST_RIGHT,
    Answer,
    Ask,
    CanaryReport,
    LogRow,
    Manifest,
    Request,
    Status,
    Usage,
)
from ragmetrics.scoring import MetricScores, add_price, chosen_metrics
from ragmetrics.storage import Files
from ragmetrics.text import clean

if TYPE_CHECKING:
    from collections.abc import Hashable


METRIC = "context_relevance"
"""The metric whose prompt asks the canaries."""
NAME = "canaries"
"""Their name in `alerts: checks`, and among the metrics of a usage."""
_ENGLISH = "en"
_NO_REPLY = frozenset({Status.JUDGE_FAILED, Status.OVER_BUDGET})
_LONGEST = 200
"""Characters of a reason."""
log = logging.getLogger(__name__)


class Canary(NamedTuple):
    """A context and its question, and whether it answers it."""

    row: LogRow
    context: str
    answers: bool

    @property
    def ask(self) -> Ask:
        """The request for its grade."""
        return Ask(GRADE, {"question": self.row.user_input, "context": self.context})


@cache
def canaries(language: str) -> Sequence[Canary]:
    """The canaries of a language: each question with the context that answers it, and with that of
    the next question. English where the language is not bundled.
    """
    bundled = _bundled()
    code = language if language in bundled else _ENGLISH
    pairs = bundled[code]
    asked = []
    for number, (question, answer) in enumerate(pairs):
        other = pairs[(number + 1) % len(pairs)][1]
        contexts = (answer, other) if number % 2 else (other, answer)
        row = LogRow(f"{NAME}-{code}-{number}", question, contexts, language=code)
        asked += [Canary(row, context, context == answer) for context in contexts]
    return asked


@cache
def _bundled() -> Mapping[str, Sequence[tuple[str, str]]]:
    place = resources("ragmetrics.people.calibration") / "canaries.toml"
    return tomllib.loads(place.read_text("utf-8"))


def usual_language(languages: Iterable[Hashable]) -> str:
    """The language of most rows: `de` of `de-AT`; English where no row has one."""
    codes = (
        text.replace("_", "-").partition("-")[0] for text in languages if isinstance(text, str)
    )
    counts = Counter(code.strip().casefold() for code in codes if code.strip())
    return counts.most_common(1)[0][0] if counts else _ENGLISH


def ask_canaries(
    settings: Settings,
    judge: JudgeSettings,
    languages: Iterable[Hashable],
    store: Files | None = None,
) -> tuple[CanaryReport, Usage] | None:
    """Ask a judge the canaries in the language of most rows; one by batches is asked at once. Also
    returns what that cost.

    `store` has the cached replies; without it all are asked. None for a judge that is not asked,
    as it computes its verdicts on this machine, or that cannot grade contexts. Raises JudgeError
    where it refuses, StoreError where the replies cannot be cached.
    """
    kind = judge.kind
    if not (kind.reads_prompts or (kind.remote and kind.live)):
        return None
    alone = settings.model_copy(update={"judge": asked_at_once(judge), "judges": ()})
    (metric,) = chosen_metrics(alone.model_copy(update={"metrics": (METRIC,)}))
    return run_coroutine(_ask(alone, metric, usual_language(languages), store))


def asked_at_once(judge: JudgeSettings) -> JudgeSettings:
    """The same model without batches, as a batch may take a day."""
    at_once = judge.kind.at_once
    return judge.model_copy(update={"name": at_once}) if at_once else judge


async def _ask(
    settings: Settings, metric: Metric, language: str, store: Files | None
) -> tuple[CanaryReport, Usage] | None:
    asked = canaries(language)
    key = asked[0].row.question_key  # of all: so their replies are found in one small range
    (judge,) = make_judges(settings)
    cache: ReplyCache | None = None
    try:
        if not can_answer(judge, [GRADE]):
            return None
        if store and judge.cacheable:
            cache = await asyncio.to_thread(_open_cache, store, judge, settings.judge.ttl_days, key)
        embeddings = EmbeddingClient(HashedEmbedder(Corpus()))
        client = JudgeClient.of(settings.judge, judge, embeddings, cache=cache)
        try:
            wanted = [
                MetricRequest(worded(client, metric, canary.row, canary.ask), NAME)
                for canary in asked
            ]
            answers = await client.answer_all(key, wanted)
        finally:
            await client.stop()
    finally:
        if cache:
            cache.close()
        await judge.close()
    return _report(asked, answers), add_price(settings.judge, client.counters.usage())


def _open_cache(store: Files, judge: Judge, ttl_days: int | None, key: str) -> ReplyCache:
    cache = ReplyCache(store, judge.fingerprint, key, key, prompts=[GRADE.name], ttl_days=ttl_days)
    cache.load()
    return cache


def worded(client: JudgeClient, metric: Metric, row: LogRow, request: Request) -> Request:
    """The request in the words and the layout in which a night sends it."""
    request = metric.overridden(request, row.language)
    if client.layout and isinstance(request, Ask):
        return client.layout.arrange(row, [request])[0]
    return request


def _report(asked: Sequence[Canary], answers: Sequence[Answer]) -> CanaryReport:
    replied = [
        (canary, answer)
        for canary, answer in zip(asked, answers, strict=True)
        if not (isinstance(answer, Unanswered) and answer.status in _NO_REPLY)
    ]
    said = [(canary.answers, _says_yes(answer)) for canary, answer in replied]
    reasons = (answer.reason for answer in answers if isinstance(answer, Unanswered))
    return CanaryReport(
        language=asked[0].row.language or _ENGLISH,
        asked=len(said),
        right=sum(answers == yes for answers, yes in said),
        yes=sum(yes is True for _, yes in said),
        problem=clean(next(reasons, ""), _LONGEST),
    )


def _says_yes(answer: Answer) -> bool | None:
    """Whether the grade is at least 1; it may be an expected one. None without a verdict."""
    grade = getattr(answer, "grade", None)
    return None if grade is None else bool(grade >= 1)


def with_canaries(
    settings: Settings,
    store: Files,
    manifest: Manifest,
    scores: Mapping[str, MetricScores],
    before: Manifest | None,
) -> Manifest:
    """The manifest with what the night's judges said of the canaries. One that failed is noted
    wherever the judge is named.

    Only a judge that gave a verdict in the night is asked, within what is left of the budget. A
    judge that cannot be asked has no report. `before` is the manifest of the same run: its judges
    are not asked again. With the limit 0 none is.
    """
    least = settings.alerts.limit(NAME, LEAST_RIGHT)
    if not least:
        return manifest
    if before and before.canaries:
        reports, usages = before.canaries, before.usage_by_metric.get(NAME, {})
    else:
        told = _of_night(settings, store, manifest, scores)
        reports = {name: report for name, (report, _) in told.items() if report.asked}
        usages = {name: usage for name, (_, usage) in told.items()}
    failed = [
        f"{name}: {one.text}" if manifest.judge.panel or manifest.judge.also else one.text
        for name, one in reports.items()
        if one.fails(least)
    ]
    warning = f"cannot tell an obvious yes from an obvious no: {'; '.join(failed)}"
    note = "; ".join(filter(None, [manifest.judge.note, warning if failed else ""]))
    judge = manifest.judge.model_copy(update={"note": note})
    update = {"canaries": reports, "judge": judge}
    return _charged(manifest, usages).model_copy(update=update)


def _of_night(
    settings: Settings, store: Files, manifest: Manifest, scores: Mapping[str, MetricScores]
) -> dict[str, tuple[CanaryReport, Usage]]:
    """What the judges say that gave a verdict in a night, by name."""
    if not manifest.verdicts:
        return {}
    try:
        names = names_of(make_judges(settings))
    except RagmetricsError as error:  # as without the key, in a run that only publishes
        log.warning("canaries are not asked: %s", error)
        return {}
    with use_budget(_rest_of_budget(settings, manifest)):
        asked = {
            name: _try(settings, judge, scores, store)
            for name, judge in zip(names, settings.panel, strict=True)
            if name in manifest.verdicts
        }
    return {name: told for name, told in asked.items() if told}


def _try(
    settings: Settings, judge: JudgeSettings, scores: Mapping[str, MetricScores], store: Files
) -> tuple[CanaryReport, Usage] | None:
    """The report of a judge in a night; None where it cannot be asked, which the log says."""
    table = next(iter(scores.values())).table
    try:
        return ask_canaries(settings, judge, table["tag:language"], store)
    except RagmetricsError as error:
        log.warning("canaries of %s are not asked: %s", judge.name, error)
        return None


def _charged(manifest: Manifest, usages: Mapping[str, Usage]) -> Manifest:
    """The manifest with what the canaries cost in all its figures of usage."""
    if not usages:
        return manifest
    by_judge = dict(manifest.usage_by_judge)
    for name, usage in usages.items():
        by_judge[name] = by_judge.get(name, Usage()) + usage
    total = sum(usages.values(), manifest.usage)
    budget = manifest.budget and manifest.budget.model_copy(update={"spent": total})
    by_metric = {**manifest.usage_by_metric, NAME: dict(usages)}
    return manifest.model_copy(
        update={
            "usage": total,
            "usage_by_judge": by_judge,
            "usage_by_metric": by_metric,
            "budget": budget,
        }
    )


def _rest_of_budget(settings: Settings, manifest: Manifest) -> SpendLimiter | None:
    """What the night has left of its budget; None without one."""
    budget, spent = settings.budget, manifest.usage
    if not budget.binds:
        return None
    return SpendLimiter(
        requests=_rest(budget.max_requests, spent.requests),
        tokens=_rest(budget.max_tokens, spent.tokens),
        usd=_rest(budget.max_usd, spent.usd or 0.0),
    )


def _rest(most: float | None, used: float) -> float:
    return math.inf if most is None else max(0.0, most - used)

"""Canaries: ten contexts that obviously answer a question, or obviously do not, as every language
model can tell that can judge at all.

A judge that answers at random gives plausible scores with narrow intervals, and nothing in a log
tells it from a good one. The questions are bundled in several languages (`canaries.toml`). They are
graded by the prompt of `context_relevance`, and their replies are cached as those of other
requests are: a judge whose fingerprint stays the same gets no further request for them.
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
from ragmetrics.records import LEAST_RIGHT, Answer, Ask, CanaryReport, LogRow, Manifest, Status
from ragmetrics.scoring import MetricScores, chosen_metrics
from ragmetrics.storage import Files
from ragmetrics.text import clean

if TYPE_CHECKING:
    from collections.abc import Hashable

METRIC = "context_relevance"
"""The metric whose prompt asks the canaries."""
NAME = "canaries"
"""Their name in `alerts: checks`, and that of their requests."""
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
) -> CanaryReport | None:
    """Ask a judge the canaries in the language of most rows; one by batches is asked at once.

    `store` has the cached replies; without it all are asked. None for a judge that is not asked,
    as it computes its verdicts on this machine, or that cannot grade contexts. Raises JudgeError
    where it refuses, StoreError where the replies cannot be cached.
    """
    kind = judge.kind
    if not (kind.reads_prompts or (kind.remote and kind.live)):
        return None
    at_once = judge.model_copy(update={"name": kind.at_once}) if kind.at_once else judge
    alone = settings.model_copy(update={"judge": at_once, "judges": ()})
    (metric,) = chosen_metrics(alone.model_copy(update={"metrics": (METRIC,)}))
    return run_coroutine(_ask(alone, metric, usual_language(languages), store))


async def _ask(
    settings: Settings, metric: Metric, language: str, store: Files | None
) -> CanaryReport | None:
    asked = canaries(language)
    key = asked[0].row.question_key  # of all: so their replies are found in one small range
    (judge,) = make_judges(settings, Corpus())
    cache: ReplyCache | None = None
    try:
        if not can_answer(judge, [GRADE]):
            return None
        if store and judge.cacheable:
            cache = await asyncio.to_thread(_open_cache, store, judge, settings.judge.ttl_days, key)
        embeddings = EmbeddingClient(HashedEmbedder(Corpus()))
        client = JudgeClient.of(settings.judge, judge, embeddings, cache=cache)
        try:
            wanted = [MetricRequest(_worded(client, metric, canary), NAME) for canary in asked]
            answers = await client.answer_all(key, wanted)
        finally:
            await client.stop()
    finally:
        if cache:
            cache.close()
        await judge.close()
    return _report(asked, answers, client)


def _open_cache(store: Files, judge: Judge, ttl_days: int | None, key: str) -> ReplyCache:
    cache = ReplyCache(store, judge.fingerprint, key, key, prompts=[GRADE.name], ttl_days=ttl_days)
    cache.load()
    return cache


def _worded(client: JudgeClient, metric: Metric, canary: Canary) -> Ask:
    """The request in the words and the layout in which a night sends it."""
    row = canary.row
    plain = Ask(GRADE, {"question": row.user_input, "context": canary.context})
    worded = metric.overridden(plain, row.language)
    if not isinstance(worded, Ask):
        return plain
    return client.layout.arrange(row, [worded])[0] if client.layout else worded


def _report(
    asked: Sequence[Canary], answers: Sequence[Answer], client: JudgeClient
) -> CanaryReport:
    replied = [
        (canary, answer)
        for canary, answer in zip(asked, answers, strict=True)
        if not (isinstance(answer, Unanswered) and answer.status in _NO_REPLY)
    ]
    said = [(canary.answers, _says_yes(answer)) for canary, answer in replied]
    reasons = (answer.reason for answer in answers if isinstance(answer, Unanswered))
    usage = client.counters.usage()
    return CanaryReport(
        language=asked[0].row.language or _ENGLISH,
        asked=len(said),
        right=sum(answers == yes for answers, yes in said),
        yes=sum(yes is True for _, yes in said),
        problem=clean(next(reasons, ""), _LONGEST),
        requests=usage.requests,
        tokens=usage.tokens,
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
    reports = before.canaries if before else {}
    if not reports:
        names = names_of(make_judges(settings, Corpus())) if manifest.verdicts else ()
        with use_budget(_rest_of_budget(settings, manifest)):
            asked = {
                name: _try(settings, judge, scores, store)
                for name, judge in zip(names, settings.panel, strict=bool(names))
                if name in manifest.verdicts
            }
        reports = {name: report for name, report in asked.items() if report and report.asked}
    failed = [f"{name}: {one.text}" for name, one in reports.items() if one.fails(least)]
    warning = f"cannot tell an obvious yes from an obvious no: {'; '.join(failed)}"
    note = "; ".join(filter(None, [manifest.judge.note, warning if failed else ""]))
    judge = manifest.judge.model_copy(update={"note": note})
    return manifest.model_copy(update={"canaries": reports, "judge": judge})


def _try(
    settings: Settings, judge: JudgeSettings, scores: Mapping[str, MetricScores], store: Files
) -> CanaryReport | None:
    """The report of a judge in a night; None where it cannot be asked, which the log says."""
    table = next(iter(scores.values())).table
    try:
        return ask_canaries(settings, judge, table["tag:language"], store)
    except RagmetricsError as error:
        log.warning("canaries of %s are not asked: %s", judge.name, error)
        return None


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

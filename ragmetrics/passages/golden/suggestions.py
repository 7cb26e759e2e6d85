"""Proposes golden questions from live traffic.

topic     a question of a topic in which no golden question is, the most typical first
fall      its mean tonight is at least 0.3 below that of the nights before
swing     on at least three nights its mean fell and rose by at least 0.3
failure   nothing that was retrieved for it is relevant, on each night that asked it

Values are those of one metric, `context_relevance` where it was scored. Each reason in turn gives
its strongest question, so that a long list of one reason hides no other.
Suggestions have the row of the question, and the passages that answered it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from statistics import fmean

from ragmetrics.errors import InputError
from ragmetrics.logs import GoldenRow
from ragmetrics.passages.golden.uncovered_topics import UncoveredTopic, uncovered_topics
from ragmetrics.records import LogRow, Manifest, Reason, SuggestedPassage, Suggestion
from ragmetrics.scoring import MetricScores, load_scores
from ragmetrics.storage import (
    Files,
    RowLocation,
    RunRef,
    ScoredRow,
    by_shard,
    passing_over,
    scored_rows,
)

_CHANGE = 0.3
_FEWEST_SWINGS = 3
"""Nights."""
_PER_TOPIC = 3
_GRADES = "context_relevance"
_EMPTY = 1e-9


@dataclass
class LiveQuestion:
    """A question that is not golden."""

    key: str
    night: Manifest
    """The newest night that asked it."""
    place: RowLocation
    """Its row on that night."""
    asked: int = 0
    means: list[float] = field(default_factory=list)
    """The mean score on each night that asked it, oldest first."""
    is_of_newest: bool = False
    """Whether the newest of all nights asked it."""
    failed: bool = True
    """Whether every score is 0."""


def suggest_questions(
    files: Files, nights: Sequence[Manifest], golden: Sequence[GoldenRow], count: int
) -> list[Suggestion]:
    """At most `count` questions of some nights, oldest first, that are not golden yet.

    No request is sent. Raises InputError where no night has a metric that can be read, StoreError
    where the store is down.
    """
    if not nights:
        raise InputError("the store has no night yet: run one first")
    known = {one.row.question_key for one in golden}
    live, metric = read_live_questions(files, nights, known)
    topics = uncovered_topics(files, nights, golden)
    lists = [_topics(live, topics), _falls(live, metric), _swings(live, metric), _failures(live)]
    chosen: dict[str, tuple[LiveQuestion, Reason, str]] = {}
    for reasoned in _in_turn(lists):
        chosen.setdefault(reasoned[0].key, reasoned)
        if len(chosen) == count:
            break
    return complete(files, chosen.values())


_Reasoned = tuple[LiveQuestion, Reason, str]


def _in_turn(lists: Iterable[Sequence[_Reasoned]]) -> Iterator[_Reasoned]:
    return (one for turn in zip_longest(*lists) for one in turn if one is not None)


def _topics(live: dict[str, LiveQuestion], topics: Sequence[UncoveredTopic]) -> list[_Reasoned]:
    """Typical questions of each topic without a golden one, topic by topic in turn."""
    lists: list[list[_Reasoned]] = []
    for topic in topics:
        own = [key for key in topic.questions if key in live][:_PER_TOPIC]
        why = f"topic {topic.name}: {topic.share:.1%} of the questions, no golden question"
        lists.append([(live[key], "topic", why) for key in own])
    return list(_in_turn(lists))


def _falls(live: dict[str, LiveQuestion], metric: str) -> list[_Reasoned]:
    found = []
    for query in live.values():
        if len(query.means) < 2 or not query.is_of_newest:
            continue
        *earlier, now = query.means
        before = sum(earlier) / len(earlier)
        if before - now >= _CHANGE:
            why = f"{metric} fell from {before:.2f} to {now:.2f}"
            found.append((before - now, query, why))
    return _ranked(found, "fall")


def _swings(live: dict[str, LiveQuestion], metric: str) -> list[_Reasoned]:
    found = []
    for query in live.values():
        low, high = min(query.means, default=0.0), max(query.means, default=0.0)
        steps = [b - a for a, b in zip(query.means, query.means[1:], strict=False)]
        both = min(steps, default=0.0) <= -_CHANGE and max(steps, default=0.0) >= _CHANGE
        if len(query.means) >= _FEWEST_SWINGS and both:
            why = f"{metric} between {low:.2f} and {high:.2f} on {len(query.means)} nights"
            found.append((high - low, query, why))
    return _ranked(found, "swing")


def _failures(live: dict[str, LiveQuestion]) -> list[_Reasoned]:
    found = [
        (float(query.asked), query, f"nothing relevant was retrieved, asked {query.asked} times")
        for query in live.values()
        if query.failed
    ]
    return _ranked(found, "failure")


def _ranked(found: Iterable[tuple[float, LiveQuestion, str]], reason: Reason) -> list[_Reasoned]:
    """The strongest first; of equal ones, those that were asked more often."""
    ordered = sorted(found, key=lambda one: (-one[0], -one[1].asked, one[1].key))
    return [(one, reason, why) for _, one, why in ordered]


def complete(files: Files, chosen: Iterable[tuple[LiveQuestion, Reason, str]]) -> list[Suggestion]:
    """The suggestions in their order. One whose row is gone from the store is left out."""
    wanted = list(chosen)
    rows: dict[tuple[str, RowLocation], ScoredRow] = {}
    for run, night in {one.night.run: one.night for one, _, _ in wanted}.items():
        places = {one.place for one, _, _ in wanted if one.night.run == run}
        rows |= {(run, place): row for place, row in _rows(files, night, places).items()}
    return [
        _suggestion(question, reason, why, rows[question.night.run, question.place])
        for question, reason, why in wanted
        if (question.night.run, question.place) in rows
    ]


def _rows(files: Files, night: Manifest, places: set[RowLocation]) -> dict[RowLocation, ScoredRow]:
    metrics = [_GRADES] if night.summary(_GRADES) else []
    with passing_over():
        return scored_rows(files, RunRef.of(night), metrics, by_shard(places))
    return {}


def _suggestion(one: LiveQuestion, reason: Reason, why: str, scored: ScoredRow) -> Suggestion:
    row = scored.row
    return Suggestion(
        reason=reason,
        why=why,
        user_input=row.user_input,
        asked=one.asked,
        night=one.night.date,
        response=row.response,
        passages=_passages(row, scored),
        tags=row.tags,
        language=row.language,
    )


def _passages(row: LogRow, scored: ScoredRow) -> list[SuggestedPassage]:
    """The retrieved passages in rank order; relevant are those with the best grade above 0."""
    score = scored.scores.get(_GRADES)
    grades = list((score.details if score else None or {}).get("grades") or [])
    best = max((grade or 0 for grade in grades), default=0)
    ids = row.retrieved_context_ids or ()
    return [
        SuggestedPassage(
            id=ids[rank] if len(ids) == len(row.retrieved_contexts) else "",
            text=text,
            relevant=(grades[rank] or 0) == best > 0
            if len(grades) == len(row.retrieved_contexts)
            else None,
        )
        for rank, text in enumerate(row.retrieved_contexts)
    ]


def read_live_questions(
    files: Files, nights: Sequence[Manifest], golden: Collection[str]
) -> tuple[dict[str, LiveQuestion], str]:
    """The questions of some nights by their keys, without golden ones; and the metric that was
    read. A night whose scores are gone is left out.

    Raises InputError where no night has a metric that reads the contexts, StoreError where the
    store is down.
    """
    metric = _metric(nights)
    found: dict[str, LiveQuestion] = {}
    for night in nights:
        if not night.summary(metric):
            continue
        with passing_over():
            scores = load_scores(files, RunRef.of(night), metric)
            _add(found, night, scores, golden, newest=night is nights[-1])
    return found, metric


def _metric(nights: Sequence[Manifest]) -> str:
    """The metric of the newest night whose values suggestions are based on."""
    names = [
        metric.metric
        for metric in nights[-1].metrics
        if metric.scored and metric.higher_is_better and "context" in metric.metric
    ]
    if not names:
        raise InputError(
            f"night {nights[-1].date} has no score of the contexts: add {_GRADES} to `metrics:`"
        )
    return _GRADES if _GRADES in names else names[0]


def _add(
    found: dict[str, LiveQuestion],
    night: Manifest,
    scores: MetricScores,
    golden: Collection[str],
    *,
    newest: bool,
) -> None:
    values: dict[str, list[float]] = {}
    rows = scores.scored
    columns = (rows[name].tolist() for name in ("question", "value", "shard", "position"))
    for key, value, shard, position in zip(*columns, strict=True):
        if key in golden:
            continue
        place = (int(shard), int(position))
        one = found.setdefault(key, LiveQuestion(key, night, place))
        one.asked += 1
        one.night, one.place, one.is_of_newest = night, place, newest
        one.failed = one.failed and value <= _EMPTY
        values.setdefault(key, []).append(value)
    for key, of_night in values.items():
        found[key].means.append(fmean(of_night))

"""What happened to topics on a night: which fell, which got more traffic, which have no golden
question.

A fall is looked for among questions, and tested on others (`topics.find_fallen_questions`); it
needs no fixed topics. Traffic and golden questions are counted by the topics that rows have as
tags.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

import numpy as np
from scipy import special

from ragmetrics.config import AlertSettings
from ragmetrics.errors import StoreError
from ragmetrics.passages import (
    PastQuestion,
    find_fallen_questions,
    questions_with_reference,
    read_questions,
)
from ragmetrics.records import (
    TOPIC,
    FallenTopic,
    Manifest,
    RisenTopic,
    TopicModel,
    TopicReport,
    TopicWithoutGolden,
    hashed,
)
from ragmetrics.rules.context import Baseline, NightContext
from ragmetrics.rules.corrections import Sides, corrected, judge_drift, judge_movement, mix
from ragmetrics.rules.question_mix import RowSelection
from ragmetrics.rules.rule_check import rules_of
from ragmetrics.rules.sides import ID_METRICS, NightSides
from ragmetrics.stats import adjust_p_values, compare_aligned, question_means
from ragmetrics.storage import Files, RunRef, trailing_nights
from ragmetrics.text import clean

ALPHA = 0.005
"""Level of the tests of a night together: on so many unchanged nights, at most, a topic is told."""
_RISEN_ALPHA = 0.01
LEAST = 0.05
"""Smaller drops of a topic are not told."""
_MOST_QUESTIONS = 5_000
"""Questions among which a fall is looked for; of more, that many at equal distances."""
_NIGHTS = 7
_FEWEST_NIGHTS = 5
_MORE = 1.5
"""Least factor by which a topic's share must have risen."""
log = logging.getLogger(__name__)


def try_topic_changes(
    settings: AlertSettings, files: Files, night: NightContext, model: TopicModel, *, redact: bool
) -> TopicReport | None:
    """What happened to the topics of a night; `redact` hides words and questions. None where
    earlier rows cannot be read.
    """
    labels = {topic.label(redact=redact): topic for topic in model.topics}
    rows = {topic: count for topic, count in _rows_by_topic(night).items() if topic in labels}
    typical = {
        label: [hashed(question) if redact else question for question in topic.questions]
        for label, topic in labels.items()
    }
    try:
        return TopicReport(
            model=model.day,
            topics=len(model.topics),
            rows=rows,
            fallen=_fallen(settings, files, night, redact=redact),
            risen=_risen(night, rows, model, typical),
            without_golden=_without_golden(files, night, rows, typical),
        )
    except StoreError as error:
        log.warning("what happened to the topics is not known: %s", error)
        return None


def _rows_by_topic(night: NightContext) -> Counter[str]:
    """The rows of each topic, by any metric: all metrics have all rows."""
    scores = next(iter(night.scores.values()), None)
    column = f"tag:{TOPIC}"
    if scores is None or column not in scores.table:
        return Counter()
    return Counter(scores.table[column].dropna().tolist())


def _fallen(
    settings: AlertSettings, files: Files, night: NightContext, *, redact: bool
) -> list[FallenTopic]:
    rules = rules_of(settings)
    metrics = dict.fromkeys(rule.metric for rule in rules)
    watched = [metric for metric in metrics if (s := night.manifest.summary(metric)) and s.scored]
    sides = {metric: _usual_side(night, metric) for metric in watched}
    means = {metric: _means(night, side) for metric, side in sides.items()}
    asked = {question for before, now in means.values() for question in before.keys() & now.keys()}
    if not asked:
        return []
    refs = [RunRef.of(one) for one in (*night.earlier[-_NIGHTS:], night.manifest)]
    chosen = sorted(asked)[:: max(1, -(-len(asked) // _MOST_QUESTIONS))]
    texts = read_questions(files, refs[:-1], set(chosen), answering=True)
    found = (
        fallen_topic(metric, *means[metric], texts, tests=len(watched), redact=redact, sides=side)
        for metric, side in sides.items()
    )
    return [one for one in found if one]


def _usual_side(night: NightContext, metric: str) -> NightSides:
    """The usual nights before, and tonight, without questions whose labels are stale."""
    earlier = trailing_nights(night.earlier, night.manifest.date, _NIGHTS)
    usual = [one for one in earlier if night.compares(one, metric) and not _had_fallen(one, metric)]
    which = RowSelection(metric, without=night.stale if metric in ID_METRICS else ())
    return NightSides(night, which, Baseline(usual), [night.manifest])


def _means(
    night: NightContext, side: NightSides
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """The mean of each question in the usual nights, and tonight."""
    metric, stale = side.rows.metric, side.rows.without
    sums: dict[str, list[float]] = {}
    for means in question_means(side.before):
        for question in means.keys() - stale:
            sums.setdefault(question, []).append(means[question])
    [tonight] = question_means(night.questions(metric, None, [night.manifest]))
    return (
        {question: fmean(values) for question, values in sums.items()},
        {question: mean for question, mean in tonight.items() if question not in stale},
    )


def _had_fallen(manifest: Manifest, metric: str) -> bool:
    """Whether a topic had fallen already: a lasting fall must not become its own baseline."""
    return any(one.metric == metric for one in (manifest.topics.fallen if manifest.topics else ()))


def fallen_topic(
    metric: str,
    before: Mapping[str, float],
    now: Mapping[str, float],
    texts: Mapping[str, PastQuestion],
    *,
    tests: int = 1,
    redact: bool = False,
    sides: Sides | None = None,
) -> FallenTopic | None:
    """The topic that a fall of a metric is confined to; None where there is none.

    `before` and `now` are the means of questions by their keys. The p value is multiplied by the
    number of `tests` of the night. `redact` hides the words and questions. The fall is corrected by
    `sides` except for stale labels: their questions are left out before a topic is looked for.
    """
    drops = {one: before[one] - now[one] for one in before.keys() & now.keys()}
    found = find_fallen_questions(drops, texts)
    if found is None or found.p_value * tests >= ALPHA:
        return None
    old, new = (np.array([side[one] for one in found.questions]) for side in (before, now))
    drop = compare_aligned(old, new)
    if drop and sides:
        drop = corrected(drop, sides, (mix, judge_movement, judge_drift)).left
    # Questions have words in common also where a topic rose: the group itself must have fallen.
    if drop is None or drop.drop <= LEAST or drop.low <= 0:
        return None
    typical = [texts[one].text for one in found.typical]
    return FallenTopic(
        topic=", ".join(hashed(word) if redact else clean(word, 40) for word in found.words),
        metric=metric,
        before=drop.before,
        now=drop.now,
        drop=drop.drop,
        low=drop.low,
        high=drop.high,
        p_value=found.p_value * tests,
        questions=len(found.questions),
        typical=[hashed(one) if redact else clean(one, 200) for one in typical],
    )


def _risen(
    night: NightContext,
    rows: Mapping[str, int],
    model: TopicModel,
    typical: Mapping[str, list[str]],
) -> list[RisenTopic]:
    """The topics with a significantly larger share of the rows than on the nights before."""
    past = [
        day.topics.rows
        for day in trailing_nights(night.earlier, night.manifest.date, 2 * _NIGHTS)
        if day.topics and day.topics.model == model.day and day.topics.rows.keys() & rows.keys()
    ]
    total = sum(rows.values())
    if len(past) < _FEWEST_NIGHTS or not total:
        return []
    tested = []
    for topic, count in sorted(rows.items()):
        shares = [own.get(topic, 0) / sum(own.values()) for own in past]
        tested.append((topic, count, fmean(shares), _rise(count / total, total, shares)))
    adjusted = adjust_p_values([p for *_, p in tested])
    return [
        RisenTopic(
            topic=topic,
            share=count / total,
            before=share,
            p_value=p,
            questions=count,
            typical=typical[topic],
        )
        for (topic, count, share, _), p in zip(tested, adjusted, strict=True)
        if p < _RISEN_ALPHA and count / total >= _MORE * share
    ]


def _rise(share: float, total: int, before: Sequence[float]) -> float:
    """One-sided p value of a share beside those of earlier nights, which move."""
    mean = fmean(before)
    expected = (mean * total + 1) / (total + 2)
    error = max(stdev(before), math.sqrt(expected * (1 - expected) / total))
    statistic = (share - mean) / (error * math.sqrt(1 + 1 / len(before)))
    return float(special.stdtr(len(before) - 1, -statistic))


def _without_golden(
    files: Files, night: NightContext, rows: Mapping[str, int], typical: Mapping[str, list[str]]
) -> list[TopicWithoutGolden]:
    """The topics in which no question has a reference; none where no question has one."""
    if not night.manifest.source.golden:
        return []
    golden = _golden_topics(files, night)
    total = sum(rows.values())
    return [
        TopicWithoutGolden(topic=topic, share=count / total, typical=typical[topic])
        for topic, count in sorted(rows.items(), key=lambda one: (-one[1], one[0]))
        if topic not in golden
    ]


def _golden_topics(files: Files, night: NightContext) -> set[str]:
    """The topics of the questions that have a reference."""
    golden = questions_with_reference(files, RunRef.of(night.manifest))
    scores = next(iter(night.scores.values()))
    table = scores.table
    return set(table.loc[table["question"].isin(golden), f"tag:{TOPIC}"].dropna().tolist())

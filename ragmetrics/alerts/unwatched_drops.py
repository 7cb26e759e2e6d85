"""Unwatched drops: metrics without a drop rule that are significantly worse. The headline shows
them, so that a night without a rule does not look fine; only a rule fires an alert.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from ragmetrics.alerts.context import Baseline, NightContext
from ragmetrics.alerts.golden_dates import one_sided_questions, without_questions
from ragmetrics.alerts.judge_drift import drop_without_drift
from ragmetrics.alerts.judge_movement import level_between
from ragmetrics.alerts.question_mix import RowSelection, without_mix
from ragmetrics.alerts.rules import DEFAULT_RULES
from ragmetrics.alerts.stale_labels import stale_of
from ragmetrics.config import AlertSettings, Rule
from ragmetrics.model import ComparedMeans, Finding, Manifest, Summary, UnwatchedDrop
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import compare, with_movement
from ragmetrics.storage import trailing_nights

LEAST = 0.05
"""Smaller drops are not shown; the limit of the default rules."""
ALPHA = 0.01
"""Significance level of all one-sided tests of a night together (Bonferroni). The 95% interval of a
shown drop therefore excludes 0."""
_NIGHTS = 7
_LEAST_ROWS: int = Rule.model_fields["min_rows"].default


def find_unwatched_drops(
    settings: AlertSettings, night: NightContext, findings: Sequence[Finding]
) -> list[UnwatchedDrop]:
    """The unwatched drops of a night, in the order of its metrics.

    A metric is compared with the nights of the week before that have the same fingerprint and no
    such drop, paired by question where possible. A metric with a finding of its own is left out,
    and so is one whose judge failed. Judge drift and stale labels are subtracted.
    """
    rules = settings.rules if settings.rules is not None else DEFAULT_RULES
    covered = {rule.metric for rule in rules if rule.max_drop is not None and rule.by is None}
    covered |= {one.metric for one in findings if one.metric and _covers_metric(one)}
    family = [
        one
        for one in night.manifest.metrics
        if one.metric not in covered and one.scored >= _LEAST_ROWS
    ]
    falls = (_fall(night, one, ALPHA / len(family)) for one in family)
    return [fall for fall in falls if fall]


def _covers_metric(finding: Finding) -> bool:
    """Whether a finding is about the metric itself: a segment with too few rows is not."""
    return finding.level != "ok" and (finding.segment is None or finding.level != "no_data")


def _fall(night: NightContext, now: Summary, alpha: float) -> UnwatchedDrop | None:
    nights = [
        (one, before.mean)
        for one in trailing_nights(night.earlier, night.manifest.date, _NIGHTS)
        if (before := one.summary(now.metric)) and before.mean is not None
        if before.fingerprint == now.fingerprint and not _had_fallen(one, now.metric)
    ]
    # The summaries are enough here, so on most nights no score is read.
    if now.mean is None or not nights or now.loss(fmean(mean for _, mean in nights)) <= LEAST:
        return None
    compared = [one for one, _ in nights]
    excluded = stale_of(now.metric, night) | one_sided_questions(night, compared, [night.manifest])
    then, tonight = (
        without_questions(_questions(scores, now), excluded)
        for scores in (
            (night.rows(now.metric, one) for one, _ in nights),
            [night.scores[now.metric]],
        )
    )
    which = RowSelection(now.metric, without=excluded, sign=_sign(now))
    week = Baseline(compared, usual=compared, past=night.comparable(now.metric))
    drop = without_mix(compare(then, tonight), night, which, week, [night.manifest])
    if drop is not None:
        drop = with_movement(drop, level_between(night, now.metric, compared, [night.manifest]))
        drop = drop_without_drift(drop, night, now.metric, compared)
    if drop is None or drop.drop <= LEAST or drop.p_value >= alpha:
        return None
    sign = _sign(now)
    return UnwatchedDrop(
        metric=now.metric,
        before=fmean(mean for _, mean in nights),
        now=now.mean,
        label=nights[0][0].date.isoformat() if len(nights) == 1 else f"{len(nights)} nights before",
        drop=drop.drop,
        low=drop.low,
        high=drop.high,
        questions=drop.questions,
        paired=drop.paired,
        means=ComparedMeans(
            before=sign * drop.before,
            now=sign * drop.now,
            questions=drop.questions,
            paired=drop.paired,
        ),
    )


def _had_fallen(manifest: Manifest, metric: str) -> bool:
    """Whether the night has this drop already: a lasting drop must not become its own baseline."""
    return any(fall.metric == metric for fall in manifest.falls)


def _sign(now: Summary) -> int:
    return 1 if now.higher_is_better else -1


def _questions(nights: Iterable[MetricScores], now: Summary) -> dict[str, list[float]]:
    """The values of each question, negated where lower is better."""
    sign = _sign(now)
    values: dict[str, list[float]] = {}
    for scores in nights:
        for question, own in scores.by_question().items():
            values.setdefault(question, []).extend(sign * value for value in own)
    return values


__all__ = ["find_unwatched_drops"]

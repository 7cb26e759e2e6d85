"""Falls: metrics that surely got worse and whose drops no rule watches, so that no night is called
fine for want of one. They are said in the headline; only a rule alerts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from ragmetrics.alerts.context import Baseline
from ragmetrics.alerts.judge_drift import drop_without_drift
from ragmetrics.alerts.judge_movement import level_between
from ragmetrics.alerts.question_mix import RowSelection, without_mix
from ragmetrics.alerts.rules import DEFAULT_RULES, NightContext
from ragmetrics.alerts.stale_labels import live_questions, stale_of
from ragmetrics.config import AlertSettings, Rule
from ragmetrics.model import ComparedMeans, Finding, Manifest, Summary, UnwatchedDrop
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import compare, with_movement
from ragmetrics.storage import trailing_nights

LEAST = 0.05
"""A smaller drop is nothing to say of a night; that of the default rules."""
ALPHA = 0.01
"""Of all one-sided tests of a night together (Bonferroni): nights on which nothing changed are
called fine. So the 95% interval of what is told excludes 0."""
_NIGHTS = 7
_LEAST_ROWS: int = Rule.model_fields["min_rows"].default


def find_unwatched_drops(
    settings: AlertSettings, night: NightContext, findings: Sequence[Finding]
) -> list[UnwatchedDrop]:
    """The falls of a night, given what its rules found, in the order of its metrics.

    A metric is compared, paired by question where it can be, with the nights of the week before:
    those of the same fingerprint on which it had not fallen already. A metric whose judge failed
    has a finding that says so, and is left out. What judge drift or stale labels explain is none.
    """
    rules = settings.rules if settings.rules is not None else DEFAULT_RULES
    told = {rule.metric for rule in rules if rule.max_drop is not None and rule.by is None}
    told |= {one.metric for one in findings if one.metric and _says_something(one)}
    family = [
        one
        for one in night.manifest.metrics
        if one.metric not in told and one.scored >= _LEAST_ROWS
    ]
    falls = (_fall(night, one, ALPHA / len(family)) for one in family)
    return [fall for fall in falls if fall]


def _says_something(finding: Finding) -> bool:
    """Whether a finding is of the metric itself: a segment of too few rows says nothing of it."""
    return finding.level != "ok" and (finding.segment is None or finding.level != "no_data")


def _fall(night: NightContext, now: Summary, alpha: float) -> UnwatchedDrop | None:
    nights = [
        (one, before.mean)
        for one in trailing_nights(night.earlier, night.manifest.date, _NIGHTS)
        if (before := one.summary(now.metric)) and before.mean is not None
        if before.fingerprint == now.fingerprint and not _had_fallen(one, now.metric)
    ]
    # By the summaries alone: on most nights not one score has to be read.
    if now.mean is None or not nights or now.loss(fmean(mean for _, mean in nights)) <= LEAST:
        return None
    then, tonight = (
        live_questions(now.metric, _questions(scores, now), night)
        for scores in (
            (night.rows(now.metric, one) for one, _ in nights),
            [night.scores[now.metric]],
        )
    )
    held = [one for one, _ in nights]
    which = RowSelection(now.metric, without=stale_of(now.metric, night), sign=_sign(now))
    week = Baseline(held, usual=held, past=night.comparable(now.metric))
    drop = without_mix(compare(then, tonight), night, which, week, [night.manifest])
    if drop is not None:
        drop = with_movement(drop, level_between(night, now.metric, held, [night.manifest]))
        drop = drop_without_drift(drop, night, now.metric, held)
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
    """A drop that stays must not become the measure by which it looks fine."""
    return any(fall.metric == metric for fall in manifest.falls)


def _sign(now: Summary) -> int:
    return 1 if now.higher_is_better else -1


def _questions(nights: Iterable[MetricScores], now: Summary) -> dict[str, list[float]]:
    """The values of each question, turned around where lower is better: what got worse fell."""
    sign = _sign(now)
    values: dict[str, list[float]] = {}
    for scores in nights:
        for question, own in scores.by_question().items():
            values.setdefault(question, []).extend(sign * value for value in own)
    return values


__all__ = ["find_unwatched_drops"]

"""Unwatched drops: metrics that are significantly worse while no alert fires on them. The headline
shows them until the metric is back, so that a night does not look fine; only a rule fires an alert.

The nights on which a metric was low are read from the manifests: from its first night on which it
fell, or on which an alert on it fired. They are never part of what it is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from statistics import fmean

from ragmetrics.config import AlertSettings, Rule
from ragmetrics.metrics import bundled_metrics
from ragmetrics.records import ComparedMeans, Finding, Manifest, Summary, UnwatchedDrop
from ragmetrics.rules.context import Baseline, NightContext
from ragmetrics.rules.corrections import Corrected
from ragmetrics.rules.night_check import suppresses_rules
from ragmetrics.rules.question_mix import RowSelection
from ragmetrics.rules.rule_check import can_fall, rules_of
from ragmetrics.rules.sides import NightSides
from ragmetrics.stats import ALPHA as CHANCE, CONFIDENCE, Drop, adjust_p_values
from ragmetrics.storage import trailing_nights

LEAST = 0.05
"""Smaller drops are not shown; the limit of the default rules."""
MAX_SHARE = 0.25
"""Nor are drops below this share of the mean, where that is less."""
ALPHA = 0.05
"""Significance level of a night after Benjamini-Hochberg over its metrics. A drop that is shown
makes a headline and no alert, so a night in forty without a change may show one; at 0.01 a third of
60 rows without contexts was shown on half as many nights."""
_EXCLUDES_0 = (1 - CONFIDENCE) / 2
"""p from which the 95% interval of a shown drop excludes 0."""
_NIGHTS = 7
_LEAST_ROWS: int = Rule.model_fields["min_rows"].default


def find_unwatched_drops(
    settings: AlertSettings, night: NightContext, findings: Sequence[Finding]
) -> list[UnwatchedDrop]:
    """The unwatched drops of a night, in the order of its metrics.

    A metric is compared with the usual nights of the week before it was low, paired by question
    where possible. A metric with a finding of its own is left out, and so is one whose judge
    failed. Judge drift and stale labels are subtracted.

    A drop that is there lasts until the metric is back: until it is as high as before, or is
    significantly higher than on the low nights and not significantly lower than before. After 90
    days without a usual night the lower level is the usual one.
    """
    rules = rules_of(settings)
    watched = {rule.metric for rule in rules if rule.max_drop is not None and rule.by is None}
    told = {one.metric for one in findings if one.metric and _covers_metric(one)}
    family = [
        summary
        for summary in night.manifest.metrics
        if summary.metric not in told and summary.scored >= _LEAST_ROWS
        if summary.higher_is_better is not None
    ]
    falls = [_measure(night, one) for one in family]
    chances = adjust_p_values([fall.chance if fall else 1.0 for fall in falls])
    return [
        _told(fall, watched=fall.now.metric in watched)
        for fall, chance in zip(falls, chances, strict=True)
        if fall and (chance < ALPHA or fall.lasts)
    ]


def _covers_metric(finding: Finding) -> bool:
    """Whether a finding is about the metric itself: a segment with too few rows is not."""
    return finding.level != "ok" and (finding.segment is None or finding.level != "no_data")


@dataclass(frozen=True)
class _Fall:
    """A metric's drop from its usual nights, with the nights since on which it was low."""

    now: Summary
    before: Sequence[tuple[Manifest, float]]
    low: Sequence[Manifest]
    drop: Drop
    chance: float
    """p, or 1 where the drop is too small to be shown or its interval contains 0."""
    lasts: bool


def _measure(night: NightContext, now: Summary) -> _Fall | None:
    low = _low_nights(night, now.metric)
    begin = low[0].date if low else night.manifest.date
    before = _usual_nights(night, now.metric, begin)
    # The summaries are enough here, so on most nights no score is read.
    if now.mean is None or not before:
        return None
    mean = fmean(mean for _, mean in before)
    least = _least(now, mean)
    if not low and now.loss(mean) <= least:
        return None
    measured = _drop(night, now, [one for one, _ in before], 1)
    if measured is None or (drop := measured.left) is None:
        return None
    fell = drop.drop > least and drop.p_value < _EXCLUDES_0
    lasts = bool(low) and not _is_back(night, now, low, drop, least)
    return _Fall(now, before, low, drop, drop.p_value if fell else 1.0, lasts)


def _least(now: Summary, mean: float) -> float:
    """The smallest drop that is shown; of a health metric, what a proposed rule allows."""
    known = bundled_metrics().get(now.metric)
    if known and (least := known.least_drop(mean)):
        return least
    return min(LEAST, MAX_SHARE * can_fall(now.metric, mean)) if now.higher_is_better else LEAST


def _low_nights(night: NightContext, metric: str) -> list[Manifest]:
    """The nights in a row before tonight on which the metric was low, oldest first. Nights that did
    not judge it do not count.
    """
    found: list[Manifest] = []
    for manifest in reversed(night.history or night.earlier):
        low = _was_low(night, manifest, metric)
        if low is False:
            break
        found += [manifest] if low else []
    return found[::-1]


def _was_low(night: NightContext, one: Manifest, metric: str) -> bool | None:
    """Whether a metric was low on a night; None where the night does not say, as where its rows are
    those of an earlier one.
    """
    if any(map(suppresses_rules, one.findings)):
        return None
    if any(fall.metric == metric for fall in one.falls):
        return True
    own = [found for found in one.findings if found.metric == metric and _covers_metric(found)]
    if any(map(_is_metric_alert, own)):
        return True
    summary = one.summary(metric)
    judged = summary and summary.scored >= _LEAST_ROWS and night.compares(one, metric)
    return False if judged and not own else None


def _is_metric_alert(finding: Finding) -> bool:
    """Whether an alert on the mean of all rows fires."""
    judged = finding.is_rule and finding.level != "no_data"
    return judged and finding.state == "firing" and finding.segment is None


def _usual_nights(night: NightContext, metric: str, begin: date) -> list[tuple[Manifest, float]]:
    """The comparable nights of the week before a night on which the metric was not low, with its
    means. Nights on which another metric's alert fired count only where there are no others.
    """
    usual = [
        (manifest, summary.mean)
        for manifest in trailing_nights(night.history or night.earlier, begin, _NIGHTS)
        if (summary := manifest.summary(metric)) and summary.mean is not None
        if night.compares(manifest, metric) and not _was_low(night, manifest, metric)
    ]
    calm = [pair for pair in usual if not any(map(_is_metric_alert, pair[0].findings))]
    return calm or usual


def _drop(
    night: NightContext, now: Summary, before: Sequence[Manifest], sign: int
) -> Corrected | None:
    """The drop from some nights to tonight with the whole list of corrections, of scores that are
    higher where they are better, or with sign -1 lower.
    """
    past = [one for one in night.comparable(now.metric) if one.date <= before[-1].date]
    which = RowSelection(now.metric, sign=sign if now.higher_is_better else -sign)
    week = Baseline(before, usual=before, past=past)
    return NightSides(night, which, week, [night.manifest], in_order=False).corrected()


def _is_back(
    night: NightContext, now: Summary, low: Sequence[Manifest], drop: Drop, least: float
) -> bool:
    """Whether a metric that was low is as high as before; a good night by chance does not count."""
    if drop.drop <= 0:
        return True
    if drop.drop > least / 2 and drop.p_value < CHANCE:
        return False
    nights = [one for one in low[-_NIGHTS:] if night.compares(one, now.metric)]
    measured = _drop(night, now, nights, -1) if nights else None
    rise = measured.left if measured else None
    return rise is not None and rise.drop > 0 and rise.p_value < CHANCE


def _told(fall: _Fall, *, watched: bool) -> UnwatchedDrop:
    now, drop, low = fall.now, fall.drop, fall.low
    sign, nights = _sign(now), [one for one, _ in fall.before]
    label = nights[0].date.isoformat() if len(nights) == 1 else f"{len(nights)} nights before"
    return UnwatchedDrop(
        metric=now.metric,
        before=fmean(mean for _, mean in fall.before),
        now=now.mean or 0.0,
        label=label,
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
        since=low[0].date if low else None,
        watched=watched,
    )


def _sign(now: Summary) -> int:
    return 1 if now.higher_is_better else -1

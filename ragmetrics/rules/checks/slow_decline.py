"""Slow declines: a metric that fell over weeks, by so little a night that no drop rule sees it.

Each night has one level per metric: its mean, for one mix of questions, from the means by tag that
the manifests keep. `stats.find_decline` looks for a fall among the levels of the last 90 days. It
fires where p is below the level of declines, shared by the watched metrics, and the fall is above
`alerts: slow_decline`. A firing alert lasts until the fall is not significant at 5%, or until the
nights before the fall are more than 90 days ago: then the lower level is the usual one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from scipy import special

from ragmetrics.config import Rule, drop_name
from ragmetrics.records import Finding, Level, Manifest
from ragmetrics.rules.context import Baseline, NightContext, nights_out
from ragmetrics.rules.corrections import corrected, judge_drift
from ragmetrics.rules.decline_test import find_decline
from ragmetrics.rules.level_series import level_series
from ragmetrics.rules.night_check import Limit, Sample, Tonight, check
from ragmetrics.rules.question_mix import RowSelection
from ragmetrics.rules.rule_check import alert_key, can_fall
from ragmetrics.rules.sides import NightSides, offset_error
from ragmetrics.stats import ALPHA, CONFIDENCE, Drop, detectable
from ragmetrics.storage import trailing_nights
from ragmetrics.text import drop_text

DAYS = 90
"""Days before tonight whose nights count."""
LEAST_ROWS: int = Rule.model_fields["min_rows"].default
MAX_SHARE = 0.25
"""No limit is a larger share of the mean before."""


@check(
    "slow_decline",
    lambda finding, _: f"slow decline of {finding.metric}",
    stage="rules",
    order=110,
    needs=("rows", "earlier nights"),
    limit=Limit(),
    sample=Sample(
        "Slow decline",
        "context_recall: slow decline of more than 0.03",
        "context_recall fell slowly over 30 days, from 0.764 to 0.714: drop 0.050 [0.034, 0.066], "
        "like for like by tag section; no single night stands out",
        fields={
            "metric": "context_recall",
            "n": 1240,
            "questions": 1240,
            "baseline": 0.764,
            "baseline_label": "30 days",
            "drop": 0.05,
            "drop_low": 0.034,
            "drop_high": 0.066,
            "limit": 0.03,
            "mix_tags": ["section"],
            "for_nights": None,
        },
    ),
)
def slow_decline(tonight: Tonight) -> Iterator[Finding]:
    """The mean of a metric fell over weeks, by so little a night that no comparison with last week
    shows it. It is measured on the levels of the last 90 days, each for the same mix of
    questions.

    A finding for each metric with a rule and enough comparable nights, if higher is better in it.

    The nights of an incident of a drop rule do not count: the incident explains their fall.
    """
    summaries = tonight.manifest.summary
    metrics = list(dict.fromkeys(rule.metric for rule in tonight.rules))
    metrics = [one for one in metrics if not (now := summaries(one)) or now.higher_is_better]
    breaches = {finding.key for finding in tonight.findings if finding.level == "breach"}
    for metric in metrics:
        keys = {
            alert_key(tonight.night, metric, None, drop_name(rule.max_drop, rule.versus))
            for rule in tonight.rules
            if rule.metric == metric and rule.max_drop is not None and rule.by is None
        }
        series = _series(tonight.night, metric, keys, tonight=not keys & breaches)
        if (fall := _measure(tonight.night, metric, series)) is not None:
            level = tonight.settings.decline_level / len(metrics)
            yield _finding(tonight, metric, fall, level)


@dataclass(frozen=True)
class _Fall:
    """The fall of a metric over some days."""

    drop: Drop
    days: int
    is_ramp: bool
    tags: list[str]


def _series(
    night: NightContext, metric: str, keys: Collection[str], *, tonight: bool
) -> list[Manifest]:
    """The comparable nights of the last 90 days, without incidents. Golden questions that came or
    went change what is measured, so the nights before the last change do not count.
    """
    manifest = night.manifest
    past = trailing_nights(night.history or night.earlier, manifest.date, DAYS)
    out = set[date]().union(*(nights_out(past, key) for key in keys))
    source = manifest.source
    changes = [*source.golden_since.values(), *source.golden_until.values()]
    first = max(changes, default=date.min)
    return [
        earlier
        for earlier in (*past, *([manifest] if tonight else ()))
        if night.compares(earlier, metric) and first <= earlier.date and earlier.date not in out
        if (summary := earlier.summary(metric)) and summary.scored >= LEAST_ROWS
    ]


def _measure(night: NightContext, metric: str, series: Sequence[Manifest]) -> _Fall | None:
    """The most significant fall of the series; None where it is too short.

    Of the corrections it has judge drift alone, and the error of an offset between judges: the
    levels are of one mix, their error has the movement, and stale labels of earlier nights are not
    known.
    """
    known = level_series(night, metric, series)
    if not known.nights:
        return None
    days, questions = known.days, known.questions
    weights = np.minimum(questions, np.median(questions))
    found = find_decline(known.levels, days, weights)
    if found is None:
        return None
    fall, error, span = float(found.fall), float(found.error), int(found.days)
    freedom = float(found.freedom)
    reach = float(special.stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * error
    drop = Drop(
        before=float(found.before),
        now=float(found.before) - fall,
        drop=fall,
        low=fall - reach,
        high=fall + reach,
        p_value=float(found.p_value),
        questions=known.summaries[-1].questions,
        paired=False,
        error=error,
        freedom=freedom,
        mde=detectable(error, freedom),
    )
    start = night.manifest.date - timedelta(days=span)
    before = [one for one in known.nights if one.date <= start]
    if offset := offset_error(metric, before, [known.nights[-1]]):
        drop = offset.added_to(drop)
    sides = NightSides(night, RowSelection(metric), Baseline(before), [known.nights[-1]])
    drop = corrected(drop, sides, (judge_drift,)).left or drop
    return _Fall(drop, span, bool(found.is_ramp), [known.tag] if known.tag else [])


def _finding(tonight: Tonight, metric: str, fall: _Fall, alpha: float) -> Finding:
    """Breach where the fall is above the limit and significant; suspect, which keeps a firing alert
    firing, where it is significant at 5%.
    """
    night, drop = tonight.night, fall.drop
    now = night.manifest.summary(metric)
    limit = min(tonight.limit, MAX_SHARE * can_fall(metric, drop.before))
    key = alert_key(night, metric, None, "slow_decline")
    level: Level = "ok"
    if drop.drop > limit and drop.p_value < alpha:
        level = "breach"
    elif drop.p_value < ALPHA and night.was_firing(key):
        level = "suspect"
    return tonight.finding(
        level,
        f"{metric}: slow decline of more than {limit:.3g}",
        _message(metric, fall, ok=level == "ok"),
        metric=metric,
        n=now.scored if now else 0,
        questions=drop.questions,
        baseline=drop.before,
        baseline_label=f"{fall.days} days",
        drop=drop.drop,
        drop_low=drop.low,
        drop_high=drop.high,
        p_value=drop.p_value,
        mde=drop.detectable(alpha, limit),
        limit=limit,
        mix_tags=fall.tags,
        for_nights=None,
    ).model_copy(update={"key": key})


def _message(metric: str, fall: _Fall, *, ok: bool) -> str:
    drop = fall.drop
    change = drop_text(drop.drop, drop.low, drop.high)
    if ok:
        return f"{metric}: no slow decline; over {fall.days} days {change}"
    moved = f"{drop.before:z.3f} to {drop.now:z.3f}"
    over = f"over {fall.days} days" if fall.is_ramp else f"for {fall.days} days"
    same = f", like for like by tag {fall.tags[0]}" if fall.tags else ""
    verb = "fell slowly" if fall.is_ramp else "is lower"
    return f"{metric} {verb} {over}, from {moved}: {change}{same}; no single night stands out"

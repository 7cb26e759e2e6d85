"""The `min` of a rule: a limit below which the mean of tonight is too low.

Where false alarms have a budget in time it is tested whether the mean is below the limit:

    z = sum_i (limit - m_i) / sqrt(sum_i e_i^2),   p' = P(any p <= min(p_tonight, p_incident))

i are tonight, or tonight and the pending nights of the incident, at most `for` nights. m is the
mean, without what judge drift and stale labels explain. e is its error by the upper end of its
interval, with the movement of the nights. p' counts the correlated tests of one to `for` nights
(`stats.chance_of_any`). Without such a budget a `min` is not tested: it is a line
that somebody drew, and `for` nights below it fire.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from ragmetrics.config import Rule
from ragmetrics.records import Finding, Level, Segment, Summary
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.corrections import StaleRows
from ragmetrics.rules.dependent_tests import chance_of_any, rule_links
from ragmetrics.rules.finding_words import mean_words
from ragmetrics.rules.judge_movement import moving_share
from ragmetrics.rules.level_series import spread_of_nights
from ragmetrics.rules.rule_check import Limit, RuleCheck, of_segment, start_finding, too_few
from ragmetrics.rules.sides import ID_METRICS, judge_fall
from ragmetrics.scoring import summarise
from ragmetrics.stats import CONFIDENCE

DRIFT_NIGHTS = 7
"""Nights before tonight that the judges' level is compared with."""
_ERRORS = float(special.ndtri(0.5 + CONFIDENCE / 2))


def check_min(
    rule: Rule, limit: float, segment: Segment | None, night: NightContext, now: Summary | None
) -> RuleCheck:
    """Breach where the mean and its whole interval are below the limit, suspect where only the mean
    is. A firing alert stays suspect until the mean is back at `clear`.

    A mean has no other side, so its corrections are judge drift and stale labels alone.
    """
    named = Limit(limit, rule.limits[0], f"below {limit:g}")
    finding = start_finding(rule, named, segment, night, now)
    if (short := too_few(rule, finding, night, now)) or now is None or now.mean is None:
        return short or RuleCheck(rule, finding)
    firing, explained, notes = night.was_firing(finding.key), None, ""
    level = _level(rule, limit, now, firing)
    known = _CORRECTIONS if night.fixed_sets or night.stale else ()
    for correct in known:
        if level != "ok" and (left := correct(now, night, rule.min_rows)):
            level = _level(rule, limit, left.summary, firing) if left.summary else "ok"
            explained, notes = left.explained, f"{notes}; {left.text}"
    interval = "" if now.low is None or now.high is None else f" [{now.low:.3f}, {now.high:.3f}]"
    text = f"{finding.metric}{of_segment(segment)} is {now.mean:.3f}{interval}, limit {limit:g}"
    result = {"level": level, "message": text + notes, "mde": now.mde, "explained": explained}
    return RuleCheck(rule, finding.model_copy(update=result))


def _level(rule: Rule, limit: float, now: Summary, firing: bool) -> Level:
    mean = now.mean or 0.0
    if mean < limit:
        return "breach" if now.significantly_worse_than(limit) else "suspect"
    return "suspect" if firing and rule.clear is not None and mean < rule.clear else "ok"


def with_min_chance(case: RuleCheck, night: NightContext) -> RuleCheck:
    """The check of a `min` with its p'; any other check, and one without data, as it is."""
    rule, finding = case.rule, case.finding
    if rule.min is None or not finding.key.endswith(f"/{rule.limits[0]}"):
        return case
    if finding.level == "no_data" or finding.mean is None:
        return case
    if finding.level == "ok":
        return replace(case, chance=1.0)
    start = night.incident_start(finding.key, rule.for_ - 1) or night.manifest.date
    spell = [
        past
        for earlier in night.comparable(rule.metric)[-(rule.for_ - 1) :]
        if rule.for_ > 1 and earlier.date >= start
        for past in earlier.findings
        if past.key == finding.key and past.mean is not None
    ]
    moved = _movement(night, rule.metric)
    least = min(_p_value(own, rule.min, moved) for own in ([finding], [*spell, finding]))
    links = rule_links(rule.for_, 0, fixed=True)
    return replace(case, chance=float(chance_of_any(np.array(least), links)))


def _movement(night: NightContext, metric: str) -> float:
    """Error of a night's level. What is likely of the nights without being seen counts by the
    verdicts that are new: a judge on this machine gives none.
    """
    if (spread := spread_of_nights(night, metric)) is None:
        return 0.0
    return spread.error * (1.0 if spread.is_seen else moving_share(night.manifest, metric))


def _p_value(findings: Sequence[Finding], limit: float, moved: float) -> float:
    below, squares = 0.0, 0.0
    for finding in findings:
        mean = finding.mean or 0.0
        end = mean if finding.high is None else finding.high
        below += limit - mean - (finding.explained or 0.0)
        squares += ((end - mean) / _ERRORS) ** 2 + moved**2
    if not squares:
        return 0.0 if below > 0 else 1.0
    return float(special.ndtr(-below / math.sqrt(squares)))


@dataclass(frozen=True)
class CorrectedMean:
    """Tonight's mean without what judge drift or stale labels explain."""

    summary: Summary | None
    """None where too few rows remain."""
    explained: float | None
    text: str = ""


def _without_drift(now: Summary, night: NightContext, _: int = 0) -> CorrectedMean | None:
    """Tonight's mean corrected for the judges' move since the seven nights before, with its
    interval widened by that of the move. None where there is no significant move.
    """
    before = night.comparable(now.metric)[-DRIFT_NIGHTS:]
    fall = judge_fall(night, now.metric, before, [night.manifest])
    if fall is None or now.mean is None or now.low is None or now.high is None:
        return None
    move, mean = fall.move, now.mean + fall.part
    update = {
        "mean": mean,
        "low": mean - math.hypot(now.mean - now.low, fall.share * (move.drop - move.low)),
        "high": mean + math.hypot(now.high - now.mean, fall.share * (move.high - move.drop)),
    }
    text = mean_words(mean, fall, None)
    return CorrectedMean(now.model_copy(update=update), fall.part, text)


def _without_stale_labels(
    now: Summary, night: NightContext, least_rows: int
) -> CorrectedMean | None:
    """Tonight's mean without the questions with stale labels; None where no label is stale."""
    scores = night.scores.get(now.metric)
    if not night.stale or now.metric not in ID_METRICS or scores is None:
        return None
    rows = scores.table[~scores.table["question"].isin(sorted(night.stale))]
    left = summarise(replace(scores, table=rows), "", now.segment)
    stale = StaleRows(now.questions - left.questions, now.questions)
    if not stale.stale:
        return None
    if left.mean is None or left.scored < least_rows:
        return CorrectedMean(None, None, mean_words(None, None, replace(stale, too_few=True)))
    return CorrectedMean(left, left.mean - (now.mean or 0.0), mean_words(left.mean, None, stale))


_CORRECTIONS: Sequence[Callable[[Summary, NightContext, int], CorrectedMean | None]] = (
    _without_drift,
    _without_stale_labels,
)

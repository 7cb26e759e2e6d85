"""Judge drift: the part of a metric's drop that the judge's change explains, and the remainder.

    left  = drop - f * move          f: share of the night's verdicts that are new replies
    se^2  = se_drop^2 + f^2 * se_move^2
    low   = left - sqrt((drop - low_drop)^2 + f^2 * (high_move - move)^2),   high likewise

`move` is the drop of the judge's level on the fixed labelled set between the same nights. A rule
judges the remaining drop. So a metric that fell because of its judge alone does not fire, and one
that fell further does. Only a significant move in the direction of the drop counts.
Sources: Kish 1965, "Survey Sampling", for the variance of a difference; Newcombe 1998 for the
interval of one, its sides squared and added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragmetrics.people import fresh_share
from ragmetrics.records import Manifest, Summary
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.rule_check import RuleCheck
from ragmetrics.stats import Drop, MeanDifference, detectable

NIGHTS = 7
"""Nights before tonight that the judges' level is compared with."""
SURE = 0.01
"""Significance level for a move of the judges, over all metrics together."""


@dataclass(frozen=True)
class DriftCorrectedMean:
    """A mean corrected for the judges' move."""

    without: Summary
    explained: float
    text: str


def without_judge_drift(
    case: RuleCheck, night: NightContext, alone: float, line: float
) -> RuleCheck:
    """The check of a drop without the judges' move between the same nights.

    `alone` is tonight's own drop, which is compared with `line`. The check stays as it is where the
    level of the fixed set is not known for both sides, or did not fall significantly.
    """
    baseline = case.baseline
    if baseline is None or case.drop is None or not case.finding.metric:
        return case
    metric, tonight = case.finding.metric, night.manifest
    found = _fall(night, metric, baseline.nights, [*baseline.spell, tonight])
    if found is None:
        return case
    left, part = subtract_drift(case.drop, found.move, found.share), found.share * found.move.drop
    own = _fall(night, metric, baseline.nights, [tonight]) if baseline.spell else found
    text = (
        f"{case.finding.message}; {found.text}: judge drift explains {part:.3f}, and "
        f"{left.drop:.3f}{_span(left)} remains"
    )
    return replace(
        case,
        finding=case.finding.model_copy(update={"message": text, "explained": part}),
        drop=left,
        beyond=alone - (own.share * own.move.drop if own else 0.0) > line,
    )


def mean_without_drift(now: Summary, night: NightContext) -> DriftCorrectedMean | None:
    """Tonight's mean corrected for the judges' move since the seven nights before, with its
    interval widened by that of the move. None where there is no significant move.
    """
    before = night.comparable(now.metric)[-NIGHTS:]
    found = _fall(night, now.metric, before, [night.manifest])
    if found is None or now.mean is None or now.low is None or now.high is None:
        return None
    move, share = found.move, found.share
    part = share * move.drop
    mean = now.mean + part
    update = {
        "mean": mean,
        "low": mean - math.hypot(now.mean - now.low, share * (move.drop - move.low)),
        "high": mean + math.hypot(now.high - now.mean, share * (move.high - move.drop)),
    }
    text = f"{found.text}: judge drift explains {part:.3f}, and without it the mean is {mean:.3f}"
    return DriftCorrectedMean(now.model_copy(update=update), part, text)


def drop_between_without_drift(
    drop: Drop,
    night: NightContext,
    metric: str,
    before: Sequence[Manifest],
    now: Sequence[Manifest],
) -> Drop:
    """A drop between some nights without the judges' move between them, if that is significant."""
    found = _fall(night, metric, before, now)
    return subtract_drift(drop, found.move, found.share) if found else drop


def drop_without_drift(
    drop: Drop, night: NightContext, metric: str, before: Sequence[Manifest]
) -> Drop:
    """Tonight's drop from some nights without the judges' move, if that is significant."""
    return drop_between_without_drift(drop, night, metric, before, [night.manifest])


@dataclass(frozen=True)
class _Fall:
    """A significant drop of the judges' level, and the share of the night's verdicts it affects."""

    move: Drop
    share: float

    @property
    def text(self) -> str:
        """The fall in words."""
        new = "" if self.share == 1 else f", and {self.share:.0%} of the verdicts are new"
        move = f"{self.move.drop:.3f}{_span(self.move)}"
        return f"the judge's level on the labelled set fell by {move}{new}"


def _fall(
    night: NightContext, metric: str, before: Sequence[Manifest], now: Sequence[Manifest]
) -> _Fall | None:
    move = night.fixed_sets.moved(metric, before, now) if night.fixed_sets else None
    share = fresh_share(night.manifest, metric)
    if move is None or move.drop <= 0 or move.p_value >= SURE or not share:
        return None
    return _Fall(move, share)


def subtract_drift(drop: Drop, move: Drop, share: float = 1.0) -> Drop:
    """A drop minus a share of the judges' move between the same nights.

    Its variance is the sum of both variances. p is one-sided, for the hypothesis that nothing
    remains, and never below the p of the drop itself. Degrees of freedom: Satterthwaite 1946.
    """
    own, other = drop.error, share * move.error
    error = math.hypot(own, other)
    freedom = error**4 / (own**4 / drop.freedom + other**4 / move.freedom)
    left = MeanDifference(drop.drop - share * move.drop, error, freedom)
    below = math.hypot(drop.drop - drop.low, share * (move.high - move.drop))
    above = math.hypot(drop.high - drop.drop, share * (move.drop - move.low))
    return replace(
        drop,
        drop=left.difference,
        low=left.difference - below,
        high=left.difference + above,
        p_value=max(drop.p_value, left.p_value),
        error=error,
        freedom=freedom,
        mde=detectable(error, freedom),
    )


def _span(drop: Drop) -> str:
    return f" [{drop.low:.3f}, {drop.high:.3f}]"

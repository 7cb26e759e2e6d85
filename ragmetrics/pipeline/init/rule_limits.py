"""Limits of alert rules that fit the variance of a team's own log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special

from ragmetrics.model import Summary
from ragmetrics.stats import POWER, error_of

NIGHTS_BEFORE = 7
"""A rule compares a night with so many nights before."""
FEWEST_ROWS = 20
_LEAST_DROP, _MOST_DROP = 0.03, 0.3
_DAYS = 365


@dataclass(frozen=True)
class RuleLimit:
    """A rule on one metric, and what it can see."""

    metric: str
    mean: float
    error: float
    """Standard error of the difference between one night and the seven nights before."""
    max_drop: float
    least: float | None
    """`min` of the rule; None where the mean is too low for one."""
    detects: float
    """The drop that is found on the first night with a probability of 80%."""
    false_alarms: float
    """Expected number a year on which the rule fires without a change."""


def rule_limit(summary: Summary, rows_a_night: float, *, false_alarms: float) -> RuleLimit | None:
    """The limits of one metric; None without an interval.

        se_night = se of the log's mean * sqrt(scored / rows a night)
        se       = se_night * sqrt(1 + 1/7)
        max_drop = z_(1-a) se, rounded up to a hundredth, from 0.03 to 0.3
        detects  = max(max_drop, z_(1-a) se) + z_0.8 se
        a year   = 365 (1 - Phi(max(max_drop / se, z_(1-a))))

    `false_alarms` is the share `a` of nights without a change on which a rule may fire. It takes
    each night's questions for new ones; where questions return, nights are compared in pairs, and
    smaller drops are found. `min` is four drops below the mean, rounded down to 0.05.
    """
    if summary.mean is None or summary.mde is None or not summary.scored:
        return None
    spread = error_of(summary.mde, summary.questions - 1)
    night = spread * math.sqrt(summary.scored / max(rows_a_night, 1.0))
    error = night * math.sqrt(1 + 1 / NIGHTS_BEFORE)
    noise = _z(1 - false_alarms) * error
    max_drop = min(max(math.ceil(noise * 100 - 1e-9) / 100, _LEAST_DROP), _MOST_DROP)
    least = math.floor((summary.mean - 4 * max_drop) * 20 + 1e-9) / 20
    return RuleLimit(
        metric=summary.metric,
        mean=summary.mean,
        error=error,
        max_drop=max_drop,
        least=least if least > 0 else None,
        detects=max(max_drop, noise) + _z(POWER) * error,
        false_alarms=_DAYS * _chance(max(max_drop, noise), error),
    )


def rule_limits(
    summaries: Sequence[Summary], rows_a_night: float, *, false_alarms: float
) -> list[RuleLimit]:
    """The limits of all metrics with an interval and at least 20 scored rows."""
    found = (
        rule_limit(one, rows_a_night, false_alarms=false_alarms)
        for one in summaries
        if one.scored >= FEWEST_ROWS
    )
    return [one for one in found if one]


def _z(share: float) -> float:
    return float(special.ndtri(share))


def _chance(drop: float, error: float) -> float:
    return float(special.ndtr(-drop / error)) if error > 0 else 0.0

"""The size of a sample: `rows` of the settings, or as many as a `half_width` needs by the nights
before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.config import SampleSettings
from ragmetrics.records import Manifest, Summary
from ragmetrics.scoring.sampling.prediction_powered import rows_to_judge

FEWEST = 100
"""Smallest sample for a `half_width`: fewer rows give no reliable standard deviation."""
WIDEST = 0.5
"""Standard deviation that is assumed on the first night: the largest of scores in [0, 1]."""
_NIGHTS = 7
_95 = 1.96


@dataclass(frozen=True)
class Known:
    """What is known about a metric from earlier nights."""

    spread: float = WIDEST
    """Standard deviation of the expensive judge's scores."""
    correlation: float = 0.0
    """Correlation of the expensive judge's scores with the cheap judge's."""


def wanted_rows(
    sample: SampleSettings, rows: int, seen: Known = Known(), ratio: float = 1.0
) -> int:
    """The sample size for a metric that can be scored on so many rows. `ratio` is the variance of
    unequal inclusion probabilities, compared with equal ones.
    """
    if sample.half_width is None:
        return min(sample.rows or 0, rows)
    wanted = rows_to_judge(sample.half_width, seen.spread, seen.correlation, rows, ratio)
    return min(max(wanted, FEWEST), rows)


def comparable(past: Sequence[Manifest], metric: str, fingerprint: str | None) -> list[Summary]:
    """A metric's summaries of the last seven nights with the same fingerprint."""
    summaries = [
        summary
        for night in past
        if (summary := night.summary(metric)) and summary.fingerprint == fingerprint
    ]
    return summaries[-_NIGHTS:]


def known(summaries: Sequence[Summary]) -> Known:
    """Standard deviation and correlation of a metric, from summaries of earlier nights.

        s^2 = mean of s_night^2,   r = mean of r_night

    Nights without a sample have no correlation. Without any night s is the largest standard
    deviation that scores in [0, 1] can have.
    """
    spreads = [one for summary in summaries if (one := _spread(summary)) is not None]
    if not spreads:
        return Known()
    agreed = [one.sample.correlation for one in summaries if one.sample]
    correlations = [one for one in agreed if one is not None]
    spread = math.sqrt(sum(spread**2 for spread in spreads) / len(spreads))
    return Known(spread, sum(correlations) / len(correlations) if correlations else 0.0)


def _spread(summary: Summary) -> float | None:
    """The standard deviation of a night's scores; without a sample it follows from the interval."""
    if summary.sample:
        return summary.sample.spread
    if summary.low is None or summary.high is None:
        return None
    return (summary.high - summary.low) / 2 / _95 * math.sqrt(summary.scored)

"""Segments that are significantly worse than all rows: the ones that every view names as such.

    t = (whole - mean) * t_0.975 / (end - mean)     end: of the segment's 95% interval, towards
    p = 2 P(T > t), T with questions - 1 degrees    the mean of all rows
    q = Benjamini-Hochberg over the segments of the metric

So a segment of whose interval the mean of all rows is within is never named, and of the others only
as many as bear that so many were looked at. The mean of all rows counts as known: the segment's
rows are a part of it, which makes their difference smaller and surer than the interval says.
Source: Benjamini and Hochberg 1995.
"""

from __future__ import annotations

from ragmetrics.model import Manifest, Summary
from ragmetrics.stats import ALPHA, CONFIDENCE, adjust_p_values


def worse_segments(manifest: Manifest) -> list[Summary]:
    """Of the night's segments those that are significantly worse, in the manifest's order."""
    worse: set[int] = set()
    for whole in manifest.metrics:
        tested = [
            (one, chance)
            for one in manifest.segments
            if one.metric == whole.metric and (chance := _chance(one, whole.mean)) is not None
        ]
        sure = adjust_p_values([chance for _, chance in tested]) if tested else []
        worse |= {id(one) for (one, _), q in zip(tested, sure, strict=True) if q < ALPHA}
    return [one for one in manifest.segments if id(one) in worse]


def _chance(one: Summary, whole: float | None) -> float | None:
    """p of a segment that is worse than all rows, 1 of any other; None where nobody can tell."""
    if one.mean is None or one.low is None or one.high is None or whole is None:
        return None
    loss = one.loss(whole)
    if loss <= 0:
        return 1.0
    from scipy import special  # takes a tenth of a second: only nights with segments pay it

    end = one.high - one.mean if one.higher_is_better else one.mean - one.low
    freedom = max(1, one.questions - 1)
    quantile = float(special.stdtrit(freedom, 0.5 + CONFIDENCE / 2))
    return 2 * float(special.stdtr(freedom, -loss * quantile / end)) if end > 0 else 0.0


__all__ = ["worse_segments"]

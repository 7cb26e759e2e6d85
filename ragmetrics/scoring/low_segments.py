"""Finds the segments that are significantly worse than all rows. Every view uses this list.

    t = (whole - mean) * t_0.975 / (end - mean)
    p = 2 P(T > t), T with questions - 1 degrees of freedom
    q = Benjamini-Hochberg over the segments of the metric

`end` is the end of the segment's 95% interval on the side of the mean of all rows. A segment whose
interval contains the mean of all rows is never listed. The test treats the mean of all rows as a
constant. This is conservative: the segment's rows are part of all rows, so the true error of the
difference is smaller.
Source: Benjamini and Hochberg 1995.
"""

from __future__ import annotations

from ragmetrics.records import Manifest, Summary
from ragmetrics.stats import ALPHA, CONFIDENCE, adjust_p_values


def worse_segments(manifest: Manifest) -> list[Summary]:
    """The segments of a night that are significantly worse, in the order of the manifest."""
    worse: set[int] = set()
    for whole in manifest.metrics:
        tested = [
            (segment, p)
            for segment in manifest.segments
            if segment.metric == whole.metric and (p := _p_value(segment, whole.mean)) is not None
        ]
        adjusted = adjust_p_values([p for _, p in tested]) if tested else []
        worse |= {id(one) for (one, _), q in zip(tested, adjusted, strict=True) if q < ALPHA}
    return [segment for segment in manifest.segments if id(segment) in worse]


def _p_value(one: Summary, whole: float | None) -> float | None:
    """The p-value of a segment that is worse than all rows; 1 for any other segment. None: the
    segment has no interval.
    """
    if one.mean is None or one.low is None or one.high is None or whole is None:
        return None
    loss = one.loss(whole)
    if loss <= 0:
        return 1.0
    from scipy import special  # the import takes a tenth of a second: only segments need it

    end = one.high - one.mean if one.higher_is_better else one.mean - one.low
    freedom = max(1, one.questions - 1)
    quantile = float(special.stdtrit(freedom, 0.5 + CONFIDENCE / 2))
    return 2 * float(special.stdtr(freedom, -loss * quantile / end)) if end > 0 else 0.0

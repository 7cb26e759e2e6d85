"""Reciprocal rank of the first context that users clicked."""

from __future__ import annotations

from ragmetrics.metrics.bundled._clicks import NEEDS, clicked_ranks
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps

LEAST_PROPENSITY = 0.1
"""Smaller propensities count as this one, so that no click counts for more than ten (Strehl et al.
2010): a little bias for a bounded variance."""


@metric(
    version=1, needs=NEEDS, calls="0", score_range=(0.0, 1 / LEAST_PROPENSITY), least_change=0.05
)
def clicked_rank(row: LogRow) -> Steps[Score]:
    """Reciprocal rank of the first context in the list that users clicked.

        rank = 1 / r,   r = the first clicked rank;   0 without a click
        rank = 1 / (r p_r) where the row has the propensity p_r of that rank, at least 0.1

    Range [0, 10], without propensities at most 1, higher is better; its mean over rows is the mean
    reciprocal rank of the first click. No judge call. No list of clicks, no ids or nothing
    retrieved: not applicable.
    Users look at the top of a list first, so clicks favour what stands there whatever it is worth
    (position bias), and a better ranking may even look the same. `context_propensities` corrects
    it: for each context, the probability that a user looks at it where it was shown, as measured by
    your own randomised ranks. Its mean is then that of users who look at every rank. Let all rows
    of a log have them or none: the two do not compare.
    Source: Radlinski, Kurup and Joachims 2008; Joachims, Swaminathan and Schnabel 2017, "Unbiased
    learning-to-rank with biased feedback" (inverse propensities, from swapped ranks).
    """
    yield from ()
    ranks = clicked_ranks(row)
    if isinstance(ranks, str):
        return Score.not_applicable(ranks)
    if not ranks:
        return Score(0.0, reason="no click", details={"clicked_ranks": ranks})
    first, known = ranks[0], row.context_propensities
    if known is None:
        return Score(1 / first, details={"clicked_ranks": ranks})
    if len(known) != len(row.retrieved_contexts) or not 0 < known[first - 1] <= 1:
        return Score.not_applicable("context_propensities: not one from 0 to 1 for each context")
    propensity = max(known[first - 1], LEAST_PROPENSITY)
    details = {"clicked_ranks": ranks, "propensity": propensity}
    return Score(1 / (first * propensity), details=details)

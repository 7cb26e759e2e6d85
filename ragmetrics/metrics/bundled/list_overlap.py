"""How much of a question's list is as it was when the question was last asked."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.errors import InputError
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


@metric(version=1, calls="0", unit="%", least_change=0.1, looks_back=True)
def list_overlap(row: LogRow, *, persistence: float = 0.9) -> Steps[Score]:
    """Rank-biased overlap of a question's list with the last list of the same question.

        overlap = (1 - p)/p (sum over d = 1..l of X_d/d p^d
                             + sum over d = s+1..l of X_s (d - s)/(s d) p^d)
                  + ((X_l - X_s)/l + X_s/s) p^l
        X_d = contexts that both lists have up to rank d;   s, l = lengths, the shorter one first

    Range [0, 1], 1 is the same list; p = `persistence`: the smaller, the more the first ranks
    count. A fall says that lists changed, and not yet that they are worse. No judge call. Contexts
    are equal by their ids, without ids by their texts; one that is listed twice counts where it is
    first. Both lists empty: 1.0. One empty: 0.0. Not asked on the seven nights before: not
    applicable. Raises InputError for a persistence out of (0, 1).
    Source: Webber, Moffat and Zobel 2010, "A similarity measure for indefinite rankings" (RBO_ext).
    """
    yield from ()
    if not 0 < persistence < 1:
        raise InputError(f"list_overlap: persistence: {persistence} is not between 0 and 1")
    if row.last_contexts is None:
        return Score.not_applicable("the question was not asked on the nights before")
    now, last = (list(dict.fromkeys(keys)) for keys in (row.context_keys, row.last_contexts))
    return Score(rank_biased_overlap(now, last, persistence))


def rank_biased_overlap(one: Sequence[str], other: Sequence[str], p: float) -> float:
    """The overlap of two rankings without repeats, extrapolated from the ranks that are known."""
    short, long = sorted((one, other), key=len)
    s, length = len(short), len(long)
    if not s:
        return float(not length)
    common = [len(set(short[:depth]) & set(long[:depth])) for depth in range(1, length + 1)]
    known = sum(common[d - 1] / d * p**d for d in range(1, length + 1))
    beyond = sum(common[s - 1] * (d - s) / (s * d) * p**d for d in range(s + 1, length + 1))
    rest = (common[-1] - common[s - 1]) / length + common[s - 1] / s
    return min(1.0, max(0.0, (1 - p) / p * (known + beyond) + rest * p**length))

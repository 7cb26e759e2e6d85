"""Where the retriever's own scores lie among those of the nights before."""

from __future__ import annotations

from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


@metric(
    version=1,
    needs=("user_input", "retrieved_contexts", "retrieved_context_scores"),
    calls="0",
    higher_is_better=None,
    unit="%",
    least_change=0.1,
    looks_back=True,
)
def score_shift(row: LogRow) -> Steps[Score]:
    """Place of a question's best retriever score among those of the nights before.

        place = (|{s : s < best}| + |{s : s <= best}|) / (2 |S|)
        S = best scores of the seven nights before,   best = max(retrieved_context_scores)

    Range [0, 1], neither direction is better: a rule finds a change in either one. A night's mean
    is the probability that a score of tonight is above one of before: 0.5 if nothing changed, on
    any scale of scores. No judge call. No scores, or fewer than 100 on the nights before: not
    applicable.
    Source: Mann and Whitney 1947, "On a test of whether one of two random variables is
    stochastically larger than the other".
    """
    yield from ()
    if not row.retrieved_context_scores:
        return Score.not_applicable("no score of the retriever")
    if row.score_place is None:
        return Score.not_applicable("too few scores on the nights before")
    return Score(row.score_place)

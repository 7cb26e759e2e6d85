"""How new the words of a question are."""

from __future__ import annotations

from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


@metric(
    version=1,
    needs=("user_input",),
    calls="0",
    higher_is_better=None,
    unit="%",
    least_change=0.05,
    looks_back=True,
)
def query_drift(row: LogRow) -> Steps[Score]:
    """Share of a question's words that no question of the nights before has.

        drift = |W - V| / |W|,   W = words of the question,   V = words of seven nights' questions

    Range [0, 1], neither direction is better: users ask about something else, or a source sends
    other questions. Words have at least three letters (two signs without spaces between words),
    without case and plural s. No judge call. No such word, or fewer than seven nights before: not
    applicable.
    Source: ours; the share of out-of-vocabulary words.
    """
    yield from ()
    if row.new_words is None:
        return Score.not_applicable("no words, or fewer than seven nights before")
    return Score(row.new_words)

"""The questions that changed most between two sides, and those that only one side has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ragmetrics.comparison.alignment import Aligned
from ragmetrics.comparison.context_diff import MOST_CONTEXTS, moved_contexts
from ragmetrics.comparison.side_scores import ScoredSide
from ragmetrics.model import LogRow, MovedQuestion, MovedRow, OneSided, RowValue, UnmatchedQuestion
from ragmetrics.stats import Numbers


def find_moved(
    a: ScoredSide, b: ScoredSide, aligned: Sequence[Aligned], count: int
) -> tuple[list[MovedQuestion], list[MovedRow]]:
    """The `count` questions of each metric that changed most, and the rows of all of them."""
    places = [(one, at) for one in aligned for at in one.furthest(count)]
    questions = list(dict.fromkeys(str(one.questions[at]) for one, at in places))
    before, now = a.rows_of(questions), b.rows_of(questions)
    moved = [_moved(one, at, now.get(str(one.questions[at]))) for one, at in places]
    rows = [
        _row(aligned, question, before[question], now[question])
        for question in questions
        if question in before and question in now
    ]
    return moved, sorted(rows, key=_gain)


def _moved(one: Aligned, at: int, row: LogRow | None) -> MovedQuestion:
    return MovedQuestion(
        metric=one.metric,
        user_input=row.user_input if row else "",
        id=row.id if row else "",
        value_a=float(one.a[at]),
        value_b=float(one.b[at]),
    )


def _row(aligned: Sequence[Aligned], question: str, a: LogRow, b: LogRow) -> MovedRow:
    contexts = moved_contexts(a, b)
    return MovedRow(
        user_input=b.user_input,
        id=b.id,
        id_a=a.id,
        values=list(_values(aligned, question)),
        contexts=contexts[:MOST_CONTEXTS],
        more_contexts=max(0, len(contexts) - MOST_CONTEXTS),
    )


def _values(aligned: Sequence[Aligned], question: str) -> Iterator[RowValue]:
    for one in aligned:
        at = int(one.places_of([question])[0])
        if at >= 0:
            yield RowValue(
                metric=one.metric,
                value_a=None if np.isnan(one.a[at]) else float(one.a[at]),
                value_b=None if np.isnan(one.b[at]) else float(one.b[at]),
                higher_is_better=one.higher_is_better,
            )


def _gain(row: MovedRow) -> float:
    """The gain of a question summed over all metrics; negative where it got worse."""
    return sum(
        (one.value_b - one.value_a) * (1 if one.higher_is_better else -1)
        for one in row.values
        if one.value_a is not None and one.value_b is not None
    )


def find_one_sided(
    a: ScoredSide, b: ScoredSide, aligned: Sequence[Aligned], count: int
) -> tuple[OneSided, OneSided]:
    """The questions of A alone and of B alone, each with the `count` that have the worst scores."""
    asked_a, asked_b = _asked(a), _asked(b)
    old = [(one, one.a) for one in aligned]
    new = [(one, one.b) for one in aligned]
    return (
        _one_sided(a, sorted(asked_a - asked_b), old, count),
        _one_sided(b, sorted(asked_b - asked_a), new, count),
    )


def _asked(side: ScoredSide) -> set[str]:
    """All questions of a side's rows, scored or not."""
    import pandas as pd

    columns = [scores.table["question"] for scores in side.scores.values()]
    return set(pd.concat(columns).unique()) if columns else set()


def _one_sided(
    side: ScoredSide, lone: Sequence[str], aligned: Sequence[tuple[Aligned, Numbers]], count: int
) -> OneSided:
    """The record of one side: `lone` are its questions, `aligned` has all its means."""
    values: dict[str, Numbers] = {}
    sums, scored = np.zeros(len(lone)), np.zeros(len(lone))
    for one, means in aligned:
        places = one.places_of(lone)
        own = np.full(len(lone), np.nan)
        own[places >= 0] = means[places[places >= 0]]
        if not np.isnan(own).all():
            values[one.metric] = own
        sums += np.nan_to_num(own if one.higher_is_better else -own)
        scored += ~np.isnan(own)
    known = np.flatnonzero(scored)
    worst = known[np.argsort(sums[known] / scored[known], kind="stable")][:count]
    rows = side.rows_of([lone[at] for at in worst])
    return OneSided(
        questions=len(lone),
        means={name: float(np.nanmean(own)) for name, own in values.items()},
        shown=[_lone(rows.get(lone[at]), int(at), values) for at in worst],
    )


def _lone(row: LogRow | None, at: int, values: Mapping[str, Numbers]) -> UnmatchedQuestion:
    return UnmatchedQuestion(
        user_input=row.user_input if row else "",
        id=row.id if row else "",
        values={name: float(own[at]) for name, own in values.items() if not np.isnan(own[at])},
    )

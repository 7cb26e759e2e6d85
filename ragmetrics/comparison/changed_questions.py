"""The questions that changed most between two sides, and those that only one side has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from ragmetrics.comparison.sides import Aligned, ScoredSide
from ragmetrics.records import (
    LogRow,
    MovedContext,
    MovedQuestion,
    MovedRow,
    OneSided,
    RowValue,
    UnmatchedQuestion,
)
from ragmetrics.stats import Numbers

MOST_CONTEXTS = 20
LONGEST = 400
"""Characters of a context in the record."""
_Key = tuple[str, int]


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
    for pair in aligned:
        at = pair.place_of(question)
        if at is not None:
            yield RowValue(
                metric=pair.metric,
                value_a=None if np.isnan(pair.a[at]) else float(pair.a[at]),
                value_b=None if np.isnan(pair.b[at]) else float(pair.b[at]),
                higher_is_better=pair.higher_is_better,
            )


def _gain(row: MovedRow) -> float:
    """The gain of a question summed over all metrics; negative where it got worse."""
    return sum(
        (value.value_b - value.value_a) * (1 if value.higher_is_better else -1)
        for value in row.values
        if value.value_a is not None and value.value_b is not None
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
    side: ScoredSide, lone: list[str], aligned: Sequence[tuple[Aligned, Numbers]], count: int
) -> OneSided:
    """The record of one side: `lone` are its questions, `aligned` has all its means."""
    import pandas as pd

    own = pd.DataFrame(
        {one.metric: pd.Series(means, one.questions).reindex(lone) for one, means in aligned},
        index=lone,
    ).dropna(axis=1, how="all")
    signs = {one.metric: 1 if one.higher_is_better else -1 for one, _ in aligned}
    goodness = own.mul(pd.Series(signs).reindex(own.columns)).mean(axis=1).dropna()
    worst = goodness.sort_values(kind="stable").index[:count]
    rows = side.rows_of(list(worst))
    return OneSided(
        questions=len(lone),
        means={name: float(np.nanmean(own[name])) for name in own},
        shown=[
            UnmatchedQuestion(
                user_input=row.user_input if row else "",
                id=row.id if row else "",
                values={name: float(value) for name, value in values.dropna().items()},
            )
            for row, values in ((rows.get(one), own.loc[one]) for one in worst)
        ],
    )


def moved_contexts(a: LogRow, b: LogRow) -> list[MovedContext]:
    """The contexts of both rows, by rank. A context of both rows appears once, at its new rank.

    Contexts are the same where their ids are equal, if both rows have an id for each context; else
    where their texts are equal. Repeated contexts are matched in their order.
    """
    by_id = _has_ids(a) and _has_ids(b)
    old, new = _places(a, by_id), _places(b, by_id)
    found = [_context(key, old, new, a, b) for key in {**new, **old}]
    return sorted(found, key=lambda one: (one.rank_b or one.rank_a or 0, one.rank_b is None))


def _has_ids(row: LogRow) -> bool:
    ids = row.retrieved_context_ids
    return ids is not None and len(ids) == len(row.retrieved_contexts)


def _places(row: LogRow, by_id: bool) -> dict[_Key, int]:
    """The position of each context, by its id or text and its repetition number."""
    names: Sequence[str] = (
        list(map(str, row.retrieved_context_ids or ())) if by_id else row.retrieved_contexts
    )
    seen: Counter[str] = Counter()
    places: dict[_Key, int] = {}
    for place, name in enumerate(names):
        places[name, seen[name]] = place
        seen[name] += 1
    return places


def _context(
    key: _Key, old: dict[_Key, int], new: dict[_Key, int], a: LogRow, b: LogRow
) -> MovedContext:
    before, now = old.get(key), new.get(key)
    row, place = (b, now) if now is not None else (a, before or 0)
    text = row.retrieved_contexts[place]
    both = before is not None and now is not None
    return MovedContext(
        text=text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…",
        id=str(row.retrieved_context_ids[place])
        if row.retrieved_context_ids and _has_ids(row)
        else None,
        rank_a=None if before is None else before + 1,
        rank_b=None if now is None else now + 1,
        rewritten=both and a.retrieved_contexts[before or 0] != text,
    )

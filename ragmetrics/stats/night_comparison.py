"""Compares the questions of some nights with those of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ragmetrics.stats.comparisons import Drop, compare
from ragmetrics.stats.permutation_test import LEAST, chance_of_order

ASKED_ALIKE = 0.9
"""Rows that a question has now, to those before, from which its nights compare one by one."""


QuestionValues: TypeAlias = Mapping[str, Sequence[float]]
"""Of one night, the values of each question's rows."""


def compare_nights(before: Sequence[QuestionValues], now: Sequence[QuestionValues]) -> Drop | None:
    """How far a mean fell from some nights to others.

    Where they share their questions, p is that of the order of each question's nights; of more
    questions than that can be told of, or beyond what it can show, it is that of the t test. The
    larger of both where questions have fewer rows now: a mean of fewer rows moves more by itself
    than those that it would be dealt with.
    """
    drop = compare(together(before), together(now))
    if drop is None or not drop.paired:
        return drop
    chance = chance_of_order(question_means(before), question_means(now))
    if chance is None or (chance <= LEAST and drop.p_value < chance):
        return drop
    fewer = _rows_each(now, before) < ASKED_ALIKE * _rows_each(before, now)
    return replace(drop, p_value=max(chance, drop.p_value) if fewer else chance)


def _rows_each(nights: Sequence[QuestionValues], others: Sequence[QuestionValues]) -> float:
    """Rows that a question has on a night, on average, of the questions of both."""
    shared = set[str]().union(*others)
    rows = [len(values) for night in nights for name, values in night.items() if name in shared]
    return sum(rows) / len(rows)


def together(nights: Sequence[QuestionValues]) -> dict[str, list[float]]:
    """The values of each question over several nights."""
    found: dict[str, list[float]] = {}
    for night in nights:
        for question, values in night.items():
            if own := found.get(question):
                own.extend(values)
            else:
                found[question] = list(values)
    return found


def question_means(nights: Sequence[QuestionValues]) -> list[dict[str, float]]:
    """The mean of each question's rows, night by night."""
    return [
        {question: sum(values) / len(values) for question, values in night.items()}
        for night in nights
    ]

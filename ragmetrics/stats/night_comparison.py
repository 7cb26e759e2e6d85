"""Compares the questions of some nights with those of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ragmetrics.stats.comparisons import Drop, compare
from ragmetrics.stats.permutation_test import LEAST, chance_of_order

ASKED_ALIKE = 0.9
"""Ratio of a question's rows now to before from which its nights can be permuted."""


QuestionValues: TypeAlias = Mapping[str, Sequence[float]]
"""Values of each question's rows in one night."""


def compare_nights(before: Sequence[QuestionValues], now: Sequence[QuestionValues]) -> Drop | None:
    """Drop of a mean from some nights to others.

    If they share their questions, p is that of the permutation test over each question's nights.
    For too many questions, or below its resolution, p is that of the t test. If questions have
    fewer rows now, p is the larger of both, because means of fewer rows vary more.
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
    """Mean rows per question and night, over the questions of both."""
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

"""The questions of a run that lost a passage, and those that kept all that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragmetrics.passages.diagnosis.document_ids import in_order
from ragmetrics.passages.diagnosis.losses import find_pairs
from ragmetrics.passages.diagnosis.question_rows import rows_of_questions
from ragmetrics.passages.diagnosis.retrievals import Run, read_retrievals
from ragmetrics.records import LogRow


@dataclass(frozen=True)
class NeedingQuestion:
    """A question with a known needed passage."""

    row: LogRow
    """Its first row of now."""
    needed: frozenset[int]
    """The passages that it needs and had before."""
    lost: frozenset[int]
    """Those of them that it does not retrieve now."""

    def missing(self, answer: LogRow) -> int:
        """The number of needed passages that an answer lacks."""
        names = answer.retrieved_context_ids or answer.retrieved_contexts
        there = set(in_order(list(names)).tolist()) if names else set()
        return len(self.needed - there)


def needing_questions_of(
    run: Run, earlier: Sequence[Run], most: int
) -> tuple[list[NeedingQuestion], list[NeedingQuestion], int]:
    """At most so many questions that lost a passage, as many that lost none, at equal distances,
    and the number of all that lost one.
    """
    now = read_retrievals(run)
    pairs = find_pairs(now, earlier) if now is not None else None
    if now is None or pairs is None:
        return [], [], 0
    needed, lost = (
        _by_question(pairs.question, pairs.passage, chosen) for chosen in (pairs.needed, pairs.lost)
    )
    fallen = sorted(lost)
    kept = sorted(needed.keys() - lost.keys())
    sides = _spread(fallen, most), _spread(kept, min(most, max(len(fallen), 1)))
    rows = rows_of_questions([run], now, {*sides[0], *sides[1]})
    found = [
        [NeedingQuestion(rows[q].row, needed[q], lost.get(q, frozenset())) for q in side]
        for side in sides
    ]
    return found[0], found[1], len(fallen)


def _by_question(
    questions: np.ndarray, passages: np.ndarray, chosen: np.ndarray
) -> dict[int, frozenset[int]]:
    found: dict[int, set[int]] = {}
    for question, passage in zip(
        questions[chosen].tolist(), passages[chosen].tolist(), strict=True
    ):
        found.setdefault(question, set()).add(passage)
    return {question: frozenset(own) for question, own in found.items()}


def _spread(items: list[int], most: int) -> list[int]:
    """At most so many items, at equal distances."""
    places = np.linspace(0, len(items) - 1, min(most, len(items))).astype(int)
    return [items[place] for place in places]

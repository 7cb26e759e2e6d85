"""Whether a mean fell between two sets of rows: paired where they share enough questions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragmetrics.stats.intervals import CONFIDENCE

PAIRED_FROM = 0.5
"""Share of tonight's questions that must be on both sides for a paired comparison."""


@dataclass(frozen=True, slots=True)
class Drop:
    """How far a mean fell: `drop` is positive where it is worse now.

    `p_value` is one-sided, against the hypothesis that it did not fall.
    """

    drop: float
    low: float
    high: float
    p_value: float
    questions: int
    paired: bool


def compare(
    before: Mapping[str, Sequence[float]],
    now: Mapping[str, Sequence[float]],
    *,
    confidence: float = CONFIDENCE,
) -> Drop | None:
    """Compare question means, `{question: values of its rows}` on both sides.

        paired: d_q = mean(before_q) - mean(now_q) over shared questions; t test on d
        else:   Welch's t test on the question means of both sides

    Less than two questions to compare: None. No spread at all: a drop other than 0 is certain.
    Sources: Miller 2024, "Adding error bars to evals"; Welch 1947.
    """
    shared = sorted(before.keys() & now.keys())
    if len(shared) >= 2 and len(shared) >= PAIRED_FROM * len(now):
        differences = _means(before, shared) - _means(now, shared)
        error = float(differences.std(ddof=1)) / math.sqrt(len(shared))
        return _drop(
            float(differences.mean()), error, len(shared) - 1, len(shared), True, confidence
        )
    if len(before) < 2 or len(now) < 2:
        return None
    old, new = _means(before, sorted(before)), _means(now, sorted(now))
    a, b = float(old.var(ddof=1)) / len(old), float(new.var(ddof=1)) / len(new)
    freedom = (a + b) ** 2 / (a**2 / (len(old) - 1) + b**2 / (len(new) - 1)) if a + b else 1.0
    difference = float(old.mean() - new.mean())
    return _drop(difference, math.sqrt(a + b), freedom, len(new), False, confidence)


def _means(values: Mapping[str, Sequence[float]], questions: Sequence[str]) -> NDArray[np.float64]:
    return np.array([float(np.mean(values[question])) for question in questions])


def _drop(
    drop: float, error: float, freedom: float, questions: int, paired: bool, confidence: float
) -> Drop:
    if error == 0.0:
        p_value = 0.5 if drop == 0 else float(drop < 0)
        return Drop(drop, drop, drop, p_value, questions, paired)
    half = float(special.stdtrit(freedom, 0.5 + confidence / 2)) * error
    p_value = float(special.stdtr(freedom, -drop / error))
    return Drop(drop, drop - half, drop + half, p_value, questions, paired)

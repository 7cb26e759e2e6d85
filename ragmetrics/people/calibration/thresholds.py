"""Thresholds of a reranker: from which score on a context gets grade 1, and grade 2.

In a cascade grade 1 goes to the next judge, so there the thresholds enclose the doubtful scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.people.calibration.units import Unit

FEWEST = 50
"""Fewest labelled contexts that thresholds are fitted to."""
_GRADES = (0.25, 0.75)
"""Expected labels, in [0, 1], from which a context gets grade 1 and grade 2: each lies halfway
between the labels of two adjacent grades."""
_PROVISIONAL = (0.0, 0.0)
_WRONG, _MISSED, _CONFIDENCE = 0.05, 0.10, 0.95
"""Largest share of wrong grades among the certain ones, at either end of the scores; largest share
of the contexts with another label that may be among these; and the confidence in both bounds.
"""

Floats = NDArray[np.float64]
Counts = NDArray[np.int_]
_KEY = "thresholds"


def fits_thresholds(judge: JudgeSettings) -> bool:
    """Whether a judge has scores, and thresholds from which they are grades."""
    return _KEY in type(judge).model_fields


def with_thresholds(settings: Settings) -> Settings:
    """The settings with provisional thresholds where a reranker has none: its scores are what the
    thresholds are fitted to.
    """
    panel = tuple(
        judge.model_copy(update={_KEY: _PROVISIONAL})
        if fits_thresholds(judge) and getattr(judge, _KEY) is None
        else judge
        for judge in settings.panel
    )
    return settings.with_panel(panel)


def fit_thresholds(units: Sequence[Unit]) -> tuple[float, float] | None:
    """The scores at which the expected label passes 1/4 and 3/4.

        f = argmin sum_i (label_i - f(score_i))^2,   f monotone (isotonic regression)
        threshold_g = midpoint of the largest score with f < c_g and the smallest with f >= c_g

    Labels lie in [0, 1]. A grade that no score reaches gets a threshold above all scores. None
    where fewer than 50 units have a score, or where the expected label rises above neither.
    Source: Zadrozny and Elkan 2002, "Transforming classifier scores into accurate multiclass
    probability estimates".
    """
    from scipy import optimize  # see logistic.py

    scored = [(unit.strength, unit.label) for unit in units if unit.strength is not None]
    if len(scored) < FEWEST:
        return None
    scores, place = np.unique([score for score, _ in scored], return_inverse=True)
    weights = np.bincount(place).astype(np.float64)
    means = np.bincount(place, [label for _, label in scored]) / weights
    fitted = optimize.isotonic_regression(means, weights=weights).x
    if fitted[-1] < _GRADES[0] or fitted[0] >= _GRADES[1]:
        return None
    first, second = (_cut(scores, int(np.searchsorted(fitted, least))) for least in _GRADES)
    return first, second


@dataclass(frozen=True)
class CertainThresholds:
    """Thresholds for a cascade."""

    thresholds: tuple[float, float]
    certain: float
    """Share of the contexts outside them."""


def fit_certain_thresholds(units: Sequence[Unit]) -> CertainThresholds | None:
    """The scores outside which at most 5% of the grades are wrong.

        low  = the largest t with  share of label_i > 0 among score_i < t   at most 0.05
                             and   share of score_i < t among label_i > 0   at most 0.10
        high = the smallest t with share of label_i < 1 among score_i >= t  at most 0.05
                             and   share of score_i >= t among label_i < 1  at most 0.10

    A share counts by its upper bound, at 95% (Clopper and Pearson 1934), which takes 59 contexts at
    the least, and 29 of other grades. Without the second share, one grade for all contexts would
    be certain where 97% have the same label, and no night would show a change.

    Labels lie in [0, 1]. Where both overlap, they meet where the fewest grades are wrong, and no
    context is doubtful. None where fewer than 50 units have a score, or where no score is certain.
    """
    scored = [(unit.strength, unit.label) for unit in units if unit.strength is not None]
    if len(scored) < FEWEST:
        return None
    scores, place = np.unique([score for score, _ in scored], return_inverse=True)
    labels, counts = np.array([label for _, label in scored]), np.bincount(place)
    good, bad = (np.bincount(place[one], minlength=len(scores)) for one in (labels > 0, labels < 1))
    first = _certain_from_the_first(good, counts)
    second = len(scores) - _certain_from_the_first(bad[::-1], counts[::-1])
    if first > second:
        wrong = np.cumsum(np.r_[0, good]) + np.cumsum(np.r_[0, bad[::-1]])[::-1]
        first = second = second + int(np.argmin(wrong[second : first + 1]))
    certain = 1 - float(counts[first:second].sum()) / len(scored)
    if not certain:
        return None
    return CertainThresholds((_cut(scores, first), _cut(scores, second)), certain)


def _certain_from_the_first(wrong: Counts, counts: Counts) -> int:
    """How many scores, from the first on, can be taken with few wrong grades."""
    bad, total = (np.cumsum(one, dtype=np.float64) for one in (wrong, counts))
    few = (_upper(bad, total) <= _WRONG) & (_upper(bad, bad[-1:]) <= _MISSED)
    good = np.flatnonzero(few)
    return int(good[-1]) + 1 if len(good) else 0


def _upper(count: Floats, of: Floats) -> Floats:
    """Clopper and Pearson's upper bound of a share."""
    return np.asarray(
        special.betaincinv(count + 1, np.maximum(of - count, 1e-9), _CONFIDENCE), np.float64
    )


def _cut(scores: Floats, place: int) -> float:
    """A short number between the score at a place and the one before it."""
    step = float(scores[-1] - scores[0]) / len(scores) or 1.0
    low = float(scores[place - 1]) if place else float(scores[0]) - step
    high = float(scores[place]) if place < len(scores) else float(scores[-1]) + step
    middle = (low + high) / 2
    for digits in range(2, 17):
        if low < (short := float(f"{middle:.{digits}g}")) <= high:
            return short
    return high

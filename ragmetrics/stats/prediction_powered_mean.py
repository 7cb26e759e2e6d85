"""Mean of an expensive judge's scores from a sample, with a cheap judge's scores of all rows.

Prediction-powered inference (PPI++): the cheap judge's scores estimate how the sample differs from
all rows, and the mean of the sample is corrected by this difference with an optimal weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ragmetrics.stats.intervals import FEWEST_QUESTIONS, IntervalEstimate, Mean, extremes, interval
from ragmetrics.stats.significance import CONFIDENCE
from ragmetrics.stats.t_test import detectable, smallest_enough

FEWEST_OF_A_STRATUM = 2
"""Fewest judged questions per stratum, for an estimate of its spread."""

Floats = NDArray[np.float64]
Codes = NDArray[np.int_]


@dataclass(frozen=True, slots=True)
class Powered:
    """A mean over all rows, of which the expensive judge scored only some."""

    best: Mean
    """Mean from both judges; the plain one if the cheap judge does not help. `n`: judged rows."""
    plain: Mean
    """Mean of the judged rows alone."""
    weight: float
    """Weight lambda of the cheap judge; 0 if it does not help."""
    rows: int
    """Number of all rows."""


@dataclass(frozen=True, slots=True)
class _Influence:
    """Influence of each question on the mean `plain + weight * shift`.

    With weight w it is `expensive + w * cheap`.
    """

    plain: float
    shift: float
    """The cheap judge's mean of all rows minus that of the judged rows."""
    expensive: Floats
    cheap: Floats
    size: float
    """Effective number of judged questions (Kish)."""
    questions: int
    """Number of judged questions."""
    strata: int

    def error(self, weight: float) -> float:
        """Standard error; infinite if there are too few questions for another weight."""
        free = self.questions - self.strata - (weight > 0)
        if free < 1:
            return math.inf
        squares = float(np.square(self.expensive + weight * self.cheap).sum())
        return math.sqrt(squares * self.questions / free)

    def best_weight(self) -> float:
        """The weight with the least error; 0 if the plain mean has no larger one."""
        squares = float(self.cheap @ self.cheap)
        if squares <= 1e-18:
            return 0.0
        weight = max(0.0, -float(self.expensive @ self.cheap) / squares)
        return weight if self.error(weight) < self.error(0.0) else 0.0


def prediction_powered(
    cheap: ArrayLike,
    expensive: ArrayLike,
    clusters: Sequence[str] | NDArray[np.str_] | NDArray[np.int_],
    strata: Sequence[str] | NDArray[np.str_] | None = None,
) -> Powered | None:
    """The mean of an expensive judge's scores over all rows, from a random sample of rows.

        m = sum_h W_h (mean_n(y)_h + lambda * (mean_N(f)_h - mean_n(f)_h)),   W_h = N_h / N
        lambda = -sum_g A_g B_g / sum_g B_g^2, at least 0
        se^2 = K/(K - H - [lambda > 0]) * sum_g (A_g + lambda * B_g)^2

    f is the cheap judge's score of each of the N rows; y the expensive judge's, NaN if it gave
    none. `strata` names each row's stratum h (one of H; one for all by default): within it rows are
    sampled with equal chances. A_g + lambda * B_g is the influence of question g on m, so rows of
    one question need not be independent; K questions have a judged row. The interval is that of
    `mean_interval`, t with k - H - [lambda > 0] degrees of freedom, where k is K reduced for
    unequal weights. If lambda does not narrow it, lambda is 0: the plain mean of the judged rows.

    Strata with less than two judged questions are joined to the largest one. No row judged: None.
    Raises ValueError unless every row has a cheap score and all lists have one length.
    Sources: Angelopoulos, Duchi and Zrnic 2023, "PPI++"; Fisch et al. 2024, "Stratified
    prediction-powered inference"; Särndal, Swensson and Wretman 1992 for the regression estimator.
    """
    f, y = np.asarray(cheap, dtype=np.float64), np.asarray(expensive, dtype=np.float64)
    _check(f, y, clusters, strata)
    judged = ~np.isnan(y)
    if not judged.any():
        return None
    question = np.unique(np.asarray(clusters), return_inverse=True)[1]
    stratum = _codes(strata, question, judged)
    found = _influence(f, y, judged, question, stratum)
    rows, questions = extremes(y[judged], question[judged])

    def estimate(weight: float) -> Mean:
        mean, error = found.plain + weight * found.shift, found.error(weight)
        if rows[0] >= 0 and rows[1] <= 1:
            mean = min(max(mean, 0.0), 1.0)
        count, freedom = int(judged.sum()), found.size - found.strata - (weight > 0)
        if freedom < FEWEST_QUESTIONS - 1 or not math.isfinite(error):
            known = error if math.isfinite(error) else None
            return Mean(mean, None, None, count, found.questions, known)
        one = IntervalEstimate(mean, error, found.size, rows, questions)
        mde = detectable(one.guarded_error, freedom)
        bounds = interval(one, freedom, confidence=CONFIDENCE)
        return Mean(mean, *bounds, count, found.questions, error, mde)

    weight = found.best_weight()
    return Powered(estimate(weight), estimate(0.0), weight, len(f))


def allocate(
    sizes: Mapping[str, int], rows: int, spreads: Mapping[str, float] | None = None
) -> dict[str, int]:
    """Allocate a sample of `rows` rows to strata, `{stratum: rows it has}`.

    In proportion to its rows, or with `spreads` to rows times standard deviation (Neyman 1934),
    but at least two and at most all of them. If there are fewer rows than that, it takes all. If
    there are fewer than two for each, the largest strata come first.
    """
    names = sorted(sizes, key=lambda name: (-sizes[name], name))
    has = np.array([sizes[name] for name in names], dtype=np.float64)
    rows = min(rows, int(has.sum()))
    least = np.minimum(has, FEWEST_OF_A_STRATUM)
    if rows <= least.sum():
        allocated = np.diff(np.minimum(np.cumsum(least), rows), prepend=0.0)
        return dict(zip(names, allocated.astype(int).tolist(), strict=True))
    pull = has * [1.0 if spreads is None else spreads[name] for name in names]
    wanted = _filled(np.maximum(pull, 1e-9 * has), least, has, rows)
    allocated = np.floor(wanted + 1e-9)
    order = np.argsort(allocated - wanted, kind="stable")
    allocated[order[: rows - int(allocated.sum())]] += 1
    return dict(zip(names, allocated.astype(int).tolist(), strict=True))


def rows_to_judge(half_width: float, spread: float, correlation: float, rows: int) -> int:
    """Rows to sample so that the interval of the mean has this half-width.

        smallest n with  t_(n-2) * s * sqrt((1 - r^2) / n + r^2 / N) <= half_width

    `spread` is a row's standard deviation by the expensive judge (if questions have several rows,
    sqrt(n) times the standard error of an earlier night), `correlation` that of the two judges.
    All rows if fewer are not enough. Source: Cochran 1977, "Sampling Techniques", chapter 7.
    """
    if rows < 4:
        return rows
    known = min(max(correlation, 0.0), 1.0) ** 2

    def enough(n: int) -> bool:
        variance = spread**2 * ((1 - known) / n + known / rows)
        t = float(special.stdtrit(n - 2, 0.5 + CONFIDENCE / 2))
        return t * math.sqrt(variance) <= half_width

    found = smallest_enough(enough, 3)
    return rows if found is None else min(found, rows)


def _check(f: Floats, y: Floats, clusters: ArrayLike, strata: ArrayLike | None) -> None:
    lengths = {len(f), len(y), np.size(clusters)} | (set() if strata is None else {np.size(strata)})
    if len(lengths) > 1:
        raise ValueError(f"lists must have one length, not {sorted(lengths)}")
    if not np.isfinite(f).all():
        raise ValueError("every row needs a score of the cheap judge: leave out rows without one")


def _codes(strata: ArrayLike | None, question: Codes, judged: NDArray[np.bool_]) -> Codes:
    """Each row's stratum by number; small strata are joined to the largest."""
    if strata is None:
        return np.zeros(len(question), dtype=np.int_)
    code = np.unique(np.asarray(strata), return_inverse=True)[1]
    pairs = np.unique(np.stack([code[judged], question[judged]]), axis=1)
    questions = np.bincount(pairs[0], minlength=int(code.max()) + 1)
    few = questions < FEWEST_OF_A_STRATUM
    code = np.where(few[code], int(questions.argmax()), code)
    return np.unique(code, return_inverse=True)[1]


def _influence(
    f: Floats, y: Floats, judged: NDArray[np.bool_], question: Codes, stratum: Codes
) -> _Influence:
    rows, of_stratum = len(f), stratum[judged]
    has, sampled = np.bincount(stratum), np.bincount(of_stratum, minlength=stratum.max() + 1)
    share, known = has / rows, np.where(judged, y, 0.0)
    mean_y = np.bincount(of_stratum, y[judged], len(has)) / sampled
    sample_f = np.bincount(of_stratum, f[judged], len(has)) / sampled
    all_f = np.bincount(stratum, f) / has
    plain, shift = float(share @ mean_y), float(share @ (all_f - sample_f))
    weight = np.where(judged, (share / sampled)[stratum], 0.0)
    from_expensive = (mean_y - plain)[stratum] / rows + weight * (known - mean_y[stratum])
    between = (all_f - sample_f - shift)[stratum]
    from_cheap = (f - all_f[stratum] + between) / rows - weight * (f - sample_f[stratum])
    shares = np.bincount(question, weight)
    return _Influence(
        plain=plain,
        shift=shift,
        expensive=_summed(from_expensive, question),
        cheap=_summed(from_cheap, question),
        size=1 / float(np.square(shares).sum()),
        questions=int((shares > 0).sum()),
        strata=len(has),
    )


def _summed(values: Floats, question: Codes) -> Floats:
    return np.bincount(question, values).astype(np.float64)


def _filled(pull: Floats, least: Floats, most: Floats, total: int) -> Floats:
    """Shares in proportion to `pull`, within bounds, with this sum."""

    def at(factor: float) -> Floats:
        return np.clip(factor * pull, least, most)

    low, high = 0.0, float((most / pull).max())
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).sum() < total else (low, middle)
    return at(high)

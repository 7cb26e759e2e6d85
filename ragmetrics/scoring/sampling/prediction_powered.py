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

from ragmetrics.stats import (
    CONFIDENCE,
    Influence,
    IntervalEstimate,
    Mean,
    Numbers,
    detectable,
    smallest_enough,
)

FEWEST_OF_A_STRATUM = 2
"""Fewest judged questions per stratum, for an estimate of its spread."""

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
    effective: float | None = None
    """Rows of a sample with equal chances, without a cheap judge, whose mean would have the same
    standard error. None without inclusion probabilities, or without an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Powering(Influence):
    """The mean `plain + weight * shift`, and the influence of each question on it."""

    plain: float
    shift: float
    """The cheap judge's mean of all rows minus that of the judged rows."""
    size: float
    """Effective number of judged questions (Kish)."""
    size_of_rows: float
    """Effective number of judged rows, for their own residuals; 1 if these are all 0."""

    @property
    def row_variance(self) -> float:
        """Variance of a row's score, as if each row had its own question."""
        return self.size_of_rows * self.error(0.0) ** 2


def prediction_powered(
    cheap: ArrayLike,
    expensive: ArrayLike,
    clusters: Sequence[str] | NDArray[np.str_] | NDArray[np.int_],
    strata: Sequence[str] | NDArray[np.str_] | None = None,
    probabilities: ArrayLike | None = None,
) -> Powered | None:
    """The mean of an expensive judge's scores over all rows, from a random sample of rows.

        m = sum_h W_h (mean_n(y)_h + lambda * (mean_N(f)_h - mean_n(f)_h)),   W_h = N_h / N
        mean_n(y)_h = sum_i d_i y_i / sum_i d_i over the judged rows of h,    d_i = 1 / pi_i
        lambda = -sum_g A_g B_g / sum_g B_g^2, at least 0
        se^2 = K/(K - H - [lambda > 0]) * sum_g (A_g + lambda * B_g)^2

    f is the cheap judge's score of each of the N rows; y the expensive judge's, NaN if it gave
    none. `strata` names each row's stratum h (one of H; one for all by default). `probabilities`
    are the inclusion probabilities pi of the rows, of which only those of judged rows are read; by
    default the rows of a stratum have equal chances, which gives the same numbers as any equal
    probabilities. The weights d are divided by their sum, so rows on which the judge failed count
    as not drawn. A_g + lambda * B_g is the influence of question g on m, so rows of
    one question need not be independent; K questions have a judged row. The interval is that of
    `mean_interval`, t with k - H - [lambda > 0] degrees of freedom, where k is K reduced for
    unequal weights. If lambda does not narrow it, lambda is 0: the plain mean of the judged rows.

    Strata with less than two judged questions are joined to the largest one. No row judged: None.
    Raises ValueError unless every row has a cheap score, every judged row a probability in (0, 1],
    and all lists have one length.
    Sources: Angelopoulos, Duchi and Zrnic 2023, "PPI++"; Fisch et al. 2024, "Stratified
    prediction-powered inference"; Zrnic and Candès 2024, "Active statistical inference"; Särndal,
    Swensson and Wretman 1992, chapters 5.7 (Hájek's mean) and 6 (the regression estimator).
    """
    f, y = np.asarray(cheap, dtype=np.float64), np.asarray(expensive, dtype=np.float64)
    _check(f, y, clusters, strata)
    judged = ~np.isnan(y)
    if not judged.any():
        return None
    factor = None if probabilities is None else _design_weights(probabilities, judged)
    question = np.unique(np.asarray(clusters), return_inverse=True)[1]
    stratum = _codes(strata, question, judged)
    powering = _influence(f, y, judged, question, stratum, factor)
    weight = powering.best_weight()
    best, plain = (_mean(powering, one, y[judged], question[judged]) for one in (weight, 0.0))
    effective = None
    if factor is not None and best.error:
        effective = powering.row_variance / best.error**2
    return Powered(best, plain, weight, len(f), effective)


def _mean(powering: _Powering, weight: float, judged: Numbers, question: Codes) -> Mean:
    """The mean with a weight of the cheap judge, and its interval where there are enough questions.

    `judged` are the scores of the judged rows.
    """
    mean, error = powering.plain + weight * powering.shift, powering.error(weight)
    count = len(judged)
    if judged.min() >= 0 and judged.max() <= 1:
        mean = min(max(mean, 0.0), 1.0)
    freedom = powering.size - powering.strata - (weight > 0)
    if freedom < 1 or not math.isfinite(error):
        known = error if math.isfinite(error) else None
        return Mean(mean, None, None, count, powering.questions, known)
    estimate = IntervalEstimate.of(mean, error, powering.size, judged, question)
    mde = detectable(estimate.guarded_error, freedom)
    return Mean(mean, *estimate.interval(freedom), count, powering.questions, error, mde)


def row_spread(
    expensive: ArrayLike,
    clusters: Sequence[str] | NDArray[np.str_] | NDArray[np.int_],
    probabilities: ArrayLike,
    strata: Sequence[str] | NDArray[np.str_] | None = None,
) -> float | None:
    """Standard deviation of a row's score, as if each row had its own question.

        s^2 = se^2 * sum_i w_i e_i^2 / sum_i (w_i e_i)^2,   e_i = y_i - mean_n(y)_h

    se is the standard error of the plain mean of `prediction_powered`, w_i the share of row i in
    it. A sample of n rows with equal chances has se = s / sqrt(n). `expensive` is NaN where a row
    is not judged. None if too few questions are judged for an error.
    """
    y = np.asarray(expensive, dtype=np.float64)
    judged = ~np.isnan(y)
    if not judged.any():
        return None
    question = np.unique(np.asarray(clusters), return_inverse=True)[1]
    stratum = _codes(strata, question, judged)
    factor = _design_weights(probabilities, judged)
    powering = _influence(np.zeros(len(y)), y, judged, question, stratum, factor)
    variance = powering.row_variance
    return math.sqrt(variance) if math.isfinite(variance) else None


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


def rows_to_judge(
    half_width: float, spread: float, correlation: float, rows: int, ratio: float = 1.0
) -> int:
    """Rows to sample so that the interval of the mean has this half-width.

        smallest n with  t_(n-2) * s * sqrt(q (1 - r^2) / n + r^2 / N) <= half_width

    `spread` is a row's standard deviation by the expensive judge (if questions have several rows,
    sqrt(n) times the standard error of an earlier night), `correlation` that of the two judges,
    `ratio` the `variance_ratio` q of unequal inclusion probabilities. All rows if fewer are not
    enough. Source: Cochran 1977, "Sampling Techniques", chapter 7.
    """
    if rows < 4:
        return rows
    known = min(max(correlation, 0.0), 1.0) ** 2

    def enough(n: int) -> bool:
        variance = spread**2 * (ratio * (1 - known) / n + known / rows)
        t = float(special.stdtrit(n - 2, 0.5 + CONFIDENCE / 2))
        return t * math.sqrt(variance) <= half_width

    size = smallest_enough(enough, 3)
    return rows if size is None else min(size, rows)


def _check(f: Numbers, y: Numbers, clusters: ArrayLike, strata: ArrayLike | None) -> None:
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


def _design_weights(probabilities: ArrayLike, judged: NDArray[np.bool_]) -> Numbers:
    """1 / pi of the judged rows, 0 of the others."""
    chances = np.asarray(probabilities, dtype=np.float64)
    if chances.shape != judged.shape:
        raise ValueError(f"lists must have one length, not {[len(chances), len(judged)]}")
    drawn = chances[judged]
    if not ((drawn > 0) & (drawn <= 1)).all():
        raise ValueError("every judged row needs an inclusion probability in (0, 1]")
    weights = np.zeros(len(judged))
    weights[judged] = 1 / drawn
    return weights


def _normalised(factor: Numbers, stratum: Codes) -> Numbers:
    """Weights whose largest in each stratum is 1: equal ones give the numbers of counts."""
    largest = np.zeros(int(stratum.max()) + 1)
    np.maximum.at(largest, stratum, factor)
    return factor / largest[stratum]


def _influence(
    f: Numbers,
    y: Numbers,
    judged: NDArray[np.bool_],
    question: Codes,
    stratum: Codes,
    factor: Numbers | None = None,
) -> _Powering:
    """`factor` has the design weight of each judged row; None: equal ones."""
    rows, of_stratum = len(f), stratum[judged]
    has, known = np.bincount(stratum), np.where(judged, y, 0.0)
    factor = judged.astype(np.float64) if factor is None else _normalised(factor, stratum)
    weights = factor[judged]
    share, sampled = has / rows, np.bincount(of_stratum, weights, len(has))
    mean_y = np.bincount(of_stratum, weights * y[judged], len(has)) / sampled
    sample_f = np.bincount(of_stratum, weights * f[judged], len(has)) / sampled
    all_f = np.bincount(stratum, f) / has
    plain, shift = float(share @ mean_y), float(share @ (all_f - sample_f))
    weight = (share / sampled)[stratum] * factor
    residual = np.where(judged, known - mean_y[stratum], 0.0)
    from_expensive = (mean_y - plain)[stratum] / rows + weight * residual
    between = (all_f - sample_f - shift)[stratum]
    from_cheap = (f - all_f[stratum] + between) / rows - weight * (f - sample_f[stratum])
    shares = np.bincount(question, weight)
    return _Powering(
        plain=plain,
        shift=shift,
        expensive=_summed(from_expensive, question),
        cheap=_summed(from_cheap, question),
        size=1 / float(np.square(shares).sum()),
        questions=int((shares > 0).sum()),
        strata=len(has),
        size_of_rows=_size_of_rows(weight, residual),
    )


def _size_of_rows(weight: Numbers, residual: Numbers) -> float:
    squares = float(np.square(weight * residual).sum())
    return float((weight * np.square(residual)).sum()) / squares if squares > 1e-30 else 1.0


def _summed(values: Numbers, question: Codes) -> Numbers:
    return np.bincount(question, values).astype(np.float64)


def _filled(pull: Numbers, least: Numbers, most: Numbers, total: int) -> Numbers:
    """Shares in proportion to `pull`, within bounds, with this sum."""

    def at(factor: float) -> Numbers:
        return np.clip(factor * pull, least, most)

    low, high = 0.0, float((most / pull).max())
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).sum() < total else (low, middle)
    return at(high)

"""The mean that people would give to all rows, from a judge's scores and people's values of some.

`people_mean`     from rows that both scored
`rogan_gladen`    from the judge's error rates alone
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ragmetrics.stats import CONFIDENCE, Influence, IntervalEstimate, Mean, MeanDifference, Numbers

FEWEST_OF_A_NIGHT = 5
"""Fewest labelled questions of a night whose bias is compared with that of other nights."""
_FEWEST = 4
"""Fewest labelled questions for an estimate."""


@dataclass(frozen=True, slots=True)
class PeopleEstimate:
    """What people would say of all rows of a night, and how far the judge is from it."""

    mean: Mean
    """`n`: labelled rows. The interval contains the uncertainty of labels and of the night."""
    bias: float
    """The judge's mean minus that of people."""
    bias_low: float
    bias_high: float
    p_value: float
    """Two-sided, for the hypothesis that the judge has no bias."""
    weight: float
    """Weight lambda of the judge's score of a labelled row; 0 if it does not help."""


@dataclass(frozen=True, slots=True)
class JudgedNight:
    """A night by the judge alone."""

    mean: float
    error: float
    """Standard error of the mean."""


def people_mean(
    judge: ArrayLike,
    people: ArrayLike,
    clusters: Sequence[str] | NDArray[np.str_] | NDArray[np.int_],
    nights: Sequence[JudgedNight],
    night: ArrayLike,
    weights: ArrayLike | None = None,
) -> PeopleEstimate | None:
    """The mean of people's values over all rows of night 0, from labelled rows of some nights.

        m = F_0 - b,   b = (1 - lambda) sum_d a_d F_d + sum_i w_i (lambda f_i - y_i)
        lambda = the slope of y on f over the labelled rows, at least 0
        se(b)^2 = K/(K - 1 - [lambda > 0]) sum_g r_g^2 + (1 - lambda)^2 sum_d a_d^2 se(F_d)^2
        se(m)^2 = the same first term + sum_d c_d^2 se(F_d)^2,   c_d = [d = 0] - (1 - lambda) a_d

    f_i and y_i are the judge's and the people's value of labelled row i, w_i its weight (all
    weights sum to 1), a_d the weight of the labels of night d, F_d the judge's mean of all rows of
    that night. r_g is the sum of w_i (lambda f_i - y_i) minus its mean over question g, one of K.
    `night` is the night of each labelled row, a position in `nights`.

    b is the judge's bias. Over the labelled nights, F - b is the prediction-powered mean, for which
    nothing is assumed but that rows were drawn by their weights. That b is the same tonight is the
    assumption; `bias_difference` tests it between labelled nights. The interval of m is that of
    `mean_interval`; that of b is by Student's t, with half a question added at either end, so it
    has a width where all differences are equal.

    Less than four labelled questions: None. Raises ValueError unless all lists have one length.
    Sources: Angelopoulos, Duchi and Zrnic 2023, "PPI++"; Särndal, Swensson and Wretman 1992 for the
    difference estimator with weights.
    """
    f, y = np.asarray(judge, dtype=np.float64), np.asarray(people, dtype=np.float64)
    of = np.asarray(night, dtype=np.int_)
    given = np.ones(len(f)) if weights is None else np.asarray(weights, dtype=np.float64)
    if len({len(f), len(y), len(of), len(given), np.size(clusters)}) > 1:
        raise ValueError("lists must have one length")
    question = np.unique(np.asarray(clusters), return_inverse=True)[1]
    count = int(question.max()) + 1 if len(f) else 0
    if count < _FEWEST:
        return None
    found = _estimate_bias(f, y, question, _night_weights(given, of), of, nights)
    tonight = nights[0].mean
    mean, corrected = tonight - found.bias, tonight - found.differences
    if y.min() >= 0 and y.max() <= 1:
        mean, corrected = min(max(mean, 0.0), 1.0), np.clip(corrected, 0.0, 1.0)
    one = IntervalEstimate.of(mean, found.error, found.size, corrected, question)
    low, high = one.interval(found.freedom)
    bias = _with_guard(found, question)
    return PeopleEstimate(
        Mean(mean, low, high, len(f), count, found.error),
        found.bias,
        *bias.interval(CONFIDENCE),
        bias.p_two_sided,
        found.weight,
    )


@dataclass(frozen=True, slots=True)
class _Bias:
    """The judge's bias on the labelled nights."""

    bias: float
    weight: float
    """lambda"""
    differences: Numbers
    """Of each labelled row, what it says of the bias."""
    bias_error: float
    error: float
    """Standard error of tonight's mean less the bias."""
    size: float
    """Effective number of labelled questions (Kish)."""

    @property
    def freedom(self) -> float:
        """Degrees of freedom, at least 1."""
        return max(self.size - 1 - (self.weight > 0), 1.0)


def _estimate_bias(
    f: Numbers,
    y: Numbers,
    question: NDArray[np.int_],
    w: Numbers,
    of: NDArray[np.int_],
    nights: Sequence[JudgedNight],
) -> _Bias:
    """The bias of `people_mean`, from labelled rows with weights that sum to 1."""
    means = np.array([night.mean for night in nights])
    errors = np.array([night.error for night in nights])
    share = np.bincount(of, w, len(nights))
    mean_y, mean_f = float(w @ y), float(w @ f)
    from_people = np.bincount(question, w * (mean_y - y)).astype(np.float64)
    from_judge = np.bincount(question, w * (f - mean_f)).astype(np.float64)
    influence = Influence(expensive=from_people, cheap=from_judge, questions=len(from_people))
    weight = influence.best_weight()
    label_error, rest = influence.error(weight), (1 - weight) * share
    return _Bias(
        bias=float(rest @ means) + weight * mean_f - mean_y,
        weight=weight,
        differences=weight * f - y + float(rest @ means),
        bias_error=math.hypot(label_error, *(rest * errors)),
        error=math.hypot(label_error, *((np.eye(1, len(nights))[0] - rest) * errors)),
        size=1 / float(np.square(np.bincount(question, w)).sum()),
    )


def _night_weights(given: Numbers, of: NDArray[np.int_]) -> Numbers:
    """Weights that sum to 1. A night counts by its number of labels, whatever their weights sum to:
    weights of two nights are not on one scale.
    """
    sums, counts = np.bincount(of, given), np.bincount(of)
    return given * (counts / np.where(sums > 0, sums, 1.0))[of] / len(given)


def _with_guard(found: _Bias, question: NDArray[np.int_]) -> MeanDifference:
    """The bias with an error that is guarded where all differences are equal."""
    estimate = IntervalEstimate.of(
        found.bias, found.bias_error, found.size, found.differences, question, (-1.0, 1.0)
    )
    error = max(found.bias_error, estimate.guarded_error)
    return MeanDifference(found.bias, error, found.freedom)


def bias_difference(
    judge: ArrayLike,
    people: ArrayLike,
    clusters: Sequence[str] | NDArray[np.str_] | NDArray[np.int_],
    night: ArrayLike,
) -> float | None:
    """p of the hypothesis that the judge has the same bias on all labelled nights.

    It is Welch's analysis of variance of the differences f - y, one per question and night. Nights
    with less than five labelled questions, or with equal differences throughout, are left out.
    None with less than two nights. Source: Welch 1951, "On the comparison of several mean values".
    """
    d = np.asarray(judge, dtype=np.float64) - np.asarray(people, dtype=np.float64)
    of = np.asarray(night, dtype=np.int_)
    sides: list[Numbers] = []
    for number in np.unique(of):
        own = np.unique(np.asarray(clusters)[of == number], return_inverse=True)[1]
        values = np.bincount(own, d[of == number]) / np.bincount(own)
        if len(values) >= FEWEST_OF_A_NIGHT and float(np.ptp(values)) > 1e-9:
            sides.append(values)
    if len(sides) < 2:
        return None
    n = np.array([len(side) for side in sides], dtype=np.float64)
    means = np.array([side.mean() for side in sides])
    w = n / np.array([side.var(ddof=1) for side in sides])
    k, total = len(sides), float(w.sum())
    spread = float(w @ np.square(means - float(w @ means) / total)) / (k - 1)
    inner = float((np.square(1 - w / total) / (n - 1)).sum())
    statistic = spread / (1 + 2 * (k - 2) / (k**2 - 1) * inner)
    return float(special.fdtrc(k - 1, (k**2 - 1) / (3 * inner), statistic))


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """How often a judge found what people found, in a labelled set."""

    positive: float
    """Units that people marked positive; may be an effective number."""
    negative: float
    sensitivity: float
    """Share of the positive units that the judge found positive."""
    specificity: float
    """Share of the negative units that the judge found negative."""


def rogan_gladen(judged: JudgedNight, rates: ErrorRates) -> Mean | None:
    """The share that people would find, from the share p that a judge found and its error rates.

        m = (p + Sp - 1) / (Se + Sp - 1)
        interval:  m + dm +/- z se,
        dm = 2 z^2 (m Se (1 - Se) / n_Se - (1 - m) Sp (1 - Sp) / n_Sp)
        se^2 = (v + m^2 Se (1 - Se) / n_Se + (1 - m)^2 Sp (1 - Sp) / n_Sp) / (Se + Sp - 1)^2

    where v is the variance of p, to which z^2 / 2 successes and failures are added, and one is
    added to each count of Se and Sp. So the interval contains the uncertainty of the night and of
    the rates. None where Se + Sp is not significantly above 1: then the judge says nothing.
    Sources: Rogan and Gladen 1978; Lang and Reiczigel 2014, "Confidence limits for prevalence of
    disease adjusted for estimated sensitivity and specificity".
    """
    if not rates.positive or not rates.negative:
        return None
    z = float(special.ndtri(0.5 + CONFIDENCE / 2))
    p, se, sp = _adjusted(judged, rates, z)
    found, positive, negative = rates.sensitivity, rates.positive + 2, rates.negative + 2
    youden, plain = se + sp - 1, found + rates.specificity - 1
    var_se, var_sp = se * (1 - se) / positive, sp * (1 - sp) / negative
    if youden <= z * math.sqrt(var_se + var_sp) or plain <= 0:
        return None
    estimate = (judged.mean + rates.specificity - 1) / plain
    m = (p.mean + sp - 1) / youden
    shift = 2 * z**2 * (m * var_se - (1 - m) * var_sp)
    error = math.sqrt(p.error**2 + m**2 * var_se + (1 - m) ** 2 * var_sp) / youden
    low, high = m + shift - z * error, m + shift + z * error
    mean, low, high = (min(max(one, 0.0), 1.0) for one in (estimate, low, high))
    units = int(rates.positive + rates.negative)
    return Mean(mean, min(low, mean), max(high, mean), units, units, error)


def _adjusted(judged: JudgedNight, rates: ErrorRates, z: float) -> tuple[JudgedNight, float, float]:
    p = min(max(judged.mean, 0.0), 1.0)
    n = p * (1 - p) / judged.error**2 if judged.error > 1e-9 and 0 < p < 1 else 0.0
    if n:
        p = (n * p + z**2 / 2) / (n + z**2)
    error = math.sqrt(p * (1 - p) / (n + z**2)) if n else judged.error
    se = (rates.positive * rates.sensitivity + 1) / (rates.positive + 2)
    sp = (rates.negative * rates.specificity + 1) / (rates.negative + 2)
    return JudgedNight(p, error), se, sp

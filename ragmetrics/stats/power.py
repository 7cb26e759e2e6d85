"""Power: minimum detectable effects, and numbers of questions for an effect."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import special

from ragmetrics.stats.levels import ALPHA

POWER = 0.8
"""Power: share of nights on which an effect of the detectable size is found."""
MOST_QUESTIONS = 100_000
"""Most questions that are tried."""


def detectable(
    error: float, freedom: float, *, alpha: float = ALPHA, power: float = POWER
) -> float:
    """Minimum detectable effect of a one-sided t test, in units of the score.

        (t_(1-alpha) + t_power) * se

    `error` is the standard error of the tested mean or difference, `freedom` its
    degrees of freedom. Source: Julious 2004, "Sample sizes for clinical trials with normal data".
    """
    return _errors_apart(freedom, alpha, power) * error


def questions_needed(
    effect: float,
    spread: float,
    *,
    alpha: float = ALPHA,
    power: float = POWER,
    fewest: int = 2,
) -> int | None:
    """Questions needed to detect an effect on a mean or on paired differences, at least `fewest`.

        smallest n with  (t_(1-alpha, n-1) + t_(power, n-1)) * s / sqrt(n) < effect

    `spread` is the standard deviation of the questions' means, or of their differences. None
    if the effect is not above 0, or if 100,000 questions are too few.
    """
    return smallest_enough(
        lambda n: detectable(spread / math.sqrt(n), n - 1, alpha=alpha, power=power) < effect,
        fewest,
    )


def questions_needed_unpaired(
    effect: float,
    before: float,
    now: float,
    *,
    alpha: float = ALPHA,
    power: float = POWER,
    fewest: int = 2,
) -> int | None:
    """Questions needed on each side, without shared ones, to detect a difference of means.

        smallest n with  (t_(1-alpha, 2n-2) + t_(power, 2n-2)) * sqrt((s_1^2 + s_2^2) / n) < effect

    `before` and `now` are the standard deviations of the questions' means on both sides. None as
    in `questions_needed`.
    """
    spread = math.hypot(before, now)
    return smallest_enough(
        lambda n: detectable(spread / math.sqrt(n), 2 * n - 2, alpha=alpha, power=power) < effect,
        fewest,
    )


def smallest_enough(enough: Callable[[int], bool], fewest: int) -> int | None:
    """The smallest sufficient number from `fewest` on; `enough` must be monotonic.

    None if 100,000 are not enough.
    """
    if not enough(max(fewest, MOST_QUESTIONS)):
        return None
    low, high = fewest, max(fewest, MOST_QUESTIONS)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def _errors_apart(freedom: float, alpha: float, power: float) -> float:
    """Distance of a detectable effect from a limit, in standard errors."""
    return float(special.stdtrit(freedom, 1 - alpha)) + float(special.stdtrit(freedom, power))

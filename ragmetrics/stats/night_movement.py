"""Movement between nights: variation of a common level that the questions do not explain.

    night t:  mean_t = mean of questions + f_t L_t + noise,   L_t of standard deviation sd
    step:     d_t = mean_t - mean_(t-1) over the questions of both,  variance v_t + 2 f_t^2 sd^2

A judge behind an API may be stricter on one night than on another. That moves all questions
together, so the spread of questions does not show it. Steps between nights do: `estimate_movement`
estimates the sd, `likely_movement` averages over what is likely, and `with_movement` adds the
error to a drop. `weekly_chance` and `same_level_chance` test whether there is movement at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ragmetrics.stats.comparisons import Drop, align
from ragmetrics.stats.significance import CONFIDENCE
from ragmetrics.stats.t_test import MeanDifference, Numbers, detectable

FEWEST_STEPS = 7
"""Eight nights: with fewer the estimate costs too much power."""
FEWEST_QUESTIONS = 20
_LEAST_SHARE = 0.2
"""Fewest new verdicts, as a share, for a step to count."""
_MOST = 4.0
"""Most squared standard errors per step: a real change is one large step."""
_EXPECTED = float(special.chdtr(3, _MOST) + _MOST * special.chdtrc(1, _MOST))
"""Mean of min(x, 4) where x is chi-squared with one degree of freedom."""
_INDEPENDENT = 2 / 3
"""Degrees of freedom per step; less than 1, because adjacent steps share a night."""
_USUAL = 0.02
"""Scale of the prior of sd, for scores in [0, 1]: judges behind an API move by 0.01 to 0.02."""
_GRID = 12 * np.linspace(0.0, 1.0, 61) ** 2
"""The sd that are tried, as multiples of the scale: up to 0.24, closer together where small."""
_PRIOR = np.gradient(_GRID) * np.exp(-(_GRID**2) / 2)
_TAIL = 0.002
"""Where the averaged p is that of the returned error: p of an alert by the default level of 0.01,
of two rules with three comparisons each."""
_KNOWN = 1e6
"""Degrees of freedom of an error whose doubt is in it."""
_HALVINGS = 60
_FEWEST = 2
"""Fewest nights, or weekdays, and fewest nights per weekday, for a test of equal levels."""


@dataclass(frozen=True, slots=True)
class NightStep:
    """Mean change of the questions between two successive nights."""

    difference: float
    error: float
    """Standard error from the questions alone."""
    share: float = 1.0
    """Share of the later night's verdicts that are new."""


@dataclass(frozen=True, slots=True)
class LevelError:
    """Error that the movement of the level adds to a difference."""

    error: float
    freedom: float
    """Degrees of freedom of the estimate."""
    is_seen: bool = True
    """Whether the nights show it: their levels vary by more than the questions explain."""


def step_between(
    before: Mapping[str, Sequence[float]], now: Mapping[str, Sequence[float]]
) -> NightStep | None:
    """The paired step from one night to the next; None for fewer than 20 questions."""
    old, new = align(before, now)
    gained = (new - old)[~np.isnan(old) & ~np.isnan(new)]
    if len(gained) < FEWEST_QUESTIONS:
        return None
    return NightStep(float(gained.mean()), float(gained.std(ddof=1)) / math.sqrt(len(gained)))


def informative_steps(steps: Iterable[NightStep]) -> list[NightStep]:
    """The steps with enough new verdicts."""
    return [step for step in steps if step.share >= _LEAST_SHARE]


def estimate_movement(steps: Sequence[NightStep]) -> float | None:
    """The standard deviation of the level per night; None for fewer than seven steps.

    It solves the following, and is 0 if the questions explain the steps:

        sum_t min(d_t^2 / (v_t + 2 f_t^2 sd^2), 4) = T * E min(chi^2_1, 4)

    This is a method of moments. It uses steps and not distances from a mean, so that one change of
    the level is one large step, and it bounds each step, so that this one has little weight.
    Sources: Paule and Mandel 1982 for the equation; von Neumann 1941 for successive differences;
    Huber 1964, proposal 2, for the bound.
    """
    found = informative_steps(steps)
    if len(found) < FEWEST_STEPS:
        return None
    squares, own, shares = _columns(found)
    target = len(found) * _EXPECTED

    def too_small(variance: float) -> bool:
        allowed = own + 2 * shares * variance
        with np.errstate(over="ignore"):
            ratios = np.divide(squares, allowed, out=np.full_like(own, _MOST), where=allowed > 0)
        return float(np.where(squares > 0, np.minimum(ratios, _MOST), 0.0).sum()) > target

    if not too_small(0.0):
        return 0.0
    low, high = 0.0, float((squares / shares).max()) or 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if too_small(middle) else (low, middle)
    return math.sqrt(high)


def likely_movement(
    steps: Sequence[NightStep], error: float, freedom: float, scale: float = 1.0
) -> LevelError:
    """The movement of one night's level, averaged over what is likely after the steps.

        prior:      half-normal, of standard deviation 0.02 (for scores in [0, 1])
        likelihood: -(freedom / 2) mean_t h(d_t^2 / V_t) + log V_t,   V_t = v_t + 2 f_t^2 sd^2
        Phi(-z / sqrt(error^2 + level^2)) = mean of Phi(-z / sqrt(error^2 + sd^2)) = 0.002

    `error` is that of a night's level by its questions alone, `freedom` the degrees of freedom of
    the steps; without steps the prior is left. h(x) = x / c, above 4 with the slope of a logarithm,
    is the bound of `estimate_movement`. The mean over the likely sd has the doubt in it, so the
    level counts as known.

    Few nights cannot show whether a judge moves. An estimate is 0 for half of the judges that do,
    which then have false alarms; so the doubt counts, and the less the more nights there are.
    Sources: Gelman 2006, "Prior distributions for variance parameters in hierarchical models";
    Varin, Reid and Firth 2011 for likelihoods of pairs.
    """
    sds = _USUAL * scale * _GRID
    weights = _PRIOR * _likelihood(informative_steps(steps), sds, freedom)
    weights /= weights.sum()
    whole = np.hypot(error, sds)
    whole[0] = max(whole[0], sds[1] / 2)  # where no question varies, sd = 0 leaves no error
    low, high = float(whole[0]), float(whole[-1])
    errors = -float(special.ndtri(_TAIL))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = float(weights @ special.ndtr(-errors * middle / whole)) > _TAIL
        low, high = (middle, high) if above else (low, middle)
    return LevelError(math.sqrt(max(0.0, high**2 - error**2)), _KNOWN)


def _likelihood(steps: Sequence[NightStep], sds: Numbers, freedom: float) -> Numbers:
    """The likelihood of each sd, up to a factor."""
    if not steps:
        return np.ones(len(sds))
    squares, own, shares = _columns(steps)
    allowed = np.maximum(own, sds[1] ** 2) + 2 * shares * sds[:, None] ** 2
    ratios = squares / allowed
    bounded = np.minimum(ratios, _MOST) + _MOST * np.log(np.maximum(ratios / _MOST, 1.0))
    losses = freedom / 2 * (np.log(allowed) + bounded / _EXPECTED).mean(axis=1)
    found: Numbers = np.exp(losses.min() - losses)
    return found


def _columns(steps: Sequence[NightStep]) -> tuple[Numbers, Numbers, Numbers]:
    """The squared differences, errors and shares of some steps."""
    squares, own, shares = np.array(
        [(step.difference**2, step.error**2, step.share**2) for step in steps]
    ).T
    return squares, own, shares


def degrees_of_freedom(steps: int) -> float:
    """Degrees of freedom of a movement estimated from this number of steps."""
    return _INDEPENDENT * steps


def with_movement(drop: Drop, level: LevelError | None) -> Drop:
    """A drop whose error, interval, p and detectable effect include movement of the level.

        error^2 = own^2 + level^2, with Satterthwaite's degrees of freedom

    p uses the error that the drop's own p implies, also for a permutation test, so drops of all
    estimators can be widened. Without movement the drop is unchanged.
    """
    if level is None or not level.error:
        return drop
    error, freedom = _together(drop.error, drop.freedom, level)
    reach = float(special.stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * level.error
    low = drop.drop - math.hypot(drop.drop - drop.low, reach)
    high = drop.drop + math.hypot(drop.high - drop.drop, reach)
    if drop.low >= -1 and drop.high <= 1:  # scores in [0, 1]
        low, high = max(-1.0, low), min(1.0, high)
    return replace(
        drop,
        low=low,
        high=high,
        p_value=_chance(drop, level),
        error=error,
        freedom=freedom,
        mde=detectable(error, freedom),
        p_of_all=_chance(replace(drop, drop=drop.before, p_value=drop.p_of_all), level),
    )


def widen_difference(contrast: MeanDifference, level: LevelError | None) -> MeanDifference:
    """A difference whose error includes movement of the level."""
    if level is None or not level.error:
        return contrast
    error, freedom = _together(contrast.error, contrast.freedom, level)
    return MeanDifference(contrast.difference, error, freedom, contrast.least)


def _chance(drop: Drop, level: LevelError) -> float:
    """One-sided p with the level's error; never smaller than before."""
    sure = min(drop.p_value, 1 - drop.p_value)
    if sure >= 0.5 or not drop.drop:
        return drop.p_value
    errors = -float(special.stdtrit(drop.freedom, sure)) if sure > 0 else math.inf
    own = abs(drop.drop) / errors
    error, freedom = _together(own, drop.freedom, level)
    found = float(special.stdtr(freedom, -abs(drop.drop) / error))
    found = max(found, sure)
    return found if drop.p_value < 0.5 else 1 - found


def _together(own: float, freedom: float, level: LevelError) -> tuple[float, float]:
    """The error of both, and its degrees of freedom (Satterthwaite 1946)."""
    error = math.hypot(own, level.error)
    shares = (own / error) ** 4 / freedom + (level.error / error) ** 4 / level.freedom
    return error, 1 / shares


def weekly_chance(weekdays: ArrayLike, levels: ArrayLike) -> float:
    """p against the hypothesis that the level does not depend on the day of the week, a number.

    1 if too few nights are known: less than two of some day of the week, on average.
    """
    days, values = np.asarray(weekdays), np.asarray(levels, dtype=np.float64)
    groups = [values[days == day] for day in np.unique(days)]
    return same_level_chance(groups) if len(values) >= _FEWEST * len(groups) else 1.0


def same_level_chance(nights: Sequence[Numbers]) -> float:
    """p against the hypothesis that all nights have one level, from the questions of each.

    An F test of one-way analysis of variance; 1 for less than two nights, or one question a night.
    Source: Fisher 1925, "Statistical Methods for Research Workers".
    """
    usable = [night for night in nights if len(night)]
    count = sum(len(night) for night in usable)
    if len(usable) < _FEWEST or count <= len(usable):
        return 1.0
    mean = float(np.concatenate(usable).mean())
    between = sum(len(night) * (float(night.mean()) - mean) ** 2 for night in usable)
    within = sum(float(np.square(night - night.mean()).sum()) for night in usable)
    if within <= 0:
        return 0.0 if between > 0 else 1.0
    ratio = between / (len(usable) - 1) / (within / (count - len(usable)))
    return float(special.fdtrc(len(usable) - 1, count - len(usable), ratio))

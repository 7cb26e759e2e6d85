"""Movement between nights: the error that variation of a common level adds to a difference.

    night t:  mean_t = mean of questions + f_t L_t + noise,   L_t of standard deviation sd
    step:     d_t = mean_t - mean_(t-1) over the questions of both,  variance v_t + 2 f_t^2 sd^2

A judge behind an API may be stricter on one night than on another. That moves all questions
together, so the spread of questions does not show it. Steps between nights do: `rules` estimates
the sd from them, and `with_movement` adds the error to a drop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from ragmetrics.stats.comparisons import Drop, align
from ragmetrics.stats.significance import CONFIDENCE
from ragmetrics.stats.t_test import MeanDifference, detectable

FEWEST_QUESTIONS = 20


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
    distance = abs(drop.drop) / errors
    error, freedom = _together(distance, drop.freedom, level)
    chance = float(special.stdtr(freedom, -abs(drop.drop) / error))
    chance = max(chance, sure)
    return chance if drop.p_value < 0.5 else 1 - chance


def _together(distance: float, freedom: float, level: LevelError) -> tuple[float, float]:
    """The error of both, and its degrees of freedom (Satterthwaite 1946)."""
    error = math.hypot(distance, level.error)
    shares = (distance / error) ** 4 / freedom + (level.error / error) ** 4 / level.freedom
    return error, 1 / shares

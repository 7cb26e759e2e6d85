"""The movement of levels from night to night, estimated from steps between nights.

`estimate_movement` estimates its standard deviation, `likely_movement` averages over likely ones.
The model is that of `stats.with_movement`, which adds the error to a drop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy import special

from ragmetrics.stats import LevelError, NightStep, Numbers

FEWEST_STEPS = 7
"""Eight nights: with fewer the estimate costs too much power."""
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

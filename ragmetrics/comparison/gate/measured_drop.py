"""The drop of a metric between two builds: its bounds, and the questions that would decide it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import special

from ragmetrics.stats import (
    ALPHA,
    FEWEST_FOR_T,
    POWER,
    Drop,
    LevelError,
    MeanDifference,
    compare,
    detectable,
    smallest_enough,
    widen_difference,
    with_movement,
)


@dataclass(frozen=True, slots=True)
class MeasuredDrop:
    """The drop of a metric, over the questions that are scored in both builds."""

    before: float
    after: float
    drop: float
    low: float
    high: float
    upper: float
    """One-sided bound: with 95% confidence the drop is not above it."""
    p_value: float
    """One-sided p against the hypothesis of no drop."""
    questions: int
    spread: float
    """Standard deviation of the questions' drops."""
    level: LevelError | None = None
    """Error by the judge's movement, where the builds were judged on different days."""

    @property
    def detectable(self) -> float:
        """Smallest drop that this number of questions shows with 80% power, by the upper bound's
        error.
        """
        _, found = _guarded(self.drop, self.spread, self.questions, self.level)
        return detectable(found.error, found.freedom)


def measure(
    before: Mapping[str, Sequence[float]],
    after: Mapping[str, Sequence[float]],
    level_of: Callable[[Drop], LevelError | None] = lambda drop: None,
) -> MeasuredDrop | None:
    """Compare two builds, `{question: values of its rows}`, over the questions they share.

    Of the corrections it has the judge's movement and change alone: pairs have one mix, a gate's
    runs have no labelled set, and the golden set that a gate asks names the documents of both
    builds.

        d_q = mean(before_q) - mean(after_q);   a paired test on d, as `stats.compare`

    The upper bound is that of d with one more question that lost everything (d = 1):

        upper = m + t_(0.95, n) * se    over d_1 .. d_n, 1

    A large loss in few questions may not be among the asked ones. Where nothing changed in n
    questions, up to a share of 3/n may be lost ("rule of three"), while t alone would exclude any
    loss. `level_of` gives the error that movement between the days of judging adds; it widens every
    bound, and p. None with less than two shared questions.
    Sources: Miller 2024, "Adding error bars to evals"; Agresti and Coull 1998 for added
    observations; Hanley and Lippman-Hand 1983 for the rule of three.
    """
    shared = sorted(before.keys() & after.keys())
    one, other = ({question: side[question] for question in shared} for side in (before, after))
    if (drop := compare(one, other)) is None:
        return None
    drop = with_movement(drop, level := level_of(drop))
    differences = np.array([fmean(one[question]) - fmean(other[question]) for question in shared])
    count, spread = len(shared), float(differences.std(ddof=1))
    plain = widen_difference(MeanDifference(drop.drop, spread / math.sqrt(count), count - 1), level)
    _, guarded = _guarded(drop.drop, spread, count, level)
    return MeasuredDrop(
        before=drop.before,
        after=drop.now,
        drop=drop.drop,
        low=drop.low,
        high=drop.high,
        upper=max(_bound(plain), _bound(guarded)),
        p_value=drop.p_value,
        questions=count,
        spread=spread,
        level=level,
    )


def further_to_promote(
    drop: float, spread: float, questions: int, limit: float, level: LevelError | None = None
) -> int | None:
    """Questions to add so that the upper bound is below a limit, with 80% power.

        smallest n with  m_n + (t_0.95 + t_0.80) * se_n < limit

    Drop and spread stay as they are; m_n and se_n are those of the upper bound. None where the drop
    is not below the limit, or more than 100,000 questions are needed.
    """

    def enough(n: int) -> bool:
        centre, found = _guarded(drop, spread, n, level)
        return centre + detectable(found.error, found.freedom) < limit

    return _added(enough, questions) if drop < limit else None


def further_to_hold(
    drop: float,
    spread: float,
    questions: int,
    limit: float = 0.0,
    level: LevelError | None = None,
    *,
    tests: int = 1,
) -> int | None:
    """Questions to add so that a drop is above its limit and significant, with 80% power.

        smallest n with  max((t_(1-a) + t_0.80) * se_n, limit + t_0.80 * se_n) < drop

    Drop and spread stay as they are; a is 0.05 by the number of `tests`, as this drop may be the
    only one. It is at least 30, from which the t test decides. None where the drop is not above the
    limit, or more than 100,000 questions are needed.
    """

    def enough(n: int) -> bool:
        found = widen_difference(MeanDifference(drop, spread / math.sqrt(n), n - 1), level)
        beyond = limit + float(special.stdtrit(found.freedom, POWER)) * found.error
        shown = detectable(found.error, found.freedom, alpha=ALPHA / tests)
        return n >= FEWEST_FOR_T and max(shown, beyond) < drop

    return _added(enough, questions)


def _added(enough: Callable[[int], bool], questions: int) -> int | None:
    needed = smallest_enough(enough, questions)
    return None if needed is None else needed - questions


def _guarded(
    drop: float, spread: float, questions: int, level: LevelError | None
) -> tuple[float, MeanDifference]:
    """Mean of the drops with one more drop of 1, and its difference with the full error."""
    n = questions + 1
    centre = (questions * drop + 1) / n
    squares = (questions - 1) * spread**2 + questions * (drop - centre) ** 2 + (1 - centre) ** 2
    error = math.sqrt(squares / (n - 1) / n)
    return centre, widen_difference(MeanDifference(centre, error, questions), level)


def _bound(found: MeanDifference) -> float:
    """The one-sided upper bound."""
    return found.difference + float(special.stdtrit(found.freedom, 1 - ALPHA)) * found.error

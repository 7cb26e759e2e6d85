"""Whether a metric goes by the day of the week, and which nights are of tonight's day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ragmetrics.records import Manifest
from ragmetrics.stats import Numbers
from ragmetrics.storage import trailing_nights

WEEK = 7
SAME_DAYS = 28
"""Earlier days in which the same days of the week are looked for."""
CYCLE_DAYS = 56
"""Earlier days for the test of a weekly cycle."""
SURE = 0.01
"""Significance level for a weekly cycle."""
_FEWEST = 2
"""Fewest nights, or weekdays, and fewest nights per weekday, for a test of equal levels."""


def goes_by_weekday(past: Sequence[Manifest], metric: str, day: date) -> bool:
    """Whether the means of the weeks before depend significantly on the day of the week.

    Nights on which the alert fired count: a day that is lower every week may fire each time.
    """
    known = [
        (night.date.weekday(), summary.mean)
        for night in trailing_nights(past, day, CYCLE_DAYS)
        if (summary := night.summary(metric)) and summary.mean is not None
    ]
    return weekly_chance([day for day, _ in known], [mean for _, mean in known]) < SURE


def may_show_cycle(past: Sequence[Manifest]) -> bool:
    """Whether there are enough nights to see a weekly cycle: two weeks."""
    return len({night.date for night in past}) >= 2 * WEEK


def nights_of_day(nights: Sequence[Manifest], day: date) -> list[Manifest]:
    """The nights of the last four weeks that are of the same day of the week."""
    recent = trailing_nights(nights, day, SAME_DAYS)
    return [night for night in recent if night.date.weekday() == day.weekday()]


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

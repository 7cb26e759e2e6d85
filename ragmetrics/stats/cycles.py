"""Tests whether the level of nights depends on the day of the week, or on the night."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
from scipy import special

from ragmetrics.stats.mean_difference import Numbers

_FEWEST = 2
"""Fewest nights per weekday, and fewest weekdays, for a test of a cycle."""


def weekly_chance(days: Sequence[date], levels: Sequence[float]) -> float:
    """p against the hypothesis that the level does not depend on the day of the week.

    An F test of one-way analysis of variance: nights by day of the week. 1 if too few nights
    are known: less than two of some day of the week, on average.
    Source: Fisher 1925, "Statistical Methods for Research Workers".
    """
    values = np.array(levels, dtype=np.float64)
    numbers = np.unique([day.weekday() for day in days], return_inverse=True)[1]
    groups = int(numbers.max(initial=-1)) + 1
    if groups < _FEWEST or len(values) < _FEWEST * groups:
        return 1.0
    counts = np.bincount(numbers)
    means = np.bincount(numbers, weights=values) / counts
    between = float((counts * np.square(means - values.mean())).sum()) / (groups - 1)
    within = float(np.square(values - means[numbers]).sum()) / (len(values) - groups)
    if within <= 0:
        return 0.0 if between > 0 else 1.0
    return float(special.fdtrc(groups - 1, len(values) - groups, between / within))


def same_level_chance(nights: Sequence[Numbers]) -> float:
    """p against the hypothesis that all nights have one level.

    An F test of one-way analysis of variance: questions by night. 1 for less than two nights.
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

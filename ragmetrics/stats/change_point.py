"""Change-point estimation: the night since which the level is lower, if it can be dated.

before: m m m m m m | x x x   the split with the largest drop, tested over all splits
                [       ]     confidence set (95%) of the first lower night
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from ragmetrics.stats.comparisons import PAIRED_FROM
from ragmetrics.stats.levels import CONFIDENCE
from ragmetrics.stats.mean_difference import (
    MeanDifference,
    Numbers,
    paired_contrast,
    unpaired_contrast,
)
from ragmetrics.stats.night_movement import LevelError, widen_difference

FEWEST_NIGHTS = 3


class Undated(StrEnum):
    """Why no night is named."""

    TOO_FEW = "too few nights"
    NO_DROP = "no drop that chance does not explain"
    SEVERAL = "no single change: the level moves more than once, or drifts"


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A level that fell once. Nights are positions in the series."""

    first: int
    """The most likely first night of the lower level."""
    nights: tuple[int, ...]
    """Confidence set of the first lower night."""
    drop: float
    """Mean of the nights before less mean of the nights since."""
    p_value: float
    """p against the hypothesis that the level fell on no night, over all splits."""


@dataclass(frozen=True, slots=True)
class Level:
    """A night of which only the mean is known, from the summary of a manifest."""

    mean: float
    error: float
    """Standard error of the mean."""
    questions: int


class _Series(Protocol):
    """Nights in order; any run of nights can be compared with the run that follows it."""

    @property
    def size(self) -> int: ...

    def split(self, start: int, first: int, end: int) -> MeanDifference | None:
        """Nights `start` to `first` (without it) less nights `first` to `end`."""
        ...


def date_change(
    nights: Sequence[Mapping[str, Sequence[float]]],
    *,
    confidence: float = CONFIDENCE,
    level: LevelError | None = None,
) -> ChangePoint | Undated:
    """Date a drop of the level from the rows of each question, night by night, oldest first.

        t_k = contrast of the nights before k and the nights since,   k = 1 .. T-1
        first = argmax t_k,   p = min(1, (T-1) * min_k p_k),   one-sided

    Each contrast is that of `compare`: paired by question if half of the later questions are on
    both sides, else unpaired. The confidence set has the nights k for which neither the nights
    before k nor those since k show a change among themselves: no two-sided contrast within
    either stretch below (1 - confidence) / (T-2). If k is the true night and nothing else changed,
    it is left out with a chance of at most 1 - confidence (Bonferroni). If no night is left,
    the level moved more than once or drifts, and no night is named.
    `level` is the standard deviation of the level between nights: for a split of i and j nights
    it adds sd^2 (1/i + 1/j) to the squared error.
    Less than three nights: too few. Sources: Worsley 1986, "Confidence regions and tests for a
    change-point"; Dumbgen 1991, for sets by inversion.
    """
    return _date(_Questions(nights, level), confidence)


def date_change_of_levels(
    nights: Sequence[Level], *, confidence: float = CONFIDENCE
) -> ChangePoint | Undated:
    """Date a drop from the means of the nights alone, as independent and weighted by questions.

    If the nights share their questions this is conservative: the spread between questions, which
    pairing would remove, counts as error.
    """
    return _date(_Levels(nights), confidence)


def _date(series: _Series, confidence: float) -> ChangePoint | Undated:
    size, alarms = series.size, 1 - confidence
    if size < FEWEST_NIGHTS:
        return Undated.TOO_FEW
    found = {k: series.split(0, k, size) for k in range(1, size)}
    splits = {k: contrast for k, contrast in found.items() if contrast is not None}
    if not splits:
        return Undated.TOO_FEW
    p_value = min(1.0, (size - 1) * min(one.p_value for one in splits.values()))
    if p_value >= alarms:
        return Undated.NO_DROP
    level = alarms / (size - 2)
    nights = tuple(
        k
        for k, contrast in splits.items()
        if contrast.difference > 0
        and _steady(series, 0, k, level)
        and _steady(series, k, size, level)
    )
    if not nights:
        return Undated.SEVERAL
    first = max(nights, key=lambda k: splits[k].statistic)
    return ChangePoint(first, nights, splits[first].difference, p_value)


def _steady(series: _Series, start: int, end: int, level: float) -> bool:
    """Whether no split of a stretch of nights shows a change within it."""
    splits = (series.split(start, k, end) for k in range(start + 1, end))
    return all(one is None or one.p_two_sided >= level for one in splits)


class _Questions:
    """Rows by question and night, cumulated, so that a run of nights is a difference of sums."""

    def __init__(
        self, nights: Sequence[Mapping[str, Sequence[float]]], level: LevelError | None
    ) -> None:
        self._level = level
        place = {name: i for i, name in enumerate(sorted({q for one in nights for q in one}))}
        sums, rows = np.zeros((2, len(nights) + 1, len(place)))
        for number, night in enumerate(nights, start=1):
            for question, values in night.items():
                sums[number, place[question]] = sum(values)
                rows[number, place[question]] = len(values)
        self.size = len(nights)
        self._sums, self._rows = sums.cumsum(axis=0), rows.cumsum(axis=0)

    def split(self, start: int, first: int, end: int) -> MeanDifference | None:
        """See `compare`."""
        found = self._contrast(start, first, end)
        if found is None or self._level is None:
            return found
        nights = math.sqrt(1 / (first - start) + 1 / (end - first))
        return widen_difference(found, LevelError(self._level.error * nights, self._level.freedom))

    def _contrast(self, start: int, first: int, end: int) -> MeanDifference | None:
        old, new = self._means(start, first), self._means(first, end)
        shared = ~np.isnan(old) & ~np.isnan(new)
        if shared.sum() >= 2 and shared.sum() >= PAIRED_FROM * (~np.isnan(new)).sum():
            return paired_contrast(np.round(old[shared] - new[shared], 12))
        old, new = old[~np.isnan(old)], new[~np.isnan(new)]
        return unpaired_contrast(old, new) if min(len(old), len(new)) >= 2 else None

    def _means(self, start: int, end: int) -> Numbers:
        rows = self._rows[end] - self._rows[start]
        sums = self._sums[end] - self._sums[start]
        found: Numbers = np.divide(sums, rows, out=np.full_like(sums, np.nan), where=rows > 0)
        return found


class _Levels:
    """Means with their errors; a run of nights is weighted by its questions."""

    def __init__(self, nights: Sequence[Level]) -> None:
        self.size = len(nights)
        self._mean = np.array([one.mean for one in nights])
        self._error = np.array([one.error for one in nights])
        self._questions = np.array([one.questions for one in nights], dtype=np.float64)

    def split(self, start: int, first: int, end: int) -> MeanDifference | None:
        """Welch's contrast of two weighted means."""
        old, a, n = self._stretch(start, first)
        new, b, m = self._stretch(first, end)
        if min(n, m) < 2:
            return None
        freedom = (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1)) if a + b > 0 else n + m - 2
        return MeanDifference(old - new, float(np.sqrt(a + b)), freedom)

    def _stretch(self, start: int, end: int) -> tuple[float, float, float]:
        questions = self._questions[start:end]
        total = float(questions.sum())
        if total == 0:
            return 0.0, 0.0, 0.0
        weights = questions / total
        mean = float(weights @ self._mean[start:end])
        return mean, float(np.square(weights) @ np.square(self._error[start:end])), total

"""Rows of nights in arrays, and the comparisons of a run on them: like for like, and paired.

Arrays are of shape (years, metrics), with a last axis of sections, or of questions that recur.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

Numbers: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True)
class Rows:
    """Questions and sums of values by section, of some nights together."""

    questions: Numbers
    sums: Numbers
    squares: Numbers
    nights: Numbers
    """Number of nights of each series."""

    def __add__(self, other: Rows) -> Rows:
        return Rows(*(one + two for one, two in zip(self._all, other._all, strict=True)))

    def where(self, chosen: Flags, other: Rows) -> Rows:
        """These rows where chosen, else the others."""
        pairs = zip(self._all, other._all, strict=True)
        return Rows(*(np.where(_like(chosen, one), one, two) for one, two in pairs))

    @property
    def _all(self) -> tuple[Numbers, ...]:
        return self.questions, self.sums, self.squares, self.nights

    @property
    def variances(self) -> Numbers:
        """The variance of the scores of each section."""
        found: Numbers = self.squares / np.maximum(self.questions, 1) - self.means**2
        return np.maximum(found, 0.0)

    @property
    def means(self) -> Numbers:
        """The mean of each section."""
        return self.sums / np.maximum(self.questions, 1)


def _like(chosen: Flags, values: Numbers) -> Flags:
    return chosen[..., None] if values.ndim > chosen.ndim else chosen


@dataclass(frozen=True)
class Movement:
    """How far each series moves from night to night, and the degrees of freedom of that."""

    sd: Numbers
    freedom: Numbers

    def between(self, before: Numbers, now: int) -> Movement:
        """The error that it adds to a drop between the means of so many nights."""
        return Movement(self.sd * np.sqrt(1 / np.maximum(before, 1) + 1 / now), self.freedom)


def like_for_like(before: Rows, now: Rows, moved: Movement) -> tuple[Numbers, Numbers]:
    """The standardised drop, and its one-sided p with an error that the nights add, by the degrees
    of freedom of both (Satterthwaite).
    """
    count = now.questions.sum(axis=-1)
    share = now.questions / count[..., None]
    left = before.means - now.means
    drop = (share * left).sum(axis=-1)
    spread = now.variances + (left - drop[..., None]) ** 2
    own = (share * spread).sum(axis=-1) / (count - 1)
    old = (share**2 * before.variances / np.maximum(before.questions - 1, 1)).sum(axis=-1)
    whole = before.questions.sum(axis=-1)
    common = (own * count * (count - 1) + old * whole * (whole - 1)) / (count + whole - 2)
    if now.questions.shape[-1] == 1:  # as `MeanDifference.unpaired`; sections have no common variance
        return drop, _p_value(
            drop, np.maximum(own + old, common * (1 / count + 1 / whole)), count - 1, moved
        )
    return drop, _p_value(drop, own + old, count - 1, moved)


def paired(before: Rows, now: Rows, moved: Movement) -> tuple[Numbers, Numbers]:
    """The same over the questions of both sides where these are at least half of now's, else over
    the questions of each.
    """
    asked, still = before.questions > 0, now.questions > 0
    both = asked & still
    shared, count, whole = (one.sum(axis=-1) for one in (both, still, asked))
    drop, variance = _moments(before.means - now.means, both)
    old, new = _moments(before.means, asked), _moments(now.means, still)
    pairs = shared >= np.maximum(2, 0.5 * count)
    common = (old[1] * (whole - 1) + new[1] * (count - 1)) / (whole + count - 2)
    parts = old[1] / whole + new[1] / count
    square = np.maximum(parts, common * (1 / whole + 1 / count))
    freedom = np.where(pairs, shared, count) - 1
    drop = np.where(pairs, drop, old[0] - new[0])
    square = np.where(pairs, variance / np.maximum(shared, 1), square)
    return drop, _p_value(drop, square, freedom, moved)


def _moments(values: Numbers, which: Flags) -> tuple[Numbers, Numbers]:
    """Mean and variance of the chosen values along the last axis."""
    count = np.maximum(which.sum(axis=-1), 2)
    mean = (values * which).sum(axis=-1) / count
    squares = ((values - mean[..., None]) ** 2 * which).sum(axis=-1)
    return mean, squares / (count - 1)


def _p_value(drop: Numbers, own: Numbers, freedom: Numbers, moved: Movement) -> Numbers:
    square = own + moved.sd**2 + 1e-12
    part = moved.sd**2 / square
    both = 1 / ((1 - part) ** 2 / freedom + part**2 / moved.freedom)
    chance: Numbers = special.stdtr(both, -drop / np.sqrt(square))
    return chance


def together(nights: list[Rows]) -> Rows:
    """The rows of several nights."""
    found = nights[0]
    for one in nights[1:]:
        found = found + one
    return found

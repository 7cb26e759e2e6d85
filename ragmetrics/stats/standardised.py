"""Comparing like with like: a drop between two sets of rows whose mix of strata differs.

The rows of before are weighed as those of now are mixed (direct standardisation). The drop that is
left is that of like for like; the rest of the plain drop is the mix.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ragmetrics.stats.comparisons import Drop, guarded_error, of_one_range
from ragmetrics.stats.levels import ALPHA, CONFIDENCE
from ragmetrics.stats.mean_difference import MeanDifference, Numbers, least_chance
from ragmetrics.stats.power import detectable

Codes = NDArray[np.intp]
"""Numbers from 0 on: of each row's question, or of its stratum."""

_CHANCE = 3.0
FEWEST = 10.0
"""Questions of before below which a stratum has no mean of its own."""


def _sums(codes: Codes, values: Numbers, count: int) -> Numbers:
    """The sum of the values of each of so many codes."""
    found: Numbers = np.bincount(codes, weights=values, minlength=count).astype(np.float64)
    return found


@dataclass(frozen=True)
class StratifiedRows:
    """The scored rows of one side. Each question has one vote, which its rows share."""

    questions: Codes
    """The number of each row's question, without a gap."""
    values: Numbers
    levels: Sequence[Codes] = ()
    """The stratum of each row, by ever finer partitions. Those of both sides are numbered alike."""

    @cached_property
    def votes(self) -> Numbers:
        """The part of its question's vote that each row has."""
        return 1.0 / np.bincount(self.questions)[self.questions]

    @cached_property
    def count(self) -> int:
        """Questions."""
        return int(self.questions.max(initial=-1)) + 1

    def by_question(self, values: Numbers) -> Numbers:
        """The mean of each question over its rows."""
        return _sums(self.questions, self.votes * values, self.count)

    def stratum_votes(self, codes: Codes, count: int) -> Numbers:
        """The questions that each stratum has."""
        return _sums(codes, self.votes, count)


@dataclass(frozen=True)
class Expected:
    """What the rows of before say of the mix of now."""

    rows: Numbers
    """The mean of before that each row of now is held against."""
    mean: float
    """What the mean of before would be with the mix of now."""
    influence: Numbers
    """How far each question of before moves that mean. The sum of squares is its variance."""
    freedom: float
    """Degrees of freedom of that variance: a few questions that stand for many are few."""
    size: float
    """Effective questions of before."""
    alone: float
    """Share of now's questions whose stratum has no mean of its own."""


def expected(before: StratifiedRows, now: StratifiedRows) -> Expected:
    """The mean of before for the mix of now.

        mu_h  = mean of before in stratum h        w_h = share of now's votes in h
        mean  = sum_h w_h mu_h
        psi_q = sum_h w_h / W_h * sqrt(W_h / (W_h - 1)) * sum of q's votes in h times (y - mu_h)

    W_h are the votes of before in h. A row of now is held against its stratum by the finest level
    at which before has `FEWEST` questions of it, and against all rows of before where none has.
    """
    whole = (np.zeros(len(one.values), dtype=np.intp) for one in (before, now))
    levels = [tuple(whole), *zip(before.levels, now.levels, strict=True)]
    held = np.full(len(now.values), np.nan)
    influence, shares = np.zeros((2, len(before.values)))
    squares, alone = 0.0, 0.0
    for depth in reversed(range(len(levels))):
        old, new = levels[depth]
        count = int(max(old.max(initial=0), new.max(initial=0))) + 1
        votes = before.stratum_votes(old, count)
        sums = _sums(old, before.votes * before.values, count)
        mean = np.divide(sums, votes, out=np.zeros(count), where=votes > 0)
        own = np.isnan(held) & (votes[new] >= (FEWEST if depth else 0.0))
        weight = _sums(new[own], now.votes[own], count) / now.count
        held[own] = mean[new[own]]
        scale = np.divide(weight, votes, out=np.zeros(count), where=votes > 0)
        spread = np.sqrt(np.divide(votes, votes - 1, out=np.ones(count), where=votes > 1))
        part = before.votes * scale[old]
        moves = part * spread[old] * (before.values - mean[old])
        own_error = _sums(old, np.square(moves), count)
        squares += float((np.square(own_error) / np.maximum(votes - 1, 1)).sum())
        influence += moves
        shares += part
        alone = float(weight.sum()) if depth == 0 and len(levels) > 1 else 0.0
    ask = before.questions
    psi = _sums(ask, influence, before.count)
    error = float(np.square(psi).sum())
    return Expected(
        rows=held,
        mean=float((now.votes * held).sum()) / now.count,
        influence=psi,
        freedom=max(1.0, error**2 / squares if squares > 0 else before.count - 1),
        size=1 / float(np.square(_sums(ask, shares, before.count)).sum()),
        alone=alone,
    )


def like_for_like(
    plain: Drop,
    before: StratifiedRows,
    now: StratifiedRows,
    *,
    most: float | None = None,
    confidence: float = CONFIDENCE,
    alpha: float = ALPHA,
) -> Drop:
    """An unpaired drop, held against what before says of the mix of now.

        e_q   = mean over q's rows of now of the mean of before in their strata
        drop  = mean(e_q - y_q)           mix = plain drop - drop
        se^2  = max( sum psi_q^2 + var(y_q - e_q) / n,  v (1 / N_eff + 1 / n) )

    v is the variance within strata of both sides together, and 1 / N_eff the sum of squares of the
    shares that the questions of before have in what is expected; degrees of freedom by Welch and
    Satterthwaite. With one stratum it is the plain drop. The rows of before alone say what is
    expected, so that lower scores of now cannot be taken for mix.
    `most` is the largest mix that is usual: what is beyond it, and beyond three standard errors of
    a mix that is drawn by chance, stays in the drop.
    Sources: Kish 1965, "Survey Sampling", and Holt and Smith 1979, "Post stratification".
    """
    found = expected(before, now)
    left = now.by_question(found.rows - now.values)
    mix = plain.before - plain.now - float(left.mean())
    if most is not None:
        left += max(0.0, mix - most - _CHANCE * float(found.rows.std()) / math.sqrt(now.count))
    contrast = _contrast(found, left, before.count)
    low, high = contrast.interval(confidence)
    sides = before.by_question(before.values), now.by_question(now.values)
    if of_one_range(sides):
        low, high = max(low, -1.0), min(high, 1.0)
    residuals = found.influence * math.sqrt(found.size * before.count) + plain.before
    own = (guarded_error(one, (0.0, 1.0)) for one in (residuals, plain.now + left.mean() - left))
    error = max(contrast.error, math.hypot(*own))
    return replace(
        plain,
        drop=contrast.difference,
        low=low,
        high=high,
        p_value=contrast.p_value,
        error=error,
        freedom=contrast.freedom,
        mde=detectable(error, contrast.freedom, alpha=alpha),
        mix=plain.before - plain.now - contrast.difference,
        alone=found.alone,
    )


def hardest_mix(before: StratifiedRows, nights: Iterable[StratifiedRows]) -> float:
    """How far the mix of some night lowered the mean, of the one that lowered it most."""
    mean = float(before.by_question(before.values).mean())
    return max((mean - expected(before, one).mean for one in nights), default=0.0)


def _contrast(found: Expected, left: Numbers, count: int) -> MeanDifference:
    """The mean of what is left, against that of before."""
    m = len(left)
    old, new = float(np.square(found.influence).sum()), float(left.var(ddof=1)) / m
    freedom = min(found.freedom, m - 1.0)
    if old + new > 0:
        share = old / (old + new)
        freedom = 1 / (share**2 / found.freedom + (1 - share) ** 2 / (m - 1))
    squares = old * found.size * found.freedom + new * m * (m - 1)
    common = squares / (found.freedom + m - 1) * (1 / found.size + 1 / m)
    error = math.sqrt(max(old + new, common))
    return MeanDifference(float(left.mean()), error, freedom, least_chance(count, m))

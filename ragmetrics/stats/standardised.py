"""Direct standardisation: a drop between two sets of rows with different mixes of strata.

The rows of before are weighted by the mix of now. The remaining drop is standardised; the rest of
the plain drop is the effect of the mix. The strata are the values of tags, which are chosen by the
earlier scores alone, so that a drop cannot select the tag that explains it away.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragmetrics.stats.comparisons import Drop, guarded_error, of_one_range
from ragmetrics.stats.significance import CONFIDENCE
from ragmetrics.stats.t_test import MeanDifference, Numbers, detectable, least_chance

Codes = NDArray[np.intp]
"""Number, from 0, of each row's question or stratum."""

_CHANCE = 3.0
FEWEST = 10.0
"""Fewest earlier questions for which a stratum has its own mean."""
MOST_TAGS = 3
SURE = 0.01
"""Family-wise chance to choose a tag that is unrelated to the scores."""
_ALIKE = 1e-12


def _sums(codes: Codes, values: Numbers, count: int) -> Numbers:
    """The sum of the values per code."""
    sums: Numbers = np.bincount(codes, weights=values, minlength=count).astype(np.float64)
    return sums


@dataclass(frozen=True)
class StratifiedRows:
    """Scored rows of one side. Each question has one vote, split over its rows."""

    questions: Codes
    """Number of each row's question, without gaps."""
    values: Numbers
    levels: Sequence[Codes] = ()
    """Stratum of each row, by increasingly fine partitions, with equal numbers on both sides."""

    @cached_property
    def votes(self) -> Numbers:
        """Each row's share of its question's vote."""
        return 1.0 / np.bincount(self.questions)[self.questions]

    @cached_property
    def count(self) -> int:
        """Number of questions."""
        return int(self.questions.max(initial=-1)) + 1

    def by_question(self, values: Numbers) -> Numbers:
        """The mean of each question over its rows."""
        return _sums(self.questions, self.votes * values, self.count)

    def stratum_votes(self, codes: Codes, count: int) -> Numbers:
        """Votes per stratum."""
        return _sums(codes, self.votes, count)

    def residuals(self, codes: Codes) -> Numbers:
        """Each row minus the mean of its stratum."""
        count = int(codes.max(initial=0)) + 1
        votes = self.stratum_votes(codes, count)
        sums = _sums(codes, self.votes * self.values, count)
        means = np.divide(sums, votes, out=np.zeros(count), where=votes > 0)
        residuals: Numbers = self.values - means[codes]
        return residuals


@dataclass(frozen=True)
class Expected:
    """Expectation for the mix of now, from the rows of before."""

    rows: Numbers
    """Earlier mean with which each row of now is compared."""
    mean: float
    """Earlier mean, standardised to the mix of now."""
    influence: Numbers
    """Influence of each earlier question on that mean; the sum of squares is its variance."""
    freedom: float
    """Degrees of freedom of that variance; low if few questions have most weight."""
    size: float
    """Effective earlier questions."""
    alone: float
    """Share of now's questions whose stratum has no own earlier mean."""


def expected(before: StratifiedRows, now: StratifiedRows) -> Expected:
    """The earlier mean, standardised to the mix of now.

        mu_h  = mean of before in stratum h        w_h = share of now's votes in h
        mean  = sum_h w_h mu_h
        psi_q = sum_h w_h / W_h * sqrt(W_h / (W_h - 1)) * sum of q's votes in h times (y - mu_h)

    W_h are the earlier votes in h. A row of now is compared with its stratum at the finest level
    that has `FEWEST` earlier questions, and with all earlier rows if no level has.
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
        here = np.isnan(held) & (votes[new] >= (FEWEST if depth else 0.0))
        weight = _sums(new[here], now.votes[here], count) / now.count
        held[here] = mean[new[here]]
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
    usual: Sequence[StratifiedRows] | None = None,
) -> Drop:
    """An unpaired drop, standardised to the mix of now.

        e_q   = mean over q's rows of now of the mean of before in their strata
        drop  = mean(e_q - y_q)           mix = plain drop - drop
        se^2  = max( sum psi_q^2 + var(y_q - e_q) / n,  v (1 / N_eff + 1 / n) )

    v is the variance within strata of both sides together, and 1 / N_eff the sum of squares of the
    weights of the earlier questions in the expectation; degrees of freedom by Welch and
    Satterthwaite. With one stratum it is the plain drop. The expectation uses the earlier rows
    alone, so that lower scores of now cannot count as mix.
    `usual` are nights with usual mixes: mix beyond the hardest of them, and beyond three standard
    errors of a random mix, counts as drop.
    Sources: Kish 1965, "Survey Sampling", and Holt and Smith 1979, "Post stratification".
    """
    standard = expected(before, now)
    left = now.by_question(standard.rows - now.values)
    mix = plain.before - plain.now - float(left.mean())
    if usual is not None:
        most = _hardest_mix(before, usual)
        left += max(0.0, mix - most - _CHANCE * float(standard.rows.std()) / math.sqrt(now.count))
    contrast = _contrast(standard, left, before.count)
    low, high = contrast.interval(CONFIDENCE)
    sides = before.by_question(before.values), now.by_question(now.values)
    if of_one_range(sides):
        low, high = max(low, -1.0), min(high, 1.0)
    apart = standard.influence * math.sqrt(standard.size * before.count) + plain.before
    errors = (guarded_error(one, (0.0, 1.0)) for one in (apart, plain.now + left.mean() - left))
    error = max(contrast.error, math.hypot(*errors))
    return replace(
        plain,
        drop=contrast.difference,
        low=low,
        high=high,
        p_value=contrast.p_value,
        error=error,
        freedom=contrast.freedom,
        mde=detectable(error, contrast.freedom),
        mix=plain.before - plain.now - contrast.difference,
        alone=standard.alone,
    )


def _hardest_mix(before: StratifiedRows, nights: Iterable[StratifiedRows]) -> float:
    """Largest drop of the expected mean by the mix of one of the nights."""
    mean = float(before.by_question(before.values).mean())
    return max((mean - expected(before, night).mean for night in nights), default=0.0)


def _contrast(standard: Expected, left: Numbers, count: int) -> MeanDifference:
    """The mean of the residuals, compared with the earlier mean."""
    m = len(left)
    old, new = float(np.square(standard.influence).sum()), float(left.var(ddof=1)) / m
    freedom = min(standard.freedom, m - 1.0)
    if old + new > 0:
        share = old / (old + new)
        freedom = 1 / (share**2 / standard.freedom + (1 - share) ** 2 / (m - 1))
    squares = old * standard.size * standard.freedom + new * m * (m - 1)
    common = squares / (standard.freedom + m - 1) * (1 / standard.size + 1 / m)
    error = math.sqrt(max(old + new, common))
    return MeanDifference(float(left.mean()), error, freedom, least_chance(count, m))


@dataclass(frozen=True)
class Strata:
    """Tags and their partitions, each finer than the one before."""

    tags: tuple[str, ...]
    levels: tuple[Codes, ...]
    """Strata of all rows, of both sides."""


def choose_strata(
    before: StratifiedRows,
    tags: Mapping[str, Codes],
    rows: slice,
    *,
    first: Sequence[str] = (),
    choose: bool = True,
) -> Strata:
    """The tags that explain the earlier scores, the best one first.

    `tags` number the value of each row of both sides; `rows` are the earlier ones. `first` are
    always chosen. Each further tag has the smallest p of an F test of the cells into which it
    splits the strata, as long as p is below `SURE` (Bonferroni over the remaining tags). Only
    cells of `FEWEST` questions count; smaller ones stay with their stratum.
    """
    whole = np.zeros(len(next(iter(tags.values()), ())), dtype=np.intp)
    names, levels = list(first), list(_refined(whole, [tags[name] for name in first]))
    while choose and len(names) < MOST_TAGS:
        left = sorted(tags.keys() - names)
        codes = levels[-1] if levels else whole
        tested = [(*_test(before, codes[rows], tags[name][rows]), name) for name in left]
        best = min(tested, default=None)
        if best is None or best[0] * len(left) >= SURE:
            break
        names.append(best[-1])
        levels.append(_crossed(codes, tags[best[-1]]))
    return Strata(tuple(names), tuple(levels))


def _refined(codes: Codes, tags: Iterable[Codes]) -> Iterable[Codes]:
    for tag in tags:
        codes = _crossed(codes, tag)
        yield codes


def _crossed(codes: Codes, tag: Codes) -> Codes:
    """The cells of two partitions, numbered from 0."""
    cells = codes * (int(tag.max(initial=0)) + 1) + tag
    numbered: Codes = np.unique(cells, return_inverse=True)[1].astype(np.intp)
    return numbered


def _test(before: StratifiedRows, codes: Codes, tag: Codes) -> tuple[float, float]:
    """p of the F test of a tag's cells, and minus the variance that they explain."""
    cells = _crossed(codes, tag)
    votes = before.stratum_votes(cells, int(cells.max(initial=0)) + 1)
    # Cells that are too small for an own mean stay together, in their stratum.
    small = votes[cells] < FEWEST
    cells = np.where(small, cells.max(initial=0) + 1 + codes, cells)
    old, new = _scatter(before, codes), _scatter(before, cells)
    more = len(np.unique(cells)) - len(np.unique(codes))
    rest = before.count - len(np.unique(cells))
    gain = old - new
    if more < 1 or rest < 1 or gain <= _ALIKE:
        return 1.0, 0.0
    if new <= _ALIKE:
        return 0.0, -gain
    return float(special.fdtrc(more, rest, gain / more / (new / rest))), -gain


def _scatter(before: StratifiedRows, codes: Codes) -> float:
    """The sum of squares within strata."""
    return float((before.votes * np.square(before.residuals(codes))).sum())

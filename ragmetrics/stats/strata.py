"""Chooses the tags by which a comparison is standardised.

The choice uses the earlier scores alone. Scores of now are not used, so that a drop cannot select
the tag that explains it away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ragmetrics.stats.mean_difference import Numbers
from ragmetrics.stats.standardised import FEWEST, Codes, StratifiedRows

MOST_TAGS = 3
SURE = 0.01
"""Family-wise chance to choose a tag that is unrelated to the scores."""
_ALIKE = 1e-12


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
    for one in tags:
        codes = _crossed(codes, one)
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
    return float((before.votes * np.square(residuals(before, codes))).sum())


def residuals(before: StratifiedRows, codes: Codes) -> Numbers:
    """Each row minus the mean of its stratum."""
    count = int(codes.max(initial=0)) + 1
    votes = before.stratum_votes(codes, count)
    sums = np.bincount(codes, weights=before.votes * before.values, minlength=count)
    means = np.divide(sums, votes, out=np.zeros(count), where=votes > 0)
    found: Numbers = before.values - means[codes]
    return found

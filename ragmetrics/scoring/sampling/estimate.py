"""The mean of a sampled night: the judged rows' scores with the embedded judge's of all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragmetrics.model import SampledMean, Status
from ragmetrics.scoring.sampling.plan import Group, stratum_of
from ragmetrics.stats import Mean, prediction_powered

if TYPE_CHECKING:
    import pandas as pd

STRATUM = "stratum"
"""Column of a table of scores: in which stratum the row was sampled."""
_FEWEST_CORRELATED = 3

Floats = NDArray[np.float64]


def strata_of(table: pd.DataFrame, tags: Sequence[str], group: Group) -> list[str]:
    """The stratum of each row of a table of scores, whose tags have columns, `tag:NAME`."""
    values = [table[f"tag:{name}"].tolist() for name in tags]
    rows = zip(*values, strict=True) if tags else ((),) * len(table)
    return [
        group.stratum(stratum_of(_present(tags, row), language=None, names=tags)) for row in rows
    ]


def _present(tags: Sequence[str], values: Sequence[object]) -> dict[str, str]:
    """The tags that a row has: pandas has no text for the others."""
    pairs = zip(tags, values, strict=True)
    return {name: value for name, value in pairs if isinstance(value, str)}


def sampled_mean(rows: pd.DataFrame) -> tuple[Mean | None, SampledMean | None]:
    """The mean of rows of which a sample was judged, and what the judged rows say alone.

    It is of all rows that a judge can score. Rows on which the judge failed count as not judged;
    one that the embedded judge failed on has the mean of its other scores, which is as good as any.
    Where the judge found some of its rows to be none (a response without a statement), nobody knows
    which of the others are none: see `_of_some`. No row scored: None.
    """
    there = rows[~((rows["status"] == Status.NOT_APPLICABLE.value) & rows["cheap"].isna())]
    status, known = there["status"].to_numpy(dtype=str), there["cheap"].to_numpy(dtype=np.float64)
    scored, none = status == Status.SCORED.value, status == Status.NOT_APPLICABLE.value
    if not scored.any():
        return None, None
    y = np.where(scored, there["value"].to_numpy(dtype=np.float64), np.nan)
    f = np.where(np.isnan(known), _middle(known), known)
    question, strata = (there[name].to_numpy(dtype=str) for name in ("question", STRATUM))
    part = _of_some(y, none, question, strata) if none.any() else None
    if part:
        y = np.where(none, part.mean, y)
    found = prediction_powered(f, y, question, strata)
    if found is None:
        return None, None
    best, plain = found.best, found.plain
    if part:
        best, plain = part.alone(best), part.alone(plain)
    judged = scored | none
    told = SampledMean(
        rows=None if part else found.rows,
        mean=plain.mean,
        low=plain.low,
        high=plain.high,
        weight=found.weight,
        spread=None if plain.error is None else plain.error * math.sqrt(found.plain.n),
        correlation=_correlation(f[judged], y[judged], strata[judged]),
    )
    return best, told


@dataclass(frozen=True)
class _ScorableShare:
    """Of the judged rows, the share that is none and the mean of the others."""

    share: float
    """That is not none."""
    mean: float
    rows: int
    """That were scored,"""
    questions: int
    """and the questions that have them."""
    bounded: bool
    """Whether all values are in [0, 1]."""

    def alone(self, whole: Mean) -> Mean:
        """The mean of the scored rows by that of all judged ones."""

        def stretched(value: float) -> float:
            moved = self.mean + (value - self.mean) / self.share
            return min(max(moved, 0.0), 1.0) if self.bounded else moved

        low, high = (None if one is None else stretched(one) for one in (whole.low, whole.high))
        error, mde = (None if one is None else one / self.share for one in (whole.error, whole.mde))
        return Mean(stretched(whole.mean), low, high, self.rows, self.questions, error, mde)


def _of_some(
    y: Floats, none: NDArray[np.bool_], question: NDArray[np.str_], strata: NDArray[np.str_]
) -> _ScorableShare | None:
    """What the judged rows say of those that can be scored: a ratio of two means.

        R = mean(a * y) / mean(a),   a: 1 of a scored row, 0 of one that is none

    With R in place of the values of rows that are none, R is the mean of all judged rows, and what
    moves it or makes it unsure does so by 1 / mean(a) for the scored ones (linearisation: Särndal,
    Swensson and Wretman 1992, chapter 5.6).
    """
    scored = ~np.isnan(y)
    indicator = np.where(scored, 1.0, np.where(none, 0.0, np.nan))
    total = np.where(none, 0.0, y)
    nothing = np.zeros(len(y))
    share, mean = (prediction_powered(nothing, one, question, strata) for one in (indicator, total))
    if share is None or mean is None or not share.plain.mean:
        return None
    return _ScorableShare(
        share=share.plain.mean,
        mean=mean.plain.mean / share.plain.mean,
        rows=int(scored.sum()),
        questions=len(np.unique(question[scored])),
        bounded=bool(y[scored].min() >= 0 and y[scored].max() <= 1),
    )


def _middle(known: Floats) -> float:
    return 0.0 if np.isnan(known).all() else float(np.nanmean(known))


def _correlation(cheap: Floats, expensive: Floats, strata: NDArray[np.str_]) -> float | None:
    """Of both judges' scores, within strata; None where one of them has the same for all rows."""
    code = np.unique(strata, return_inverse=True)[1]
    counts = np.bincount(code)
    f, y = (one - (np.bincount(code, one) / counts)[code] for one in (cheap, expensive))
    squares = float((f @ f) * (y @ y))
    if len(f) < _FEWEST_CORRELATED or squares <= 1e-18:
        return None
    return float(f @ y) / math.sqrt(squares)

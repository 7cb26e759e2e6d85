"""The mean of a sampled night, from the judged rows and the cheap judge's scores of all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragmetrics.records import SampledMean, Status
from ragmetrics.scoring.sampling.plan import Group, stratum_of
from ragmetrics.scoring.sampling.prediction_powered import prediction_powered, row_spread
from ragmetrics.scoring.sampling.uncertainty import cheap_bins
from ragmetrics.stats import Mean, Numbers

if TYPE_CHECKING:
    import pandas as pd

STRATUM = "stratum"
"""Column of a score table: the stratum in which the row was sampled."""
PROBABILITY = "probability"
"""Column of a score table: the inclusion probability of a judged row, with active sampling."""
_FEWEST_CORRELATED = 3


def strata_of(table: pd.DataFrame, tags: Sequence[str], group: Group) -> list[str]:
    """The stratum of each row of a score table with tag columns `tag:NAME`."""
    values = [table[f"tag:{name}"].tolist() for name in tags]
    rows = zip(*values, strict=True) if tags else ((),) * len(table)
    return [
        group.stratum(stratum_of(_present(tags, row), language=None, names=tags)) for row in rows
    ]


def _present(tags: Sequence[str], values: Sequence[object]) -> dict[str, str]:
    """The tags that a row has; for missing tags pandas has a value that is no text."""
    pairs = zip(tags, values, strict=True)
    return {name: value for name, value in pairs if isinstance(value, str)}


def sampled_mean(rows: pd.DataFrame) -> tuple[Mean | None, SampledMean | None]:
    """The mean of all rows that a judge can score, and the mean of the judged rows alone.

    Rows on which the judge failed count as not judged. A row on which the cheap judge failed
    gets the mean of its other scores; any constant would do. If the judge found that some rows
    cannot be scored (a response without a statement), the same is unknown for rows that it did not
    see: see `_scorable_share`. Returns None when no row is scored.
    """
    there = rows[~((rows["status"] == Status.NOT_APPLICABLE.value) & rows["cheap"].isna())]
    status, known = there["status"].to_numpy(dtype=str), there["cheap"].to_numpy(dtype=np.float64)
    scored, none = status == Status.SCORED.value, status == Status.NOT_APPLICABLE.value
    if not scored.any():
        return None, None
    y = np.where(scored, there["value"].to_numpy(dtype=np.float64), np.nan)
    f = np.where(np.isnan(known), _mean_known(known), known)
    question, strata = (there[name].to_numpy(dtype=str) for name in ("question", STRATUM))
    weighted = PROBABILITY in there
    chances = there[PROBABILITY].to_numpy(dtype=np.float64) if weighted else None
    part = _scorable_share(y, none, question, strata, chances) if none.any() else None
    if part:
        y = np.where(none, part.mean, y)
    powered = prediction_powered(f, y, question, strata, chances)
    if powered is None:
        return None, None
    best, plain = powered.best, powered.plain
    if part:
        best, plain = part.alone(best), part.alone(plain)
    judged = scored | none
    weights = np.ones(int(judged.sum())) if chances is None else 1 / chances[judged]
    if chances is None:
        spread = None if plain.error is None else plain.error * math.sqrt(powered.plain.n)
    else:
        spread = row_spread(y, question, chances, strata)
        spread = spread / part.share if spread is not None and part else spread
    sampled = SampledMean(
        rows=None if part else powered.rows,
        mean=plain.mean,
        low=plain.low,
        high=plain.high,
        weight=powered.weight,
        spread=spread,
        correlation=_correlation(f[judged], y[judged], strata[judged], weights),
        effective=powered.effective,
        bins=cheap_bins(f[judged], y[judged], weights) if weighted else [],
    )
    return best, sampled


@dataclass(frozen=True)
class _ScorableShare:
    """Judged rows that can be scored."""

    share: float
    """Share of the judged rows with a score."""
    mean: float
    """Mean of the rows with a score."""
    rows: int
    """Number of rows with a score."""
    questions: int
    """Number of questions of these rows."""
    bounded: bool
    """True when all values are in [0, 1]."""

    def alone(self, whole: Mean) -> Mean:
        """The mean of the scorable rows, from the mean of all judged rows."""

        def stretched(value: float) -> float:
            moved = self.mean + (value - self.mean) / self.share
            return min(max(moved, 0.0), 1.0) if self.bounded else moved

        low, high = (None if one is None else stretched(one) for one in (whole.low, whole.high))
        error, mde = (None if one is None else one / self.share for one in (whole.error, whole.mde))
        return Mean(stretched(whole.mean), low, high, self.rows, self.questions, error, mde)


def _scorable_share(
    y: Numbers,
    none: NDArray[np.bool_],
    question: NDArray[np.str_],
    strata: NDArray[np.str_],
    chances: Numbers | None,
) -> _ScorableShare | None:
    """The mean of the scorable rows as a ratio of two means.

        R = mean(a * y) / mean(a),   a: 1 for a scored row, 0 for a row that cannot be scored

    If rows that cannot be scored get the value R, then R is the mean of all judged rows. A change
    or a standard error of that mean is multiplied by 1 / mean(a) for the scored rows
    (linearisation: Särndal, Swensson and Wretman 1992, chapter 5.6).
    """
    scored = ~np.isnan(y)
    indicator = np.where(scored, 1.0, np.where(none, 0.0, np.nan))
    total = np.where(none, 0.0, y)
    nothing = np.zeros(len(y))
    share, mean = (
        prediction_powered(nothing, values, question, strata, chances)
        for values in (indicator, total)
    )
    if share is None or mean is None or not share.plain.mean:
        return None
    return _ScorableShare(
        share=share.plain.mean,
        mean=mean.plain.mean / share.plain.mean,
        rows=int(scored.sum()),
        questions=len(np.unique(question[scored])),
        bounded=bool(y[scored].min() >= 0 and y[scored].max() <= 1),
    )


def _mean_known(known: Numbers) -> float:
    return 0.0 if np.isnan(known).all() else float(np.nanmean(known))


def _correlation(
    cheap: Numbers, expensive: Numbers, strata: NDArray[np.str_], weights: Numbers
) -> float | None:
    """Correlation of both judges' scores within strata; None when one of them is constant."""
    code = np.unique(strata, return_inverse=True)[1]
    counts = np.bincount(code, weights)
    f, y = (
        (values - (np.bincount(code, weights * values) / counts)[code]) * np.sqrt(weights)
        for values in (cheap, expensive)
    )
    squares = float((f @ f) * (y @ y))
    if len(f) < _FEWEST_CORRELATED or squares <= 1e-18:
        return None
    return float(f @ y) / math.sqrt(squares)

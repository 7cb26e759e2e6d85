"""The mean of a sampled night: the judged rows' scores with the embedded judge's of all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragmetrics.protocol import Status
from ragmetrics.records import SampledMean
from ragmetrics.sample_plan import Group, stratum_of
from ragmetrics.stats.intervals import Mean, mean_interval
from ragmetrics.stats.prediction_powered import prediction_powered

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

    It is of all rows that a judge can score. Where the judge found some of its rows to be none
    (a response without a statement), nobody knows which of the others are none either: then it is
    the plain mean of the judged rows. Rows on which the judge failed count as not judged; one that
    the embedded judge failed on has the mean of its other scores, which is as good as any.
    No row judged: None.
    """
    status = rows["status"].to_numpy(dtype=str)
    cheap = rows["cheap"].to_numpy(dtype=np.float64)
    out = status == Status.NOT_APPLICABLE.value
    if (out & ~np.isnan(cheap)).any():
        return _plainly(rows[status == Status.SCORED.value])
    there = rows[~out]
    judged = there["status"].to_numpy(dtype=str) == Status.SCORED.value
    y = np.where(judged, there["value"].to_numpy(dtype=np.float64), np.nan)
    known = cheap[~out]
    f = np.where(np.isnan(known), _middle(known), known)
    strata = there[STRATUM].to_numpy(dtype=str)
    found = prediction_powered(f, y, there["question"].to_numpy(dtype=str), strata)
    if found is None:
        return None, None
    told = SampledMean(
        rows=found.rows,
        mean=found.plain.mean,
        low=found.plain.low,
        high=found.plain.high,
        weight=found.weight,
        spread=_spread(found.plain),
        correlation=_correlation(f[judged], y[judged], strata[judged]),
    )
    return found.best, told


def _plainly(scored: pd.DataFrame) -> tuple[Mean | None, SampledMean | None]:
    values = scored["value"].to_numpy(dtype=np.float64)
    mean = mean_interval(values, scored["question"].to_numpy(dtype=str))
    if mean is None:
        return None, None
    told = SampledMean(
        rows=None,
        mean=mean.mean,
        low=mean.low,
        high=mean.high,
        weight=0.0,
        spread=_spread(mean),
        correlation=None,
    )
    return mean, told


def _middle(known: Floats) -> float:
    return 0.0 if np.isnan(known).all() else float(np.nanmean(known))


def _spread(plain: Mean) -> float | None:
    """A row's standard deviation, as if all rows were questions of their own."""
    return None if plain.error is None else plain.error * math.sqrt(plain.n)


def _correlation(cheap: Floats, expensive: Floats, strata: NDArray[np.str_]) -> float | None:
    """Of both judges' scores, within strata; None where one of them has the same for all rows."""
    code = np.unique(strata, return_inverse=True)[1]
    counts = np.bincount(code)
    f, y = (one - (np.bincount(code, one) / counts)[code] for one in (cheap, expensive))
    squares = float((f @ f) * (y @ y))
    if len(f) < _FEWEST_CORRELATED or squares <= 1e-18:
        return None
    return float(f @ y) / math.sqrt(squares)

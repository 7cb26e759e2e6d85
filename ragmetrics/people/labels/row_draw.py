"""Rows of a night whose labels narrow the interval most: those on which the judge is uncertain.

A row is drawn with a known chance, by what the store says of it, metric by metric:

    votes    how far the judges of a panel are apart
    spread   how far the judge's repeats are apart; of one with probabilities, how near 0.5 they are
    cheap    how far the cheap judge is from the judge, on sampled nights
    labels   how far people were from the judge on rows of about the same score, from 30 rows on

Where the store says nothing, the draw is uniform. The weight that undoes the chance goes into the
file, and comes back with the labels.
The draw is sequential Poisson sampling: a larger draw only adds rows. The weight of a drawn row is
1 / its relative chance, so estimates that use it are not biased. A sample whose size is fixed is in
`scoring.sampling.inclusion`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragmetrics.errors import InputError
from ragmetrics.metrics import claims
from ragmetrics.people.labels.labelled_scores import LabelledScore
from ragmetrics.records import FEWEST_LABELS, LabelSuggestion, LogRow, Manifest, Status
from ragmetrics.storage import Files, RowLocation, RunRef, StoredPart, by_shard, scored_rows

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ["id", "question", "value", "status", "votes", "spread", "cheap"]
_BINS, _PRIOR = 4, 10
"""Groups of rows by the judge's score, and how many rows the mean of all groups counts as."""

Floats = NDArray[np.float64]
FLOOR, MOST = 0.5, 3.0
"""Least and largest relative chance: a wrong signal can then do little harm."""


@dataclass(frozen=True)
class LabelDraw:
    """The rows of a night in the order in which they are drawn."""

    places: list[RowLocation]
    weights: list[float]
    uniform: bool
    """Whether the store says nothing on which rows are uncertain."""


def draw_rows(
    files: Files,
    night: Manifest,
    known: Mapping[str, Sequence[LabelledScore]],
    labelled: Collection[tuple[str, str]],
) -> LabelDraw:
    """Draw all rows that the judge scored by one of the metrics and that need a label.

    `known` are the metrics to label with the labelled rows that there are; `labelled` are questions
    and ids of rows of this night that have all labels. Raises InputError where no row has a score.
    """
    tables = {one: _scores(files, night, one) for one in known if night.summary(one)}
    if not tables or not any(len(table) for table in tables.values()):
        raise InputError(f"night {night.date} has no row scored by {', '.join(known)}")
    scored = np.any([table["status"] == Status.SCORED.value for table in tables.values()], axis=0)
    signals = [
        signal for metric, table in tables.items() for signal in _signals(table, known[metric])
    ]
    chances = relative_chances([signal[scored] for signal in signals], int(scored.sum()))
    rows = next(iter(tables.values()))[scored]
    keys = list(zip(rows["question"].tolist(), rows["id"].tolist(), strict=True))
    found = list(zip(rows["shard"].tolist(), rows["position"].tolist(), strict=True))
    uniform = [_number(night, *key) for key in keys]
    order = [at for at in draw_order(uniform, chances).tolist() if keys[at] not in labelled]
    weights = [float(1 / chances[at]) for at in order]
    return LabelDraw([found[at] for at in order], weights, bool(np.allclose(chances, 1.0)))


def _scores(files: Files, night: Manifest, metric: str) -> pd.DataFrame:
    """The scores of a night in the order of its rows; StoreError where a part is gone."""
    import pandas as pd

    ref = RunRef.of(night)
    parts = [
        StoredPart(files, ref.scores(metric, shard))
        .columns(_COLUMNS)
        .to_pandas()
        .assign(shard=shard)
        .rename_axis("position")
        .reset_index()
        for shard in range(ref.shards)
    ]
    whole: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return whole


def _signals(table: pd.DataFrame, labelled: Sequence[LabelledScore]) -> list[Floats]:
    """How uncertain each row is, by all that is known. Rows without a value count as the mean."""
    value = table["value"].to_numpy(dtype=np.float64)
    cheap = table["cheap"].to_numpy(dtype=np.float64)
    votes = [_known_values(row) for row in table["votes"].tolist()]
    found = [
        np.array([float(vote.std()) if len(vote) > 1 else np.nan for vote in votes]),
        table["spread"].to_numpy(dtype=np.float64),
        np.abs(cheap - value),
    ]
    if len(labelled) >= FEWEST_LABELS:
        found.append(_label_spread(value, labelled))
    return found


def _known_values(votes: Sequence[float | None] | None) -> Floats:
    """The values of the judges that gave one."""
    given = () if votes is None else votes
    return np.array([one for one in given if one is not None and one == one], dtype=np.float64)


def _label_spread(value: Floats, labelled: Sequence[LabelledScore]) -> Floats:
    """Standard deviation of people minus judge among labelled rows of about the same score."""
    judge = np.array([one.judge for one in labelled])
    apart = np.array([one.value for one in labelled]) - judge
    apart -= apart.mean()
    cuts = np.unique(np.quantile(judge, np.linspace(0, 1, _BINS + 1)[1:-1]))
    own = np.searchsorted(cuts, judge, side="right")
    count = np.bincount(own, minlength=len(cuts) + 1)
    squares = np.bincount(own, np.square(apart), len(cuts) + 1)
    spread = np.sqrt((squares + _PRIOR * float(np.square(apart).mean())) / (count + _PRIOR))
    found = spread[np.searchsorted(cuts, np.nan_to_num(value), side="right")]
    return np.where(np.isnan(value), np.nan, found)


def _number(night: Manifest, question: str, name: str) -> float:
    """The number in (0, 1) of a row, which is the same in every draw."""
    text = f"{night.dataset}/{night.date}/{question}/{name}".encode("utf-8", "surrogatepass")
    whole = int.from_bytes(hashlib.blake2b(text, digest_size=6).digest())
    return (whole + 0.5) / 2**48


def suggest_rows(
    files: Files, night: Manifest, metrics: Sequence[str], draw: LabelDraw, count: int
) -> list[LabelSuggestion]:
    """The first `count` rows of a draw, with the texts that a person needs to label them."""
    places, weights = draw.places[:count], draw.weights[:count]
    rows = scored_rows(files, RunRef.of(night), [], by_shard(places))
    return [
        _suggestion(rows[place].row, night, metrics, weight)
        for place, weight in zip(places, weights, strict=True)
        if place in rows
    ]


def _suggestion(
    row: LogRow, night: Manifest, metrics: Sequence[str], weight: float
) -> LabelSuggestion:
    return LabelSuggestion(
        id=row.id,
        user_input=row.user_input,
        night=night.date,
        sampling_weight=round(weight, 6),
        metrics=list(metrics),
        contexts=list(row.retrieved_contexts),
        response=row.response,
        reference=row.reference,
        sentences=list(claims(row.reference, row.language)),
    )


def relative_chances(signals: Sequence[ArrayLike], rows: int) -> Floats:
    """The chance of each row relative to a uniform draw; 1 on average.

        chance = 1/2 + 1/2 * mean of (signal / its own mean),   at most 3, then divided by its mean

    A signal is how uncertain each row is, at least 0; NaN counts as its mean. A signal that is the
    same for all rows says nothing. Without one the draw is uniform. In proportion to the standard
    deviation of what is estimated, a draw has the least error; the half that is uniform limits the
    loss where a signal is wrong. Source: Zrnic and Candès 2024, "Active statistical inference".
    """
    usable = [signal for signal in map(_relative, signals) if signal is not None]
    if not usable:
        return np.ones(rows)
    chances = np.minimum(FLOOR + (1 - FLOOR) * np.mean(usable, axis=0), MOST)
    return np.asarray(chances / chances.mean())


def _relative(signal: ArrayLike) -> Floats | None:
    """The signal divided by its mean; None where it says nothing."""
    values = np.asarray(signal, dtype=np.float64)
    known = values[np.isfinite(values)]
    if not len(known) or float(np.ptp(known)) < 1e-9:
        return None
    mean = float(known.mean())
    return np.where(np.isfinite(values), values, mean) / mean


def draw_order(uniform: ArrayLike, chances: ArrayLike) -> NDArray[np.intp]:
    """The rows in the order in which they are drawn.

        row i comes before row j if  u_i / chance_i < u_j / chance_j

    `uniform` has one number in (0, 1) per row, which never changes. So the first rows are a draw of
    any size, in which the chance of a row is nearly in proportion to its relative one, and a larger
    draw only adds rows. Source: Ohlsson 1998, "Sequential Poisson sampling".
    """
    keys = np.asarray(uniform, dtype=np.float64) / np.asarray(chances, dtype=np.float64)
    return np.argsort(keys, kind="stable")

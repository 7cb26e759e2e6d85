"""The mix effect: the part of a metric's change that is due to another mix of tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ragmetrics.comparison.alignment import Aligned
from ragmetrics.model import MetricChange, mix_text
from ragmetrics.stats import Codes, Drop, Strata, StratifiedRows, choose_strata, like_for_like

MOST_VALUES = 20
"""Most values of a chosen tag: one with more values names items, not kinds."""


def without_mix(plain: Drop, aligned: Aligned) -> Drop:
    """The drop from A to B, like compared with like by the tags that explain the scores of A.

    A paired drop stays as it is. So does a drop where no tag explains the scores.
    """
    if plain.paired:
        return plain
    end = len(aligned.rows[0].values)
    strata = choose_strata(_rows(aligned, 0), _tags(aligned), slice(0, end))
    if not strata.tags:
        return plain
    sides = (_rows(aligned, side, strata) for side in (0, 1))
    return replace(like_for_like(plain, *sides), mix_tags=strata.tags)


def mix_notices(changes: Sequence[MetricChange]) -> list[str]:
    """One sentence per metric: the part of its change that is the mix."""
    found = []
    for one in changes:
        if one.mix is None or one.mean_a is None or one.mean_b is None:
            continue
        if text := mix_text(one.mean_a - one.mean_b, -one.mix, one.mix_tags):
            found.append(f"{one.metric}: {text}; B − A is like for like, without it")
    return found


def _rows(aligned: Aligned, side: int, strata: Strata | None = None) -> StratifiedRows:
    rows = aligned.rows[side]
    end = len(aligned.rows[0].values)
    own = slice(end, None) if side else slice(0, end)
    return StratifiedRows(
        np.unique(rows.questions, return_inverse=True)[1].astype(np.intp),
        rows.values,
        [level[own] for level in strata.levels] if strata else (),
    )


def _tags(aligned: Aligned) -> Mapping[str, Codes]:
    """The value of each row of both sides as a number, for the tags that both sides have."""
    import pandas as pd

    old, new = (side.table for side in aligned.rows)
    found = {}
    for column in map(str, old.columns):
        if column.startswith("tag:") and column in new and 1 < old[column].nunique() <= MOST_VALUES:
            values = pd.concat([old[column], new[column]], ignore_index=True)
            codes = pd.factorize(values, use_na_sentinel=False)[0]
            found[column.removeprefix("tag:")] = codes.astype(np.intp)
    return found

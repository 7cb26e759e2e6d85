"""The mix: of what a metric moved between two sides, what comes of another mix of tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ragmetrics.comparison.alignment import Aligned
from ragmetrics.model import MetricChange, mix_text
from ragmetrics.stats import Codes, Drop, Strata, StratifiedRows, choose_strata, like_for_like

MOST_VALUES = 20
"""Of a tag that is chosen: one of more values names things, not kinds."""


def without_mix(plain: Drop, aligned: Aligned) -> Drop:
    """The drop from A to B, like held against like by the tags that explain the scores of A.

    It stays as it is where it is paired, and where no tag explains them.
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
    """What of each metric's move is the mix, in a sentence each."""
    found = []
    for one in changes:
        if one.mix is None or one.mean_a is None or one.mean_b is None:
            continue
        if told := mix_text(one.mean_a - one.mean_b, -one.mix, one.mix_tags):
            found.append(f"{one.metric}: {told}; B − A is like for like, without it")
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
    """The value of each row of both sides, as a number, of the tags that both have."""
    import pandas as pd

    old, new = (side.table for side in aligned.rows)
    found = {}
    for column in map(str, old.columns):
        if column.startswith("tag:") and column in new and 1 < old[column].nunique() <= MOST_VALUES:
            values = pd.concat([old[column], new[column]], ignore_index=True)
            codes = pd.factorize(values, use_na_sentinel=False)[0]
            found[column.removeprefix("tag:")] = codes.astype(np.intp)
    return found

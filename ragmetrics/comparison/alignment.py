"""One metric on two sides, question by question, as arrays: fast for large nights.

Both sides share one numbering of questions. An array of means has a question's mean at its number,
or NaN where the side, or the segment, has no scored row of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragmetrics.model import BUILDS
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import Numbers

if TYPE_CHECKING:
    import pandas as pd

_SAME = 1e-9
"""Means of equal values may differ by rounding."""


@dataclass(frozen=True)
class Rows:
    """The scored rows of one metric on one side."""

    table: pd.DataFrame
    values: Numbers
    questions: NDArray[np.intp]
    """The number of each row's question."""
    count: int
    """Count of numbered questions."""

    def means(self, only: NDArray[np.bool_] | slice = slice(None)) -> Numbers:
        """The mean of each question's rows, or of the selected rows."""
        values, questions = self.values[only], self.questions[only]
        counts = np.bincount(questions, minlength=self.count)
        sums = np.bincount(questions, weights=values, minlength=self.count)
        means = np.full(self.count, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means

    def by_value(self, tag: str) -> dict[str, NDArray[np.bool_]]:
        """The rows with each value of a tag, as a mask."""
        import pandas as pd

        column = tag if tag == BUILDS else f"tag:{tag}"
        if column not in self.table:
            return {}
        numbers, values = pd.factorize(self.table[column])  # a row without the tag: -1
        return {str(value): numbers == number for number, value in enumerate(values)}


@dataclass(frozen=True)
class Aligned:
    """The scored rows of one metric on both sides, with the same numbering of questions."""

    metric: str
    questions: NDArray[Any]
    """In alphabetical order."""
    rows: tuple[Rows, Rows]
    a: Numbers
    """The mean of each question over its rows of A."""
    b: Numbers
    """The mean of each question over its rows of B."""
    higher_is_better: bool = True

    def by_value(self, tag: str) -> Iterator[tuple[str, Numbers, Numbers]]:
        """Each value of a tag with its means on both sides; rows without the tag are left out."""
        old, new = (side.by_value(tag) for side in self.rows)
        nowhere = np.full(len(self.questions), np.nan)
        for value in sorted(old.keys() | new.keys()):
            yield (
                value,
                self.rows[0].means(old[value]) if value in old else nowhere,
                self.rows[1].means(new[value]) if value in new else nowhere,
            )

    def furthest(self, count: int) -> list[int]:
        """Numbers of the common questions that changed most; losses first among equal changes."""
        change = np.nan_to_num(self.b - self.a)
        moved = np.flatnonzero(np.abs(change) > _SAME)
        sign = 1 if self.higher_is_better else -1
        far = np.round(np.abs(change[moved]), 9)
        return [int(one) for one in moved[np.lexsort((sign * change[moved], -far))][:count]]

    def places_of(self, questions: Sequence[str]) -> NDArray[np.intp]:
        """The numbers of questions; -1 for a question without a scored row."""
        wanted = np.array(questions, dtype=object)
        places = np.searchsorted(self.questions, wanted)
        known = places < len(self.questions)
        known[known] = self.questions[places[known]] == wanted[known]
        return np.where(known, places, -1)


def align_rows(a: MetricScores, b: MetricScores) -> Aligned:
    """The scored rows of both sides, by question."""
    import pandas as pd

    tables = a.scored, b.scored
    asked = pd.concat([one["question"] for one in tables], ignore_index=True)
    numbers, questions = pd.factorize(asked.to_numpy(dtype=object), sort=True)
    half = len(tables[0])
    old, new = (
        Rows(table, table["value"].to_numpy(dtype=np.float64), own, len(questions))
        for table, own in zip(tables, (numbers[:half], numbers[half:]), strict=True)
    )
    return Aligned(b.metric, questions, (old, new), old.means(), new.means(), b.higher_is_better)

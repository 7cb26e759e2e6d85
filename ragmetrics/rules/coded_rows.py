"""The scored rows of nights as numbers, cached for the rules of a metric.

Questions and values of tags are numbered once, with the same numbers in joined nights.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ragmetrics.records import Segment
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import Codes, Numbers

MOST_VALUES = 20
"""Most values of an automatically chosen tag: one with more values names items, not kinds."""


@dataclass(frozen=True)
class CodedTag:
    """The value of each row as an index into `names`; the name None means rows without the tag."""

    codes: Codes
    names: Sequence[str | None]


@dataclass(frozen=True)
class CodedRows:
    """The scored rows of a night."""

    questions: Codes
    values: Numbers
    tags: Mapping[str, CodedTag]

    def only(self, rows: NDArray[np.bool_]) -> CodedRows:
        """Some of the rows."""
        tags = {name: CodedTag(one.codes[rows], one.names) for name, one in self.tags.items()}
        return CodedRows(self.questions[rows], self.values[rows], tags)

    def with_tags(self, tags: Collection[str]) -> CodedRows:
        """The rows with some of their tags."""
        return replace(self, tags={tag: self.tags[tag] for tag in tags})

    def of_segment(self, segment: Segment | None) -> CodedRows:
        """The rows of one segment, or all."""
        if segment is None:
            return self
        tag = self.tags.get(segment.tag)
        if tag is None or segment.value not in tag.names:
            return self.only(np.zeros(len(self.values), dtype=bool))
        return self.only(tag.codes == list(tag.names).index(segment.value))


@dataclass
class RowCoder:
    """Numbers the rows of nights, and caches them until the next metric."""

    _metric: str = ""
    _questions: dict[str, int] = field(default_factory=dict)
    _cache: dict[str, CodedRows] = field(default_factory=dict)

    def code(self, place: str, scores: MetricScores, named: Collection[str]) -> CodedRows:
        """The rows of the night called `place`. Tags with very many values are left out, unless
        they are `named`.
        """
        if scores.metric != self._metric:
            self._metric = scores.metric
            self._questions.clear()
            self._cache.clear()
        if place not in self._cache:
            self._cache[place] = self._coded(scores, named)
        return self._cache[place]

    def numbers(self, questions: Collection[str]) -> NDArray[np.intp]:
        """The numbers of those questions that have one."""
        known = (self._questions.get(question) for question in questions)
        return np.array([one for one in known if one is not None], dtype=np.intp)

    def _coded(self, scores: MetricScores, named: Collection[str]) -> CodedRows:
        import pandas as pd

        rows, tags = scores.compared, {}
        for column in map(str, rows.columns):
            tag = column.removeprefix("tag:")
            if tag == column:
                continue
            codes, names = pd.factorize(rows[column], use_na_sentinel=False)
            if tag in named or len(names) <= MOST_VALUES:
                named_values = [name if isinstance(name, str) else None for name in names]
                tags[tag] = CodedTag(codes.astype(np.intp), named_values)
        numbers = self._questions
        questions = [numbers.setdefault(name, len(numbers)) for name in rows["question"].tolist()]
        values = rows["value"].to_numpy(dtype=np.float64)
        return CodedRows(np.array(questions, dtype=np.intp), values, tags)


def joined(nights: Sequence[CodedRows], tag: str) -> tuple[Codes, int]:
    """The values of a tag over several nights with common numbers, and the count of values."""
    numbers: dict[str | None, int] = {}
    found = []
    for night in nights:
        own = night.tags.get(tag)
        if own is None:
            found.append(np.full(len(night.values), numbers.setdefault(None, len(numbers))))
            continue
        places = [numbers.setdefault(name, len(numbers)) for name in own.names]
        found.append(np.array(places, dtype=np.intp)[own.codes] if places else own.codes)
    return np.concatenate(found).astype(np.intp), len(numbers)

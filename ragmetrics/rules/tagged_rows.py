"""The scored rows of nights as numbers with their tags, and the means by tag that manifests keep.

Questions and values of tags are numbered once, with the same numbers in joined nights. A manifest
keeps the means for the tags that explain its night's scores best, or for those that `mix_tags`
names, together as one tag. By them the levels of many nights are those of one mix of questions, and
no row of an earlier night is read again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragmetrics.config import AlertSettings
from ragmetrics.records import Manifest, Segment, Summary, TagMean
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import Codes, Numbers, StratifiedRows

MOST_VALUES = 20
"""Most values of an automatically chosen tag: one with more values names items, not kinds."""
_SURE = 0.01
"""Significance level at which a tag explains scores."""
_MOST_NIGHTS = 0.9
"""Least share of nights that have the tag."""
_MOST_TAGS = 5
_MOST_CELLS = 100
"""Most cells of named tags: with more, the manifests would grow, and most cells have few rows."""
_DIGITS = 6


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


def with_tag_means(
    settings: AlertSettings,
    metrics: Sequence[str],
    manifest: Manifest,
    scores: Mapping[str, MetricScores],
) -> Manifest:
    """The manifest with the means by tag of some metrics; a sampled mean has none, because its
    judged rows are not the mix of the night.
    """
    if settings.mix_tags == ():
        return manifest
    summaries = [
        metric.model_copy(update={"by_tag": _tag_means(scores[metric.metric], settings.mix_tags)})
        if metric.metric in metrics and metric.scored and not metric.sample
        else metric
        for metric in manifest.metrics
    ]
    return manifest.model_copy(update={"metrics": summaries})


def tag_chance(means: Sequence[Mapping[str, TagMean]]) -> float:
    """p of the F test that all values of a tag have one mean, over some nights together."""
    cells: dict[str, list[TagMean]] = {}
    for name, mean in ((name, one) for night in means for name, one in night.items()):
        cells.setdefault(name, []).append(mean)
    counts = np.array([sum(one.questions for one in own) for own in cells.values()])
    sums = np.array([sum(one.questions * one.mean for one in own) for own in cells.values()])
    squares = sum(
        mean.scatter + mean.questions * mean.mean**2 for cell in cells.values() for mean in cell
    )
    more, rest = len(cells) - 1, float(counts.sum()) - len(cells)
    if more < 1 or rest <= 0:
        return 1.0
    between = float((sums**2 / counts).sum() - sums.sum() ** 2 / counts.sum())
    within = squares - float((sums**2 / counts).sum())
    if within <= 0:
        return 0.0 if between > 0 else 1.0
    return float(special.fdtrc(more, rest, between / more / (within / rest)))


def _tag_means(scores: MetricScores, named: Sequence[str] | None) -> dict[str, dict[str, TagMean]]:
    rows = RowCoder().code("", scores, named or ())
    if named is not None:
        codes, names = _crossed(rows, named)
        few = len(names) <= _MOST_CELLS
        return {" and ".join(named): _means(rows, codes, names)} if few else {}
    found = {
        tag: _means(rows, coded.codes, [name or "" for name in coded.names])
        for tag, coded in rows.tags.items()
        if len(coded.names) <= MOST_VALUES
    }
    best = sorted(found, key=lambda tag: (tag_chance([found[tag]]), tag))[:_MOST_TAGS]
    return {tag: found[tag] for tag in sorted(best)}


def _crossed(rows: CodedRows, named: Sequence[str]) -> tuple[Codes, list[str]]:
    """The cells of several tags together, with their names."""
    codes, names = np.zeros(len(rows.values), dtype=np.intp), [""]
    for tag in (rows.tags[name] for name in named if name in rows.tags):
        cells = codes * len(tag.names) + tag.codes
        used, codes = np.unique(cells, return_inverse=True)
        pairs = [divmod(int(cell), len(tag.names)) for cell in used]
        names = [f"{names[old]} | {tag.names[new] or ''}" for old, new in pairs]
    return codes.astype(np.intp), names


def _means(rows: CodedRows, codes: Codes, names: Sequence[str]) -> dict[str, TagMean]:
    questions = np.unique(rows.questions, return_inverse=True)[1].astype(np.intp)
    votes = StratifiedRows(questions, rows.values).votes
    count, values = len(names), rows.values
    own = np.bincount(codes, weights=votes, minlength=count)
    means = np.bincount(codes, weights=votes * values, minlength=count) / own
    scatter = np.bincount(codes, weights=votes * (values - means[codes]) ** 2, minlength=count)
    return {
        name: TagMean(
            questions=round(float(own[place]), _DIGITS),
            mean=round(float(means[place]), _DIGITS),
            scatter=round(float(scatter[place]), _DIGITS),
        )
        for place, name in enumerate(names)
    }


def standardising_tag(nights: Sequence[Summary]) -> str | None:
    """The tag that explains the scores of some nights best, among the tags that most of them have;
    None where no tag explains them.
    """
    least = _MOST_NIGHTS * len(nights)
    tags = sorted({tag for night in nights for tag in night.by_tag})
    known = {tag: [night.by_tag[tag] for night in nights if tag in night.by_tag] for tag in tags}
    tested = [(tag_chance(own), tag) for tag, own in known.items() if len(own) >= least]
    chance, tag = min(tested, default=(1.0, None))
    return tag if chance * len(tested) < _SURE else None

"""The sides of a comparison: their scores, and each metric's scores question by question.

A side is one run, or several nights together. `align_rows` puts a metric's rows of both sides into
arrays, with one numbering of questions; this is fast for large nights. An array of means has a
question's mean at its number, or NaN where the side, or the segment, has no scored row of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragmetrics.records import BUILDS, UNSETTLED, ComparedSide, LogRow, Manifest, Usage
from ragmetrics.scoring import MetricScores, load_scores
from ragmetrics.stats import Numbers, ratio
from ragmetrics.storage import Files, RowLocation, RunRef, by_shard, scored_rows

if TYPE_CHECKING:
    import pandas as pd

_MOST_TAGS = 6
_MOST_BUILDS = 20
_TAG = "tag:"
_SAME = 1e-9
"""Means of equal values may differ by rounding."""


@dataclass(frozen=True)
class ScoredSide:
    """One side with its scores."""

    about: ComparedSide
    scores: Mapping[str, MetricScores]
    """Scores by metric; column `night` is the position of the row's run in `runs`."""
    files: Files
    runs: Sequence[RunRef]
    notices: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    """Usage of the comparison itself."""
    nights: Sequence[Manifest] = ()
    """Manifests of its runs."""
    build: str | None = None
    """The index build whose rows are used; None: all rows."""

    @property
    def tags(self) -> set[str]:
        """The tags of its rows."""
        filled = (scores.table.notna().any() for scores in self.scores.values())
        names = {str(name) for columns in filled for name, some in columns.items() if some}
        return {name.removeprefix(_TAG) for name in names if name.startswith(_TAG)}

    def rows_of(self, questions: Collection[str]) -> dict[str, LogRow]:
        """The first row of each question, where the rows are still in the store."""
        places: dict[int, dict[str, RowLocation]] = {}
        for score in self.scores.values():
            known = {question for own in places.values() for question in own}
            rows = score.table[score.table["question"].isin(set(questions) - known)]
            columns = (rows[name] for name in ("question", "night", "shard", "position"))
            for question, night, shard, position in zip(*columns, strict=True):
                if question not in known:
                    known.add(question)
                    places.setdefault(int(night), {})[question] = int(shard), int(position)
        found: dict[str, LogRow] = {}
        for night, wanted_places in places.items():
            run, wanted = self.runs[night], by_shard(wanted_places.values())
            stored = {
                shard: at for shard, at in wanted.items() if self.files.exists(run.rows(shard))
            }
            there = scored_rows(self.files, run, [], stored)
            found |= {q: there[place].row for q, place in wanted_places.items() if place in there}
        return found


def scored_side(
    name: str,
    files: Files,
    nights: Sequence[Manifest],
    scores: Mapping[str, MetricScores],
    build: str | None = None,
) -> ScoredSide:
    """A side of some runs, with notes on its numbers. Data set and judge are those of the first
    run, to which scores without a column `night` belong.
    """
    scores = {
        name: score if "night" in score.table else replace(score, table=score.table.assign(night=0))
        for name, score in scores.items()
    }
    sources = [night.source for night in nights]
    about = ComparedSide(
        name=name,
        dataset=nights[0].dataset,
        judge=nights[0].judge,
        rows=max((len(score.table) for score in scores.values()), default=0),
        quarantined=sum(source.quarantined for source in sources),
        redact=any(night.redacts for night in nights),
    )
    broken = (f"{one.file} is read in part: {one.reason}" for s in sources for one in s.broken)
    problems = (problem for night in nights for problem in night.problems)
    return ScoredSide(
        about,
        scores,
        files,
        [RunRef.of(night) for night in nights],
        notices=[
            *dict.fromkeys(" ".join(source.note.split()) for source in sources if source.note),
            *_unsettled(scores),
            *_samples(nights),
            *_moved(nights, scores),
        ],
        problems=list(dict.fromkeys([*broken, *problems])),
        nights=nights,
        build=build,
    )


def shown_tags(now: Manifest, before: Manifest | None = None) -> list[str]:
    """The tags of a night's segments, and the index build where there are a few builds."""
    shown = dict.fromkeys(segment.segment.tag for segment in now.segments if segment.segment)
    builds = {build for side in (now, before or now) for build in side.source.index_builds}
    return [*list(shown)[:_MOST_TAGS], *([BUILDS] if 1 < len(builds) <= _MOST_BUILDS else [])]


def shared_tags(a: ScoredSide, b: ScoredSide) -> list[str]:
    """Those of the shown tags that rows of both sides have; a build is compared as a whole."""
    there = a.tags & b.tags if a.build or b.build else {*(a.tags & b.tags), BUILDS}
    return [tag for tag in shown_tags(b.nights[0], a.nights[0]) if tag in there]


def read_nights(
    files: Files,
    nights: Sequence[Manifest],
    metric: str,
    tags: Collection[str] = (),
    build: str | None = None,
) -> MetricScores:
    """A metric's scores of the nights that have it, for one index build or all. Column `night` is
    the position of the row's night.
    """
    import pandas as pd

    better: bool | None = True
    tables = []
    for number, night in enumerate(nights):
        if summary := night.summary(metric):
            scores = load_scores(files, RunRef.of(night), metric, tags)
            table = scores.moved(night).table
            if build is not None:
                table = table[table[BUILDS] == build]
            tables.append(table.assign(night=number))
            better = summary.higher_is_better
    return MetricScores(metric, pd.concat(tables, ignore_index=True), better)


def _unsettled(scores: Mapping[str, MetricScores]) -> list[str]:
    """Notes on rows without a verdict: the compared rows may not represent them."""
    notes = []
    for name, scored in scores.items():
        counts = Counter(scored.table["status"].tolist())
        lacking = sum(counts[status] for status in UNSETTLED)
        if lacking:
            notes.append(
                f"{name}: the judge gave no verdict on {lacking:,} of {len(scored.table):,} rows"
            )
    return notes


def _moved(nights: Sequence[Manifest], metrics: Collection[str]) -> list[str]:
    """Notes on scores of a replaced judge, which are moved to the level of its successor."""
    moved = {
        f"{summary.metric} was scored by {night.judge.of(summary.metric).name} and is moved by "
        f"{summary.moved_by.offset:+.3f}, the offset of the judge that replaced it": None
        for night in nights
        for summary in night.metrics
        if summary.moved_by and summary.metric in metrics
    }
    return list(moved)


def _samples(nights: Sequence[Manifest]) -> list[str]:
    """Notes on rows that a budget or a sample left out."""
    shares = [night.budget.share for night in nights if night.budget and night.budget.share < 1]
    notes = [f"the budget allowed {min(shares):.1%} of the questions"] if shares else []
    counts = [(night.sample.judged, night.source.rows) for night in nights if night.sample]
    judged, rows = (sum(count) for count in zip(*counts, strict=True)) if counts else (0, 0)
    if judged < rows:
        notes.append(f"a sample of {judged:,} of {rows:,} rows was judged: only these are compared")
    return notes


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
        return ratio(sums.astype(np.float64), counts.astype(np.float64))

    def by_value(self, tag: str) -> dict[str, NDArray[np.bool_]]:
        """The rows with each value of a tag, as a mask."""
        import pandas as pd

        column = tag if tag == BUILDS else f"{_TAG}{tag}"
        if column not in self.table:
            return {}
        numbers, values = pd.factorize(self.table[column])  # a row without the tag: -1
        return {str(value): numbers == number for number, value in enumerate(values)}


@dataclass(frozen=True)
class Aligned:
    """The scored rows of one metric on both sides, with the same numbering of questions."""

    metric: str
    questions: NDArray[Any]
    """The questions, in alphabetical order."""
    rows: tuple[Rows, Rows]
    scores: tuple[MetricScores, MetricScores]
    a: Numbers
    """The mean of each question over its rows of A."""
    b: Numbers
    """The mean of each question over its rows of B."""
    higher_is_better: bool | None = True

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

    def place_of(self, question: str) -> int | None:
        """The number of a question; None for a question without a scored row."""
        place = int(np.searchsorted(self.questions, question))
        known = place < len(self.questions) and self.questions[place] == question
        return place if known else None


def align_rows(a: MetricScores, b: MetricScores) -> Aligned:
    """The scored rows of both sides, by question."""
    import pandas as pd

    tables = a.compared, b.compared
    asked = pd.concat([table["question"] for table in tables], ignore_index=True)
    numbers, questions = pd.factorize(asked.to_numpy(dtype=object), sort=True)
    half = len(tables[0])
    old, new = (
        Rows(table, table["value"].to_numpy(dtype=np.float64), codes, len(questions))
        for table, codes in zip(tables, (numbers[:half], numbers[half:]), strict=True)
    )
    means = old.means(), new.means()
    return Aligned(b.metric, questions, (old, new), (a, b), *means, b.higher_is_better)

"""A side of a comparison with its scores: one run, or several nights together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ragmetrics.model import BUILDS, UNSETTLED, ComparedSide, LogRow, Manifest, Usage
from ragmetrics.scoring import MetricScores, load_scores
from ragmetrics.storage import Files, RunRef, ref_of, scored_rows


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

    def rows_of(self, questions: Collection[str]) -> dict[str, LogRow]:
        """The first row of each question, where the rows are still in the store."""
        places: dict[str, tuple[int, int, int]] = {}
        for one in self.scores.values():
            rows = one.table[one.table["question"].isin(set(questions) - places.keys())]
            columns = (rows[name] for name in ("question", "night", "shard", "position"))
            for question, night, shard, position in zip(*columns, strict=True):
                places.setdefault(question, (int(night), int(shard), int(position)))
        nights = {night for night, _, _ in places.values()}
        found = {night: self._rows_at(night, places.values()) for night in nights}
        return {
            question: found[night][shard, position]
            for question, (night, shard, position) in places.items()
            if (shard, position) in found[night]
        }

    def _rows_at(
        self, night: int, places: Collection[tuple[int, int, int]]
    ) -> dict[tuple[int, int], LogRow]:
        wanted: dict[int, set[int]] = {}
        for of_night, shard, position in places:
            if of_night == night:
                wanted.setdefault(shard, set()).add(position)
        run = self.runs[night]
        stored = {shard: at for shard, at in wanted.items() if self.files.exists(run.rows(shard))}
        rows = scored_rows(self.files, run, [], stored)
        return {place: one.row for place, one in rows.items()}


def scored_side(
    name: str, files: Files, nights: Sequence[Manifest], scores: Mapping[str, MetricScores]
) -> ScoredSide:
    """A side of some runs, with notes on its numbers. Data set and judge are those of the first
    run.
    """
    sources = [night.source for night in nights]
    about = ComparedSide(
        name=name,
        dataset=nights[0].dataset,
        judge=nights[0].judge,
        rows=max((len(one.table) for one in scores.values()), default=0),
        quarantined=sum(one.quarantined for one in sources),
        redact=any(one.redacts for one in nights),
    )
    broken = (f"{one.file} is read in part: {one.reason}" for s in sources for one in s.broken)
    problems = (problem for night in nights for problem in night.problems)
    return ScoredSide(
        about,
        scores,
        files,
        [ref_of(one) for one in nights],
        notices=[*_unsettled(scores), *_samples(nights)],
        problems=list(dict.fromkeys([*broken, *problems])),
        nights=nights,
    )


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

    tables, better = [], True
    for number, night in enumerate(nights):
        if summary := night.summary(metric):
            table = load_scores(files, ref_of(night), metric, tags).table
            if build is not None:
                table = table[table[BUILDS] == build]
            tables.append(table.assign(night=number))
            better = summary.higher_is_better
    return MetricScores(metric, pd.concat(tables, ignore_index=True), better)


def _unsettled(scores: Mapping[str, MetricScores]) -> list[str]:
    """Notes on rows without a verdict: the compared rows may not represent them."""
    notes = []
    for name, one in scores.items():
        counts = Counter(one.table["status"])
        lacking = sum(counts[status] for status in UNSETTLED)
        if lacking:
            notes.append(
                f"{name}: the judge gave no verdict on {lacking:,} of {len(one.table):,} rows"
            )
    return notes


def _samples(nights: Sequence[Manifest]) -> list[str]:
    """Notes on rows that a budget or a sample left out."""
    shares = [night.budget.share for night in nights if night.budget and night.budget.share < 1]
    notes = [f"the budget allowed {min(shares):.1%} of the questions"] if shares else []
    counts = [(night.sample.judged, night.source.rows) for night in nights if night.sample]
    judged, rows = (sum(count) for count in zip(*counts, strict=True)) if counts else (0, 0)
    if judged < rows:
        notes.append(f"a sample of {judged:,} of {rows:,} rows was judged: only these are compared")
    return notes
